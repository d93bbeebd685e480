// Records itself with a function that sees each event: `hooks DIRECTORY`.
#include <lib/trace-engine/hook.h>
#include <lib/trace-provider/local.h>
#include <lib/trace/event.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define THREADS 4
#define EVENTS 1000

static const char* kTypes[] = {"instant",    "counter",     "begin",       "end",        "complete", "async begin",
                               "async step", "async end",   "flow begin",  "flow step",  "flow end"};

static void print_text(trace_string_ref_t text) {
  printf("%.*s", (int)trace_inline_string_ref_length(&text), text.inline_string ? text.inline_string : "");
}

static bool is_name(const trace_hook_event_t* event, const char* name) {
  return trace_inline_string_ref_length(&event->name) == strlen(name) &&
         memcmp(event->name.inline_string, name, strlen(name)) == 0;
}

static bool print_event(void* context, const trace_hook_event_t* event) {
  printf("%s %s ", (const char*)context, kTypes[event->type]);
  print_text(event->category);
  printf("/");
  print_text(event->name);
  for (size_t i = 0; i < event->num_args; ++i) {
    printf(" ");
    print_text(event->args[i].name_ref);
    printf("=");
    const trace_arg_value_t* value = &event->args[i].value;
    switch (value->type) {
      case TRACE_ARG_INT32:
        printf("%d", value->int32_value);
        break;
      case TRACE_ARG_DOUBLE:
        printf("%g", value->double_value);
        break;
      case TRACE_ARG_STRING:
        print_text(value->string_value_ref);
        break;
      default:
        printf("?%d", (int)value->type);
        break;
    }
  }
  printf(" %d %d\n", (int)event->id, event->end >= event->timestamp);
  return !is_name(event, "secret");
}

static _Atomic int seen;

static bool count(void* context, const trace_hook_event_t* event) {
  (void)context;
  (void)event;
  atomic_fetch_add(&seen, 1);
  return false;
}

static void record(void) {
  TRACE_INSTANT("app", "step", TRACE_SCOPE_PROCESS, "number", TA_INT32(-5), "text", TA_STRING_LITERAL("value"));
  TRACE_COUNTER("app", "load", 3, "busy", TA_DOUBLE(0.5));
  TRACE_INSTANT("app", "secret", TRACE_SCOPE_THREAD);
  {
    TRACE_DURATION_BEGIN("app", "work");
    TRACE_FLOW_BEGIN("app", "flow", 9);
    TRACE_DURATION_END("app", "work");
  }
  trace_string_ref_t category;
  trace_context_t* context = trace_acquire_context_for_category("app", &category);
  if (context) {
    trace_string_ref_t name;
    trace_thread_ref_t thread;
    trace_context_register_string_literal(context, "by hand", &name);
    trace_context_register_current_thread(context, &thread);
    trace_context_write_async_end_event_record(context, zx_ticks_get(), &thread, &category, &name, 8, NULL, 0);
    trace_release_context(context);
  }
}

static void* record_many(void* unused) {
  (void)unused;
  for (int i = 0; i < EVENTS; ++i) {
    TRACE_INSTANT("app", "many", TRACE_SCOPE_THREAD);
  }
  return NULL;
}

static void save(const char* directory, const char* name) {
  char path[4096];
  snprintf(path, sizeof(path), "%s/%s.fxt", directory, name);
  trace_local_summary_t summary;
  bool saved = trace_local_flush_to_file(path, &summary);
  printf("%s: %d %d %d\n", name, saved, (int)summary.events, (int)summary.dropped);
}

int main(int argc, char** argv) {
  if (argc < 2) {
    return 2;
  }
  trace_set_event_hook(print_event, "before");
  record();
  trace_local_start("", TRACE_BUFFERING_MODE_ONESHOT, 0);
  record();
  trace_set_event_hook(NULL, NULL);
  record();
  trace_set_event_hook(print_event, "during");
  record();
  trace_set_event_hook(NULL, NULL);
  save(argv[1], "printed");

  trace_local_start("", TRACE_BUFFERING_MODE_ONESHOT, 0);
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    pthread_create(&threads[i], NULL, record_many, NULL);
  }
  trace_set_event_hook(count, NULL);
  int before = atomic_load(&seen);
  record_many(NULL);
  bool all_seen = atomic_load(&seen) >= before + EVENTS;
  for (int i = 0; i < THREADS; ++i) {
    pthread_join(threads[i], NULL);
  }
  trace_set_event_hook(NULL, NULL);
  printf("all: %d\n", all_seen);
  printf("seen %d\n", atomic_load(&seen));
  save(argv[1], "counted");
  return 0;
}
