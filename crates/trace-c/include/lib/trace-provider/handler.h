// A handler of the engine as a class (see lib/trace-engine/handler.h).
#ifndef LIB_TRACE_PROVIDER_HANDLER_H_
#define LIB_TRACE_PROVIDER_HANDLER_H_

#include <lib/trace-engine/handler.h>

namespace trace {

// Override the functions of interest.
class TraceHandler : public trace_handler_t {
 public:
  TraceHandler() { ops = &kOps; }
  virtual ~TraceHandler() = default;

  virtual bool IsCategoryEnabled(const char* category) {
    (void)category;
    return true;
  }
  virtual void TraceStarted() {}
  virtual void TraceStopped(zx_status_t disposition) { (void)disposition; }
  virtual void TraceTerminated() {}
  virtual void NotifyBufferFull(uint32_t wrapped_count, uint64_t durable_buffer_offset) {
    (void)wrapped_count;
    (void)durable_buffer_offset;
  }
  virtual void SendAlert(const char* alert_name) { (void)alert_name; }

 private:
  static TraceHandler* From(trace_handler_t* handler) { return static_cast<TraceHandler*>(handler); }

  static const trace_handler_ops_t kOps;
};

inline const trace_handler_ops_t TraceHandler::kOps = {
    [](trace_handler_t* handler, const char* category) { return From(handler)->IsCategoryEnabled(category); },
    [](trace_handler_t* handler) { From(handler)->TraceStarted(); },
    [](trace_handler_t* handler, zx_status_t disposition) { From(handler)->TraceStopped(disposition); },
    [](trace_handler_t* handler) { From(handler)->TraceTerminated(); },
    [](trace_handler_t* handler, uint32_t wrapped_count, uint64_t durable_data_end) {
      From(handler)->NotifyBufferFull(wrapped_count, durable_data_end);
    },
    [](trace_handler_t* handler, const char* alert_name) { From(handler)->SendAlert(alert_name); },
};

}  // namespace trace

#endif  // LIB_TRACE_PROVIDER_HANDLER_H_
