// Writes events as fast as it can, as the program of this name in Rust: `burst FILE LIMIT PAUSE BY`, with
// threads, or by `forks` with children. By `local` it begins a recording of its own.
#include <trace/event.h>

#include <lib/trace-provider/local.h>
#include <lib/trace-provider/start.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define THREADS 4

static uint64_t* counters;
static uint64_t limit;
static unsigned pause_us;

static void* Work(void* data) {
  uint64_t thread = (uint64_t)(uintptr_t)data;
  for (uint64_t n = 0; n < limit; ++n) {
    TRACE_INSTANT("burst", "event", TRACE_SCOPE_THREAD, "n", TA_UINT64(n), "thread", TA_UINT64(thread));
    __atomic_store_n(&counters[thread], n + 1, __ATOMIC_RELEASE);
    usleep(pause_us);
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  int file = open(argv[1], O_RDWR);
  counters = (uint64_t*)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file < 0 || counters == MAP_FAILED) return 3;
  limit = strtoull(argv[2], NULL, 10);
  pause_us = (unsigned)atoi(argv[3]);
  if (strcmp(argv[4], "local") == 0 && !trace_local_start("burst", TRACE_BUFFERING_MODE_ONESHOT, 64)) return 4;
  pthread_t threads[THREADS];
  for (uintptr_t thread = 1; thread < THREADS; ++thread) {
    if (strcmp(argv[4], "forks") == 0) {
      if (fork() == 0) {
        Work((void*)thread);
        return 0;
      }
    } else if (pthread_create(&threads[thread], NULL, Work, (void*)thread) != 0) {
      return 5;
    }
  }
  Work((void*)0);
  return 0;
}
