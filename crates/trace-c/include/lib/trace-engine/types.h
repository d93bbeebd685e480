// Types of the trace engine and of the trace format: references to strings and threads, arguments of events.
#ifndef LIB_TRACE_ENGINE_TYPES_H_
#define LIB_TRACE_ENGINE_TYPES_H_

#if defined(__GNUC__)
#pragma GCC system_header
#endif

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <zircon/compiler.h>
#include <zircon/syscalls.h>
#include <zircon/syscalls/object.h>
#include <zircon/types.h>

#if defined(__OPTIMIZE__)
#define TRACE_INTERNAL_INLINE static inline __attribute__((__always_inline__, __unused__))
#define TRACE_INTERNAL_INLINE_MEMBER inline __attribute__((__always_inline__))
#else
// Without optimization, a copy at every site makes compiling take ten times as long (docs/performance.md).
#define TRACE_INTERNAL_INLINE static inline __attribute__((__unused__))
#define TRACE_INTERNAL_INLINE_MEMBER inline __attribute__((__visibility__("hidden")))
#endif

#if !defined(__LP64__) || !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "trace events are written by 64-bit little-endian programs only"
#endif

__BEGIN_CDECLS

// A moment of the trace clock.
typedef zx_ticks_t trace_ticks_t;
// Distinguishes instances of one counter, operation or flow.
typedef uint64_t trace_counter_id_t;
typedef uint64_t trace_async_id_t;
typedef uint64_t trace_flow_id_t;
typedef uint64_t trace_vthread_id_t;
typedef uint32_t trace_thread_state_t;
typedef uint32_t trace_cpu_number_t;
typedef uint32_t trace_thread_priority_t;
typedef uint16_t trace_string_index_t;
typedef uint16_t trace_encoded_string_ref_t;
typedef uint32_t trace_thread_index_t;
typedef uint32_t trace_encoded_thread_ref_t;

// The scope of an instant.
typedef enum {
  TRACE_SCOPE_THREAD = 0,
  TRACE_SCOPE_PROCESS = 1,
  TRACE_SCOPE_GLOBAL = 2,
} trace_scope_t;

typedef enum {
  TRACE_ARG_NULL = 0,
  TRACE_ARG_INT32 = 1,
  TRACE_ARG_UINT32 = 2,
  TRACE_ARG_INT64 = 3,
  TRACE_ARG_UINT64 = 4,
  TRACE_ARG_DOUBLE = 5,
  TRACE_ARG_STRING = 6,
  TRACE_ARG_POINTER = 7,
  TRACE_ARG_KOID = 8,
  TRACE_ARG_BOOL = 9,
  TRACE_ARG_BLOB = 10,
} trace_arg_type_t;

typedef enum {
  TRACE_BLOB_TYPE_DATA = 1,
  TRACE_BLOB_TYPE_LAST_BRANCH = 2,
  TRACE_BLOB_TYPE_PERFETTO = 3,
} trace_blob_type_t;

typedef enum {
  TRACE_BLOB_FORMAT_EVENT = 0,
  TRACE_BLOB_FORMAT_ATTACHMENT = 1,
} trace_blob_format_t;

typedef enum {
  // Recording ends when the buffer is full.
  TRACE_BUFFERING_MODE_ONESHOT = 0,
  // The oldest events make room.
  TRACE_BUFFERING_MODE_CIRCULAR = 1,
  // Halves of the buffer are saved while the other is written.
  TRACE_BUFFERING_MODE_STREAMING = 2,
} trace_buffering_mode_t;

#define TRACE_ENCODED_STRING_REF_EMPTY ((trace_encoded_string_ref_t)0)
#define TRACE_ENCODED_STRING_REF_INLINE_FLAG ((trace_encoded_string_ref_t)0x8000)
#define TRACE_ENCODED_STRING_REF_LENGTH_MASK ((trace_encoded_string_ref_t)0x7fff)
#define TRACE_ENCODED_STRING_REF_MAX_LENGTH ((size_t)32000)
#define TRACE_ENCODED_STRING_REF_MIN_INDEX ((trace_encoded_string_ref_t)0x1)
#define TRACE_ENCODED_STRING_REF_MAX_INDEX ((trace_encoded_string_ref_t)0x7fff)
#define TRACE_ENCODED_THREAD_REF_INLINE ((trace_encoded_thread_ref_t)0)
#define TRACE_ENCODED_THREAD_REF_MIN_INDEX ((trace_encoded_thread_ref_t)0x01)
#define TRACE_ENCODED_THREAD_REF_MAX_INDEX ((trace_encoded_thread_ref_t)0xff)
#define TRACE_ENCODED_RECORD_MAX_LENGTH ((size_t)32760)
#define TRACE_ENCODED_RECORD_MAX_TOTAL_LENGTH ((size_t)(1 << 18))
#define TRACE_ENCODED_INLINE_LARGE_RECORD_MAX_SIZE ((size_t)(1 << 18))
#define TRACE_MAX_ARGS ((size_t)15)
#define TRACE_MAX_BLOB_SIZE ((size_t)32000)

