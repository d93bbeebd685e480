// Threads that come to the first event at once: of a program without a provider, and of a forked child of one
// that has a provider (`crowd child`).
#include <trace/event.h>

#include <lib/trace-provider/start.h>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define EVENTS 2000

static pthread_barrier_t begun;

static void* Work(void* data) {
  uint64_t thread = (uint64_t)(uintptr_t)data;
  uint64_t n;
  pthread_barrier_wait(&begun);
  for (n = 0; n < EVENTS; ++n) {
    TRACE_INSTANT("crowd", "event", TRACE_SCOPE_THREAD, "thread", TA_UINT64(thread), "n", TA_UINT64(n));
  }
  return NULL;
}

static int Crowd(void) {
  pthread_t threads[THREADS];
  uintptr_t i;
  if (pthread_barrier_init(&begun, NULL, THREADS) != 0) return 1;
  for (i = 0; i < THREADS; ++i) {
    if (pthread_create(&threads[i], NULL, Work, (void*)i) != 0) return 2;
  }
  for (i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  return 0;
}

int main(int argc, char** argv) {
  (void)argv;
  if (argc == 1) return Crowd();
  trace_provider_start();
  pid_t child = fork();
  if (child == 0) return Crowd();
  int status = -1;
  return waitpid(child, &status, 0) == child && status == 0 ? 0 : 3;
}
