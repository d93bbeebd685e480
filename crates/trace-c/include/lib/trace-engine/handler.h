// The engine itself, for programs that keep their trace in memory of their own. A provider (trace-provider)
// uses the engine as well: a process has one or the other at a time.
#ifndef LIB_TRACE_ENGINE_HANDLER_H_
#define LIB_TRACE_ENGINE_HANDLER_H_

#if defined(__GNUC__)
#pragma GCC system_header
#endif

#include <lib/async/dispatcher.h>
#include <lib/trace-engine/types.h>

__BEGIN_CDECLS

typedef struct trace_handler trace_handler_t;
typedef struct trace_handler_ops trace_handler_ops_t;

// The functions of the program that the engine calls. Any member may be NULL.
struct trace_handler_ops {
  // On any thread, also inside an event: it must not trace.
  bool (*is_category_enabled)(trace_handler_t* handler, const char* category);
  // On the dispatcher, as are the next three.
  void (*trace_started)(trace_handler_t* handler);
  // The buffer is complete. `disposition` is ZX_OK, ZX_ERR_NO_MEMORY if events were lost, or that of
  // trace_engine_stop().
  void (*trace_stopped)(trace_handler_t* handler, zx_status_t disposition);
  // The engine no longer uses the buffer and the handler.
  void (*trace_terminated)(trace_handler_t* handler);
  // In streaming mode: a half of the buffer is to be saved. Answered by trace_engine_mark_buffer_saved() with
  // the same numbers.
  void (*notify_buffer_full)(trace_handler_t* handler, uint32_t wrapped_count, uint64_t durable_data_end);
  // On the thread that alerts.
  void (*send_alert)(trace_handler_t* handler, const char* alert_name);
};

struct trace_handler {
  const trace_handler_ops_t* ops;
};

typedef enum {
  TRACE_START_CLEAR_ENTIRE_BUFFER = 1,
  TRACE_START_CLEAR_NONDURABLE_BUFFER = 2,
  TRACE_START_RETAIN_BUFFER = 3,
} trace_start_mode_t;

// `buffer` is aligned to 4096 bytes, has a multiple of 4096 bytes, and stays until trace_terminated.
// ZX_ERR_INVALID_ARGS if buffer or mode is invalid; ZX_ERR_BAD_STATE if the engine is in use.
zx_status_t trace_engine_initialize(async_dispatcher_t* dispatcher, trace_handler_t* handler,
                                    trace_buffering_mode_t buffering_mode, void* buffer, size_t buffer_num_bytes);
// ZX_ERR_INTERNAL before initialize; ZX_ERR_BAD_STATE unless stopped.
zx_status_t trace_engine_start(trace_start_mode_t mode);
// Does nothing unless started.
void trace_engine_stop(zx_status_t disposition);
void trace_engine_terminate(void);
// ZX_ERR_BAD_STATE without a trace in streaming mode.
zx_status_t trace_engine_mark_buffer_saved(uint32_t wrapped_count, uint64_t durable_data_end);
// In streaming mode: requests that the half in use is saved, although it is not full.
zx_status_t trace_engine_flush_buffer(void);

__END_CDECLS

#endif  // LIB_TRACE_ENGINE_HANDLER_H_
