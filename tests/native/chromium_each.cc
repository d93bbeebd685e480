#include "chromium_each.h"

// As Chromium's classes.
struct Delta {
  int64_t micros;
  int64_t InMicroseconds() const { return micros; }
};
struct Ticks {
  Delta since;
  Delta since_origin() const { return since; }
};
struct Location {
  const char* file_name() const { return "file"; }
  const char* function_name() const { return "function"; }
};
struct Task {
  Location posted_from;
};

int main() {
  bool is_new, is_first, is_on;
  trace_provider_start();
  TRACE_EVENT_WARMUP_CATEGORY("chromium");
  TRACE_EVENT_CATEGORY_GROUP_ENABLED("chromium", &is_on);
  int round;
  for (round = 0; round < 2; ++round) {
    TRACE_EVENT_IS_NEW_TRACE(&is_new);
    if (is_new != (round == 0)) return 1;
  }
  // Each use is on its own.
  TRACE_EVENT_IS_NEW_TRACE(&is_first);
  TRACE_INSTANT("chromium", "before", TRACE_SCOPE_THREAD);
  // 2001 to 2100.
  if (TRACE_TIME_NOW() < INT64_C(978307200000000) || TRACE_TIME_NOW() > INT64_C(4102444800000000)) return 2;
  const int64_t now = TRACE_TIME_TICKS_NOW();
  TRACE_INSTANT("chromium", "behind", TRACE_SCOPE_THREAD);
  TRACE_EVENT_INSTANT_WITH_TIMESTAMP0("chromium", "between", TRACE_EVENT_SCOPE_THREAD, (Ticks{{now}}));
  each(now);
  // The same sites and strings again.
  each(now);
  { TRACE_TASK_EXECUTION("run", Task()); }
  return is_on && is_first ? 0 : 3;
}
