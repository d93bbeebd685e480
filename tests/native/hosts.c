// Hosts that make it hard for a library to be their guest: `hosts WAY HOSTILITY DIRECTORY`, and `hosts emit
// NAME`. See tests/examples/hosts, which does the same in Rust.
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kFirst = 3, kEnd = 64, kCode = 7 };

static struct guest* guest;
static const char* way;
static const char* directory;
static char program[512];
static char error[256];

// Notes what is wrong, where the test finds it, and ends.
static void Fail(const char* what, long number) {
  char path[512];
  const struct rlimit most = {RLIM_INFINITY, RLIM_INFINITY};
  setrlimit(RLIMIT_FSIZE, &most);
  snprintf(path, sizeof(path), "%s/problem", directory);
  FILE* file = fopen(path, "w");
  if (file != NULL) {
    fprintf(file, "%s: %ld %s (%s)\n", what, number, error, strerror(errno));
    fclose(file);
  }
  _exit(101);
}

static void Check(int is_well, const char* what, long number) {
  if (!is_well) Fail(what, number);
}

static int TryBegin(unsigned mebibytes) {
  guest = GuestBegin(way, directory, mebibytes, error, sizeof(error));
  return guest != NULL;
}

static void Begin(void) { Check(TryBegin(1), "it does not begin", 0); }

static void Record(const char* name) { Check(GuestRecord(guest, name, program) == 0, name, 0); }

static int TryEnd(void) {
  int result = GuestEnd(guest, error, sizeof(error));
  guest = NULL;
  return result == 0;
}

static void End(void) { Check(TryEnd(), "it does not end", 0); }

// Notes what a guest says: the test knows what it should be.
static void Say(int is_well) {
  char path[512];
  if (is_well) return;
  snprintf(path, sizeof(path), "%s/error", directory);
  FILE* file = fopen(path, "w");
  fputs(error, file);
  fclose(file);
}

static void Limit(int resource, unsigned long value) {
  struct rlimit limit;
  getrlimit(resource, &limit);
  limit.rlim_cur = value < limit.rlim_max ? value : limit.rlim_max;
  Check(setrlimit(resource, &limit) == 0, "a limit", resource);
}

static int sockets[2];

// Puts a socket of the host's at all numbers.
static void Take(int first, int end) {
  int pair[2], number;
  Check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0, "sockets", 0);
  for (number = 0; number < 2; ++number) sockets[number] = fcntl(pair[number], F_DUPFD, kEnd);
  for (number = first; number < end; ++number) dup2(sockets[0], number);
  Check(write(sockets[1], "untouchd", 8) == 8, "its own socket", 0);
}

static void CheckTaken(int first, int end) {
  char bytes[64];
  int number;
  for (number = first; number < end; ++number) {
    char path[64], found[64] = "", expected[64] = "";
    snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", number);
    Check(readlink(path, found, sizeof(found) - 1) > 0, "closed", number);
    snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", sockets[0]);
    Check(readlink(path, expected, sizeof(expected) - 1) > 0, "closed", sockets[0]);
    Check(strcmp(found, expected) == 0, "another file", number);
  }
  Check(read(sockets[1], bytes, sizeof(bytes)) == -1 && errno == EAGAIN, "foreign bytes", 0);
  Check(read(sockets[0], bytes, sizeof(bytes)) == 8 && memcmp(bytes, "untouchd", 8) == 0, "read by another", 0);
}

static void Close(void) {
  Begin();
  Record("before");
  syscall(SYS_close_range, kFirst, ~0u, 0);
  Take(kFirst, kEnd);
  Record("after");
  End();
  CheckTaken(kFirst, kEnd);
}

static volatile int is_over;

// Closes all descriptors in a loop. What it opens is its own until it closes it.
static void* Closing(void* context) {
  while (!is_over) {
    int ends[2], number;
    char byte;
    Check(pipe2(ends, O_NONBLOCK) == 0, "a pipe", errno);
    for (number = 0; number < 20; ++number) {
      Check(read(ends[0], &byte, 1) == -1 && errno == EAGAIN, "a pipe that nothing writes to", errno);
    }
    Check(close(ends[0]) == 0 && close(ends[1]) == 0, "closed by another", errno);
    syscall(SYS_close_range, kFirst, ~0u, 0);
  }
  return context;
}

static void Closes(void) {
  const int rounds = strcmp(way, "local") == 0 ? 30 : 1;
  pthread_t thread;
  int number;
  // What a provider and a client wake their threads by is made here.
  if (rounds == 1) Begin();
  pthread_create(&thread, NULL, Closing, NULL);
  for (number = 0; number < rounds; ++number) {
    if (rounds > 1) Begin();
    Record("before");
    Record("after");
    End();
  }
  is_over = 1;
  pthread_join(thread, NULL);
}

static void Standard(void) {
  int number;
  for (number = 0; number < kFirst; ++number) close(number);
  Begin();
  Record("before");
  for (number = 0; number < kFirst; ++number) Check(fcntl(number, F_GETFD) == -1, "taken", number);
  Take(0, kFirst);
  Record("after");
  End();
  CheckTaken(0, kFirst);
}

