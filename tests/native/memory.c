// Says what it uses memory for, and a line for each dump, until its input ends.
#include <lib/trace-provider/memory_dump.h>
#include <lib/trace-provider/start.h>

#include <stdio.h>

static void Report(void* data, trace_memory_dump_t* dump) {
  uint64_t bytes = *(uint64_t*)data;
  trace_memory_dump_add(dump, "cache", bytes);
  trace_memory_dump_add(dump, "last dump", trace_memory_dump_get_id(dump));
  if (trace_memory_dump_is_detailed(dump)) trace_memory_dump_add(dump, "cache/images", bytes / 2);
  printf("dump %d\n", (int)trace_memory_dump_get_id(dump));
  fflush(stdout);
}

int main(void) {
  static uint64_t bytes = 3000;
  trace_on_memory_dump(Report, &bytes);
  trace_on_memory_dump(NULL, &bytes);
  trace_provider_start();
  printf("ready\n");
  fflush(stdout);
  while (getchar() != EOF) {
  }
  return 0;
}
