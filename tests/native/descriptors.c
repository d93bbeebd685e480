// Takes all numbers of descriptors for itself while it is recorded: `descriptors FIRST FILE` puts an eventfd,
// an epoll and the file at them in turn. See tests/examples/descriptors.rs, which does the same in Rust.
#include <trace/event.h>

#include <lib/trace-provider/provider.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kFirst = 3, kEnd = 64 };

static int own[3];

static int Check(int first) {
  int number;
  char text[16];
  uint64_t count;
  for (number = kFirst; number < kEnd; ++number) {
    struct stat found, expected;
    if (fstat(number, &found) != 0 || fstat(own[(number + first) % 3], &expected) != 0) return 1;
    if (found.st_dev != expected.st_dev || found.st_ino != expected.st_ino) return 2;
  }
  if (read(own[0], &count, sizeof(count)) != -1) return 3;
  if (pread(own[2], text, sizeof(text), 0) != 9 || memcmp(text, "untouched", 9) != 0) return 4;
  return 0;
}

static int CheckChild(int first) {
  int status = -1;
  pid_t child = fork();
  if (child == 0) _exit(Check(first));
  return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  int number;
  if (argc != 3) return 1;
  const int first = atoi(argv[1]);
  alarm(40);
  trace_provider_t* provider = trace_provider_create_with_name_fdio(NULL, "descriptors");
  TRACE_INSTANT("descriptors", "before", TRACE_SCOPE_THREAD);
  const int made[3] = {eventfd(0, EFD_NONBLOCK), epoll_create1(0), open(argv[2], O_CREAT | O_RDWR, 0600)};
  if (write(made[2], "untouched", 9) != 9) return 2;
  for (number = 0; number < 3; ++number) own[number] = fcntl(made[number], F_DUPFD, kEnd);
  for (number = kFirst; number < kEnd; ++number) dup2(own[(number + first) % 3], number);
  TRACE_ALERT("descriptors", "here");
  if (CheckChild(first) != 0) return 3;
  TRACE_INSTANT("descriptors", "after", TRACE_SCOPE_THREAD);
  trace_provider_destroy(provider);
  if (CheckChild(first) != 0) return 4;
  return Check(first) == 0 ? 0 : 5;
}
