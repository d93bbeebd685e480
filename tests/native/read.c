// Prints a trace through the API for C, a record on each line in the form of `trace dump`, then the warnings:
// `read FILE`. With `-` as the name, the trace comes from standard input through a callback; with `=FILE`,
// from memory.
#include <trace-reader/c_api.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char* const kRecordTypes[16] = {"metadata", "initialization", "string", "thread", "event", "blob",
                                             "userspace-object", "kernel-object", "scheduling", "log", "profiler",
                                             NULL, NULL, NULL, NULL, "large"};
static const char* const kEvents[11] = {"instant", "counter", "begin", "end", "complete", "async-begin",
                                        "async-instant", "async-end", "flow-begin", "flow-step", "flow-end"};
static const char* const kScopes[3] = {"thread", "process", "global"};
static const char* const kStates[6] = {"new", "running", "suspended", "blocked", "dying", "dead"};

static void print_text(trace_reader_text_t text) {
  putchar('"');
  for (size_t i = 0; i < text.length; ++i) {
    unsigned char byte = (unsigned char)text.data[i];
    if (byte == '"' || byte == '\\') putchar('\\');
    unsigned char next = i + 1 < text.length ? (unsigned char)text.data[i + 1] : 0;
    if (byte == '\n') {
      printf("\\n");
    } else if (byte >= 0xc2 && byte < 0xe0 && (next & 0xc0) == 0x80) {
      // Two bytes in UTF-8.
      printf("%c%c", byte, next);
      ++i;
    } else if (byte < 0x20 || byte >= 0x7f) {
      printf("\\x%02x", byte);
    } else {
      putchar(byte);
    }
  }
  putchar('"');
}

static void print_bytes(trace_reader_text_t bytes, uint64_t all) {
  printf("blob[%" PRIu64 "]", all);
  for (size_t i = 0; i < bytes.length && i < 16; ++i) {
    printf("%s%02x", i == 0 ? ":" : "", (unsigned char)bytes.data[i]);
  }
  if (all > 16) printf("\xe2\x80\xa6");
}

static void print_double(double number) {
  char text[40];
  if (number != number) {
    printf("NaN");
    return;
  }
  for (int digits = 1; digits <= 17; ++digits) {
    snprintf(text, sizeof(text), "%.*g", digits, number);
    if (strtod(text, NULL) == number) break;
  }
  // Exponents are written without a sign.
  char* plus = strstr(text, "e+");
  if (plus != NULL) memmove(plus + 1, plus + 2, strlen(plus + 2) + 1);
  printf("%s%s", text, strpbrk(text, ".einf") == NULL ? ".0" : "");
}

static void print_arguments(const trace_reader_record_t* record) {
  for (size_t i = 0; i < record->num_arguments; ++i) {
    const trace_reader_argument_t* argument = &record->arguments[i];
    const char* letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/";
    size_t plain = 0;
    while (plain < argument->name.length && strchr(letters, argument->name.data[plain]) != NULL) ++plain;
    printf(i == 0 ? " {" : ", ");
    if (plain == argument->name.length && plain > 0) {
      printf("%.*s", (int)argument->name.length, argument->name.data);
    } else {
      print_text(argument->name);
    }
    putchar('=');
    switch (argument->type) {
      case TRACE_READER_ARGUMENT_NULL: printf("null"); break;
      case TRACE_READER_ARGUMENT_BOOL: printf(argument->value.number ? "true" : "false"); break;
      case TRACE_READER_ARGUMENT_INT32: printf("%" PRId64 "i32", argument->value.signed_number); break;
      case TRACE_READER_ARGUMENT_UINT32: printf("%" PRIu64 "u32", argument->value.number); break;
      case TRACE_READER_ARGUMENT_INT64: printf("%" PRId64 "i64", argument->value.signed_number); break;
      case TRACE_READER_ARGUMENT_UINT64: printf("%" PRIu64 "u64", argument->value.number); break;
      case TRACE_READER_ARGUMENT_DOUBLE: print_double(argument->value.real); break;
      case TRACE_READER_ARGUMENT_STRING: print_text(argument->value.text); break;
      case TRACE_READER_ARGUMENT_POINTER: printf("0x%" PRIx64, argument->value.number); break;
      case TRACE_READER_ARGUMENT_KOID: printf("#%" PRIu64, argument->value.number); break;
      case TRACE_READER_ARGUMENT_BLOB: print_bytes(argument->value.text, argument->value.text.length); break;
      default: printf("unknown"); break;
    }
  }
  if (record->num_arguments > 0) putchar('}');
}

