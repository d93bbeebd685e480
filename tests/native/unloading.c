// Loads a guest as a plugin: `unloading WAY unloads DIRECTORY` unloads it while it may still have something
// to do; with `constructs` it begins in a constructor. The plugin and the program that a client records are
// in the environment.
#include "guest.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct guest* (*begin)(const char*, const char*, unsigned, char*, unsigned long);
static int (*record)(struct guest*, const char*, const char*);
static int (*end)(struct guest*, char*, unsigned long);
static struct guest* guest;
static sem_t recorded, unloaded;
static char program[512];

static void* Load(void) {
  void* plugin = dlopen(getenv("HOSTS_PLUGIN"), RTLD_NOW | RTLD_LOCAL);
  if (plugin == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(2);
  }
  *(void**)&begin = dlsym(plugin, "GuestBegin");
  *(void**)&record = dlsym(plugin, "GuestRecord");
  *(void**)&end = dlsym(plugin, "GuestEnd");
  return plugin;
}

// A thread that has recorded, and ends after the plugin was unloaded.
static void* Thread(void* context) {
  record(guest, "before", program);
  sem_post(&recorded);
  sem_wait(&unloaded);
  return context;
}

// A client says that it cannot begin there, and does so afterwards.
static int Constructs(const char* way, const char* directory) {
  char error[256] = "";
  setenv("HOSTS_WAY", way, 1);
  setenv("HOSTS_DIRECTORY", directory, 1);
  void* plugin = Load();
  struct guest* (*begun)(char*, unsigned long);
  *(void**)&begun = dlsym(plugin, "GuestBegun");
  guest = begun(error, sizeof(error));
  if (guest == NULL && (strcmp(way, "client") != 0 || strstr(error, "constructors") == NULL)) {
    fprintf(stderr, "%s\n", error);
    return 3;
  }
  if (guest == NULL) guest = begin(way, directory, 1, error, sizeof(error));
  if (record(guest, "before", program) != 0 || record(guest, "after", program) != 0) return 4;
  if (end(guest, error, sizeof(error)) != 0) {
    fprintf(stderr, "%s\n", error);
    return 5;
  }
  return 0;
}

int main(int argc, char** argv) {
  char error[256] = "";
  pthread_t thread;
  if (argc != 4) return 1;
  alarm(30);
  snprintf(program, sizeof(program), "%s", getenv("HOSTS_EMIT"));
  if (strcmp(argv[2], "constructs") == 0) return Constructs(argv[1], argv[3]);
  sem_init(&recorded, 0, 0);
  sem_init(&unloaded, 0, 0);
  void* plugin = Load();
  guest = begin(argv[1], argv[3], 1, error, sizeof(error));
  if (guest == NULL) {
    fprintf(stderr, "%s\n", error);
    return 3;
  }
  pthread_create(&thread, NULL, Thread, NULL);
  sem_wait(&recorded);
  if (dlclose(plugin) != 0) return 4;
  // Handlers of forks, of the end of threads, and what wakes a thread.
  pid_t child = fork();
  if (child == 0) _exit(0);
  if (waitpid(child, NULL, 0) != child) return 5;
  sem_post(&unloaded);
  pthread_join(thread, NULL);
  plugin = Load();
  if (record(guest, "after", program) != 0) return 6;
  if (end(guest, error, sizeof(error)) != 0) {
    fprintf(stderr, "%s\n", error);
    return 7;
  }
  return dlclose(plugin);
}
