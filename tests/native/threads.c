// Threads that all write at once, and end, and new ones.
#include <trace/event.h>

#include <lib/trace-provider/start.h>

#include <pthread.h>

#define THREADS 8
#ifndef EVENTS
#define EVENTS 2000
#endif

static void* Work(void* data) {
  int32_t number = (int32_t)(intptr_t)data;
  int32_t i;
  for (i = 0; i < EVENTS; ++i) {
    TRACE_DURATION("threads", "work", "thread", TA_INT32(number), "i", TA_INT32(i));
    TRACE_COUNTER("threads", "progress", number, "i", TA_INT32(i), "text", TA_STRING("some text"));
  }
  return NULL;
}

int main(void) {
  trace_provider_start();
  pthread_t threads[THREADS];
  intptr_t i;
  for (i = 0; i < THREADS; ++i) {
    if (pthread_create(&threads[i], NULL, Work, (void*)i) != 0) return 1;
  }
  for (i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  return 0;
}
