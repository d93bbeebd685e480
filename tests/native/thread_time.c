// As `thread_time.rs`, in C.
#include <lib/trace-provider/start.h>
#include <lib/trace/event.h>

#include <pthread.h>
#include <stdint.h>
#include <time.h>

// How long a duration keeps a processor busy, in nanoseconds.
#define BUSY 5000000
// How many durations a round has that do nothing.
#define SHORT 50

static uint64_t thread_time(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void* spin(void* round) {
  TRACE_INSTANT("time", "around", TRACE_SCOPE_THREAD, "time", TA_UINT64(thread_time()));
  {
    TRACE_DURATION("time", "spinning", "round", TA_UINT32(*(uint32_t*)round));
    TRACE_DURATION("time", "nested");
    uint64_t until = thread_time() + BUSY;
    while (thread_time() < until) {
    }
  }
  TRACE_INSTANT("time", "around", TRACE_SCOPE_THREAD, "time", TA_UINT64(thread_time()));
  return NULL;
}

int main(void) {
  trace_provider_start();
  for (uint32_t round = 0; round < 2; ++round) {
    TRACE_INSTANT("time", "around", TRACE_SCOPE_THREAD, "time", TA_UINT64(thread_time()));
    {
      TRACE_DURATION("time", "waiting", "round", TA_UINT32(round));
      pthread_t spinning;
      pthread_create(&spinning, NULL, spin, &round);
      pthread_join(spinning, NULL);
    }
    TRACE_DURATION_BEGIN("time", "pair");
    TRACE_DURATION_END("time", "pair");
    for (int number = 0; number < SHORT; ++number) {
      TRACE_DURATION("time", "short");
    }
    TRACE_INSTANT("time", "around", TRACE_SCOPE_THREAD, "time", TA_UINT64(thread_time()));
  }
  TRACE_COUNTER("time", "none", 1, "value", TA_INT32(1));
  {
    TRACE_DURATION("time", "full", "a", TA_INT32(1), "b", TA_INT32(2), "c", TA_INT32(3), "d", TA_INT32(4), "e",
                   TA_INT32(5), "f", TA_INT32(6), "g", TA_INT32(7), "h", TA_INT32(8), "i", TA_INT32(9), "j",
                   TA_INT32(10), "k", TA_INT32(11), "l", TA_INT32(12), "m", TA_INT32(13), "n", TA_INT32(14));
  }
  return 0;
}
