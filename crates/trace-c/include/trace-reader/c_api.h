// Reads Fuchsia traces (FXT), plain or compressed with gzip or zstd, from C and from languages that can call
// C. Link with -ltracereader (pkg-config: libtracereader).
//
//   char error[256];
//   trace_reader_t* reader = trace_reader_open("trace.fxt", error, sizeof(error));
//   if (reader == NULL) { fprintf(stderr, "%s\n", error); return 1; }
//   const trace_reader_record_t* record;
//   while ((record = trace_reader_next(reader)) != NULL) {
//     if (record->kind == TRACE_READER_EVENT) {
//       printf("%.*s\n", (int)record->name.length, record->name.data);
//     }
//   }
//   if (trace_reader_get_error(reader) != NULL) { ... }
//   trace_reader_close(reader);
//
// No pointer may be NULL unless a comment allows it.
//
// A reader is used by one thread at a time; different readers are independent of each other. Damage does not
// stop a reader: it returns the damaged stretch as a record of kind TRACE_READER_DAMAGE and continues after
// it. Memory is bounded whatever the input holds: 24 MiB of definitions and names, 1 MiB of a single record.
#ifndef TRACE_READER_C_API_H_
#define TRACE_READER_C_API_H_

#include <zircon/compiler.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

__BEGIN_CDECLS

typedef struct trace_reader trace_reader_t;

// Bytes. Texts of a trace are UTF-8 by convention, which is not checked; no NUL stands behind them. `data` is
// never NULL.
typedef struct trace_reader_text {
  const char* data;
  size_t length;
} trace_reader_text_t;

// Kinds of records. Later versions may add some: ignore those that are not known.
enum {
  TRACE_READER_MAGIC = 1,
  // `name`. The records that follow are its.
  TRACE_READER_PROVIDER_INFO = 2,
  // The records that follow are those of `provider` again.
  TRACE_READER_PROVIDER_SECTION = 3,
  // A remark about provider `id`; `subtype` 0: its buffer filled up.
  TRACE_READER_PROVIDER_EVENT = 4,
  // `ticks_per_second`
  TRACE_READER_INITIALIZATION = 5,
  // String `id` is `name`. References to it are resolved already.
  TRACE_READER_STRING = 6,
  // Thread `id` is `process` and `thread`. References to it are resolved already.
  TRACE_READER_THREAD = 7,
  // `subtype` (TRACE_READER_EVENT_...), time, `process`, `thread`, `category`, `name`, arguments. `id` is the
  // scope of an instant (0 thread, 1 process, 2 global), or the id of a counter, an async operation or a
  // flow. A complete duration has `end_ticks` and `end_nanos`.
  TRACE_READER_EVENT = 8,
  // `name`, payload; `subtype` is the blob's type (1 data, 2 last branch records, 3 Perfetto). Those named
  // `trace:arguments` have arguments of the next event, which has them, too.
  TRACE_READER_BLOB = 9,
  // An object of `process` at address `id`: `name`, arguments.
  TRACE_READER_USERSPACE_OBJECT = 10,
  // Object `id` is called `name`; `subtype` is its type (1 a process, 2 a thread); arguments.
  TRACE_READER_KERNEL_OBJECT = 11,
  // `subtype` (TRACE_READER_SCHEDULING_...), time, `cpu`, `thread` (the incoming thread, or the one that is
  // woken or whose fibers switch), `outgoing_thread`, `outgoing_state`, arguments.
  TRACE_READER_SCHEDULING = 12,
  // Time, `process`, `thread`; `name` is the line.
  TRACE_READER_LOG = 13,
  // Time, `process`, `thread`; `subtype` 0: module `id` is called `name` and has the payload as its build id;
  // 1: module `id` is mapped (`module_start`, `module_length`, `module_linked_at`; `value` has its access
  // permissions: 1 readable, 2 writable, 4 executable); 2: a backtrace in `frames`, innermost first.
  TRACE_READER_PROFILER = 14,
  // `category`, `name`, payload; if it has less than `payload_bytes`, the rest follows in further records.
  // `subtype` 0: with time, `process`, `thread` and arguments; 1: an attachment, without.
  TRACE_READER_LARGE_BLOB = 15,
  // The next bytes of the large blob before it.
  TRACE_READER_LARGE_BLOB_PART = 16,
  // Provider `id` lost `value` records for the reason `subtype`, called `name`, between `ticks` and
  // `end_ticks` of its clock.
  TRACE_READER_LOSS = 17,
  // How the records of provider `id` add up: arguments `generated`, `archived`, `records`, `uncertain`.
  TRACE_READER_LEDGER = 18,
  // A record of a later version of the format, with header `id` and `value` bytes.
  TRACE_READER_UNKNOWN = 19,
  // An invalid record, with header `id`; `name` is the reason.
  TRACE_READER_MALFORMED = 20,
  // `value` bytes that could not be read.
  TRACE_READER_DAMAGE = 21,
  // The name of a function that is in no file: `name`, of `process` (0: the kernel), `module_length` bytes
  // from `module_start` on.
  TRACE_READER_FUNCTION = 22,
};

