// For C++: the header of a provider's buffer. Programs do not need it: a reader of buffers does.
//
// The layout is that of docs/buffer.md, version 1. Up to the count of dropped records it is that of version
// 0; version 1 has offsets of its control area in what version 0 reserves.
#ifndef LIB_TRACE_ENGINE_BUFFER_INTERNAL_H_
#define LIB_TRACE_ENGINE_BUFFER_INTERNAL_H_

#if defined(__GNUC__)
#pragma GCC system_header
#endif

#include <lib/trace-engine/context.h>

#define TRACE_BUFFER_HEADER_MAGIC ((uint64_t)0x627566ee68656164)
// Buffers of other software, and of this library.
#define TRACE_BUFFER_HEADER_V0 ((uint16_t)0)
#define TRACE_BUFFER_HEADER_V1 ((uint16_t)1)

#ifdef __cplusplus

#include <cstddef>
#include <cstdint>

namespace trace {
namespace internal {

// Sizes and ends are in bytes. Those that recording changes are up to date when it has stopped.
struct trace_buffer_header {
  uint64_t magic;
  uint16_t version;
  // A trace_buffering_mode_t.
  uint8_t buffering_mode;
  uint8_t reserved1;
  // How often the writer has switched to the other rolling buffer: the current one is number
  // `wrapped_count % 2`.
  uint32_t wrapped_count;
  // Of the whole buffer, with this header.
  uint64_t total_size;
  // Of the definitions, which are never overwritten.
  uint64_t durable_buffer_size;
  // Of each of the two rolling buffers; in oneshot mode of the only one.
  uint64_t rolling_buffer_size;
  // How much of each is in use, from its beginning.
  uint64_t durable_data_end;
  uint64_t rolling_data_end[2];
  // Since the buffer was cleared.
  uint64_t num_records_dropped;
  // Version 1: words 9 to 15 of docs/buffer.md.
  uint64_t reserved[7];
};

static_assert(sizeof(trace_buffer_header) == 128, "the header of a buffer has 16 words");
static_assert(offsetof(trace_buffer_header, num_records_dropped) == 64, "they are without gaps");

}  // namespace internal
}  // namespace trace

__BEGIN_CDECLS

// Stores the header of the buffer that `context` holds, with the current ends. Threads that are
// recording may change them at any time. All fields are 0 without a trace.
void trace_context_snapshot_buffer_header_internal(trace_prolonged_context_t* context,
                                                   ::trace::internal::trace_buffer_header* header);

__END_CDECLS

#endif  // __cplusplus

#endif  // LIB_TRACE_ENGINE_BUFFER_INTERNAL_H_
