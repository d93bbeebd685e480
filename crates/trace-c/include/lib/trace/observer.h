// Calls a function whenever recording starts or stops.
#ifndef LIB_TRACE_OBSERVER_H_
#define LIB_TRACE_OBSERVER_H_

#include <utility>

#include <lib/async/dispatcher.h>
#include <lib/fit/function.h>
#include <lib/trace-engine/instrumentation.h>

extern "C" {

typedef struct trace_internal_observer trace_internal_observer_t;

trace_internal_observer_t* trace_internal_start_observer(async_dispatcher_t* dispatcher, void (*callback)(void* data),
                                                         void* data);
// Returns when the callback is not running, and will not run again.
void trace_internal_stop_observer(trace_internal_observer_t* observer);
}

namespace trace {

// A start is reported to the trace manager only after the callback has run.
class TraceObserver {
 public:
  TraceObserver() = default;
  TraceObserver(const TraceObserver&) = delete;
  TraceObserver& operator=(const TraceObserver&) = delete;
  ~TraceObserver() { Stop(); }

  // From now on `callback` runs on the dispatcher after each change of trace_state().
  void Start(async_dispatcher_t* dispatcher, fit::closure callback) {
    Stop();
    callback_ = std::move(callback);
    observer_ = trace_internal_start_observer(
        dispatcher, [](void* data) { static_cast<TraceObserver*>(data)->callback_(); }, this);
  }

  void Stop() {
    if (observer_ != nullptr) {
      trace_internal_stop_observer(observer_);
      observer_ = nullptr;
    }
  }

 private:
  fit::closure callback_;
  trace_internal_observer_t* observer_ = nullptr;
};

}  // namespace trace

#endif  // LIB_TRACE_OBSERVER_H_
