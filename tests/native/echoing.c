// Records two events, and destroys its provider.
#include <lib/trace-provider/provider.h>
#include <trace/event.h>

int main(void) {
  trace_provider_t* provider = trace_provider_create_with_name_fdio(NULL, "echoing");
  {
    TRACE_DURATION("echo", "outer", "number", TA_INT32(1));
    TRACE_INSTANT("echo", "inner", TRACE_SCOPE_THREAD);
  }
  trace_provider_destroy(provider);
  return 0;
}
