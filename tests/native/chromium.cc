// Code with the names of Chromium's macros.
#include <trace/chromium.h>

#include <lib/trace-provider/start.h>

#include <string>

static void Work(int number, unsigned flags) {
  TRACE_EVENT_WITH_FLOW1("chromium", "work", number, flags, "number", number);
}

int main() {
  trace_provider_start();
  std::string text = "text";
  {
    TRACE_EVENT0("chromium", "none");
    TRACE_EVENT1("chromium", "one", "text", text);
    TRACE_EVENT2("chromium", "two", "text", "literal", "number", 2.5);
  }
  TRACE_EVENT_BEGIN0("chromium", "begin");
  TRACE_EVENT_END1("chromium", "begin", "number", 1);
  TRACE_EVENT_INSTANT0("chromium", "instant", TRACE_EVENT_SCOPE_PROCESS);
  TRACE_EVENT_INSTANT2("chromium", "instant", TRACE_EVENT_SCOPE_THREAD, "a", 1, "b", true);
  TRACE_COUNTER1("chromium", "counter", 5);
  TRACE_COUNTER2("chromium", "counters", "used", 6u, "free", 7u);
  TRACE_COUNTER_ID1("chromium", "counter", &text, 8);
  TRACE_EVENT_ASYNC_BEGIN1("chromium", "async", 9, "number", 1);
  TRACE_EVENT_ASYNC_STEP_INTO0("chromium", "async", 9, "halfway");
  TRACE_EVENT_ASYNC_END0("chromium", "async", TRACE_ID_LOCAL(9));
  TRACE_EVENT_NESTABLE_ASYNC_BEGIN0("chromium", "nestable", 10);
  TRACE_EVENT_NESTABLE_ASYNC_INSTANT0("chromium", "nestable", 10);
  TRACE_EVENT_NESTABLE_ASYNC_END2("chromium", "nestable", 10, "a", 1, "b", TRACE_STR_COPY("copied"));
  Work(11, TRACE_EVENT_FLAG_FLOW_OUT);
  Work(11, TRACE_EVENT_FLAG_FLOW_IN | TRACE_EVENT_FLAG_FLOW_OUT);
  Work(11, TRACE_EVENT_FLAG_FLOW_IN);
  TRACE_EVENT0(TRACE_DISABLED_BY_DEFAULT("chromium"), "unwanted");
  bool is_enabled = false;
  TRACE_EVENT_CATEGORY_GROUP_ENABLED("chromium", &is_enabled);
  return is_enabled ? 0 : 1;
}
