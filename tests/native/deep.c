// Opens and ends scopes at random on four threads, prints what each has open, and dies:
// `deep SEED kill|segfault|abort|overflow|jump|wait`. A line is the name of the thread, how many of its
// scopes have ended, and those that are open. `deep 0 together`: threads that come to one site at once die
// in it.
#include <lib/trace-provider/start.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <trace/event.h>
#include <unistd.h>

enum { THREADS = 4, MOST = 512 };

typedef struct log {
  uint64_t random;
  unsigned steps, ended;
  size_t depth, last_depth;
  const char* open[MOST];
  char name[16];
  char line[8192];
} log_t;

static const char* how;
static pthread_barrier_t all_there;
static log_t logs[THREADS];

static uint64_t next(log_t* log, uint64_t below) {
  log->random = log->random * 6364136223846793005u + 1442695040888963407u;
  return (log->random >> 33) % below;
}

static void walk(log_t* log);

static void enter(log_t* log, const char* name) {
  log->open[log->depth++] = name;
  walk(log);
  log->depth -= 1;
  log->ended += 1;
}

// Leaves three scopes by a jump: they never end, and stay open as long as what is around them.
static void jump_out(void) {
  static __thread jmp_buf back;
  if (setjmp(back) == 0) {
    TRACE_DURATION("deep", "left");
    TRACE_DURATION("deep", "left");
    TRACE_DURATION("deep", "left");
    longjmp(back, 1);
  }
}

static void scope(log_t* log) {
  switch (next(log, 4)) {
    case 0: {
      TRACE_DURATION("deep", "one");
      enter(log, "one");
      return;
    }
    case 1: {
      TRACE_DURATION("deep", "two", "depth", TA_UINT64((uint64_t)log->depth));
      enter(log, "two");
      return;
    }
    case 2: {
      TRACE_DURATION("deep", "three", "text", TA_STRING("some text"), "more", TA_BOOL(true));
      enter(log, "three");
      return;
    }
    default: {
      TRACE_DURATION("deep", "four");
      const size_t depth = log->depth;
      if (strcmp(how, "jump") == 0) {
        jump_out();
        log->open[log->depth++] = "four";
        log->open[log->depth++] = "left";
        log->open[log->depth++] = "left";
        log->open[log->depth++] = "left";
        walk(log);
        log->depth = depth;
        log->ended += 1;
        return;
      }
      enter(log, "four");
    }
  }
}

static int overflow(volatile int depth) {
  volatile char room[4096];
  room[0] = (char)depth;
  return overflow(depth + 1) + room[0];
}

static void die(void) {
  volatile int* nowhere = NULL;
  if (strcmp(how, "kill") == 0 || strcmp(how, "jump") == 0) {
    kill(getpid(), SIGKILL);
  } else if (strcmp(how, "segfault") == 0) {
    *nowhere = 1;
  } else if (strcmp(how, "abort") == 0) {
    abort();
  } else if (strcmp(how, "overflow") == 0) {
    printf("%d\n", overflow(0));
  }
  (void)getchar();
  _exit(0);
}

static void stay(log_t* log) {
  size_t length = (size_t)snprintf(log->line, sizeof log->line, "%s %u ", log->name, log->ended);
  for (size_t i = 0; i < log->depth; ++i) {
    length += (size_t)snprintf(log->line + length, sizeof log->line - length, "%s%s", i == 0 ? "" : ">", log->open[i]);
  }
  pthread_barrier_wait(&all_there);
  if (log != &logs[0]) {
    for (;;) {
      pause();
    }
  }
  for (int i = 0; i < THREADS; ++i) {
    puts(logs[i].line);
  }
  puts("end");
  fflush(stdout);
  die();
}

// Opens scopes in the one that is open, and returns when that is to end.
static void walk(log_t* log) {
  for (;;) {
    if (log->steps == 0) {
      if (log->depth >= log->last_depth) {
        stay(log);
      }
    } else {
      log->steps -= 1;
      if (next(log, 2) == 0 && log->depth > 0) {
        return;
      }
    }
    scope(log);
  }
}

static void* run(void* data) {
  log_t* log = (log_t*)data;
  prctl(PR_SET_NAME, log->name, 0, 0, 0);
  // The very first scope of a thread, in one of four.
  log->steps = next(log, 4) == 0 ? 0 : (unsigned)next(log, 300);
  log->last_depth = (size_t)next(log, 40);
  walk(log);
  return NULL;
}

enum { TOGETHER = 32 };

static void* begin_together(void* data) {
  prctl(PR_SET_NAME, (const char*)data, 0, 0, 0);
  pthread_barrier_wait(&all_there);
  TRACE_DURATION("deep", "one");
  pthread_barrier_wait(&all_there);
  for (;;) {
    pause();
  }
  return NULL;
}

static void die_together(void) {
  static char names[TOGETHER][16];
  pthread_barrier_init(&all_there, NULL, TOGETHER + 1);
  for (int i = 0; i < TOGETHER; ++i) {
    pthread_t thread;
    snprintf(names[i], sizeof names[i], "together-%d", i);
    pthread_create(&thread, NULL, begin_together, names[i]);
    printf("%s 0 one\n", names[i]);
  }
  pthread_barrier_wait(&all_there);
  pthread_barrier_wait(&all_there);
  puts("end");
  fflush(stdout);
  kill(getpid(), SIGKILL);
}

int main(int argc, char** argv) {
  if (argc < 3) {
    return 2;
  }
  how = argv[2];
  trace_provider_start();
  if (strcmp(how, "together") == 0) {
    die_together();
  }
  pthread_barrier_init(&all_there, NULL, THREADS);
  for (int i = 0; i < THREADS; ++i) {
    logs[i].random = strtoull(argv[1], NULL, 10) + (uint64_t)i * 77;
    snprintf(logs[i].name, sizeof logs[i].name, "walker-%d", i);
  }
  for (int i = 1; i < THREADS; ++i) {
    pthread_t thread;
    pthread_create(&thread, NULL, run, &logs[i]);
  }
  run(&logs[0]);
  return 0;
}
