// A function whose events are compiled to nothing, and that says so if they are not.
#define NTRACE
#include <trace/event.h>

int Evaluated(void);

void DoSomething(int a, const char* b) {
  TRACE_DURATION("example", "DoSomething", "a", TA_INT32(a), "b", TA_STRING(b));
  TRACE_INSTANT("example", "instant", TRACE_SCOPE_THREAD, "evaluated", TA_INT32(Evaluated()));
  TRACE_COUNTER("example", "counter", 1, "value", TA_INT32(a));
  TRACE_BLOB(TRACE_BLOB_TYPE_DATA, "blob", b, 1);
  TRACE_BLOB_EVENT("example", "blob", b, 1, "a", TA_INT32(a));
  TRACE_BLOB_ATTACHMENT("example", "blob", b, 1);
  TRACE_KERNEL_OBJECT(1, "a", TA_INT32(a));
  TRACE_INSTAFLOW_BEGIN("example", "flow", "step", 1, "a", TA_INT32(a));
  TRACE_ALERT("example", "alert");
  if (TRACE_ENABLED() || TRACE_CATEGORY_ENABLED("example")) {
    Evaluated();
  }
}
