// Events of static initialisers and destructors, before and after main.
#include <lib/trace-provider/start.h>
#include <trace/event.h>

struct Late {
  ~Late() { TRACE_INSTANT("statics", "destructor", TRACE_SCOPE_THREAD); }
};
static Late late;

struct Early {
  Early() {
    TRACE_INSTANT("statics", "before the provider", TRACE_SCOPE_THREAD);
    trace_provider_start();
    TRACE_INSTANT("statics", "initialiser", TRACE_SCOPE_THREAD);
  }
};
static Early early;

inline void OfManyFiles() { TRACE_INSTANT("statics", "inline", TRACE_SCOPE_THREAD); }

template <typename T>
void OfManyTypes(T value) {
  TRACE_INSTANT("statics", "template", TRACE_SCOPE_THREAD, "value", value);
}

__attribute__((destructor)) static void AtExit() { TRACE_INSTANT("statics", "exit", TRACE_SCOPE_THREAD); }

int main() {
  TRACE_INSTANT("statics", "main", TRACE_SCOPE_THREAD);
  OfManyFiles();
  OfManyTypes(1);
  OfManyTypes("text");
}
