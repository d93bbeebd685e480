// Recordings inside one process: no manager, no socket, no second process.
//
//   trace_local_start("app,db*", TRACE_BUFFERING_MODE_CIRCULAR, 0);
//   ...
//   trace_local_flush_to_file("app.fxt", NULL);
//
// There is one at a time, and none while a recording of a manager's has the program. When one of those
// starts, it takes over: the local recording ends there, its data is in that archive too, and a flush
// delivers it all the same. If the program dies, `trace recover` writes an archive.
//
// Functions that return bool return false if they fail, and print the reason on stderr. All may be called
// on any thread.
#ifndef LIB_TRACE_PROVIDER_LOCAL_H_
#define LIB_TRACE_PROVIDER_LOCAL_H_

#include <lib/trace-engine/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zircon/compiler.h>

__BEGIN_CDECLS

// What was recorded.
typedef struct trace_local_summary {
  // Events in the archive.
  uint64_t events;
  // Events that the buffer had no room for, or has written over.
  uint64_t dropped;
} trace_local_summary_t;

// Gets an archive in pieces of at most 64 KB, the last of which is marked; that one may be empty. The bytes
// are valid during the call.
typedef void (*trace_local_flush_callback_t)(void* context, const uint8_t* bytes, size_t size, bool is_last);

// Begins to record. The categories are separated by commas; "" or NULL means all. The buffer's size is in
// MiB, from 1 to 64; 0 means 4. TRACE_BUFFERING_MODE_STREAMING is not possible. A recording that is over
// and was not delivered is discarded.
bool trace_local_start(const char* categories, trace_buffering_mode_t mode, uint32_t buffer_size_mib);

// What a recording is to have. Set all of it to zero first: zero is the default of each field.
typedef struct trace_local_options {
  const char* categories;
  trace_buffering_mode_t mode;
  uint32_t buffer_size_mib;
  // Events have the processor time of their thread as an argument.
  bool thread_time;
} trace_local_options_t;

// As trace_local_start().
bool trace_local_start_with(const trace_local_options_t* options);

// What a recording that goes on has so far: reads its buffer.
bool trace_local_get_summary(trace_local_summary_t* out_summary);

// Whether a local recording goes on.
bool trace_local_is_recording(void);

// Ends the recording, and keeps what it has for a flush. False if none was going on.
bool trace_local_stop(void);

// Ends the recording, if that was not done, delivers it, and deletes its buffer. `out_summary` may be NULL.
bool trace_local_flush(trace_local_flush_callback_t callback, void* context, trace_local_summary_t* out_summary);

// The same into a file, which is replaced when all of it is written.
bool trace_local_flush_to_file(const char* path, trace_local_summary_t* out_summary);

// Writes what is in the buffer into a file, while recording goes on: what ended in the last so many
// milliseconds, or all if that is 0. `out_summary` may be NULL.
bool trace_local_snapshot_to_file(const char* path, uint64_t last_ms, trace_local_summary_t* out_summary);

// Says what trace_local_request_snapshot() writes.
void trace_local_prepare_snapshot(const char* path, uint64_t last_ms);

// Has the thread of the program's provider write the snapshot that was prepared. May be called in the
// handler of a signal. Without a provider (lib/trace-provider/start.h), nothing happens.
void trace_local_request_snapshot(void);

// Waits until the request was served, which writes the snapshot or prints why that is not possible; false
// if it was not in time. Not for handlers of signals.
bool trace_local_wait_for_snapshot(uint64_t timeout_ms);

__END_CDECLS

#endif  // LIB_TRACE_PROVIDER_LOCAL_H_
