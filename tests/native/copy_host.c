// Loads two libraries, each with a copy of the trace library: `copy_host FIRST SECOND`. It has none itself.
#include <dlfcn.h>
#include <stddef.h>

static void* Find(void* library, const char* name) { return library ? dlsym(library, name) : NULL; }

int main(int argc, char** argv) {
  int i;
  if (argc != 3) return 1;
  void* libraries[2] = {dlopen(argv[1], RTLD_NOW | RTLD_LOCAL), dlopen(argv[2], RTLD_NOW | RTLD_LOCAL)};
  for (i = 0; i < 2; ++i) {
    void* (*provide)(void);
    *(void**)&provide = Find(libraries[i], "Provide");
    if (!provide || !provide()) return 2;
  }
  for (i = 0; i < 2; ++i) {
    void (*work)(int);
    *(void**)&work = Find(libraries[i], "Work");
    work(100);
  }
  return 0;
}