// A string in a record: by its index, or inline.
typedef struct trace_string_ref {
  trace_encoded_string_ref_t encoded_value;
  // Not NULL for inline references only.
  const char* inline_string;
} trace_string_ref_t;

// A thread in a record: by its index, or inline.
typedef struct trace_thread_ref {
  trace_encoded_thread_ref_t encoded_value;
  // For inline references only.
  zx_koid_t inline_process_koid;
  zx_koid_t inline_thread_koid;
} trace_thread_ref_t;

typedef struct {
  trace_arg_type_t type;
  union {
    int32_t int32_value;
    uint32_t uint32_value;
    int64_t int64_value;
    uint64_t uint64_value;
    double double_value;
    trace_string_ref_t string_value_ref;
    uintptr_t pointer_value;
    zx_koid_t koid_value;
    bool bool_value;
    uintptr_t reserved_for_future_expansion[2];
  };
} trace_arg_value_t;

typedef struct {
  trace_string_ref_t name_ref;
  trace_arg_value_t value;
} trace_arg_t;

TRACE_INTERNAL_INLINE bool trace_is_empty_string_ref(const trace_string_ref_t* string_ref) {
  return string_ref->encoded_value == TRACE_ENCODED_STRING_REF_EMPTY;
}

TRACE_INTERNAL_INLINE bool trace_is_inline_string_ref(const trace_string_ref_t* string_ref) {
  return (string_ref->encoded_value & TRACE_ENCODED_STRING_REF_INLINE_FLAG) != 0;
}

TRACE_INTERNAL_INLINE bool trace_is_indexed_string_ref(const trace_string_ref_t* string_ref) {
  return string_ref->encoded_value >= TRACE_ENCODED_STRING_REF_MIN_INDEX &&
         string_ref->encoded_value <= TRACE_ENCODED_STRING_REF_MAX_INDEX;
}

TRACE_INTERNAL_INLINE size_t trace_inline_string_ref_length(const trace_string_ref_t* string_ref) {
  return (size_t)(string_ref->encoded_value & TRACE_ENCODED_STRING_REF_LENGTH_MASK);
}

TRACE_INTERNAL_INLINE trace_string_ref_t trace_make_empty_string_ref(void) {
  trace_string_ref_t ref;
  ref.encoded_value = TRACE_ENCODED_STRING_REF_EMPTY;
  ref.inline_string = NULL;
  return ref;
}

// Strings of more than 32000 bytes are cut.
TRACE_INTERNAL_INLINE trace_string_ref_t trace_make_inline_string_ref(const char* string, size_t length) {
  trace_string_ref_t ref;
  if (length == 0) {
    return trace_make_empty_string_ref();
  }
  if (length > TRACE_ENCODED_STRING_REF_MAX_LENGTH) {
    length = TRACE_ENCODED_STRING_REF_MAX_LENGTH;
  }
  ref.encoded_value = (trace_encoded_string_ref_t)(TRACE_ENCODED_STRING_REF_INLINE_FLAG | length);
  ref.inline_string = string;
  return ref;
}

// NULL is the empty string.
TRACE_INTERNAL_INLINE trace_string_ref_t trace_make_inline_c_string_ref(const char* string) {
  return string ? trace_make_inline_string_ref(string, strlen(string)) : trace_make_empty_string_ref();
}

TRACE_INTERNAL_INLINE trace_string_ref_t trace_make_indexed_string_ref(trace_string_index_t index) {
  trace_string_ref_t ref;
  ref.encoded_value = index;
  ref.inline_string = NULL;
  return ref;
}

