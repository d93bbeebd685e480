// Records programs from C and from languages that can call C: a test, a benchmark, or a service that
// supervises others. Link with -ltraceclient (pkg-config: libtraceclient).
//
//   char error[256];
//   trace_client_t* client = trace_client_open(NULL, NULL, error, sizeof(error));
//   if (client == NULL) { fprintf(stderr, "%s\n", error); return 1; }
//   trace_client_recording_t* recording =
//       trace_client_record(client, NULL, "test.fxt", error, sizeof(error));
//   setenv("TRACE_RUNTIME_DIR", trace_client_get_directory(client), 1);
//   system("./app");
//   trace_client_report_t report;
//   if (!trace_client_stop(recording, &report, error, sizeof(error))) { ... }
//   trace_client_close(client);
//
// No pointer may be NULL unless a comment allows it. Texts are UTF-8. Where a function fails, the reason is
// in `error`: at most `error_size` bytes with a NUL at the end; `error` may be NULL.
//
// Every function waits for its answer. Functions of the same client or recording may be called from several
// threads at a time, except those that free it. A client and a recording each have a thread; a child of
// fork has neither, and may not use them.
#ifndef TRACE_CLIENT_C_API_H_
#define TRACE_CLIENT_C_API_H_

#include <zircon/compiler.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

__BEGIN_CDECLS

// A connection to the trace manager.
typedef struct trace_client trace_client_t;

// A running recording.
typedef struct trace_client_recording trace_client_recording_t;

// How buffers are used.
enum {
  // Until they are full: the first events are kept.
  TRACE_CLIENT_ONESHOT = 1,
  // In a circle: the last events are kept.
  TRACE_CLIENT_CIRCULAR = 2,
  // As a stream: the manager saves one half while programs write the other.
  TRACE_CLIENT_STREAMING = 3,
};

// What is recorded, and how. Set all of it to zero first: zero is the default of each field, also of those
// that later versions make of the reserved ones.
typedef struct trace_client_config {
  // A list with commas, in which `db*` is all that begin with `db`, and `-noisy` none of that name. NULL: all
  // categories.
  const char* categories;
  // Only programs with a provider of one of these names, a list with commas. NULL: all programs. Several
  // recordings can run at once if no program could be in two of them.
  const char* programs;
  // TRACE_CLIENT_ONESHOT if it is not set.
  uint32_t buffering_mode;
  // Of each program, in MiB. 4 if it is not set.
  uint32_t buffer_size_mib;
  // How long a start and a stop wait for programs, in milliseconds. 5000 if it is not set.
  uint32_t start_timeout_ms;
  uint32_t stop_timeout_ms;
  // How often programs hand over what they have while they stream and little happens, in milliseconds. 1000
  // if it is not set.
  uint32_t write_period_ms;
  // How often programs write down what they use memory for, in milliseconds; never if it is not set.
  uint32_t memory_dump_interval_ms;
  // Events have the processor time of their thread as an argument.
  bool thread_time;
  // Programs write a mark of each event into the kernel's trace as well.
  bool mirror_markers;
  // Programs record only texts that their call sites mark as literals, and the archive has no metadata.
  bool is_private;
  // The archive says nothing of the machine, its user and the command line of this process.
  bool without_metadata;
  // The recording ends by itself when its archive has so many MiB, and the archive is cut there. No limit if
  // it is not set.
  uint32_t max_size_mib;
  uint32_t reserved[14];
} trace_client_config_t;

// What a snapshot has. Set all of it to zero first, as a configuration.
typedef struct trace_client_snapshot {
  // A program's name or process id: its recording is meant. NULL: the only one.
  const char* program;
  // Leaves out events that ended earlier than this before the snapshot. 0: all events.
  uint64_t last_ms;
  uint64_t reserved[4];
} trace_client_snapshot_t;

// What was recorded, of all programs together.
typedef struct trace_client_report {
  // Events in the archive.
  uint64_t events;
  // Records that found no room.
  uint64_t dropped;
  // The size of the file; 0 if there was no event, and a file of that name stayed as it was.
  uint64_t bytes;
  // No program has lost anything, or was not recorded.
  bool is_complete;
} trace_client_report_t;

// A program with a provider. Of a list of providers, the last three fields are 0.
typedef struct trace_client_provider {
  // Valid during the call of the function that gets it.
  const char* name;
  uint64_t pid;
  // Records written since the recording began, and those that found no room.
  uint64_t records;
  uint64_t dropped;
  // How full its buffer is, in percent.
  float fill;
} trace_client_provider_t;

// Gets one program after the other.
typedef void (*trace_client_provider_callback_t)(void* context, const trace_client_provider_t* provider);

// An alert that a program has raised.
typedef struct trace_client_alert {
  // At most 14 bytes, and a NUL.
  char name[16];
  // The program's process; 0 if the manager is of a release that does not report it.
  uint64_t pid;
} trace_client_alert_t;

// Connects to the manager that runs, or starts one. `tool` is the executable `trace`, in which the manager
// is; NULL is the first in the directories of PATH. `directory` is a runtime directory of the caller's,
// which is made if it does not exist; NULL is the usual one. Returns NULL if it fails.
trace_client_t* trace_client_open(const char* tool, const char* directory, char* error, size_t error_size);

// The manager's runtime directory: a program that has it as TRACE_RUNTIME_DIR in its environment finds the
// manager. Valid until the client is closed.
const char* trace_client_get_directory(const trace_client_t* client);

// Calls `callback` for each program that can be recorded. Returns false if it fails.
bool trace_client_list_providers(const trace_client_t* client, trace_client_provider_callback_t callback,
                                 void* context, char* error, size_t error_size);

// Begins a recording into a file, which has another name until it is complete. Its name ends in `.fxt`, or in
// nothing; other formats are for a library that was built with the feature `convert`. The owner of the file
// alone may read it, and links of other users are not followed. `config` may be NULL.
// Returns when the programs that run record, or have not answered in time; NULL if it fails: because
// something else is being recorded, for example.
trace_client_recording_t* trace_client_record(const trace_client_t* client, const trace_client_config_t* config,
                                              const char* path, char* error, size_t error_size);

// Ends a recording, waits until its file is complete, and frees the recording, also if it fails. `report`
// may be NULL. Returns false if it fails: then `error` has the name of the file with what had arrived.
bool trace_client_stop(trace_client_recording_t* recording, trace_client_report_t* report, char* error,
                       size_t error_size);

// Has the programs of a stream hand over what they have. Returns false if it fails.
bool trace_client_flush(const trace_client_recording_t* recording, char* error, size_t error_size);

// Calls `callback` for each program that takes part. Returns false if it fails.
bool trace_client_get_progress(const trace_client_recording_t* recording,
                               trace_client_provider_callback_t callback, void* context, char* error,
                               size_t error_size);

// Waits for the next alert of a program, at most so many milliseconds; forever if that is negative. Returns
// 1 if one has come, 0 if the time has passed, and -1 if it fails.
int trace_client_wait_for_alert(const trace_client_recording_t* recording, int64_t timeout_ms,
                                trace_client_alert_t* alert, char* error, size_t error_size);

// Copies the buffers of what is being recorded, by whatever client, into a file. The recording goes on.
// `snapshot` and `report` may be NULL. Returns false if it fails.
bool trace_client_take_snapshot(const trace_client_t* client, const trace_client_snapshot_t* snapshot,
                                const char* path, trace_client_report_t* report, char* error, size_t error_size);

// Frees a client; NULL is allowed. A recording goes on.
void trace_client_close(trace_client_t* client);

__END_CDECLS

#endif  // TRACE_CLIENT_C_API_H_