static void print_seconds(uint64_t nanos) { printf("%" PRIu64 ".%09" PRIu64, nanos / 1000000000, nanos % 1000000000); }

static void print_koids(uint64_t process, uint64_t thread) { printf("%" PRIu64 "/%" PRIu64, process, thread); }

static void print_state(uint32_t state) {
  if (state < 6) {
    printf("%s", kStates[state]);
  } else {
    printf("state-%" PRIu32, state);
  }
}

static void print_header(uint64_t header) {
  const char* word = kRecordTypes[header & 15];
  if (word != NULL) {
    printf("%s", word);
  } else {
    printf("type=%" PRIu64, header & 15);
  }
  uint64_t size = header >> 4 & ((header & 15) == 15 ? 0xffffffff : 0xfff);
  printf(" header=0x%016" PRIx64 " %" PRIu64 " %s", header, size, size == 1 ? "word" : "words");
}

static void print_event(const trace_reader_record_t* record) {
  if (record->subtype <= TRACE_READER_EVENT_FLOW_END) {
    printf("%s ", kEvents[record->subtype]);
  } else {
    printf("event-%" PRIu32 " ", record->subtype);
  }
  print_koids(record->process, record->thread);
  putchar(' ');
  print_text(record->category);
  putchar(' ');
  print_text(record->name);
  switch (record->subtype) {
    case TRACE_READER_EVENT_INSTANT: printf(" scope=%s", kScopes[record->id]); break;
    case TRACE_READER_EVENT_DURATION_COMPLETE:
      printf(" end=");
      print_seconds(record->end_nanos);
      break;
    case TRACE_READER_EVENT_DURATION_BEGIN:
    case TRACE_READER_EVENT_DURATION_END:
    case 11: case 12: case 13: case 14: case 15: break;
    default: printf(" id=0x%" PRIx64, record->id); break;
  }
}

static void print_scheduling(const trace_reader_record_t* record) {
  switch (record->subtype) {
    case TRACE_READER_SCHEDULING_LEGACY_CONTEXT_SWITCH:
      printf("legacy-context-switch cpu=%" PRIu32 " ", record->cpu);
      print_koids(record->outgoing_process, record->outgoing_thread);
      putchar(' ');
      print_state(record->outgoing_state);
      printf(" priority=%" PRIu32 " -> ", record->outgoing_priority);
      print_koids(record->process, record->thread);
      printf(" priority=%" PRIu32, record->incoming_priority);
      break;
    case TRACE_READER_SCHEDULING_CONTEXT_SWITCH:
      printf("context-switch cpu=%" PRIu32 " %" PRIu64 " ", record->cpu, record->outgoing_thread);
      print_state(record->outgoing_state);
      printf(" -> %" PRIu64, record->thread);
      break;
    case TRACE_READER_SCHEDULING_THREAD_WAKEUP:
      printf("thread-wakeup cpu=%" PRIu32 " %" PRIu64, record->cpu, record->thread);
      break;
    case TRACE_READER_SCHEDULING_FIBER_SWITCH:
      printf("fiber-switch %" PRIu64 " -> %" PRIu64, record->outgoing_thread, record->thread);
      break;
    default: printf("?"); break;
  }
}

