// Begins to record by itself if an argument says so, and makes its provider later.
#include <lib/trace-provider/start.h>
#include <stdio.h>
#include <string.h>
#include <trace/event.h>

int main(int argc, char** argv) {
  TRACE_INSTANT("start", "earlier", TRACE_SCOPE_THREAD);
  printf("%d", trace_startup_begin_by_arguments(argc, argv));
  TRACE_INSTANT("start", "first", TRACE_SCOPE_THREAD);
  TRACE_INSTANT("other", "first", TRACE_SCOPE_THREAD);
  // It records already.
  printf("%d\n", trace_startup_begin(""));
  if (argc == 1 || strcmp(argv[argc - 1], "alone") != 0) {
    trace_provider_start();
  }
  TRACE_INSTANT("start", "last", TRACE_SCOPE_THREAD);
  return 0;
}
