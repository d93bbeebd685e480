// Whether a trace runs, and how to acquire it.
#ifndef LIB_TRACE_ENGINE_INSTRUMENTATION_H_
#define LIB_TRACE_ENGINE_INSTRUMENTATION_H_

#if defined(__GNUC__)
#pragma GCC system_header
#endif

#include <lib/trace-engine/context.h>
#include <lib/trace-engine/types.h>

__BEGIN_CDECLS

// A number that is not 0 and that no other process of this machine is likely to get.
uint64_t trace_generate_nonce(void);

typedef enum {
  TRACE_STOPPED = 0,
  TRACE_STARTED = 1,
  // Events are accepted until every thread that has acquired the trace has released it.
  TRACE_STOPPING = 2,
} trace_state_t;

trace_state_t trace_state(void);

TRACE_INTERNAL_INLINE bool trace_is_enabled(void) { return trace_state() == TRACE_STARTED; }

bool trace_is_category_enabled(const char* category_literal);
bool trace_is_category_bytestring_enabled(const unsigned char* bytes, size_t length);

// The cache of a call site for the state of its category. Must be static, and zero-initialized.
typedef uintptr_t trace_site_state_t;
typedef struct {
  trace_site_state_t state;
} trace_site_t;

// NULL if nothing is to be recorded. Release an acquired context soon: the stop of a recording waits for it.
trace_context_t* trace_acquire_context(void);
trace_context_t* trace_acquire_context_for_category(const char* category_literal, trace_string_ref_t* out_ref);
trace_context_t* trace_acquire_context_for_category_cached(const char* category_literal, trace_site_t* site_ptr,
                                                           trace_string_ref_t* out_ref);
trace_context_t* trace_acquire_context_for_category_bytestring(const unsigned char* bytes, size_t length,
                                                               trace_string_ref_t* out_ref);
trace_context_t* trace_acquire_context_for_category_bytestring_cached(const unsigned char* bytes, size_t length,
                                                                      trace_site_t* site_ptr,
                                                                      trace_string_ref_t* out_ref);
void trace_release_context(trace_context_t* context);

// For code that will write later: keeps the trace from stopping. Records cannot be written with it.
trace_prolonged_context_t* trace_acquire_prolonged_context(void);
void trace_release_prolonged_context(trace_prolonged_context_t* context);

// Signals an event object with ZX_EVENT_SIGNALED whenever the state changes. After each start the observer
// has to acknowledge the change with trace_notify_observer_updated(); the start is reported to the trace
// manager only then. ZX_ERR_INVALID_ARGS if the event is registered already.
zx_status_t trace_register_observer(zx_handle_t event);
// ZX_ERR_NOT_FOUND if it is not registered.
zx_status_t trace_unregister_observer(zx_handle_t event);
void trace_notify_observer_updated(zx_handle_t event);

// Clears the caches of all call sites. ZX_ERR_BAD_STATE unless stopped.
zx_status_t trace_engine_flush_category_cache(void);

__END_CDECLS

#ifdef __cplusplus

namespace trace {

// Owns an acquired trace; may be empty.
class TraceContext final {
 public:
  TraceContext() = default;
  TraceContext(trace_context_t* context) : context_(context) {}
  TraceContext(TraceContext&& other) : context_(other.context_) { other.context_ = nullptr; }
  TraceContext(const TraceContext&) = delete;
  TraceContext& operator=(const TraceContext&) = delete;
  TraceContext& operator=(TraceContext&& other) {
    trace_context_t* context = other.context_;
    other.context_ = nullptr;
    Release();
    context_ = context;
    return *this;
  }
  ~TraceContext() { Release(); }

  static TraceContext Acquire() { return TraceContext(trace_acquire_context()); }
  static TraceContext AcquireForCategory(const char* category_literal, trace_string_ref_t* out_ref) {
    return TraceContext(trace_acquire_context_for_category(category_literal, out_ref));
  }

  trace_context_t* get() const { return context_; }
  explicit operator bool() const { return context_ != nullptr; }
  void Release() {
    if (context_ != nullptr) {
      trace_release_context(context_);
      context_ = nullptr;
    }
  }

 private:
  trace_context_t* context_ = nullptr;
};

// The same for one that keeps the trace from stopping.
class TraceProlongedContext final {
 public:
  TraceProlongedContext() = default;
  TraceProlongedContext(trace_prolonged_context_t* context) : context_(context) {}
  TraceProlongedContext(TraceProlongedContext&& other) : context_(other.context_) { other.context_ = nullptr; }
  TraceProlongedContext(const TraceProlongedContext&) = delete;
  TraceProlongedContext& operator=(const TraceProlongedContext&) = delete;
  TraceProlongedContext& operator=(TraceProlongedContext&& other) {
    trace_prolonged_context_t* context = other.context_;
    other.context_ = nullptr;
    Release();
    context_ = context;
    return *this;
  }
  ~TraceProlongedContext() { Release(); }

  static TraceProlongedContext Acquire() { return TraceProlongedContext(trace_acquire_prolonged_context()); }

  trace_prolonged_context_t* get() const { return context_; }
  explicit operator bool() const { return context_ != nullptr; }
  void Release() {
    if (context_ != nullptr) {
      trace_release_prolonged_context(context_);
      context_ = nullptr;
    }
  }

 private:
  trace_prolonged_context_t* context_ = nullptr;
};

}  // namespace trace

#endif  // __cplusplus

#endif  // LIB_TRACE_ENGINE_INSTRUMENTATION_H_
