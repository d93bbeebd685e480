// Events with a mark each; C and C++.
#include <lib/trace-provider/start.h>
#include <lib/trace/event.h>

int main(void) {
  trace_provider_start();
  for (int round = 0; round < 2; ++round) {
    TRACE_DURATION("app", "outer", "round", TA_INT32(round));
    {
      TRACE_DURATION("app", "inner");
      TRACE_INSTANT("app", "moment", TRACE_SCOPE_THREAD);
    }
    TRACE_DURATION("other", "off");
    TRACE_COUNTER("app", "load", 3, "busy", TA_INT32(-7));
  }
  TRACE_ASYNC_BEGIN("app", "job", 12);
  TRACE_ASYNC_END("app", "job", 12);
  return 0;
}
