// Alerts by the macro, by the functions below it, and one whose category is not recorded.
#include <lib/trace-engine/context.h>
#include <trace/event.h>

#include <lib/trace-provider/start.h>

int main(void) {
  trace_provider_start();
  TRACE_INSTANT("alerting", "here", TRACE_SCOPE_THREAD);
  TRACE_ALERT("alerting", "stall");
  TRACE_ALERT("silent", "nothing");
  trace_context_t* context = trace_acquire_context();
  if (context == NULL) return 1;
  trace_context_send_alert(context, "by hand");
  trace_context_send_alert_bytestring(context, (const unsigned char*)"a longer name", 8);
  trace_release_context(context);
  return 0;
}
