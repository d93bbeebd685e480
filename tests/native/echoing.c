// Records two events, and destroys its provider, unless it is called with an argument.
#include <lib/trace-provider/provider.h>
#include <trace/event.h>

int main(int argc, char** argv) {
  (void)argv;
  trace_provider_t* provider = trace_provider_create_with_name_fdio(NULL, "echoing");
  {
    TRACE_DURATION("echo", "outer", "number", TA_INT32(1));
    TRACE_INSTANT("echo", "inner", TRACE_SCOPE_THREAD);
  }
  if (argc == 1) {
    trace_provider_destroy(provider);
  }
  return 0;
}
