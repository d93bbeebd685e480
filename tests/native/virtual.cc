// Events of virtual threads.
#include <trace-vthread/event_vthread.h>

#include <lib/trace-provider/start.h>

int main() {
  trace_provider_start();
  zx_ticks_t time = zx_ticks_get();
  TRACE_VTHREAD_DURATION_BEGIN("virtual", "work", "queue", 5, time, "number", 1);
  TRACE_VTHREAD_FLOW_BEGIN("virtual", "flow", "queue", 5, 77, time + 10);
  TRACE_VTHREAD_FLOW_STEP("virtual", "flow", "queue", 5, 77, time + 20);
  TRACE_VTHREAD_FLOW_END("virtual", "flow", "queue", 5, 77, time + 30);
  TRACE_VTHREAD_COUNTER("virtual", "depth", "queue", 5, 1, time + 40, "depth", 3u);
  TRACE_VTHREAD_DURATION_END("virtual", "work", "queue", 5, time + 50);
}
