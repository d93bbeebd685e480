// For C++: where the fields of a record's first word are, and helpers for sizes. The trace format says what
// they mean; the names are those of its tables.
#ifndef LIB_TRACE_ENGINE_FIELDS_H_
#define LIB_TRACE_ENGINE_FIELDS_H_

#if defined(__GNUC__)
#pragma GCC system_header
#endif

#include <lib/trace-engine/types.h>

#ifdef __cplusplus

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace trace {

// Bytes with their padding, which makes them whole words.
inline constexpr size_t Pad(size_t size) { return (size + 7) & ~size_t{7}; }
inline constexpr size_t BytesToWords(size_t num_bytes) { return Pad(num_bytes) / 8; }
inline constexpr size_t WordsToBytes(size_t num_words) { return num_words * 8; }

// The number of an enumerator.
template <typename T>
inline constexpr std::underlying_type_t<T> ToUnderlyingType(T value) {
  return static_cast<std::underlying_type_t<T>>(value);
}

// The bits from `begin` to `end` of a word, both included: at most 63 of them.
template <size_t begin, size_t end>
struct Field {
  static_assert(begin <= end && end < 64, "a field is a range of bits in a word of 64");
  static_assert(end - begin < 63, "a field is less than a word");

  // As many ones as the field has bits.
  static constexpr uint64_t kMask = ~uint64_t{0} >> (63 - (end - begin));

  // A word of zeros but for this field. Bits for which it has no room are dropped.
  static constexpr uint64_t Make(uint64_t value) { return (value & kMask) << begin; }
  // What a word has in this field, as a type that has room for it.
  template <typename U>
  static constexpr U Get(uint64_t word) {
    static_assert(sizeof(U) * 8 > end - begin, "the type has fewer bits than the field");
    return static_cast<U>((word >> begin) & kMask);
  }
  static constexpr void Set(uint64_t& word, uint64_t value) {
    word &= ~(kMask << begin);
    word |= Make(value);
  }
};

// The first words of arguments.
struct ArgumentFields {
  using Type = Field<0, 3>;
  using ArgumentSize = Field<4, 15>;
  using NameRef = Field<16, 31>;
};
struct Int32ArgumentFields : ArgumentFields {
  using Value = Field<32, 63>;
};
struct Uint32ArgumentFields : ArgumentFields {
  using Value = Field<32, 63>;
};
struct BoolArgumentFields : ArgumentFields {
  using Value = Field<32, 32>;
};
struct StringArgumentFields : ArgumentFields {
  using Index = Field<32, 47>;
};

// The first words of records. Sizes are in words, and count the first word.
struct RecordFields {
  using Type = Field<0, 3>;
  using RecordSize = Field<4, 15>;

  static constexpr uint64_t kMaxRecordSizeWords = RecordSize::kMask;
  static constexpr uint64_t kMaxRecordSizeBytes = WordsToBytes(kMaxRecordSizeWords);
};

using InitializationRecordFields = RecordFields;

struct MetadataRecordFields : RecordFields {
  using MetadataType = Field<16, 19>;
};
struct ProviderInfoMetadataRecordFields : MetadataRecordFields {
  using Id = Field<20, 51>;
  using NameLength = Field<52, 59>;

  static constexpr size_t kMaxNameLength = NameLength::kMask;
};
struct ProviderSectionMetadataRecordFields : MetadataRecordFields {
  using Id = Field<20, 51>;
};
struct ProviderEventMetadataRecordFields : MetadataRecordFields {
  using Id = Field<20, 51>;
  using Event = Field<52, 55>;
};
struct TraceInfoMetadataRecordFields : MetadataRecordFields {
  using TraceInfoType = Field<20, 23>;
};
struct MagicNumberRecordFields : TraceInfoMetadataRecordFields {
  using Magic = Field<24, 55>;
};

struct StringRecordFields : RecordFields {
  using StringIndex = Field<16, 30>;
  using StringLength = Field<32, 46>;
};

struct ThreadRecordFields : RecordFields {
  using ThreadIndex = Field<16, 23>;
};

struct EventRecordFields : RecordFields {
  using EventType = Field<16, 19>;
  using ArgumentCount = Field<20, 23>;
  using ThreadRef = Field<24, 31>;
  using CategoryStringRef = Field<32, 47>;
  using NameStringRef = Field<48, 63>;
};

struct BlobRecordFields : RecordFields {
  using NameStringRef = Field<16, 31>;
  using BlobSize = Field<32, 46>;
  using BlobType = Field<48, 55>;
};

struct KernelObjectRecordFields : RecordFields {
  using ObjectType = Field<16, 23>;
  using NameStringRef = Field<24, 39>;
  using ArgumentCount = Field<40, 43>;
};

struct SchedulerRecordFields : RecordFields {
  using EventType = Field<60, 63>;
};
struct LegacyContextSwitchRecordFields : SchedulerRecordFields {
  using CpuNumber = Field<16, 23>;
  using OutgoingThreadState = Field<24, 27>;
  using OutgoingThreadRef = Field<28, 35>;
  using IncomingThreadRef = Field<36, 43>;
  using OutgoingThreadPriority = Field<44, 51>;
  using IncomingThreadPriority = Field<52, 59>;
};
struct ContextSwitchRecordFields : SchedulerRecordFields {
  using ArgumentCount = Field<16, 19>;
  using CpuNumber = Field<20, 35>;
  using ThreadState = Field<36, 39>;
};
struct ThreadWakeupRecordFields : SchedulerRecordFields {
  using ArgumentCount = Field<16, 19>;
  using CpuNumber = Field<20, 35>;
};

struct LogRecordFields : RecordFields {
  using LogMessageLength = Field<16, 30>;
  using ThreadRef = Field<32, 39>;

  static constexpr size_t kMaxMessageLength = LogMessageLength::kMask;
};

struct ProfilerRecordFields : RecordFields {
  using ProfilerType = Field<16, 19>;
  using ThreadRef = Field<20, 27>;
};
struct ProfilerModuleRecordFields : ProfilerRecordFields {
  using ModuleId = Field<28, 43>;
  using NameLength = Field<44, 51>;
  using BuildIdLength = Field<52, 59>;
};
struct ProfilerMmapRecordFields : ProfilerRecordFields {
  using ModuleId = Field<28, 43>;
  using Flags = Field<44, 46>;
};
struct ProfilerBacktraceRecordFields : ProfilerRecordFields {
  using BacktraceCount = Field<28, 35>;
};

// The first words of large records.
struct LargeRecordFields {
  using Type = Field<0, 3>;
  using RecordSize = Field<4, 35>;
  using LargeType = Field<36, 39>;

  static constexpr uint64_t kMaxRecordSizeWords = RecordSize::kMask;
  static constexpr uint64_t kMaxRecordSizeBytes = WordsToBytes(kMaxRecordSizeWords);
};
struct LargeBlobFields : LargeRecordFields {
  using BlobFormat = Field<40, 43>;
};
// Their second words.
struct BlobFormatAttachmentFields {
  using CategoryStringRef = Field<0, 15>;
  using NameStringRef = Field<16, 31>;
};
struct BlobFormatEventFields {
  using CategoryStringRef = Field<0, 15>;
  using NameStringRef = Field<16, 31>;
  using ArgumentCount = Field<32, 35>;
  using ThreadRef = Field<36, 43>;
};

}  // namespace trace

#endif  // __cplusplus

#endif  // LIB_TRACE_ENGINE_FIELDS_H_
