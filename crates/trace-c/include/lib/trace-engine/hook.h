// A function of the program's own that sees each event before it is recorded, and may keep it out.
//
//   static bool on_event(void* context, const trace_hook_event_t* event) {
//     return event->type != TRACE_HOOK_COUNTER;
//   }
//   ...
//   trace_set_event_hook(on_event, NULL);
#ifndef LIB_TRACE_ENGINE_HOOK_H_
#define LIB_TRACE_ENGINE_HOOK_H_

#include <lib/trace-engine/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zircon/compiler.h>
#include <zircon/types.h>

__BEGIN_CDECLS

// The types of event, with their numbers in the format.
enum {
  TRACE_HOOK_INSTANT = 0,
  TRACE_HOOK_COUNTER = 1,
  TRACE_HOOK_DURATION_BEGIN = 2,
  TRACE_HOOK_DURATION_END = 3,
  TRACE_HOOK_DURATION_COMPLETE = 4,
  TRACE_HOOK_ASYNC_BEGIN = 5,
  TRACE_HOOK_ASYNC_INSTANT = 6,
  TRACE_HOOK_ASYNC_END = 7,
  TRACE_HOOK_FLOW_BEGIN = 8,
  TRACE_HOOK_FLOW_STEP = 9,
  TRACE_HOOK_FLOW_END = 10,
};

// An event. It, and what it points to, is valid during the call.
typedef struct trace_hook_event {
  // TRACE_HOOK_..., or UINT32_MAX for a type of a newer version of the format.
  uint32_t type;
  // trace_scope_t of an instant.
  uint32_t scope;
  // When it happened, or when a complete duration began.
  zx_ticks_t timestamp;
  // When a complete duration ended; `timestamp` otherwise.
  zx_ticks_t end;
  // Of counters, asynchronous events and flows; 0 otherwise.
  uint64_t id;
  zx_koid_t process_koid;
  zx_koid_t thread_koid;
  // Inline, and not ended by NUL; or empty.
  trace_string_ref_t category;
  trace_string_ref_t name;
  // As many as `num_args`. Texts are inline; a blob is null.
  const trace_arg_t* args;
  size_t num_args;
} trace_hook_event_t;

// Called on the thread of the event, with no lock held; false keeps the event out of the recording. Events
// that it records by itself, and those of signal handlers that interrupt it, are recorded without a call.
// It has to be safe in handlers of signals if those record events. It must not throw, and must not be left
// by a jump.
typedef bool (*trace_event_hook_t)(void* context, const trace_hook_event_t* event);

// Sets the function for all recordings of this process, in place of one that was set before; NULL ends
// that.
//
// Each event that begins after this has returned is shown to the function, once; a complete duration when
// it ends. This waits until the function before has returned on other threads, so that its context may be
// freed then; but not where it is called in a hook. Not for handlers of signals.
void trace_set_event_hook(trace_event_hook_t hook, void* context);

__END_CDECLS

#endif  // LIB_TRACE_ENGINE_HOOK_H_
