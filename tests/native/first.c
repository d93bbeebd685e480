// Makes a provider in the way that its argument selects, and records an event at once: 0 by name,
// 1 synchronously, 2 through a connection of its own, 3 for the whole life of the process, 4 in a child.
#include <trace/event.h>

#include <lib/trace-provider/fdio_connect.h>
#include <lib/trace-provider/provider.h>
#include <lib/trace-provider/start.h>

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char** argv) {
  trace_provider_t* provider = NULL;
  bool started = true;
  zx_handle_t connection = ZX_HANDLE_INVALID;
  int way = argc == 2 ? atoi(argv[1]) : -1;
  switch (way) {
    case 0:
      provider = trace_provider_create_with_name_fdio(NULL, "first");
      break;
    case 1:
      provider = trace_provider_create_synchronously_with_fdio(NULL, "first", &started);
      break;
    case 2:
      if (trace_provider_connect_with_fdio(&connection) != ZX_OK) return 1;
      provider = (trace_provider_create_with_name)(connection, NULL, "first");
      break;
    case 3:
    case 4:
      trace_provider_start();
      break;
    default:
      return 2;
  }
  if (way < 3 && (!provider || !started)) return 3;
  if (way == 4) {
    pid_t child = fork();
    if (child != 0) {
      int status = -1;
      return waitpid(child, &status, 0) == child && status == 0 ? 0 : 4;
    }
  }
  TRACE_INSTANT("first", "event", TRACE_SCOPE_THREAD, "way", TA_INT32(way));
  trace_provider_destroy(provider);
  return 0;
}
