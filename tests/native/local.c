// Records itself without a manager, and prints what each step returns: `local DIRECTORY`.
#include <lib/trace-provider/local.h>
#include <lib/trace-provider/start.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <trace/event.h>

struct pieces {
  FILE* file;
  size_t count;
  size_t longest;
  int lasts;
};

static void deliver(void* context, const uint8_t* bytes, size_t size, bool is_last) {
  struct pieces* pieces = context;
  fwrite(bytes, 1, size, pieces->file);
  ++pieces->count;
  if (size > pieces->longest) pieces->longest = size;
  pieces->lasts += is_last;
}

static void record(int count) {
  for (int i = 0; i < count; ++i) {
    TRACE_INSTANT("local", "event", TRACE_SCOPE_THREAD, "number", TA_INT32(i));
    TRACE_INSTANT("unwanted", "event", TRACE_SCOPE_THREAD);
  }
}

static void on_signal(int signal) {
  (void)signal;
  trace_local_request_snapshot();
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  char path[512];
  trace_local_summary_t summary;
  printf("nothing yet: %d %d\n", trace_local_is_recording(), trace_local_stop());
  printf("streaming: %d\n", trace_local_start("local", TRACE_BUFFERING_MODE_STREAMING, 0));
  printf("start: %d\n", trace_local_start("local,loc*", TRACE_BUFFERING_MODE_ONESHOT, 1));
  printf("again: %d\n", trace_local_start("", TRACE_BUFFERING_MODE_ONESHOT, 1));
  record(5000);
  snprintf(path, sizeof(path), "%s/snapshot.fxt", argv[1]);
  printf("snapshot: %d", trace_local_snapshot_to_file(path, 0, &summary));
  printf(" %" PRIu64 " %" PRIu64 "\n", summary.events, summary.dropped);
  trace_provider_start();
  snprintf(path, sizeof(path), "%s/requested.fxt", argv[1]);
  trace_local_prepare_snapshot(path, 0);
  signal(SIGUSR1, on_signal);
  raise(SIGUSR1);
  printf("requested: %d\n", trace_local_wait_for_snapshot(30000));
  record(5000);
  snprintf(path, sizeof(path), "%s/flushed.fxt", argv[1]);
  struct pieces pieces = {fopen(path, "w"), 0, 0, 0};
  printf("recording: %d\n", trace_local_is_recording());
  printf("flush: %d", trace_local_flush(deliver, &pieces, &summary));
  fclose(pieces.file);
  printf(" %" PRIu64 " %" PRIu64 ", %d of more pieces, %zu, %d last\n", summary.events, summary.dropped,
         pieces.count > 1, pieces.longest, pieces.lasts);
  printf("again: %d\n", trace_local_flush_to_file(path, NULL));
  printf("start: %d\n", trace_local_start(NULL, TRACE_BUFFERING_MODE_CIRCULAR, 0));
  record(1);
  printf("stop: %d\n", trace_local_stop());
  record(1);
  snprintf(path, sizeof(path), "%s/file.fxt", argv[1]);
  printf("file: %d", trace_local_flush_to_file(path, &summary));
  printf(" %" PRIu64 "\n", summary.events);
  return 0;
}
