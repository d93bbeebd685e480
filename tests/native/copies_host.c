// Loads libraries, each with a copy of the trace library, and has none itself: `copies_host LIBRARY…`. All
// of them at once, and then one after the other, again and again.
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

enum { kRounds = 3 };

static void* Find(void* library, const char* name) { return library ? dlsym(library, name) : NULL; }

int main(int argc, char** argv) {
  int i, round;
  void* loaded[64];
  for (i = 1; i < argc; ++i) {
    loaded[i] = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    if (!loaded[i]) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
  }
  void* (*provide)(void);
  *(void**)&provide = Find(loaded[1], "Provide");
  if (!provide || !provide()) return 2;
  for (round = 0; round < kRounds; ++round) {
    for (i = 1; i < argc; ++i) {
      void* library = round == 0 ? loaded[i] : dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
      void (*work)(int);
      *(void**)&work = Find(library, "Work");
      if (!work) return 3;
      work(10);
      if (dlclose(library) != 0) return 4;
    }
  }
  return 0;
}