TRACE_INTERNAL_INLINE bool trace_is_inline_thread_ref(const trace_thread_ref_t* thread_ref) {
  return thread_ref->encoded_value == TRACE_ENCODED_THREAD_REF_INLINE;
}

TRACE_INTERNAL_INLINE bool trace_is_unknown_thread_ref(const trace_thread_ref_t* thread_ref) {
  return trace_is_inline_thread_ref(thread_ref) && thread_ref->inline_process_koid == ZX_KOID_INVALID &&
         thread_ref->inline_thread_koid == ZX_KOID_INVALID;
}

TRACE_INTERNAL_INLINE bool trace_is_indexed_thread_ref(const trace_thread_ref_t* thread_ref) {
  return thread_ref->encoded_value >= TRACE_ENCODED_THREAD_REF_MIN_INDEX &&
         thread_ref->encoded_value <= TRACE_ENCODED_THREAD_REF_MAX_INDEX;
}

TRACE_INTERNAL_INLINE trace_thread_ref_t trace_make_inline_thread_ref(zx_koid_t process_koid, zx_koid_t thread_koid) {
  trace_thread_ref_t ref;
  ref.encoded_value = TRACE_ENCODED_THREAD_REF_INLINE;
  ref.inline_process_koid = process_koid;
  ref.inline_thread_koid = thread_koid;
  return ref;
}

TRACE_INTERNAL_INLINE trace_thread_ref_t trace_make_unknown_thread_ref(void) {
  return trace_make_inline_thread_ref(ZX_KOID_INVALID, ZX_KOID_INVALID);
}

TRACE_INTERNAL_INLINE trace_thread_ref_t trace_make_indexed_thread_ref(trace_thread_index_t index) {
  trace_thread_ref_t ref;
  ref.encoded_value = index;
  ref.inline_process_koid = ZX_KOID_INVALID;
  ref.inline_thread_koid = ZX_KOID_INVALID;
  return ref;
}

// Values are stored as whole words, of which the type uses the lower bytes, so that compilers can keep them
// in registers.
TRACE_INTERNAL_INLINE trace_arg_value_t trace_internal_make_arg_value(trace_arg_type_t type, uint64_t word,
                                                                      uintptr_t pointer) {
  trace_arg_value_t value;
  value.type = type;
  value.reserved_for_future_expansion[0] = (uintptr_t)word;
  value.reserved_for_future_expansion[1] = pointer;
  return value;
}

TRACE_INTERNAL_INLINE trace_arg_value_t trace_make_null_arg_value(void) {
  return trace_internal_make_arg_value(TRACE_ARG_NULL, 0, 0);
}

TRACE_INTERNAL_INLINE trace_arg_value_t trace_make_bool_arg_value(bool value) {
  return trace_internal_make_arg_value(TRACE_ARG_BOOL, value ? 1 : 0, 0);
}

TRACE_INTERNAL_INLINE trace_arg_value_t trace_make_int32_arg_value(int32_t value) {
  return trace_internal_make_arg_value(TRACE_ARG_INT32, (uint32_t)value, 0);
}

TRACE_INTERNAL_INLINE trace_arg_value_t trace_make_uint32_arg_value(uint32_t value) {
  return trace_internal_make_arg_value(TRACE_ARG_UINT32, value, 0);
}

TRACE_INTERNAL_INLINE trace_arg_value_t trace_make_int64_arg_value(int64_t value) {
  return trace_internal_make_arg_value(TRACE_ARG_INT64, (uint64_t)value, 0);
}

TRACE_INTERNAL_INLINE trace_arg_value_t trace_make_uint64_arg_value(uint64_t value) {
  return trace_internal_make_arg_value(TRACE_ARG_UINT64, value, 0);
}

TRACE_INTERNAL_INLINE trace_arg_value_t trace_make_double_arg_value(double value) {
  uint64_t word;
  memcpy(&word, &value, sizeof(word));
  return trace_internal_make_arg_value(TRACE_ARG_DOUBLE, word, 0);
}

TRACE_INTERNAL_INLINE trace_arg_value_t trace_make_string_arg_value(trace_string_ref_t value_ref) {
  return trace_internal_make_arg_value(TRACE_ARG_STRING, value_ref.encoded_value, (uintptr_t)value_ref.inline_string);
}

// The mark of a literal, which stands in the upper half of the first word, together with the address of the
// text: a text that is put in its place has no mark.
#define TRACE_INTERNAL_LITERAL ((uint32_t)0x4c495445)