// Subtypes of events, as in the format. 11 to 15 are of later versions.
enum {
  TRACE_READER_EVENT_INSTANT = 0,
  TRACE_READER_EVENT_COUNTER = 1,
  TRACE_READER_EVENT_DURATION_BEGIN = 2,
  TRACE_READER_EVENT_DURATION_END = 3,
  TRACE_READER_EVENT_DURATION_COMPLETE = 4,
  TRACE_READER_EVENT_ASYNC_BEGIN = 5,
  TRACE_READER_EVENT_ASYNC_INSTANT = 6,
  TRACE_READER_EVENT_ASYNC_END = 7,
  TRACE_READER_EVENT_FLOW_BEGIN = 8,
  TRACE_READER_EVENT_FLOW_STEP = 9,
  TRACE_READER_EVENT_FLOW_END = 10,
};

// Subtypes of scheduling records, as in the format.
enum {
  TRACE_READER_SCHEDULING_LEGACY_CONTEXT_SWITCH = 0,
  TRACE_READER_SCHEDULING_CONTEXT_SWITCH = 1,
  TRACE_READER_SCHEDULING_THREAD_WAKEUP = 2,
  TRACE_READER_SCHEDULING_FIBER_SWITCH = 3,
};

// Types of arguments, as in the format.
enum {
  TRACE_READER_ARGUMENT_NULL = 0,
  TRACE_READER_ARGUMENT_INT32 = 1,
  TRACE_READER_ARGUMENT_UINT32 = 2,
  TRACE_READER_ARGUMENT_INT64 = 3,
  TRACE_READER_ARGUMENT_UINT64 = 4,
  TRACE_READER_ARGUMENT_DOUBLE = 5,
  TRACE_READER_ARGUMENT_STRING = 6,
  TRACE_READER_ARGUMENT_POINTER = 7,
  TRACE_READER_ARGUMENT_KOID = 8,
  TRACE_READER_ARGUMENT_BOOL = 9,
  TRACE_READER_ARGUMENT_BLOB = 10,
};

typedef struct trace_reader_argument {
  trace_reader_text_t name;
  // TRACE_READER_ARGUMENT_...; UINT32_MAX for a type of a later version, which has no value.
  uint32_t type;
  union {
    // Of booleans (0 or 1), unsigned integers, pointers and koids.
    uint64_t number;
    // Of int32 and int64.
    int64_t signed_number;
    // Of doubles.
    double real;
    // Of strings and blobs.
    trace_reader_text_t text;
  } value;
} trace_reader_argument_t;

