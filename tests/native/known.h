// Sites in every kind of place, none of which is passed: `known [PLUGIN]` waits for the end of its input.
#include <trace/event.h>

#include <lib/trace-provider/start.h>

#include <dlfcn.h>
#include <stdio.h>

static const char* volatile not_known = "known not as a variable";
static const char* choose(int number) { return number == 0 ? "known not as a result" : "known not as another"; }

static void sites(int number) {
  TRACE_INSTANT("known instant", "name", TRACE_SCOPE_THREAD, "number", TA_INT32(number));
  TRACE_INSTANT("known,as one of several", "name", TRACE_SCOPE_THREAD);
  if (TRACE_CATEGORY_ENABLED("known question")) TRACE_COUNTER("known " "counter", "name", 1, "n", TA_INT32(number));
  TRACE_DURATION("known duration", "name");
  TRACE_INSTAFLOW_STEP("known instaflow", "name", "step", 1);
  TRACE_BLOB_EVENT("known blob", "name", "bytes", 5);
  TRACE_ALERT("known alert", "name");
  TRACE_INSTANT(not_known, "name", TRACE_SCOPE_THREAD);
  TRACE_INSTANT(choose(number), "name", TRACE_SCOPE_THREAD);
}

#ifdef __cplusplus
inline void in_line() { TRACE_INSTANT("known inline", "name", TRACE_SCOPE_THREAD); }
template <typename T>
void in_template(T number) {
  TRACE_DURATION("known template", "name", "number", number);
}
struct Class {
  Class() { TRACE_INSTANT("known constructor", "name", TRACE_SCOPE_THREAD); }
};
inline auto lambda = [] { TRACE_INSTANT("known lambda", "name", TRACE_SCOPE_THREAD); };
#endif

static int wait(int argc, char** argv) {
  trace_provider_start();
  if (argc > 2) {
    sites(argc);
#ifdef __cplusplus
    in_line();
    in_template(1);
    in_template(1.5);
    Class();
    lambda();
#endif
  }
  void* plugin = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (argc == 2 && plugin == NULL) return 1;
  puts("ready");
  fflush(stdout);
  getchar();
  return 0;
}
