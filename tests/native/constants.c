// Gives its sites texts that are constants of the program, and texts of its run: `constants SECRET`. C and
// C++.
#include <lib/trace-provider/provider.h>
#include <lib/trace/event.h>
#include <stdio.h>

// As headers of earlier releases.
#ifdef WITHOUT_MARKS
#undef TRACE_INTERNAL_MARKS
#define TRACE_INTERNAL_MARKS(...) 0
#endif

static char name_in_array[32];

static const char* result(void) { return name_in_array; }

static void named(const char* name) { TRACE_INSTANT("app", name, TRACE_SCOPE_THREAD, "number", TA_INT32(1)); }

static void of_category(const char* category) {
  if (TRACE_CATEGORY_ENABLED(category)) {
    TRACE_INSTANT(category, "name", TRACE_SCOPE_THREAD);
  }
}

static void with_key(const char* key) {
  TRACE_COUNTER("app", "count", 0, "literal", TA_INT32(2), key, TA_INT32(3));
}

static void scope(const char* name, const char* key) { TRACE_DURATION("app", name, key, TA_INT32(4)); }

int main(int argc, char** argv) {
  if (argc < 2) {
    return 2;
  }
  const char* secret = argv[1];
  char other[64];
  snprintf(other, sizeof(other), "%s-2", secret);
  snprintf(name_in_array, sizeof(name_in_array), "%s", secret);
  bool started;
  trace_provider_t* provider = trace_provider_create_synchronously_with_fdio(NULL, "constants", &started);
  TRACE_INSTANT("app", "literal", TRACE_SCOPE_THREAD, "key", TA_INT32(0));
  TRACE_INSTANT("a" "pp", ("in brackets"), TRACE_SCOPE_THREAD, "k" "ey", TA_INT32(0));
  { TRACE_DURATION("app", "scope", "key", TA_INT32(0)); }
  // The first text of a site, the same again, and another one.
  named(secret);
  named(secret);
  named(other);
  of_category(secret);
  of_category(other);
  with_key(secret);
  with_key(other);
  scope(secret, "key");
  scope("second", other);
  TRACE_INSTANT("app", name_in_array, TRACE_SCOPE_THREAD);
  TRACE_INSTANT("app", result(), TRACE_SCOPE_THREAD);
  TRACE_INSTANT("app", argc > 1 ? secret : "literal", TRACE_SCOPE_THREAD);
  TRACE_INSTAFLOW_BEGIN("app", "flow", secret, 7);
  TRACE_INSTAFLOW_END("app", "flow", "arrival", 7);
  TRACE_BLOB_EVENT("app", secret, "", 0, "key", TA_INT32(5));
  trace_provider_destroy(provider);
  return 0;
}
