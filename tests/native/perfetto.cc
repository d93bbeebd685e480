// Code with the names of Perfetto's SDK.
#include <trace/perfetto.h>

#include <string>
#include <thread>

PERFETTO_DEFINE_CATEGORIES(
    perfetto::Category("rendering").SetDescription("Rendering and graphics events"),
    perfetto::Category("network").SetTags("debug").SetDescription("Network upload and download statistics"));
PERFETTO_TRACK_EVENT_STATIC_STORAGE();

enum Color { kRed = 3 };

static void Round(int round) {
  std::string text = "text";
  {
    TRACE_EVENT("rendering", "block", "round", round, "text", text);
    TRACE_EVENT_INSTANT("rendering", "instant");
    TRACE_EVENT("rendering", perfetto::DynamicString("of " + std::to_string(round)));
    TRACE_EVENT_INSTANT("rendering", perfetto::StaticString("static"), "literal", "l", "pi", 3.5, "yes", true, "color",
                        kRed);
    TRACE_EVENT_INSTANT("rendering", "dynamic", perfetto::DynamicString("of " + text), perfetto::DynamicString(text));
  }
  TRACE_EVENT_BEGIN("rendering", "pair", perfetto::Flow::Global(7));
  TRACE_EVENT_END("rendering", "result", 5u);
  TRACE_EVENT_BEGIN("rendering", "next", perfetto::Flow::Global(7));
  TRACE_EVENT_END("rendering");
  TRACE_EVENT_BEGIN("rendering", "last", perfetto::TerminatingFlow::Global(7), "a", -1);
  TRACE_EVENT_END("rendering");

  const perfetto::NamedTrack queue("queue", 9);
  TRACE_EVENT_BEGIN("network", "request", queue, "bytes", uint64_t{1} << 40);
  TRACE_EVENT_BEGIN("network", perfetto::DynamicString(text), perfetto::Track(11));
  TRACE_EVENT_END("network", perfetto::Track(11));
  { TRACE_EVENT("network", "inside", queue); }
  TRACE_EVENT_END("network", queue);
  TRACE_EVENT_INSTANT("network", "of thread", perfetto::ThreadTrack::Current());
  TRACE_EVENT_INSTANT("network", "of process", perfetto::ProcessTrack::Current(), "a", 1);

  TRACE_COUNTER("network", "open", 4);
  TRACE_COUNTER("network", perfetto::CounterTrack("rate"), 2.5);
  TRACE_COUNTER("network", perfetto::CounterTrack(perfetto::DynamicString("of " + text)), round);
  if (round >= 0) TRACE_EVENT_INSTANT("network", "one statement");
}

int main() {
  perfetto::TracingInitArgs args;
  args.backends |= perfetto::kSystemBackend;
  perfetto::Tracing::Initialize(args);
  perfetto::TrackEvent::Register();
  for (int round = 0; round < 2; ++round) {
    Round(round);
  }
  TRACE_EVENT_INSTANT("other", "unwanted");
  const bool is_wanted = TRACE_EVENT_CATEGORY_ENABLED("rendering") && !TRACE_EVENT_CATEGORY_ENABLED("other");
  perfetto::TrackEvent::Flush();
  return is_wanted && perfetto::Tracing::IsInitialized() ? 0 : 1;
}