static void print_profiler(const trace_reader_t* reader, const trace_reader_record_t* record) {
  printf(record->subtype == 0 ? "module " : record->subtype == 1 ? "mmap " : "backtrace ");
  print_koids(record->process, record->thread);
  if (record->subtype == 0) {
    printf(" id=%" PRIu64 " ", record->id);
    print_text(record->name);
    printf(" build-id=");
    for (size_t i = 0; i < record->payload.length; ++i) printf("%02x", (unsigned char)record->payload.data[i]);
  } else if (record->subtype == 1) {
    printf(" id=%" PRIu64 " %c%c%c", record->id, record->value & 1 ? 'r' : '-', record->value & 2 ? 'w' : '-',
           record->value & 4 ? 'x' : '-');
    printf(" start=0x%" PRIx64 " length=0x%" PRIx64 " linked-at=0x%" PRIx64, record->module_start,
           record->module_length, record->module_linked_at);
  } else {
    for (size_t i = 0; i < record->num_frames; ++i) {
      printf(" 0x%" PRIx64, record->frames[i]);
      trace_reader_text_t name =
          trace_reader_get_function_name(reader, record->process, record->frames[i] - (i > 0 && record->frames[i] > 0));
      if (name.length > 0) {
        putchar(' ');
        print_text(name);
      }
    }
  }
}

static uint64_t argument(const trace_reader_record_t* record, const char* name) {
  for (size_t i = 0; i < record->num_arguments; ++i) {
    trace_reader_text_t found = record->arguments[i].name;
    if (found.length == strlen(name) && memcmp(found.data, name, found.length) == 0) {
      return record->arguments[i].value.number;
    }
  }
  return 0;
}

static void print_record(const trace_reader_t* reader, const trace_reader_record_t* record) {
  printf("0x%08" PRIx64 " %" PRIu32 " ", record->offset, record->provider);
  if (record->has_time) {
    print_seconds(record->nanos);
  } else {
    putchar('-');
  }
  putchar(' ');
  switch (record->kind) {
    case TRACE_READER_MAGIC: printf("magic"); break;
    case TRACE_READER_PROVIDER_INFO:
      printf("provider-info ");
      print_text(record->name);
      break;
    case TRACE_READER_PROVIDER_SECTION: printf("provider-section"); break;
    case TRACE_READER_PROVIDER_EVENT:
      printf("provider-event provider=%" PRIu64, record->id);
      if (record->subtype == 0) {
        printf(" buffer-full");
      } else {
        printf(" event=%" PRIu32, record->subtype);
      }
      break;
    case TRACE_READER_INITIALIZATION: printf("initialization %" PRIu64 " ticks/s", record->ticks_per_second); break;
    case TRACE_READER_STRING:
      printf("string %" PRIu64 " ", record->id);
      print_text(record->name);
      break;
    case TRACE_READER_THREAD:
      printf("thread %" PRIu64 " ", record->id);
      print_koids(record->process, record->thread);
      break;
    case TRACE_READER_EVENT: print_event(record); break;
    case TRACE_READER_BLOB:
      if (record->name.length == 15 && memcmp(record->name.data, "trace:arguments", 15) == 0) {
        printf("further-arguments ");
        print_bytes(record->payload, record->payload_bytes);
        break;
      }
      if (record->subtype >= 1 && record->subtype <= 3) {
        printf("blob %s ", record->subtype == 1 ? "data" : record->subtype == 2 ? "last-branch" : "perfetto");
      } else {
        printf("blob type=%" PRIu32 " ", record->subtype);
      }
      print_text(record->name);
      putchar(' ');
      print_bytes(record->payload, record->payload_bytes);
      break;
    case TRACE_READER_USERSPACE_OBJECT:
      printf("userspace-object %" PRIu64 " 0x%" PRIx64 " ", record->process, record->id);
      print_text(record->name);
      break;
    case TRACE_READER_KERNEL_OBJECT:
      if (record->subtype == 1 || record->subtype == 2) {
        printf("kernel-object %s", record->subtype == 1 ? "process" : "thread");
      } else {
        printf("kernel-object type=%" PRIu32, record->subtype);
      }
      printf(" #%" PRIu64 " ", record->id);
      print_text(record->name);
      break;
    case TRACE_READER_SCHEDULING: print_scheduling(record); break;
    case TRACE_READER_LOG:
      printf("log ");
      print_koids(record->process, record->thread);
      putchar(' ');
      print_text(record->name);
      break;
    case TRACE_READER_PROFILER: print_profiler(reader, record); break;
    case TRACE_READER_LARGE_BLOB:
      if (record->subtype == 0) {
        printf("large-blob ");
        print_koids(record->process, record->thread);
      } else {
        printf("large-attachment");
      }
      putchar(' ');
      print_text(record->category);
      putchar(' ');
      print_text(record->name);
      putchar(' ');
      print_bytes(record->payload, record->payload_bytes);
      break;
    case TRACE_READER_LARGE_BLOB_PART:
      printf("large-blob-part ");
      print_bytes(record->payload, record->payload_bytes);
      break;
    case TRACE_READER_LOSS:
      printf("loss provider=%" PRIu64 " ", record->id);
      if (record->name.length > 0) {
        print_text(record->name);
      } else {
        printf("reason=%" PRIu32, record->subtype);
      }
      printf(" count=%" PRIu64 " first=%" PRIu64 " last=%" PRIu64, record->value, record->ticks, record->end_ticks);
      break;
    case TRACE_READER_LEDGER:
      printf("ledger provider=%" PRIu64 " generated=%" PRIu64 " archived=%" PRIu64 " records=%" PRIu64
             " uncertain=%" PRIu64 "\n",
             record->id, argument(record, "generated"), argument(record, "archived"), argument(record, "records"),
             argument(record, "uncertain"));
      return;
    case TRACE_READER_UNKNOWN:
      printf("unknown ");
      print_header(record->id);
      break;
    case TRACE_READER_MALFORMED:
      printf("malformed ");
      print_header(record->id);
      printf(": %.*s", (int)record->name.length, record->name.data);
      break;
    case TRACE_READER_FUNCTION:
      printf("function %" PRIu64 " start=0x%" PRIx64 " length=0x%" PRIx64 " ", record->process, record->module_start,
             record->module_length);
      print_text(record->name);
      break;
    case TRACE_READER_DAMAGE: printf("damage %" PRIu64 " bytes", record->value); break;
    default: printf("kind %" PRIu32, record->kind); break;
  }
  print_arguments(record);
  putchar('\n');
}