static int IsSent(int number) {
  switch (number) {
    case SIGKILL:
    case SIGSTOP:
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGTRAP:
    case SIGCHLD:
    case SIGCONT:
    case 32:
    case 33:
      return 0;
    default:
      return 1;
  }
}

static pid_t first_thread;
static volatile int own, others;

static void Handle(int number) {
  (void)number;
  if (syscall(SYS_gettid) == first_thread) {
    ++own;
  } else {
    ++others;
  }
}

static sigset_t Signals(void) {
  sigset_t set;
  int number;
  sigemptyset(&set);
  for (number = 1; number <= 64; ++number) {
    if (IsSent(number)) sigaddset(&set, number);
  }
  return set;
}

static int SendAll(void) {
  int number, count = 0;
  for (number = 1; number <= 64; ++number) {
    if (IsSent(number)) {
      ++count;
      kill(getpid(), number);
    }
  }
  return count;
}

static void Handles(void) {
  const sigset_t set = Signals();
  int number;
  first_thread = syscall(SYS_gettid);
  for (number = 1; number <= 64; ++number) {
    if (IsSent(number)) signal(number, Handle);
  }
  Begin();
  Record("before");
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  int count = SendAll();
  Record("after");
  pthread_sigmask(SIG_UNBLOCK, &set, NULL);
  SendAll();
  End();
  Check(others == 0, "threads of the guest", others);
  Check(own == 2 * count, "signals", own);
}

static void Sigwait(void) {
  const sigset_t set = Signals();
  const struct timespec none = {0, 0};
  Begin();
  Record("before");
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  int count = SendAll();
  while (count-- > 0) Check(sigtimedwait(&set, NULL, &none) > 0, "a signal went elsewhere", count);
  Record("after");
  End();
}

static void Blocks(void) {
  sigset_t set;
  sigfillset(&set);
  pthread_sigmask(SIG_SETMASK, &set, NULL);
  Begin();
  Record("before");
  Record("after");
  End();
}

// Standard error is a pipe without a reader, and a file as long as it may be.
static void Pipe(void) {
  char path[512];
  int ends[2], number;
  Check(pipe(ends) == 0 && dup2(ends[1], 2) == 2, "a pipe", 0);
  close(ends[0]);
  Begin();
  Record("before");
  for (number = 0; number < kEvents; ++number) GuestSay();
  snprintf(path, sizeof(path), "%s/stderr", directory);
  const int file = open(path, O_CREAT | O_RDWR | O_APPEND, 0600);
  Check(write(file, path, 100) == 100 && dup2(file, 2) == 2, "a file", file);
  Limit(RLIMIT_FSIZE, 100);
  for (number = 0; number < kEvents; ++number) GuestSay();
  Limit(RLIMIT_FSIZE, RLIM_INFINITY);
  Record("after");
  End();
}

static void NoChildren(void) {
  int status = 0;
  Check(waitpid(-1, &status, 0) == -1, "a child that is not the host's", status);
}

static void Wait(pid_t child) {
  int status = 0;
  Check(waitpid(child, &status, 0) == child && status == 0, "a child", status);
}

static void InChild(int is_ended) {
  pid_t child = fork();
  if (child == 0) {
    int status = 0;
    alarm(10);
    if (guest == NULL || strcmp(way, "client") != 0) GuestRecord(NULL, "child", program);
    if (is_ended) status = GuestEndInChild(guest);
    _exit(status);
  }
  Wait(child);
}

static void* ForkThread(void* context) {
  InChild(0);
  return context;
}

static void Forks(void) {
  InChild(0);
  Begin();
  InChild(0);
  Record("before");
  InChild(1);
  pid_t child = fork();
  if (child == 0) {
    alarm(10);
    InChild(0);
    _exit(0);
  }
  Wait(child);
  Record("after");
  End();
  NoChildren();
}

static void Threads(void) {
  pthread_t threads[4];
  int number;
  Begin();
  Record("before");
  for (number = 0; number < 4; ++number) pthread_create(&threads[number], NULL, ForkThread, NULL);
  for (number = 0; number < 4; ++number) pthread_join(threads[number], NULL);
  Record("after");
  End();
  NoChildren();
}

static void Spawn(void) {
  const char* script =
      "for fd in /proc/self/fd/*; do case ${fd##*/} in 0|1|2) ;; *) test ! -S $fd || exit 7;; esac; done";
  pid_t child = vfork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", script, (char*)NULL);
    _exit(9);
  }
  Wait(child);
  Check(system(script) == 0, "an inherited socket", 0);
}

static void Spawns(void) {
  Spawn();
  Begin();
  Spawn();
  Record("before");
  Spawn();
  Record("after");
  End();
  Spawn();
  NoChildren();
}

static volatile int ended;

static void OnChild(int number) {
  (void)number;
  ++ended;
}

