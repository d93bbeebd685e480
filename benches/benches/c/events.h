// Each kind of event, again and again: `events KIND TIMES`. Values are given by V(type, value), which C++
// leaves to inference.
#include <lib/async-loop/default.h>
#include <lib/async-loop/loop.h>
#include <lib/trace-engine/handler.h>
#include <trace/event.h>

#include <stdlib.h>

#ifdef __cplusplus
#define V(type, value) (value)
#else
#define V(type, value) TA_##type(value)
#endif

#define BYTES (16 << 20)

static bool IsEnabled(trace_handler_t* handler, const char* category) {
  (void)handler;
  return strcmp(category, "bench") == 0;
}

#define EACH(body)                              \
  for (number = 0; number < times; ++number) {  \
    body;                                       \
    __asm__ volatile("" : "+r"(number));        \
  }                                             \
  break

int main(int argc, char** argv) {
  if (argc != 3) return 1;
  unsigned long times = strtoul(argv[2], NULL, 10);
  uint64_t number;
  trace_handler_ops_t ops = {IsEnabled, NULL, NULL, NULL, NULL, NULL};
  trace_handler_t handler = {&ops};
  async_loop_t* loop;
  if (async_loop_create(&kAsyncLoopConfigNoAttachToCurrentThread, &loop) != ZX_OK) return 2;
  async_dispatcher_t* dispatcher = async_loop_get_dispatcher(loop);
  void* buffer = aligned_alloc(4096, BYTES);
  if (trace_engine_initialize(dispatcher, &handler, TRACE_BUFFERING_MODE_ONESHOT, buffer, BYTES) != ZX_OK) return 3;
  if (trace_engine_start(TRACE_START_RETAIN_BUFFER) != ZX_OK) return 4;
  switch (atoi(argv[1])) {
    case 0:
      EACH(;);
    case 1:
      EACH(TRACE_INSTANT("other", "off", TRACE_SCOPE_THREAD));
    case 2:
      EACH(TRACE_INSTANT("bench", "instant", TRACE_SCOPE_THREAD));
    case 3:
      EACH(TRACE_DURATION_BEGIN("bench", "begin"));
    case 4:
      EACH(TRACE_DURATION_END("bench", "begin"));
    case 5:
      EACH({ TRACE_DURATION("bench", "scope"); });
    case 6:
      EACH(TRACE_FLOW_BEGIN("bench", "flow", number));
    case 7:
      EACH(TRACE_COUNTER("bench", "counter", 0, "value", V(UINT64, number)));
    case 8:
      EACH(TRACE_INSTANT("bench", "i64", TRACE_SCOPE_THREAD, "value", V(INT64, (int64_t)number)));
    case 9:
      EACH({
        const char* text = "sixteen bytes...";
        size_t length = 16;
        __asm__("" : "+r"(text), "+r"(length));
        TRACE_INSTANT("bench", "text", TRACE_SCOPE_THREAD, "value", V(INT64, (int64_t)number), "text",
                      TA_CHAR_ARRAY(text, length));
      });
    default:
      return 5;
  }
  trace_engine_terminate();
  return 0;
}
