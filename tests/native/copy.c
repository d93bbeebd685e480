// A library that was linked with a copy of the trace library of its own.
#include <trace-provider/provider.h>
#include <trace/event.h>

trace_provider_t* Provide(void);
void Work(int number);

trace_provider_t* Provide(void) { return trace_provider_create_with_name_fdio(NULL, COPY_NAME); }

void Work(int number) {
  int i;
  for (i = 0; i < number; ++i) {
    TRACE_INSTANT("copies", COPY_NAME, TRACE_SCOPE_THREAD, "i", TA_INT32(i));
  }
}
