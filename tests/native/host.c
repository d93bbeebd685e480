// The engine with a buffer and a handler of the program's own: `host MODE FILE`, to which it writes the
// buffer. Says how many ticks its clock has in a second.
#include <lib/async-loop/default.h>
#include <lib/async-loop/loop.h>
#include <lib/trace-engine/handler.h>
#include <trace/event.h>

#include <stdio.h>
#include <stdlib.h>

#define SIZE (64 << 10)
#define CHECK(condition, number) \
  if (!(condition)) return number

static int started, stopped, terminated, full, alerts;
static zx_status_t disposition;
static char alert[16];

static bool IsEnabled(trace_handler_t* handler, const char* category) {
  (void)handler;
  return strcmp(category, "wanted") == 0;
}
static void Started(trace_handler_t* handler) { (void)handler, ++started; }
static void Stopped(trace_handler_t* handler, zx_status_t status) { (void)handler, ++stopped, disposition = status; }
static void Terminated(trace_handler_t* handler) { (void)handler, ++terminated; }
static void Full(trace_handler_t* handler, uint32_t wrapped_count, uint64_t durable_data_end) {
  (void)handler, ++full;
  trace_engine_mark_buffer_saved(wrapped_count, durable_data_end);
}
static void Alert(trace_handler_t* handler, const char* name) {
  (void)handler, ++alerts;
  strncpy(alert, name, sizeof(alert) - 1);
}

static const trace_handler_ops_t ops = {IsEnabled, Started, Stopped, Terminated, Full, Alert};
static trace_handler_t handler = {&ops};

static void Run(async_loop_t* loop, const int* what) {
  int i;
  for (i = 0; i < 5000 && *what == 0; ++i) async_loop_run(loop, zx_deadline_after(ZX_MSEC(10)), true);
}

int main(int argc, char** argv) {
  CHECK(argc == 3, 1);
  trace_buffering_mode_t mode = (trace_buffering_mode_t)atoi(argv[1]);
  async_loop_t* loop;
  CHECK(async_loop_create(&kAsyncLoopConfigNoAttachToCurrentThread, &loop) == ZX_OK, 2);
  async_dispatcher_t* dispatcher = async_loop_get_dispatcher(loop);
  void* buffer = aligned_alloc(4096, SIZE);
  CHECK(trace_engine_start(TRACE_START_CLEAR_ENTIRE_BUFFER) == ZX_ERR_INTERNAL, 3);
  CHECK(trace_engine_initialize(dispatcher, &handler, mode, buffer, 100) == ZX_ERR_INVALID_ARGS, 4);
  CHECK(trace_engine_initialize(dispatcher, &handler, mode, buffer, SIZE) == ZX_OK, 5);
  CHECK(trace_engine_initialize(dispatcher, &handler, mode, buffer, SIZE) == ZX_ERR_BAD_STATE, 6);
  CHECK(trace_state() == TRACE_STOPPED && !TRACE_CATEGORY_ENABLED("wanted"), 7);
  CHECK(trace_engine_start((trace_start_mode_t)9) == ZX_ERR_INVALID_ARGS, 8);
  CHECK(trace_engine_start(TRACE_START_CLEAR_ENTIRE_BUFFER) == ZX_OK, 9);
  CHECK(trace_engine_start(TRACE_START_CLEAR_ENTIRE_BUFFER) == ZX_ERR_BAD_STATE, 10);
  CHECK(trace_engine_flush_category_cache() == ZX_ERR_BAD_STATE, 11);
  Run(loop, &started);
  CHECK(started == 1 && TRACE_CATEGORY_ENABLED("wanted") && !TRACE_CATEGORY_ENABLED("unwanted"), 12);
  uint32_t i;
  for (i = 0; i < 100; ++i) {
    TRACE_INSTANT("wanted", "instant", TRACE_SCOPE_THREAD, "i", TA_UINT32(i));
    TRACE_INSTANT("unwanted", "instant", TRACE_SCOPE_THREAD, "i", TA_UINT32(i));
  }
  TRACE_ALERT("wanted", "name of an alert that is long");
  CHECK(alerts == 1 && strcmp(alert, "name of an ale") == 0, 13);
  if (mode == TRACE_BUFFERING_MODE_STREAMING) {
    CHECK(trace_engine_flush_buffer() == ZX_OK, 14);
    Run(loop, &full);
    CHECK(full == 1, 15);
  } else {
    CHECK(trace_engine_flush_buffer() == ZX_ERR_BAD_STATE, 16);
  }
  // A stop waits for who holds the trace, and records until then.
  trace_prolonged_context_t* prolonged = trace_acquire_prolonged_context();
  CHECK(prolonged != NULL, 17);
  trace_engine_stop(ZX_OK);
  CHECK(trace_state() == TRACE_STOPPING, 18);
  async_loop_run_until_idle(loop);
  CHECK(stopped == 0, 19);
  TRACE_INSTANT("wanted", "while stopping", TRACE_SCOPE_THREAD);
  trace_release_prolonged_context(prolonged);
  Run(loop, &stopped);
  CHECK(stopped == 1 && disposition == ZX_OK && trace_state() == TRACE_STOPPED, 20);
  TRACE_INSTANT("wanted", "after the stop", TRACE_SCOPE_THREAD);
  FILE* file = fopen(argv[2], "wb");
  CHECK(file != NULL && fwrite(buffer, 1, SIZE, file) == SIZE && fclose(file) == 0, 21);
  trace_engine_terminate();
  CHECK(terminated == 1, 22);
  // Again, until the dispatcher goes.
  CHECK(trace_engine_initialize(dispatcher, &handler, mode, buffer, SIZE) == ZX_OK, 23);
  CHECK(trace_engine_start(TRACE_START_RETAIN_BUFFER) == ZX_OK, 24);
  async_loop_shutdown(loop);
  CHECK(stopped == 2 && disposition == ZX_ERR_CANCELED && terminated == 2, 25);
  async_loop_destroy(loop);
  free(buffer);
  printf("%lld\n", (long long)zx_ticks_per_second());
  return 0;
}
