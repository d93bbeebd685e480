// Records N events, in the order of their numbers, and leaves its recording: `leaving N HOW`.
#include <trace/event.h>

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile uint64_t sent;

static void Send(uint64_t count) {
  for (; count > 0; --count) {
    uint64_t number = sent++;
    TRACE_INSTANT("leaving", "event", TRACE_SCOPE_THREAD, "n", TA_UINT64(number));
  }
}

static void OnSignal(int number) {
  (void)number;
  Send(1);
}

static void Wait(void) {
  puts("ready");
  fflush(stdout);
  for (int read = 0; read != '\n' && read != EOF;) read = getchar();
}

// The shell's or a library's, which shares the memory of its parent until it ends.
static void Vfork(void) {
  pid_t child = vfork();
  if (child == 0) {
    Send(1);
    _exit(0);
  }
  waitpid(child, NULL, 0);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  uint64_t count = strtoull(argv[1], NULL, 10);
  const char* how = argv[2];
  if (strcmp(how, "handler") == 0) {
    // The first event of all is one in a handler, which interrupts what takes memory.
    signal(SIGALRM, OnSignal);
    ualarm(200, 0);
    while (sent == 0) {
      void* volatile memory = malloc(1000);
      free(memory);
    }
  }
  if (strcmp(how, "child") == 0) {
    Send(count);
    pid_t child = fork();
    if (child == 0) {
      // Has nothing to do with the recording, and holds no pipe.
      for (int number = 0; number < 3; ++number) close(number);
      for (;;) pause();
    }
    printf("%d\n", (int)child);
  } else {
    Send(count / 2);
    if (strcmp(how, "vfork") == 0) Vfork();
    Send(count - count / 2);
  }
  if (strcmp(how, "end") != 0) Wait();
  return 0;
}