static ptrdiff_t read_file(void* context, void* to, size_t size) {
  size_t read = fread(to, 1, size, (FILE*)context);
  return read == 0 && ferror((FILE*)context) ? -1 : (ptrdiff_t)read;
}

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  char error[200];
  char* memory = NULL;
  trace_reader_t* reader;
  if (strcmp(argv[1], "-") == 0) {
    reader = trace_reader_open_callback(read_file, stdin, error, sizeof(error));
  } else if (argv[1][0] == '=') {
    FILE* file = fopen(argv[1] + 1, "rb");
    if (file == NULL) return 1;
    memory = malloc(1 << 20);
    reader = trace_reader_open_memory(memory, fread(memory, 1, 1 << 20, file), error, sizeof(error));
    fclose(file);
  } else {
    reader = trace_reader_open(argv[1], error, sizeof(error));
  }
  if (reader == NULL) {
    fprintf(stderr, "%s\n", error);
    free(memory);
    return 2;
  }
  const trace_reader_record_t* record;
  uint64_t process = 0, thread = 0;
  while ((record = trace_reader_next(reader)) != NULL) {
    print_record(reader, record);
    if (record->kind == TRACE_READER_EVENT) {
      process = record->process;
      thread = record->thread;
    }
  }
  size_t count;
  const trace_reader_warning_t* warnings = trace_reader_get_warnings(reader, &count);
  for (size_t i = 0; i < count; ++i) {
    fprintf(stderr, "0x%08" PRIx64 " %" PRIu32 " %.*s: %.*s\n", warnings[i].offset, warnings[i].provider,
            (int)warnings[i].kind.length, warnings[i].kind.data, (int)warnings[i].message.length,
            warnings[i].message.data);
  }
  fprintf(stderr, "warnings: %" PRIu64 "\n", trace_reader_count_warnings(reader));
  trace_reader_text_t names[2] = {trace_reader_get_process_name(reader, process),
                                  trace_reader_get_thread_name(reader, process, thread)};
  fprintf(stderr, "last event: %.*s, %.*s\n", (int)names[0].length, names[0].data, (int)names[1].length,
          names[1].data);
  if (trace_reader_get_error(reader) != NULL) {
    fprintf(stderr, "%s\n", trace_reader_get_error(reader));
  }
  trace_reader_close(reader);
  free(memory);
  return 0;
}