// A record. Fields that its kind does not name are 0 or empty. Later versions add fields at the end only.
typedef struct trace_reader_record {
  // TRACE_READER_...
  uint32_t kind;
  uint32_t subtype;
  // Where the record begins, in bytes of the uncompressed trace.
  uint64_t offset;
  // The provider whose record it is; 0 before the first.
  uint32_t provider;
  // Whether the record has a time: `ticks` of its provider's clock, and the same in nanoseconds, rounded down
  // and saturated.
  bool has_time;
  trace_reader_text_t provider_name;
  uint64_t ticks;
  uint64_t nanos;
  uint64_t end_ticks;
  uint64_t end_nanos;
  uint64_t ticks_per_second;
  // Koids. On Linux those of a process and a thread are their numbers.
  uint64_t process;
  uint64_t thread;
  trace_reader_text_t category;
  trace_reader_text_t name;
  uint64_t id;
  uint64_t value;
  const trace_reader_argument_t* arguments;
  size_t num_arguments;
  trace_reader_text_t payload;
  uint64_t payload_bytes;
  uint32_t cpu;
  // 0 new, 1 running, 2 suspended, 3 blocked, 4 dying, 5 dead.
  uint32_t outgoing_state;
  // Of a legacy context switch only, as are the priorities.
  uint64_t outgoing_process;
  uint64_t outgoing_thread;
  uint32_t outgoing_priority;
  uint32_t incoming_priority;
  uint64_t module_start;
  uint64_t module_length;
  uint64_t module_linked_at;
  const uint64_t* frames;
  size_t num_frames;
} trace_reader_record_t;

// A problem of a trace that did not stop the reader.
typedef struct trace_reader_warning {
  uint64_t offset;
  uint32_t provider;
  // The kind of problem, for programs: `damaged`, `undefined-string` and so on.
  trace_reader_text_t kind;
  // A sentence for people.
  trace_reader_text_t message;
} trace_reader_warning_t;

// Stores up to `size` bytes at `to` and returns their number; 0 at the end, a negative number if reading
// failed. May block.
typedef ptrdiff_t (*trace_reader_read_t)(void* context, void* to, size_t size);

// Each returns a reader, or NULL with the reason in `error`: at most `error_size` bytes with a NUL at the
// end; `error` may be NULL. The bytes in memory, and what `context` points to, have to stay until the reader
// is closed. They fail if the input cannot be read or is no trace.
trace_reader_t* trace_reader_open(const char* path, char* error, size_t error_size);
trace_reader_t* trace_reader_open_memory(const void* data, size_t size, char* error, size_t error_size);
trace_reader_t* trace_reader_open_callback(trace_reader_read_t read, void* context, char* error,
                                           size_t error_size);

// The next record, valid until the next call of this function with the same reader or until that is closed,
// as is everything it points to. NULL at the end, and after an error.
const trace_reader_record_t* trace_reader_next(trace_reader_t* reader);

// Why `trace_reader_next` returned NULL before the end: the input could not be read, compressed data is cut
// off or damaged, or nothing after a damaged stretch can be read. NULL if it was the end.
const char* trace_reader_get_error(const trace_reader_t* reader);

// The number of warnings so far.
uint64_t trace_reader_count_warnings(const trace_reader_t* reader);

// The first 20 warnings of each kind in the order of the trace, valid until the next call of this function or
// until the reader is closed. `count` must not be NULL.
const trace_reader_warning_t* trace_reader_get_warnings(trace_reader_t* reader, size_t* count);

// The name of a process or a thread, as far as the trace was read; empty if it is not known. Valid until the
// next call of `trace_reader_next`.
trace_reader_text_t trace_reader_get_process_name(const trace_reader_t* reader, uint64_t process);
trace_reader_text_t trace_reader_get_thread_name(const trace_reader_t* reader, uint64_t process, uint64_t thread);

// The name of the function at an address of a process, if a record of kind TRACE_READER_FUNCTION has it;
// otherwise empty: look it up in the module that is mapped there. The frames of a backtrace after the first
// are return addresses: the call is the instruction before. Valid as above.
trace_reader_text_t trace_reader_get_function_name(const trace_reader_t* reader, uint64_t process,
                                                   uint64_t address);

// Frees the reader. NULL is allowed.
void trace_reader_close(trace_reader_t* reader);

__END_CDECLS

#endif  // TRACE_READER_C_API_H_
