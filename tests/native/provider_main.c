// Makes a provider with a loop, in C, and does something.
#include <lib/async-loop/cpp/loop.h>
#include <lib/async-loop/default.h>
#include <trace-provider/provider.h>

void DoSomething(int a, const char* b);

int main(void) {
  async_loop_t* loop;
  zx_status_t status = async_loop_create(&kAsyncLoopConfigNoAttachToCurrentThread, &loop);
  if (status != ZX_OK) return 1;
  status = async_loop_start_thread(loop, "loop", NULL);
  if (status != ZX_OK) return 2;
  async_dispatcher_t* dispatcher = async_loop_get_dispatcher(loop);
  trace_provider_t* provider = trace_provider_create(dispatcher);
  if (!provider) return 3;

  DoSomething(1, "one");
  DoSomething(-2, "two");

  trace_provider_destroy(provider);
  async_loop_shutdown(loop);
  async_loop_destroy(loop);
  return 0;
}
