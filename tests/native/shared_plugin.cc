// A plugin that is linked with a copy of the trace library of its own, and shares a call site with others.
#include "shared.h"

extern "C" void Plugin(int number) {
  Shared(number);
  TRACE_INSTANT("copies", PLUGIN_NAME, TRACE_SCOPE_THREAD, "number", number);
}

#ifdef EARLY
// Before anything else of the plugin.
__attribute__((constructor(101))) static void Early() { Shared(-1); }
#endif
