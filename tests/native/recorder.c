// Records other programs with the library, as the example `recorder` does: `recorder TOOL FILE [COMMAND …]`.
#include <trace-client/c_api.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int run(char** command) {
  int status = 0;
  pid_t child = fork();
  if (child == 0) {
    execvp(command[0], command);
    _exit(127);
  }
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int main(int argc, char** argv) {
  char error[1024] = "";
  if (argc < 3) return 2;
  const char* tool = strchr(argv[1], '/') == NULL ? NULL : argv[1];
  trace_client_t* client = trace_client_open(tool, NULL, error, sizeof(error));
  if (client == NULL) {
    printf("%s\n", error);
    return 1;
  }
  trace_client_config_t config = {0};
  trace_client_recording_t* recording = trace_client_record(client, &config, argv[2], error, sizeof(error));
  if (recording == NULL) {
    printf("%s\n", error);
    return 1;
  }
  if (argc > 3) {
    if (!run(argv + 3)) return 3;
  } else {
    char line[16];
    printf("recording\n");
    fflush(stdout);
    if (fgets(line, sizeof(line), stdin) == NULL) return 1;
  }
  trace_client_report_t report;
  if (!trace_client_stop(recording, &report, error, sizeof(error))) {
    printf("%s\n", error);
    return 1;
  }
  printf("%" PRIu64 "%s\n", report.events, report.bytes == 0 ? " unchanged" : "");
  trace_client_close(client);
  return 0;
}