// A string that is a constant of the program: a private recording has it, and no other strings.
TRACE_INTERNAL_INLINE trace_arg_value_t trace_make_string_literal_arg_value(trace_string_ref_t value_ref) {
  uint32_t mark = TRACE_INTERNAL_LITERAL ^ (uint32_t)(uintptr_t)value_ref.inline_string;
  return trace_internal_make_arg_value(TRACE_ARG_STRING, (uint64_t)mark << 32 | value_ref.encoded_value,
                                       (uintptr_t)value_ref.inline_string);
}

TRACE_INTERNAL_INLINE trace_arg_value_t trace_make_pointer_arg_value(uintptr_t value) {
  return trace_internal_make_arg_value(TRACE_ARG_POINTER, value, 0);
}

TRACE_INTERNAL_INLINE trace_arg_value_t trace_make_koid_arg_value(zx_koid_t value) {
  return trace_internal_make_arg_value(TRACE_ARG_KOID, value, 0);
}

TRACE_INTERNAL_INLINE trace_arg_t trace_make_arg(trace_string_ref_t name_ref, trace_arg_value_t value) {
  trace_arg_t arg;
  arg.name_ref = name_ref;
  arg.value = value;
  return arg;
}

__END_CDECLS

#ifdef __cplusplus

namespace trace {

// The numbers of the trace format.

enum class RecordType {
  kMetadata = 0,
  kInitialization = 1,
  kString = 2,
  kThread = 3,
  kEvent = 4,
  kBlob = 5,
  kKernelObject = 7,
  kScheduler = 8,
  // The older name of kScheduler.
  kContextSwitch = 8,
  kLog = 9,
  kProfiler = 10,
  kLargeRecord = 15,
};

enum class ProfilerRecordType {
  kModule = 0,
  kMmap = 1,
  kBacktrace = 2,
};

enum class LargeRecordType {
  kBlob = 0,
};

enum class MetadataType {
  kProviderInfo = 1,
  kProviderSection = 2,
  kProviderEvent = 3,
  kTraceInfo = 4,
};

enum class ProviderEventType {
  kBufferOverflow = 0,
};

enum class TraceInfoType {
  kMagicNumber = 0,
};

enum class ArgumentType {
  kNull = TRACE_ARG_NULL,
  kInt32 = TRACE_ARG_INT32,
  kUint32 = TRACE_ARG_UINT32,
  kInt64 = TRACE_ARG_INT64,
  kUint64 = TRACE_ARG_UINT64,
  kDouble = TRACE_ARG_DOUBLE,
  kString = TRACE_ARG_STRING,
  kPointer = TRACE_ARG_POINTER,
  kKoid = TRACE_ARG_KOID,
  kBool = TRACE_ARG_BOOL,
  kBlob = TRACE_ARG_BLOB,
};

enum class EventType {
  kInstant = 0,
  kCounter = 1,
  kDurationBegin = 2,
  kDurationEnd = 3,
  kDurationComplete = 4,
  kAsyncBegin = 5,
  kAsyncInstant = 6,
  kAsyncEnd = 7,
  kFlowBegin = 8,
  kFlowStep = 9,
  kFlowEnd = 10,
};

enum class SchedulerEventType {
  kLegacyContextSwitch = 0,
  kContextSwitch = 1,
  kThreadWakeup = 2,
};

enum class EventScope {
  kThread = TRACE_SCOPE_THREAD,
  kProcess = TRACE_SCOPE_PROCESS,
  kGlobal = TRACE_SCOPE_GLOBAL,
};

enum class ThreadState {
  kNew = ZX_THREAD_STATE_NEW,
  kRunning = ZX_THREAD_STATE_RUNNING,
  kSuspended = ZX_THREAD_STATE_SUSPENDED,
  kBlocked = ZX_THREAD_STATE_BLOCKED,
  kDying = ZX_THREAD_STATE_DYING,
  kDead = ZX_THREAD_STATE_DEAD,
};

using ProviderId = uint32_t;
using ArgumentHeader = uint64_t;
using RecordHeader = uint64_t;
using LargeRecordHeader = uint64_t;

constexpr uint32_t kMagicValue = 0x16547846;

}  // namespace trace

#endif  // __cplusplus

#endif  // LIB_TRACE_ENGINE_TYPES_H_
