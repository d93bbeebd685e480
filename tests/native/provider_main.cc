// Makes a provider with a loop, in C++, and does something.
#include <lib/async-loop/cpp/loop.h>
#include <lib/async-loop/default.h>
#include <trace-provider/provider.h>

extern "C" void DoSomething(int a, const char* b);

int main() {
  async::Loop loop(&kAsyncLoopConfigNoAttachToCurrentThread);
  if (loop.StartThread() != ZX_OK) return 1;
  trace::TraceProviderWithFdio provider(loop.dispatcher());
  if (!provider.is_valid()) return 2;

  DoSomething(1, "one");
  DoSomething(-2, "two");
}
