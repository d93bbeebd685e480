// Events with texts of objects that end with the statement, and overwrite them then.
#include <string.h>
#include <trace/chromium.h>

#include <lib/trace-provider/start.h>

namespace {
class Text {
 public:
  explicit Text(const char* text) { strncpy(text_, text, sizeof(text_) - 1); }
  ~Text() { memset(text_, 'x', sizeof(text_) - 1); }
  const char* c_str() const { return text_; }

 private:
  char text_[32] = {};
};
}  // namespace

int main() {
  trace_provider_start();
  for (int round = 0; round < 2; ++round) {
    TRACE_EVENT_COPY_INSTANT0("chromium", Text("instant").c_str(), TRACE_EVENT_SCOPE_THREAD);
    TRACE_EVENT_COPY_INSTANT1("chromium", Text("instant of one").c_str(), TRACE_EVENT_SCOPE_THREAD,
                              Text("a").c_str(), Text("one").c_str());
    TRACE_EVENT_COPY_BEGIN2("chromium", Text("pair").c_str(), Text("a").c_str(), round, Text("b").c_str(),
                            Text("two").c_str());
    TRACE_EVENT_COPY_END0("chromium", Text("pair").c_str());
    TRACE_COPY_COUNTER1("chromium", Text("counter").c_str(), 5);
  }
}
