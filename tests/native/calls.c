// Records every kind of event over and over, on a thread called "recorder": `calls THREADS HOOKED`. A call of
// getppid stands where the first thousand events are over, and one at the end.
#include <trace/event.h>

#include <lib/trace-engine/hook.h>
#include <lib/trace-engine/instrumentation.h>
#include <lib/trace-provider/start.h>
#include <trace-vthread/event_vthread.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define WARM_ROUNDS 100
#define ROUNDS 800
#define EACH8(site) site site site site site site site site

static uint8_t blob[300];

// What tools that generate instrumentation call.
static void ByHand(uint64_t n) {
  trace_string_ref_t category, name = trace_make_inline_c_string_ref("by hand");
  trace_context_t* context = trace_acquire_context_for_category("calls", &category);
  if (context == NULL) return;
  trace_thread_ref_t thread, first, second;
  trace_context_register_current_thread(context, &thread);
  trace_context_register_vthread(context, 0, "virtual", 6, &first);
  trace_context_register_vthread_by_ref(context, 0, &name, 7, &second);
  trace_context_write_instant_event_record(context, (trace_ticks_t)n, &thread, &category, &name, TRACE_SCOPE_THREAD,
                                           NULL, 0);
  trace_context_write_instant_event_record(context, (trace_ticks_t)n, &first, &category, &name, TRACE_SCOPE_THREAD,
                                           NULL, 0);
  trace_context_write_log_record(context, (trace_ticks_t)n, &second, "a message", 9);
  trace_context_write_blob_record(context, TRACE_BLOB_TYPE_DATA, &name, blob, sizeof(blob));
  trace_context_write_process_info_record(context, 4000, &name);
  trace_context_write_thread_info_record(context, 4000, 4001, &name);
  trace_release_context(context);
}

static void Round(uint64_t n) {
  TRACE_INSTANT("calls", "instant", TRACE_SCOPE_THREAD, "n", TA_UINT64(n), "text", TA_STRING("some text"));
  TRACE_COUNTER("calls", "counter", 0, "value", TA_UINT64(n));
  TRACE_DURATION("calls", "scope", "n", TA_UINT64(n));
  TRACE_DURATION_BEGIN("calls", "pair");
  TRACE_DURATION_END("calls", "pair", "n", TA_UINT64(n));
  TRACE_ASYNC_BEGIN("calls", "operation", n);
  TRACE_ASYNC_INSTANT("calls", "step", n);
  TRACE_ASYNC_END("calls", "operation", n);
  TRACE_FLOW_BEGIN("calls", "flow", n);
  TRACE_FLOW_STEP("calls", "flow", n);
  TRACE_FLOW_END("calls", "flow", n);
  TRACE_BLOB(TRACE_BLOB_TYPE_DATA, "blob", blob, sizeof(blob));
  TRACE_BLOB_EVENT("calls", "blob event", blob, sizeof(blob), "n", TA_UINT64(n));
  TRACE_BLOB_ATTACHMENT("calls", "attachment", blob, sizeof(blob));
  TRACE_VTHREAD_DURATION_BEGIN("calls", "virtual", "virtual thread", 5, (trace_ticks_t)n);
  TRACE_VTHREAD_DURATION_END("calls", "virtual", "virtual thread", 5, (trace_ticks_t)n + 1);
  TRACE_VTHREAD_COUNTER("calls", "virtual counter", "virtual thread", 5, 8, (trace_ticks_t)n, "value", TA_UINT64(n));
  ByHand(n);
  TRACE_INSTANT("not asked for", "instant", TRACE_SCOPE_THREAD);
}

static bool Keep(void* context, const trace_hook_event_t* event) {
  (void)context;
  return event->num_args < 100;
}

static void* Sleep(void* data) {
  TRACE_INSTANT("calls", "another thread", TRACE_SCOPE_THREAD);
  pthread_barrier_wait((pthread_barrier_t*)data);
  for (;;) pause();
  return NULL;
}

static void* Work(void* data) {
  prctl(PR_SET_NAME, "recorder");
  for (uint64_t n = 0; n < WARM_ROUNDS; ++n) Round(n);
  getppid();
  for (uint64_t n = 0; n < ROUNDS; ++n) Round(n);
  // Sites that are new.
  EACH8(EACH8(TRACE_INSTANT("calls", "once", TRACE_SCOPE_THREAD, "n", TA_UINT64(1));))
  getppid();
  return data;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  trace_provider_start();
  if (strcmp(argv[2], "hooked") == 0) trace_set_event_hook(Keep, NULL);
  unsigned others = (unsigned)atoi(argv[1]);
  pthread_barrier_t begun;
  pthread_barrier_init(&begun, NULL, others + 1);
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 128 << 10);
  pthread_t thread;
  for (unsigned number = 0; number < others; ++number) {
    if (pthread_create(&thread, &small, Sleep, &begun) != 0) return 3;
  }
  pthread_barrier_wait(&begun);
  if (pthread_create(&thread, NULL, Work, NULL) != 0) return 4;
  pthread_join(thread, NULL);
  return 0;
}
