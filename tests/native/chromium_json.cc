// Everything that writes JSON with Chromium's names: `chromium_json`.
#include <trace/trace_log.h>
#include <trace/traced_value.h>

#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

using base::RefCountedString;
using base::trace_event::ArgumentNameFilterPredicate;
using base::trace_event::TraceArguments;
using base::trace_event::TraceConfig;
using base::trace_event::TracedValue;
using base::trace_event::TraceEvent;
using base::trace_event::TraceEventHandle;
using base::trace_event::TraceLog;
using base::trace_event::TraceResultBuffer;

namespace {

struct Observer : TraceLog::EnabledStateObserver {
  void OnTraceLogEnabled() override { std::puts("enabled"); }
  void OnTraceLogDisabled() override { std::puts("disabled"); }
};

void Flush(const char* what, bool use_worker_thread = false) {
  std::string text;
  TraceResultBuffer document;
  document.SetOutputCallback([&](const std::string& part) { text += part; });
  document.Start();
  std::mutex lock;
  std::condition_variable ended;
  bool is_over = false;
  bool is_elsewhere = false;
  auto caller = std::this_thread::get_id();
  TraceLog::GetInstance()->Flush(
      [&](const std::shared_ptr<RefCountedString>& piece, bool has_more) {
        std::lock_guard<std::mutex> held(lock);
        document.AddFragment(piece->data());
        is_elsewhere = std::this_thread::get_id() != caller;
        is_over = !has_more;
        ended.notify_one();
      },
      use_worker_thread);
  std::unique_lock<std::mutex> held(lock);
  ended.wait(held, [&] { return is_over; });
  document.Finish();
  std::printf("%s%s: %s\n", what, is_elsewhere ? " elsewhere" : "", text.c_str());
}

void Convert() {
  auto value = std::make_unique<TracedValue>();
  value->SetInteger("frames", 3);
  value->SetString("name", "a\"b\n");
  value->BeginDictionary("inner");
  value->SetBoolean("on", true);
  value->SetDouble("half", 0.5);
  value->EndDictionary();
  value->BeginArray("list");
  value->AppendInteger(1);
  value->AppendString("x");
  value->SetInteger("an array has no names", 2);
  value->BeginDictionary();
  value->AppendInteger(5);
  value->EndArray();
  TRACE_EVENT_INSTANT1("app", "Converted", TRACE_EVENT_SCOPE_THREAD, "state", std::move(value));
}

void Print(TraceEvent* event, bool, TraceEventHandle*) {
  std::string text;
  event->AppendAsJSON(&text);
  std::printf("event: %s\n", text.c_str());
  text.clear();
  event->AppendAsJSON(&text, [](const char* category, const char* name, ArgumentNameFilterPredicate* names) {
    *names = [](const char* argument) { return std::strcmp(argument, "public") == 0; };
    return std::strcmp(category, "app") == 0 && std::strcmp(name, "secret") != 0;
  });
  std::printf("filtered: %s\n", text.c_str());
}

}  // namespace

int main() {
  TraceLog* log = TraceLog::GetInstance();
  // Nothing: a list needs a second argument, and there is no such option.
  log->SetEnabled(TraceConfig("app"));
  log->SetEnabled(TraceConfig("app", "record-for-ever"));
  log->SetEnabled(TraceConfig(R"({"included_categorys":["app"]})"));
  log->SetEnabled(TraceConfig("app", "trace-to-console"));
  std::printf("nothing: %d\n", log->IsEnabled());

  Observer observer;
  log->AddEnabledStateObserver(&observer);
  const unsigned char* app = TraceLog::GetCategoryGroupEnabled("app");
  const unsigned char* other = TraceLog::GetCategoryGroupEnabled("other");
  std::printf("bytes: %d %d %s\n", *app, *other, TraceLog::GetCategoryGroupName(app));
  log->SetEnabled(TraceConfig(R"({"included_categories":["app*"],"record_mode":"record-continuously"})"));
  while (*app == 0) std::this_thread::yield();
  std::printf("bytes: %d %d\n", *app, *other);
  Convert();
  const int64_t now = TRACE_TIME_TICKS_NOW();
  TraceArguments arguments("number", 7, "text", "seven");
  TraceEventHandle handle = log->AddTraceEventWithThreadIdAndTimestamp(
      TRACE_EVENT_PHASE_COMPLETE, app, "Complete", nullptr, 0, 0, 0, now, &arguments, TRACE_EVENT_FLAG_NONE);
  trace_event_internal::AddTraceEvent(TRACE_EVENT_PHASE_INSTANT, app, "Inside", nullptr, 0,
                                      TRACE_EVENT_SCOPE_PROCESS, 0, "value", 1.5);
  log->UpdateTraceEventDuration(app, "Complete", handle);
  trace_event_internal::AddTraceEventWithThreadIdAndTimestamp(TRACE_EVENT_PHASE_NESTABLE_ASYNC_BEGIN, app, "Load",
                                                              nullptr, 0x12, 77, now, TRACE_EVENT_FLAG_HAS_ID, 0);
  trace_event_internal::AddTraceEventWithThreadIdAndTimestamp(TRACE_EVENT_PHASE_NESTABLE_ASYNC_END, app, "Load",
                                                              nullptr, 0x12, 77, now + 5, TRACE_EVENT_FLAG_HAS_ID, 0);
  trace_event_internal::AddTraceEvent(TRACE_EVENT_PHASE_INSTANT, other, "never", nullptr, 0, 0, 0);
  std::printf("status: %u of %u\n", log->GetStatus().event_count, log->GetStatus().event_capacity);
  Flush("flush", true);
  log->RemoveEnabledStateObserver(&observer);
  std::printf("observers: %d\n", log->HasEnabledStateObserver(&observer));

  log->SetEnabled(TraceConfig("app", "enable-argument-filter"));
  TRACE_EVENT_INSTANT2("app", "both", TRACE_EVENT_SCOPE_THREAD, "public", 1, "private", 2);
  Flush("no predicate");
  log->SetArgumentFilterPredicate([](const char*, const char*, ArgumentNameFilterPredicate* names) {
    *names = [](const char* argument) { return std::strcmp(argument, "public") == 0; };
    return true;
  });
  log->SetEnabled(TraceConfig("app", "enable-argument-filter"));
  TRACE_EVENT_INSTANT2("app", "both", TRACE_EVENT_SCOPE_THREAD, "public", 1, "private", 2);
  Flush("predicate");
  log->SetEnabled(TraceConfig("app", "enable-argument-filter"));
  log->FlushFxt([](const std::shared_ptr<RefCountedString>& piece, bool) { std::printf("archive: %zu\n", piece->size()); });

  log->SetAddTraceEventOverrides(Print, nullptr, nullptr);
  log->SetEnabled(TraceConfig("app", ""));
  TRACE_EVENT_INSTANT2("app", "both", TRACE_EVENT_SCOPE_THREAD, "public", "one", "private", true);
  TRACE_EVENT_INSTANT1("app", "secret", TRACE_EVENT_SCOPE_THREAD, "public", -1);
  log->SetAddTraceEventOverrides(nullptr, nullptr, nullptr);
  log->CancelTracing([](const std::shared_ptr<RefCountedString>&, bool) {});
  return 0;
}
