// Records programs through the API for C, and prints what it learns: `record TOOL DIRECTORY FILE COMMAND
// COMMAND FILE SNAPSHOT`. The second command runs until the file `wait` is gone.
#include <trace-client/c_api.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void print_provider(void* context, const trace_client_provider_t* provider) {
  // The last records of a thread show a little later.
  int is_sensible = provider->records <= 2 && provider->fill >= 0 && provider->fill < 50;
  printf("%s %s: %d, %" PRIu64 " dropped\n", (const char*)context, provider->name, is_sensible, provider->dropped);
}

int main(int argc, char** argv) {
  char error[256] = "";
  if (argc < 8) return 2;
  trace_client_t* client = trace_client_open(argv[1], argv[2], error, sizeof(error));
  if (client == NULL) {
    printf("open: %s\n", error);
    return 1;
  }
  setenv("TRACE_RUNTIME_DIR", trace_client_get_directory(client), 1);
  trace_client_config_t config = {0};
  config.buffering_mode = 7;
  trace_client_recording_t* recording = trace_client_record(client, &config, argv[3], error, sizeof(error));
  printf("%d %s\n", recording == NULL, error);
  config.categories = "stubborn,alert*";
  config.buffering_mode = TRACE_CLIENT_STREAMING;
  config.buffer_size_mib = 1;
  recording = trace_client_record(client, &config, argv[3], error, sizeof(error));
  if (recording == NULL) {
    printf("record: %s\n", error);
    return 1;
  }
  trace_client_alert_t alert;
  printf("alert: %d\n", trace_client_wait_for_alert(recording, 1, &alert, error, sizeof(error)));
  // It runs until its input ends.
  FILE* program = popen(argv[4], "w");
  if (program == NULL) return 1;
  fputs("now\n", program);
  fflush(program);
  int has_come = trace_client_wait_for_alert(recording, -1, &alert, error, sizeof(error));
  printf("alert: %d %s %d\n", has_come, alert.name, alert.pid != 0);
  trace_client_list_providers(client, print_provider, "listed", error, sizeof(error));
  trace_client_get_progress(recording, print_provider, "recording", error, sizeof(error));
  printf("flush: %d\n", trace_client_flush(recording, NULL, 0));
  const char* nowhere = "/no/such/directory/a.fxt";
  printf("snapshot: %d\n", trace_client_take_snapshot(client, NULL, nowhere, NULL, error, sizeof(error)));
  printf("%s\n", error);
  printf("ended: %d\n", pclose(program));
  trace_client_report_t report;
  if (!trace_client_stop(recording, &report, error, sizeof(error))) {
    printf("stop: %s\n", error);
    return 1;
  }
  printf("events: %" PRIu64 ", dropped: %" PRIu64 ", bytes: %" PRIu64 ", complete: %d\n", report.events, report.dropped,
         report.bytes, report.is_complete);
  // The end of one program's buffer.
  trace_client_config_t circular = {0};
  circular.programs = "living,stubborn";
  circular.buffering_mode = TRACE_CLIENT_CIRCULAR;
  recording = trace_client_record(client, &circular, argv[6], error, sizeof(error));
  if (recording == NULL) {
    printf("record: %s\n", error);
    return 1;
  }
  program = popen(argv[5], "r");
  if (program == NULL || fgets(error, sizeof(error), program) == NULL) return 1;
  trace_client_snapshot_t last = {0};
  last.program = "living";
  last.last_ms = 3600000;
  int is_taken = trace_client_take_snapshot(client, &last, argv[7], &report, error, sizeof(error));
  printf("snapshot: %d, events: %" PRIu64 "\n", is_taken, report.events);
  last.program = "other";
  printf("snapshot: %d", trace_client_take_snapshot(client, &last, argv[7], &report, error, sizeof(error)));
  printf(" %s\n", error);
  remove("wait");
  printf("ended: %d\n", pclose(program));
  printf("stop: %d", trace_client_stop(recording, &report, error, sizeof(error)));
  printf(", events: %" PRIu64 "\n", report.events);
  trace_client_close(client);
  trace_client_close(NULL);
  // A text is cut to the room that there is.
  char little[8];
  client = trace_client_open("/no/such/tool", "/no/such/directory", little, sizeof(little));
  printf("%d %s\n", client == NULL, little);
  return 0;
}
