// Loads plugins, calls them, and unloads them, again and again: `plugin_host FIRST SECOND`.
#include <trace/event.h>

#include <lib/trace-provider/provider.h>

#include <dlfcn.h>

static int Call(const char* path, int number) {
  void* plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!plugin) return 1;
  void (*call)(int);
  *(void**)&call = dlsym(plugin, "Plugin");
  call(number);
  call(number + 1);
  return dlclose(plugin);
}

int main(int argc, char** argv) {
  if (argc != 3) return 1;
  trace_provider_t* provider = trace_provider_create_with_fdio(NULL);
  int round;
  for (round = 0; round < 3; ++round) {
    if (Call(argv[1], 10 * round) != 0) return 2;
    if (Call(argv[2], 100 * round) != 0) return 3;
    TRACE_INSTANT("plugin", "unloaded", TRACE_SCOPE_THREAD, "gone",
                  TA_BOOL(dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) == NULL));
  }
  // Recording ends, for which all sites are looked at.
  trace_provider_destroy(provider);
  return 0;
}
