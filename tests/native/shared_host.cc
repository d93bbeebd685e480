// Loads plugins, calls them on its own thread and on another, and unloads them, again and again:
// `shared_host ROUNDS PLUGIN…`.
#include "shared.h"

#include <lib/trace-provider/provider.h>

#include <dlfcn.h>
#include <stdlib.h>

#include <thread>

int main(int argc, char** argv) {
  trace_provider_t* provider = trace_provider_create_with_fdio(nullptr);
  Shared(0);
  for (int round = 1; round <= atoi(argv[1]); ++round) {
    for (int i = 2; i < argc; ++i) {
      void* plugin = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
      if (!plugin) return 1;
      auto call = reinterpret_cast<void (*)(int)>(dlsym(plugin, "Plugin"));
      call(round);
      std::thread([&] { call(round); }).join();
      dlclose(plugin);
      TRACE_INSTANT("copies", "host", TRACE_SCOPE_THREAD);
      std::thread([&] { Shared(0); }).join();
    }
  }
  trace_provider_destroy(provider);
  return 0;
}
