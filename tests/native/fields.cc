// The fields of records that the library wrote, by the names of fields.h, and the header of their buffer, by
// those of buffer_internal.h: one line for each.
#include <lib/async-loop/cpp/loop.h>
#include <lib/async-loop/default.h>
#include <lib/trace-engine/handler.h>
#include <trace-engine/buffer_internal.h>
#include <trace-engine/fields.h>
#include <trace/event.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using trace::internal::trace_buffer_header;

static constexpr size_t kBytes = 64 << 10;
static trace_handler_t handler = {nullptr};

template <typename F>
static uint64_t Get(uint64_t word) {
  return F::template Get<uint64_t>(word);
}

// One record; how many words it has.
static size_t Print(const uint64_t* words) {
  const uint64_t header = words[0];
  const auto type = trace::RecordFields::Type::Get<trace::RecordType>(header);
  size_t size = trace::RecordFields::RecordSize::Get<size_t>(header);
  switch (type) {
    case trace::RecordType::kInitialization:
      std::printf("initialization %zu\n", size);
      break;
    case trace::RecordType::kString: {
      using F = trace::StringRecordFields;
      const auto length = F::StringLength::Get<size_t>(header);
      std::printf("string %zu %" PRIu64 " %.*s\n", size, Get<F::StringIndex>(header), static_cast<int>(length),
                  reinterpret_cast<const char*>(words + 1));
      if (size != 1 + trace::BytesToWords(length)) std::exit(20);
      break;
    }
    case trace::RecordType::kThread:
      std::printf("thread %zu %" PRIu64 "\n", size, Get<trace::ThreadRecordFields::ThreadIndex>(header));
      break;
    case trace::RecordType::kEvent: {
      using F = trace::EventRecordFields;
      std::printf("event %zu type %" PRIu64 " args %" PRIu64 " thread %" PRIu64 " %" PRIu64 "/%" PRIu64 "\n", size,
                  Get<F::EventType>(header), Get<F::ArgumentCount>(header), Get<F::ThreadRef>(header),
                  Get<F::CategoryStringRef>(header), Get<F::NameStringRef>(header));
      const uint64_t* arg = words + 2;
      for (uint64_t left = Get<F::ArgumentCount>(header); left != 0; --left) {
        const auto kind = trace::ArgumentFields::Type::Get<trace::ArgumentType>(*arg);
        uint64_t value = arg[1];
        if (kind == trace::ArgumentType::kBool) value = Get<trace::BoolArgumentFields::Value>(*arg);
        if (kind == trace::ArgumentType::kInt32) {
          value = static_cast<uint64_t>(trace::Int32ArgumentFields::Value::Get<int32_t>(*arg));
        }
        if (kind == trace::ArgumentType::kUint32) value = Get<trace::Uint32ArgumentFields::Value>(*arg);
        if (kind == trace::ArgumentType::kString) value = Get<trace::StringArgumentFields::Index>(*arg);
        std::printf("  arg %u %" PRIu64 " name %" PRIu64 " %" PRIi64 "\n", trace::ToUnderlyingType(kind),
                    Get<trace::ArgumentFields::ArgumentSize>(*arg), Get<trace::ArgumentFields::NameRef>(*arg),
                    static_cast<int64_t>(value));
        arg += trace::ArgumentFields::ArgumentSize::Get<size_t>(*arg);
      }
      break;
    }
    case trace::RecordType::kBlob: {
      using F = trace::BlobRecordFields;
      std::printf("blob %zu type %" PRIu64 " size %" PRIu64 "\n", size, Get<F::BlobType>(header), Get<F::BlobSize>(header));
      break;
    }
    case trace::RecordType::kKernelObject: {
      using F = trace::KernelObjectRecordFields;
      std::printf("object type %" PRIu64 " args %" PRIu64 "\n", Get<F::ObjectType>(header), Get<F::ArgumentCount>(header));
      break;
    }
    case trace::RecordType::kLog: {
      using F = trace::LogRecordFields;
      std::printf("log %zu thread %" PRIu64 " length %" PRIu64 "\n", size, Get<F::ThreadRef>(header),
                  Get<F::LogMessageLength>(header));
      break;
    }
    case trace::RecordType::kScheduler: {
      using F = trace::LegacyContextSwitchRecordFields;
      std::printf("switch %" PRIu64 " cpu %" PRIu64 " state %" PRIu64 " priorities %" PRIu64 " %" PRIu64 "\n",
                  Get<F::EventType>(header), Get<F::CpuNumber>(header), Get<F::OutgoingThreadState>(header),
                  Get<F::OutgoingThreadPriority>(header), Get<F::IncomingThreadPriority>(header));
      break;
    }
    case trace::RecordType::kLargeRecord: {
      size = trace::LargeRecordFields::RecordSize::Get<size_t>(header);
      std::printf("large %zu type %" PRIu64 " format %" PRIu64 " name %" PRIu64 "\n", size,
                  Get<trace::LargeRecordFields::LargeType>(header), Get<trace::LargeBlobFields::BlobFormat>(header),
                  Get<trace::BlobFormatAttachmentFields::NameStringRef>(words[1]));
      break;
    }
    default:
      std::printf("type %u\n", static_cast<unsigned>(type));
      break;
  }
  return size;
}