static void Waits(void) {
  int status = 0;
  signal(SIGCHLD, OnChild);
  Begin();
  NoChildren();
  Check(ended == 0, "children that have ended", ended);
  pid_t child = fork();
  if (child == 0) _exit(3);
  Check(waitpid(-1, &status, 0) == child && status == 3 << 8, "the only child", status);
  NoChildren();
  Record("before");
  Record("after");
  End();
  NoChildren();
}

static void Ignores(void) {
  signal(SIGCHLD, SIG_IGN);
  Begin();
  Record("before");
  NoChildren();
  Record("after");
  End();
  NoChildren();
}

static void SmallFiles(void) {
  Limit(RLIMIT_FSIZE, 512);
  int is_well = TryBegin(1);
  if (is_well) {
    Record("before");
    Record("after");
    is_well = TryEnd();
  }
  Limit(RLIMIT_FSIZE, RLIM_INFINITY);
  Say(is_well);
}

static void SmallerFiles(void) {
  Begin();
  Record("before");
  Limit(RLIMIT_FSIZE, 512);
  Record("after");
  int is_well = TryEnd();
  // What is recorded from the start is written when the program ends.
  if (strcmp(way, "startup") != 0) Limit(RLIMIT_FSIZE, RLIM_INFINITY);
  Say(is_well);
}

static void FewNumbers(void) {
  Limit(RLIMIT_NOFILE, 3);
  int is_well = TryBegin(1);
  Limit(RLIMIT_NOFILE, 1024);
  Say(is_well);
}

static void LittleSpace(void) {
  unsigned long pages = 0;
  const int is_client = strcmp(way, "client") == 0;
  FILE* size = fopen("/proc/self/statm", "r");
  Check(fscanf(size, "%lu", &pages) == 1, "its size", 0);
  fclose(size);
  const unsigned long bytes = pages * 4096 + (32ul << 20);
  if (!is_client) Limit(RLIMIT_AS, bytes);
  int is_well = TryBegin(64);
  Record("before");
  Record("after");
  Limit(RLIMIT_AS, bytes);
  is_well = is_well && TryEnd();
  Limit(RLIMIT_AS, RLIM_INFINITY);
  Say(is_well);
}

static void LittleMemory(void) {
  FILE* group = fopen(getenv("HOSTS_GROUP"), "w");
  fprintf(group, "%d", getpid());
  fclose(group);
  int is_well = TryBegin(64);
  if (is_well) {
    if (strcmp(way, "client") != 0) {
      Record("before");
      Record("many");
    }
    is_well = TryEnd();
  }
  Say(is_well);
}

static void AtExit(void) {
  if (strcmp(way, "client") != 0) GuestRecord(guest, "end", program);
}

static void* Last(void* context) {
  char path[64], stat[256];
  snprintf(path, sizeof(path), "/proc/self/task/%d/stat", getpid());
  for (;;) {
    FILE* file = fopen(path, "r");
    size_t length = file != NULL ? fread(stat, 1, sizeof(stat) - 1, file) : 0;
    stat[length] = 0;
    if (file != NULL) fclose(file);
    if (strstr(stat, ") Z ") != NULL) break;
    sched_yield();
  }
  Record("after");
  End();
  _exit(kCode);
  return context;
}

static void Ends(const char* how) {
  atexit(AtExit);
  Begin();
  Record("before");
  if (strcmp(how, "exit") == 0) exit(kCode);
  if (strcmp(how, "_exit") == 0) _exit(kCode);
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "first thread") == 0) {
    pthread_t thread;
    pthread_create(&thread, NULL, Last, NULL);
    pthread_exit(NULL);
  }
  Check(strcmp(how, "returns") == 0, how, 0);
}

static const struct {
  const char* name;
  void (*host)(void);
} hosts[] = {
    {"close", Close},         {"closes", Closes},            {"standard", Standard},        {"handles", Handles},
    {"sigwait", Sigwait},     {"forks", Forks},              {"threads", Threads},
    {"spawns", Spawns},       {"waits", Waits},              {"ignores", Ignores},
    {"small files", SmallFiles}, {"smaller files", SmallerFiles}, {"few numbers", FewNumbers},
    {"little space", LittleSpace},
    {"little memory", LittleMemory},
    {"blocks", Blocks},
    {"pipe", Pipe},
};

int main(int argc, char** argv) {
  unsigned number;
  ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
  if (argc < 3 || length <= 0) return 1;
  way = argv[1];
  if (strcmp(way, "emit") == 0) {
    guest = GuestBegin("provider", ".", 0, error, sizeof(error));
    GuestRecord(guest, argv[2], program);
    return GuestEnd(guest, error, sizeof(error));
  }
  directory = argv[3];
  for (number = 0; number < sizeof(hosts) / sizeof(*hosts); ++number) {
    if (strcmp(hosts[number].name, argv[2]) == 0) {
      hosts[number].host();
      return 0;
    }
  }
  Ends(argv[2]);
  return 0;
}
