// Sees its own events with Chromium's names: `overrides DIRECTORY`.
#include <trace/trace_log.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

using base::RefCountedString;
using base::trace_event::TraceConfig;
using base::trace_event::TraceEvent;
using base::trace_event::TraceEventHandle;
using base::trace_event::TraceLog;

namespace {

void Print(const char* how, TraceEvent* event, bool thread_will_flush) {
  std::printf("%s %c %s %s", how, event->phase(), reinterpret_cast<const char*>(event->category_group()),
              event->name());
  for (size_t i = 0; i < event->arg_size(); ++i) {
    auto value = event->arg_value(i);
    std::printf(" %s=", event->arg_name(i));
    switch (event->arg_type(i)) {
      case TRACE_VALUE_TYPE_INT:
        std::printf("%lld", value.as_int);
        break;
      case TRACE_VALUE_TYPE_COPY_STRING:
        std::printf("%s", value.as_string);
        break;
      case TRACE_VALUE_TYPE_BOOL:
        std::printf("%d", value.as_bool);
        break;
      default:
        std::printf("?%d", event->arg_type(i));
        break;
    }
  }
  std::printf("%s%s%s\n", event->duration() >= 0 && event->timestamp() > 0 ? "" : " odd",
              event->thread_id() == event->process_id() ? "" : " another thread",
              thread_will_flush ? " flushes" : "");
}

void Override(TraceEvent* event, bool thread_will_flush, TraceEventHandle* handle) {
  Print("override", event, thread_will_flush);
  handle->chunk_seq = 7;
}

bool Filter(TraceEvent* event, bool thread_will_flush, TraceEventHandle* handle) {
  Print("filter", event, thread_will_flush);
  handle->event_index = 5;
  return std::strcmp(event->name(), "step") != 0;
}

void OnFlush() { std::printf("flush\n"); }

void UpdateDuration(const unsigned char* category_group, const char* name, TraceEventHandle handle,
                    uint64_t thread_id, bool explicit_timestamps, const zx_ticks_t& now, const zx_ticks_t& thread_now) {
  std::printf("update %s %s %u %u %d %d %d\n", reinterpret_cast<const char*>(category_group), name, handle.chunk_seq,
              handle.event_index, thread_id != 0, explicit_timestamps, now > thread_now);
}

void DoWork() {
  TRACE_EVENT1("app", "DoWork", "name", "value");
  TRACE_EVENT_INSTANT2("app", "step", TRACE_EVENT_SCOPE_THREAD, "number", -1, "on", true);
}

void Flush(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  TraceLog::GetInstance()->FlushFxt([&](const std::shared_ptr<RefCountedString>& piece, bool) {
    std::fwrite(piece->data().data(), 1, piece->size(), file);
  });
  std::fclose(file);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  std::string directory = argv[1];
  TraceLog* log = TraceLog::GetInstance();
  log->SetAddTraceEventOverrides(Override, OnFlush, UpdateDuration);
  DoWork();
  log->SetEnabled(TraceConfig("*", ""));
  DoWork();
  Flush(directory + "/override.fxt");
  log->SetEnabled(TraceConfig("*", ""));
  DoWork();
  log->SetAddTraceEventOverrides(Filter, nullptr, UpdateDuration);
  DoWork();
  log->SetAddTraceEventOverrides(nullptr, nullptr, UpdateDuration);
  DoWork();
  log->SetAddTraceEventOverrides(nullptr, nullptr, nullptr);
  DoWork();
  Flush(directory + "/filter.fxt");
  return 0;
}
