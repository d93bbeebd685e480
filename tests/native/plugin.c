// A plugin with events of its own.
#include <trace/event.h>

void Plugin(int number);

void Plugin(int number) {
  TRACE_INSTANT("plugin", "called", TRACE_SCOPE_THREAD, "number", TA_INT32(number));
  TRACE_DURATION("plugin", PLUGIN_NAME, "number", TA_INT32(number));
}
