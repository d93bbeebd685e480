// A child that is forked, and one that becomes another program: `forking` runs itself as `forking child`.
#include <trace/event.h>

#include <lib/trace-engine/hook.h>
#include <lib/trace-provider/start.h>

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int Wait(pid_t child) {
  int status = -1;
  return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}

static bool Keep(void* context, const trace_hook_event_t* event) {
  (void)context;
  (void)event;
  return true;
}

int main(int argc, char** argv) {
  trace_provider_start();
  if (getenv("HOOKED") != NULL) {
    trace_set_event_hook(Keep, NULL);
  }
  if (argc == 2) {
    TRACE_INSTANT("fork", "other program", TRACE_SCOPE_THREAD);
    return 0;
  }
  TRACE_INSTANT("fork", "parent", TRACE_SCOPE_THREAD);
  pid_t child = fork();
  if (child == 0) {
    TRACE_INSTANT("fork", "child", TRACE_SCOPE_THREAD);
    TRACE_INSTANT("fork", "child again", TRACE_SCOPE_THREAD);
    return 0;
  }
  if (Wait(child) != 0) return 1;
  child = fork();
  if (child == 0) {
    execl(argv[0], argv[0], "child", (char*)NULL);
    _exit(2);
  }
  if (Wait(child) != 0) return 3;
  TRACE_INSTANT("fork", "parent", TRACE_SCOPE_THREAD);
  return 0;
}
