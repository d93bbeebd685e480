// A child whose first events are in handlers of signals, which interrupt a function that holds a lock of the
// program's heap. Whatever takes memory meanwhile ends the child: it would have waited for ever.
#include <trace/event.h>

#include <lib/trace-provider/start.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* memory, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);

static atomic_bool is_locked;

static void Lock(void) {
  if (is_locked) _exit(3);
}

void* malloc(size_t size) {
  Lock();
  return __libc_malloc(size);
}

void* calloc(size_t count, size_t size) {
  Lock();
  return __libc_calloc(count, size);
}

void* realloc(void* memory, size_t size) {
  Lock();
  return __libc_realloc(memory, size);
}

int posix_memalign(void** memory, size_t alignment, size_t size) {
  Lock();
  *memory = __libc_memalign(alignment, size);
  return *memory == NULL ? ENOMEM : 0;
}

static void OnSignal(int number) {
  (void)number;
  TRACE_INSTANT("child", "in a handler", TRACE_SCOPE_THREAD);
  TRACE_DURATION("child", "scope in a handler");
  TRACE_INSTANT("unwanted", "in a handler", TRACE_SCOPE_THREAD);
}

static void Interrupt(void) {
  is_locked = true;
  raise(SIGUSR1);
  is_locked = false;
}

static void* Work(void* data) {
  for (int round = 0; round < 3; ++round) Interrupt();
  return data;
}

int main(void) {
  signal(SIGUSR1, OnSignal);
  trace_provider_start();
  pid_t child = fork();
  if (child == 0) {
    pthread_t thread;
    Interrupt();
    if (pthread_create(&thread, NULL, Work, NULL) != 0) return 4;
    pthread_join(thread, NULL);
    TRACE_INSTANT("child", "joined", TRACE_SCOPE_THREAD);
    Interrupt();
    return 0;
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 5;
}
