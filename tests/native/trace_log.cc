// Records itself with Chromium's names: `trace_log DIRECTORY`.
#include <trace/trace_log.h>

#include <cstdio>
#include <memory>
#include <string>

using base::RefCountedString;
using base::trace_event::TraceConfig;
using base::trace_event::TraceLog;
using base::trace_event::TraceRecordMode;

namespace {

void DoWork() {
  TRACE_EVENT0("app", "DoWork");
  TRACE_EVENT_INSTANT1("app.verbose", "step", TRACE_EVENT_SCOPE_THREAD, "number", 1);
  TRACE_COUNTER1("net", "bytes", 5);
  TRACE_EVENT_INSTANT0("disabled-by-default-gpu", "draw", TRACE_EVENT_SCOPE_THREAD);
}

void Record(const TraceConfig& config, const std::string& path) {
  TraceLog* log = TraceLog::GetInstance();
  log->SetEnabled(config, TraceLog::RECORDING_MODE);
  std::printf("%s: %d", config.categories().c_str(), log->IsEnabled());
  DoWork();
  log->SetDisabled();
  std::printf(" %d", log->IsEnabled());
  DoWork();
  std::FILE* file = std::fopen(path.c_str(), "w");
  int ends = 0;
  log->FlushFxt([&](const std::shared_ptr<RefCountedString>& piece, bool has_more_events) {
    std::fwrite(piece->data().data(), 1, piece->size(), file);
    ends += !has_more_events;
  });
  std::fclose(file);
  std::printf(" %d\n", ends);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  std::string directory = argv[1];
  Record(TraceConfig(), directory + "/all.fxt");
  Record(TraceConfig("app, app.verbose,-app.verbose", "record-continuously,enable-systrace"), directory + "/app.fxt");
  Record(TraceConfig("-net,disabled-by-default-*", TraceRecordMode::RECORD_AS_MUCH_AS_POSSIBLE),
         directory + "/most.fxt");
  Record(TraceConfig("-*,app", ""), directory + "/only.fxt");
  Record(TraceConfig("-*,-net", ""), directory + "/none.fxt");
  TraceLog::GetInstance()->SetEnabled(TraceConfig("*", ""));
  TraceLog::GetInstance()->CancelTracing([](const std::shared_ptr<RefCountedString>& piece, bool has_more_events) {
    std::printf("cancelled: %zu %d\n", piece->size(), has_more_events);
  });
  return 0;
}
