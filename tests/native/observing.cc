// Observers of all kinds, which the recording waits for.
#include <lib/async-loop/cpp/loop.h>
#include <lib/async-loop/default.h>
#include <lib/trace/observer.h>
#include <lib/zx/event.h>
#include <trace-provider/provider.h>
#include <trace/event.h>

#include <atomic>

#define CHECK(condition, number) \
  if (!(condition)) return number

int main() {
  async::Loop loop(&kAsyncLoopConfigNoAttachToCurrentThread);
  CHECK(loop.StartThread("loop") == ZX_OK, 1);
  zx::event event;
  CHECK(zx::event::create(0, &event) == ZX_OK, 2);
  CHECK(trace_register_observer(event.get()) == ZX_OK, 3);
  CHECK(trace_register_observer(event.get()) == ZX_ERR_INVALID_ARGS, 4);
  CHECK(trace_unregister_observer(1) == ZX_ERR_NOT_FOUND, 5);
  std::atomic<int> starts = 0;
  trace::TraceObserver observer;
  observer.Start(loop.dispatcher(), [&] { starts += trace_state() == TRACE_STARTED; });
  zx_signals_t observed = 0;
  trace::TraceProviderWithFdio provider(loop.dispatcher(), "observing");
  CHECK(event.wait_one(ZX_EVENT_SIGNALED, zx::deadline_after(zx::sec(10)), &observed) == ZX_OK, 6);
  CHECK(observed == ZX_EVENT_SIGNALED && trace_state() == TRACE_STARTED, 7);
  CHECK(event.signal(ZX_EVENT_SIGNALED, 0) == ZX_OK, 8);
  CHECK(event.wait_one(ZX_EVENT_SIGNALED, zx::deadline_after(zx::msec(1)), &observed) == ZX_ERR_TIMED_OUT, 9);
  for (int i = 0; i < 5000 && starts == 0; ++i) zx_nanosleep(zx_deadline_after(ZX_MSEC(1)));
  CHECK(starts == 1, 10);
  TRACE_INSTANT("observed", "before the answer", TRACE_SCOPE_THREAD);
  trace_notify_observer_updated(event.get());
  TRACE_INSTANT("observed", "after the answer", TRACE_SCOPE_THREAD);
  trace::ProviderConfig config = provider.GetProviderConfig();
  CHECK(config.buffering_mode == TRACE_BUFFERING_MODE_STREAMING, 11);
  CHECK(config.categories.size() == 1 && config.categories[0] == "observed", 12);
  observer.Stop();
  CHECK(trace_unregister_observer(event.get()) == ZX_OK, 13);
  return 0;
}
