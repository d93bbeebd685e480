// Events of several categories, and of such that are disabled by default.
#include <trace/chromium.h>

#include <lib/trace-provider/start.h>

int main() {
  trace_provider_start();
  TRACE_EVENT_INSTANT0("a", "in a", TRACE_EVENT_SCOPE_THREAD);
  TRACE_EVENT_INSTANT0("a,b", "in both", TRACE_EVENT_SCOPE_THREAD);
  TRACE_EVENT_INSTANT0(TRACE_DISABLED_BY_DEFAULT("x"), "in disabled", TRACE_EVENT_SCOPE_THREAD);
  TRACE_EVENT_INSTANT0("a," TRACE_DISABLED_BY_DEFAULT("x"), "in mixed", TRACE_EVENT_SCOPE_THREAD);
  return 0;
}
