// Writes what a program has recorded of itself as Chromium's JSON, and reads its TraceConfig. Link with
// -ltracejson (pkg-config: libtracejson). C++ has Chromium's own names for it in <trace/trace_log.h>.
//
// No pointer may be NULL unless a comment allows it. Where a function fails, the reason is on stderr.
// Functions may be called on any thread, and call the program's functions on the calling one.
#ifndef TRACE_JSON_C_API_H_
#define TRACE_JSON_C_API_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zircon/compiler.h>

__BEGIN_CDECLS

// Bytes without a NUL behind them. `data` may be NULL if the length is 0.
typedef struct trace_json_text {
  const char* data;
  size_t length;
} trace_json_text_t;

// An argument. `type` is a trace_arg_type_t. The value is `number` (with the bits of a signed one, or 0 or 1
// for a truth value), `real` for TRACE_ARG_DOUBLE, or `text` for TRACE_ARG_STRING.
typedef struct trace_json_argument {
  trace_json_text_t name;
  uint32_t type;
  union {
    uint64_t number;
    double real;
    trace_json_text_t text;
  } value;
} trace_json_argument_t;

// An event, as trace_hook_event_t has it. Of more than 15 arguments, the first ones count.
typedef struct trace_json_event {
  // TRACE_HOOK_...
  uint32_t type;
  // trace_scope_t of an instant.
  uint32_t scope;
  int64_t timestamp;
  int64_t end;
  // zx_ticks_per_second()
  int64_t ticks_per_second;
  uint64_t id;
  uint64_t process_koid;
  uint64_t thread_koid;
  trace_json_text_t category;
  trace_json_text_t name;
  const trace_json_argument_t* args;
  size_t num_args;
} trace_json_event_t;

// Gets a piece of JSON: whole events with commas between them, without brackets and without a comma at either
// end, at most 100 KB unless it is one event. The last piece is marked; it may be empty. The text is valid
// during the call.
typedef void (*trace_json_deliver_t)(void* context, const char* text, size_t length, bool is_last);

// Says whether arguments are written: of the event as a whole if `argument` is NULL, else the one of this
// name. "__stripped__" stands for the others.
typedef bool (*trace_json_predicate_t)(void* context, const char* category, const char* name, const char* argument);

// Writes an archive, such as trace_local_flush() delivers, as `trace convert --to chrome` does; but a
// duration that was open at the end is complete ("X") without a length, and every event has arguments.
// `predicate` may be NULL. False if the archive is damaged: then events up to the damage were delivered.
bool trace_json_write(const uint8_t* archive, size_t size, trace_json_predicate_t predicate, void* predicate_context,
                      trace_json_deliver_t deliver, void* context);

// Writes one event.
bool trace_json_write_event(const trace_json_event_t* event, trace_json_predicate_t predicate,
                            void* predicate_context, trace_json_deliver_t deliver, void* context);

// What a TraceConfig asks for.
typedef struct trace_json_config {
  // For trace_local_start().
  const char* categories;
  // 0: until the buffer is full; 1: the oldest events make room; 2: as much as possible.
  uint32_t mode;
  // At most 64 MiB; 0 if it is not given.
  uint64_t buffer_size_kib;
  // Whether events are to be printed.
  bool to_console;
} trace_json_config_t;

// Reads a TraceConfig in JSON; "" and "{}" are the default. What is asked for and not recorded is printed on
// stderr. False if the text is no JSON, has an unknown key, or asks for a protection that a recording does
// not have.
bool trace_json_read_config(const char* text, size_t length,
                            void (*take)(void* context, const trace_json_config_t* config), void* context);

__END_CDECLS

#endif  // TRACE_JSON_C_API_H_
