#include "guest.h"

#include <trace-client/c_api.h>
#include <trace/event.h>

#include <lib/trace-provider/local.h>
#include <lib/trace-provider/provider.h>
#include <lib/trace-provider/start.h>

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

struct guest {
  char way[16];
  char file[512];
  trace_provider_t* provider;
  trace_client_t* client;
  trace_client_recording_t* recording;
  uint64_t expected;
};

static int Is(const struct guest* guest, const char* way) { return strcmp(guest->way, way) == 0; }

static void Free(struct guest* guest, char* error, unsigned long size, const char* reason) {
  if (reason != NULL) snprintf(error, size, "%s", reason);
  free(guest);
}

struct guest* GuestBegin(const char* way, const char* directory, unsigned mebibytes, char* error, unsigned long size) {
  struct guest* guest = calloc(1, sizeof(*guest));
  snprintf(guest->way, sizeof(guest->way), "%s", way);
  snprintf(guest->file, sizeof(guest->file), "%s/trace.fxt", directory);
  if (Is(guest, "provider")) {
    guest->provider = trace_provider_create_with_name_fdio(NULL, "hosts");
  } else if (Is(guest, "local")) {
    if (!trace_local_start("hosts", TRACE_BUFFERING_MODE_ONESHOT, mebibytes)) {
      Free(guest, error, size, "");
      return NULL;
    }
  } else if (Is(guest, "startup")) {
    if (!trace_startup_begin("hosts")) {
      Free(guest, error, size, "");
      return NULL;
    }
  } else {
    guest->client = trace_client_open(getenv("HOSTS_TOOL"), getenv("TRACE_RUNTIME_DIR"), error, size);
    if (guest->client != NULL) {
      trace_client_config_t config = {0};
      config.categories = "hosts";
      config.buffer_size_mib = mebibytes;
      guest->recording = trace_client_record(guest->client, &config, guest->file, error, size);
    }
    if (guest->recording == NULL) {
      trace_client_close(guest->client);
      Free(guest, error, size, NULL);
      return NULL;
    }
  }
  return guest;
}

static void Events(const char* name) {
  int number;
  for (number = 0; number < kEvents; ++number) {
    if (strcmp(name, "before") == 0) {
      TRACE_INSTANT("hosts", "before", TRACE_SCOPE_THREAD);
    } else if (strcmp(name, "after") == 0) {
      TRACE_INSTANT("hosts", "after", TRACE_SCOPE_THREAD);
    } else if (strcmp(name, "child") == 0) {
      TRACE_INSTANT("hosts", "child", TRACE_SCOPE_THREAD);
    } else if (strcmp(name, "many") == 0) {
      int many;
      for (many = 0; many < 150000; ++many) TRACE_INSTANT("hosts", "many", TRACE_SCOPE_THREAD, "n", TA_INT32(many));
    } else {
      TRACE_INSTANT("hosts", "end", TRACE_SCOPE_THREAD);
    }
  }
}

int GuestRecord(struct guest* guest, const char* name, const char* program) {
  if (guest == NULL || guest->client == NULL) {
    Events(name);
    return 0;
  }
  char* arguments[] = {(char*)program, "emit", (char*)name, NULL};
  pid_t child;
  int status = 0;
  guest->expected += kEvents;
  if (posix_spawn(&child, program, NULL, NULL, arguments, environ) != 0) return 1;
  // No status where the end of children is ignored.
  return waitpid(child, &status, 0) == child && status != 0;
}

int GuestEnd(struct guest* guest, char* error, unsigned long size) {
  int is_ended = 1;
  if (guest == NULL) return 0;
  if (guest->provider != NULL) trace_provider_destroy(guest->provider);
  if (Is(guest, "local")) {
    is_ended = trace_local_flush_to_file(guest->file, NULL);
    snprintf(error, size, "%s", "");
  }
  if (guest->client != NULL) {
    trace_client_report_t report = {0};
    is_ended = trace_client_stop(guest->recording, &report, error, size);
    if (is_ended && (report.events != guest->expected || !report.is_complete)) {
      snprintf(error, size, "%llu events", (unsigned long long)report.events);
      is_ended = 0;
    }
    trace_client_close(guest->client);
  }
  free(guest);
  return is_ended ? 0 : 1;
}

int GuestEndInChild(struct guest* guest) {
  char error[256];
  int is_well = 1;
  if (guest == NULL) return 0;
  if (guest->provider != NULL) trace_provider_destroy(guest->provider);
  if (Is(guest, "local")) is_well = !trace_local_is_recording() && !trace_local_stop();
  if (guest->client != NULL) {
    trace_client_alert_t alert;
    is_well = !trace_client_flush(guest->recording, error, sizeof(error)) &&
              trace_client_wait_for_alert(guest->recording, -1, &alert, error, sizeof(error)) == -1 &&
              !trace_client_stop(guest->recording, NULL, error, sizeof(error));
    trace_client_close(guest->client);
  }
  return is_well ? 0 : 1;
}

void GuestSay(void) { trace_local_snapshot_to_file("/no/such/directory/a.fxt", 0, NULL); }
