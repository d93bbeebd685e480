// Chromium's demo of a TraceLog that writes JSON: `chromium_demo`. The events are open when it flushes.
#include <trace/trace_log.h>

#include <cstdio>
#include <memory>
#include <string>

using base::trace_event::TraceConfig;
using base::trace_event::TraceLog;
using base::trace_event::TraceResultBuffer;

int main() {
  TraceResultBuffer document;
  document.SetOutputCallback([](const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); });
  TraceLog* log = TraceLog::GetInstance();
  log->SetEnabled(TraceConfig("test,testxxx,", ""), TraceLog::RECORDING_MODE);
  TRACE_EVENT0("test", "main");
  TRACE_EVENT0("testxxx,", "main");
  {
    TRACE_EVENT1("test", "closed", "number", 1);
    TRACE_EVENT0("other", "not recorded");
  }
  log->SetDisabled();
  document.Start();
  log->Flush([&](const std::shared_ptr<base::RefCountedString>& piece, bool) { document.AddFragment(piece->data()); });
  document.Finish();
  return 0;
}