static void PrintAll(const uint64_t* words, size_t bytes) {
  for (size_t at = 0; at < trace::BytesToWords(bytes) && words[at] != 0;) at += Print(words + at);
}

static void Check(const trace_buffer_header& header) {
  std::printf("header %d %u mode %u wrapped %u size %" PRIu64 " dropped %" PRIu64 "\n",
              header.magic == TRACE_BUFFER_HEADER_MAGIC, header.version - TRACE_BUFFER_HEADER_V0, header.buffering_mode,
              header.wrapped_count, header.total_size, header.num_records_dropped);
}

// Bits at both ends, and such for which a field has no room.
using Low = trace::Field<0, 3>;
using High = trace::Field<60, 63>;
static_assert(Low::kMask == 15 && High::kMask == 15 && trace::Field<1, 63>::kMask == UINT64_MAX >> 1, "");
static_assert(Low::Make(0x1f) == 15 && High::Make(0x1f) == UINT64_C(0xf) << 60, "");
static_assert(High::Get<uint8_t>(UINT64_C(0xa123456789abcdef)) == 10, "");
static_assert(trace::Pad(0) == 0 && trace::Pad(1) == 8 && trace::Pad(8) == 8 && trace::BytesToWords(17) == 3 &&
                  trace::WordsToBytes(3) == 24, "");
static_assert(trace::RecordFields::kMaxRecordSizeBytes == 32760 && trace::LogRecordFields::kMaxMessageLength == 32767 &&
                  trace::ProviderInfoMetadataRecordFields::kMaxNameLength == 255 &&
                  trace::LargeRecordFields::kMaxRecordSizeWords == UINT32_MAX, "");

int main() {
  uint64_t word = UINT64_MAX;
  trace::EventRecordFields::ThreadRef::Set(word, 0x142);
  if (word != UINT64_C(0xffffffff42ffffff)) return 1;
  async::Loop loop(&kAsyncLoopConfigNoAttachToCurrentThread);
  auto* const buffer = static_cast<uint64_t*>(std::aligned_alloc(4096, kBytes));
  trace_buffer_header header;
  trace_context_snapshot_buffer_header_internal(nullptr, &header);
  if (header.magic != 0) return 2;
  const auto mode = TRACE_BUFFERING_MODE_ONESHOT;
  if (trace_engine_initialize(loop.dispatcher(), &handler, mode, buffer, kBytes) != ZX_OK) return 3;
  if (trace_engine_start(TRACE_START_CLEAR_ENTIRE_BUFFER) != ZX_OK) return 4;
  TRACE_INSTANT("fields", "first", TRACE_SCOPE_THREAD, "int", -7, "uint", 8u, "yes", true, "text", "12345");
  TRACE_COUNTER("fields", "second", 77, "large", int64_t{-9});
  TRACE_BLOB(TRACE_BLOB_TYPE_DATA, "blob", "some bytes", 10);
  TRACE_BLOB_ATTACHMENT("fields", "large", "some bytes", 10);
  trace_context_t* context = trace_acquire_context();
  trace_thread_ref_t thread;
  trace_context_register_current_thread(context, &thread);
  trace_context_write_log_record(context, 5, &thread, "a message", 9);
  trace_context_write_context_switch_record(context, 6, 3, ZX_THREAD_STATE_BLOCKED, &thread, &thread, 20, 21);
  trace_release_context(context);
  trace_prolonged_context_t* const prolonged = trace_acquire_prolonged_context();
  trace_context_snapshot_buffer_header_internal(prolonged, &header);
  trace_release_prolonged_context(prolonged);
  Check(header);
  trace_engine_stop(ZX_OK);
  while (trace_state() != TRACE_STOPPED) loop.Run(zx::time(zx_deadline_after(ZX_MSEC(10))), true);
  trace_buffer_header last;
  std::memcpy(&last, buffer, sizeof(last));
  Check(last);
  if (last.durable_data_end != header.durable_data_end || last.rolling_data_end[0] != header.rolling_data_end[0]) return 5;
  if (last.version != TRACE_BUFFER_HEADER_V1 || last.rolling_data_end[1] != 0) return 6;
  // Word 13 has the offset of the definitions, and word 14 that of the events.
  PrintAll(buffer + trace::BytesToWords(last.reserved[4] >> 32), last.durable_data_end);
  PrintAll(buffer + trace::BytesToWords(last.reserved[5]), last.rolling_data_end[0]);
  trace_engine_terminate();
  return 0;
}
