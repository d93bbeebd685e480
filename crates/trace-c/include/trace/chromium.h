// Chromium's macros, those of its trace_event_common.h. docs/c.md#chromium lists what the macros without a
// counterpart in the format record.
//
// As in Chromium, categories, names and names of arguments are literals, except that names may be any texts
// in macros with COPY in their names. In C, pass each value with one of the TA_ macros (see
// lib/trace/event_args.h).
#ifndef TRACE_CHROMIUM_H_
#define TRACE_CHROMIUM_H_

#if defined(__GNUC__)
#pragma GCC system_header
#endif

#include <time.h>

#include <lib/trace/event.h>

// Phases, flags, scopes and types of values, by their numbers there.
#define TRACE_EVENT_PHASE_BEGIN ('B')
#define TRACE_EVENT_PHASE_END ('E')
#define TRACE_EVENT_PHASE_COMPLETE ('X')
#define TRACE_EVENT_PHASE_INSTANT ('I')
#define TRACE_EVENT_PHASE_ASYNC_BEGIN ('S')
#define TRACE_EVENT_PHASE_ASYNC_STEP_INTO ('T')
#define TRACE_EVENT_PHASE_ASYNC_STEP_PAST ('p')
#define TRACE_EVENT_PHASE_ASYNC_END ('F')
#define TRACE_EVENT_PHASE_NESTABLE_ASYNC_BEGIN ('b')
#define TRACE_EVENT_PHASE_NESTABLE_ASYNC_END ('e')
#define TRACE_EVENT_PHASE_NESTABLE_ASYNC_INSTANT ('n')
#define TRACE_EVENT_PHASE_FLOW_BEGIN ('s')
#define TRACE_EVENT_PHASE_FLOW_STEP ('t')
#define TRACE_EVENT_PHASE_FLOW_END ('f')
#define TRACE_EVENT_PHASE_METADATA ('M')
#define TRACE_EVENT_PHASE_COUNTER ('C')
#define TRACE_EVENT_PHASE_SAMPLE ('P')
#define TRACE_EVENT_PHASE_CREATE_OBJECT ('N')
#define TRACE_EVENT_PHASE_SNAPSHOT_OBJECT ('O')
#define TRACE_EVENT_PHASE_DELETE_OBJECT ('D')
#define TRACE_EVENT_PHASE_MEMORY_DUMP ('v')
#define TRACE_EVENT_PHASE_MARK ('R')
#define TRACE_EVENT_PHASE_CLOCK_SYNC ('c')
#define TRACE_EVENT_PHASE_ENTER_CONTEXT ('(')
#define TRACE_EVENT_PHASE_LEAVE_CONTEXT (')')
#define TRACE_EVENT_PHASE_LINK_IDS ('=')

#define TRACE_EVENT_FLAG_NONE (0u)
#define TRACE_EVENT_FLAG_COPY (1u << 0)
#define TRACE_EVENT_FLAG_HAS_ID (1u << 1)
#define TRACE_EVENT_FLAG_MANGLE_ID (1u << 2)
#define TRACE_EVENT_FLAG_SCOPE_OFFSET (1u << 3)
#define TRACE_EVENT_FLAG_SCOPE_EXTRA (1u << 4)
#define TRACE_EVENT_FLAG_EXPLICIT_TIMESTAMP (1u << 5)
#define TRACE_EVENT_FLAG_ASYNC_TTS (1u << 6)
#define TRACE_EVENT_FLAG_BIND_TO_ENCLOSING (1u << 7)
#define TRACE_EVENT_FLAG_FLOW_IN (1u << 8)
#define TRACE_EVENT_FLAG_FLOW_OUT (1u << 9)
#define TRACE_EVENT_FLAG_HAS_CONTEXT_ID (1u << 10)
#define TRACE_EVENT_FLAG_HAS_PROCESS_ID (1u << 11)
#define TRACE_EVENT_FLAG_HAS_LOCAL_ID (1u << 12)
#define TRACE_EVENT_FLAG_HAS_GLOBAL_ID (1u << 13)
#define TRACE_EVENT_FLAG_SCOPE_MASK (TRACE_EVENT_FLAG_SCOPE_OFFSET | TRACE_EVENT_FLAG_SCOPE_EXTRA)

#define TRACE_EVENT_SCOPE_GLOBAL (0u << 3)
#define TRACE_EVENT_SCOPE_PROCESS (1u << 3)
#define TRACE_EVENT_SCOPE_THREAD (2u << 3)
#define TRACE_EVENT_SCOPE_NAME_GLOBAL ('g')
#define TRACE_EVENT_SCOPE_NAME_PROCESS ('p')
#define TRACE_EVENT_SCOPE_NAME_THREAD ('t')

#define TRACE_VALUE_TYPE_BOOL (1)
#define TRACE_VALUE_TYPE_UINT (2)
#define TRACE_VALUE_TYPE_INT (3)
#define TRACE_VALUE_TYPE_DOUBLE (4)
#define TRACE_VALUE_TYPE_POINTER (5)
#define TRACE_VALUE_TYPE_STRING (6)
#define TRACE_VALUE_TYPE_COPY_STRING (7)
#define TRACE_VALUE_TYPE_CONVERTABLE (8)

#define TRACE_DISABLED_BY_DEFAULT(name) "disabled-by-default-" name
// Every string that is a value is copied.
#define TRACE_STR_COPY(string) (string)
// Ids are numbers or addresses. Equal ids of two processes are distinguished by the process.
#define TRACE_ID_LOCAL(id) (id)
#define TRACE_ID_GLOBAL(id) (id)
#define TRACE_ID_WITH_SCOPE(scope, id) (id)
// As a thread id: the calling thread.
#define TRACE_EVENT_API_CURRENT_THREAD_ID (0)

#define TRACE_EVENT_CATEGORY_GROUP_ENABLED(category_group, ret) (*(ret) = TRACE_CATEGORY_ENABLED(category_group))
#define TRACE_EVENT_WARMUP_CATEGORY(category_group) ((void)TRACE_CATEGORY_ENABLED(category_group))
// Stores whether a recording has begun since this place was last executed.
#define TRACE_EVENT_IS_NEW_TRACE(ret)                                                                 \
  do {                                                                                                \
    static uint32_t trace_internal_last__ = 0;                                                        \
    const uint32_t trace_internal_run__ = TRACE_ENABLED() ? trace_internal_run_number() : 0;          \
    *(ret) = trace_internal_run__ != 0 &&                                                             \
             __atomic_exchange_n(&trace_internal_last__, trace_internal_run__, __ATOMIC_RELAXED) !=   \
                 trace_internal_run__;                                                                \
  } while (0)

// Timestamps are microseconds of CLOCK_MONOTONIC. In C++ they may also be of a class with
// since_origin().InMicroseconds(), as Chromium's has.
#define TRACE_TIME_TICKS_NOW() (zx_clock_get_monotonic() / 1000)
// Microseconds of CLOCK_REALTIME since 1970.
#define TRACE_TIME_NOW() (trace_internal_real_micros())

__BEGIN_CDECLS

// As trace_internal_write_event, with strings that need not stay, on the thread of an id; 0 is the calling
// one.
void trace_internal_write_copied_event(const trace_internal_call_t* call, const trace_internal_event_t* event,
                                       zx_koid_t thread, const trace_arg_value_t* values, size_t num_values);
// A moment of CLOCK_MONOTONIC, in nanoseconds, as ticks.
uint64_t trace_internal_ticks_at(int64_t monotonic_ns);
// Differs for each recording; 0 while there is none.
uint32_t trace_internal_run_number(void);

TRACE_INTERNAL_INLINE int64_t trace_internal_real_micros(void) {
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

TRACE_INTERNAL_INLINE trace_scope_t trace_internal_scope_of(unsigned scope_and_flags) {
  switch (scope_and_flags & TRACE_EVENT_FLAG_SCOPE_MASK) {
    case TRACE_EVENT_SCOPE_GLOBAL:
      return TRACE_SCOPE_GLOBAL;
    case TRACE_EVENT_SCOPE_PROCESS:
      return TRACE_SCOPE_PROCESS;
    default:
      return TRACE_SCOPE_THREAD;
  }
}

__END_CDECLS

#ifdef __cplusplus
namespace trace {
namespace internal {
template <typename T>
TRACE_INTERNAL_INLINE uint64_t MakeId(T id) {
  if constexpr (std::is_pointer<T>::value) {
    return reinterpret_cast<uintptr_t>(id);
  } else {
    return static_cast<uint64_t>(id);
  }
}
template <typename T>
TRACE_INTERNAL_INLINE int64_t MakeMicros(const T& timestamp) {
  if constexpr (std::is_arithmetic<T>::value) {
    return static_cast<int64_t>(timestamp);
  } else {
    return timestamp.since_origin().InMicroseconds();
  }
}
#ifndef NTRACE
template <size_t n, typename V>
void WriteCopied(const char* category, const char* name, const Names<n>& names, const trace_internal_event_t& event,
                 zx_koid_t thread, const V& values) {
  const trace_internal_call_t call = trace_internal_make_call(nullptr, category, name, names.text, nullptr);
  trace_arg_value_t array[n + 1];
  values.Fill(array);
  trace_internal_write_copied_event(&call, &event, thread, array, n);
}
#endif
}  // namespace internal
}  // namespace trace
#define TRACE_INTERNAL_ID(id) (::trace::internal::MakeId(id))
#define TRACE_INTERNAL_MICROS(timestamp) (::trace::internal::MakeMicros(timestamp))
#define TRACE_INTERNAL_TEXT(text) static_cast<const char*>(text)
#define TRACE_INTERNAL_UINT64(number) static_cast<uint64_t>(number)
#define TRACE_INTERNAL_INT64(number) static_cast<int64_t>(number)
#else
#define TRACE_INTERNAL_ID(id) ((uint64_t)(uintptr_t)(id))
#define TRACE_INTERNAL_MICROS(timestamp) ((int64_t)(timestamp))
#define TRACE_INTERNAL_TEXT(text) TA_STRING(text)
#define TRACE_INTERNAL_UINT64(number) TA_UINT64(number)
#define TRACE_INTERNAL_INT64(number) TA_INT64(number)
#endif
#define TRACE_INTERNAL_TICKS(timestamp) trace_internal_ticks_at(TRACE_INTERNAL_MICROS(timestamp) * 1000)

// Events, as the macros below name them: without time.
#define TRACE_INTERNAL_AN_INSTANT(scope_and_flags) \
  trace_internal_make_instant(trace_internal_scope_of((unsigned)(scope_and_flags)))
#define TRACE_INTERNAL_A(type) trace_internal_make_event(TRACE_INTERNAL_##type)
#define TRACE_INTERNAL_AN_ID(type, id) trace_internal_make_event_with(TRACE_INTERNAL_##type, TRACE_INTERNAL_ID(id))

// TRACE_INTERNAL_ADD(event, category, name, args...): one event.
#define TRACE_INTERNAL_ADD(...) TRACE_INTERNAL_ADD_(TRACE_INTERNAL_PAIRS_BEHIND_3(__VA_ARGS__), __VA_ARGS__, ~)
// TRACE_INTERNAL_ADD_AT(event, timestamp, category, name, args...): one at a moment.
#define TRACE_INTERNAL_ADD_AT(...) TRACE_INTERNAL_ADD_AT_(TRACE_INTERNAL_PAIRS_BEHIND_4(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_ADD_AT_(n, event, timestamp, category, name, ...) \
  TRACE_INTERNAL_ADD_(n, trace_internal_make_event_at(event, TRACE_INTERNAL_TICKS(timestamp)), category, name, __VA_ARGS__)
// TRACE_INTERNAL_COPY(event, thread, category, name, args...): one whose strings need not stay.
#define TRACE_INTERNAL_COPY(...) TRACE_INTERNAL_COPY_(TRACE_INTERNAL_PAIRS_BEHIND_4(__VA_ARGS__), __VA_ARGS__, ~)
// TRACE_INTERNAL_COPY_AT(event, timestamp, thread, category, name, args...)
#define TRACE_INTERNAL_COPY_AT(...) TRACE_INTERNAL_COPY_AT_(TRACE_INTERNAL_PAIRS_BEHIND_5(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_COPY_AT_(n, event, timestamp, thread, category, name, ...)                                     \
  TRACE_INTERNAL_COPY_(n, trace_internal_make_event_at(event, TRACE_INTERNAL_TICKS(timestamp)), thread, category, name, \
                       __VA_ARGS__)
#ifdef NTRACE
#define TRACE_INTERNAL_ADD_(n, event, category, name, ...) \
  TRACE_INTERNAL_DEAD_EVENT(n, event.extra, category, name, __VA_ARGS__)
#define TRACE_INTERNAL_COPY_(n, event, thread, category, name, ...) \
  TRACE_INTERNAL_DEAD_EVENT(n, event.extra + (uint64_t)(thread), category, name, __VA_ARGS__)
#else
#define TRACE_INTERNAL_ADD_(n, event, category, name, ...) TRACE_INTERNAL_EVENT(n, event, category, name, __VA_ARGS__)
#define TRACE_INTERNAL_COPY_(n, event, thread, category, name, ...) \
  TRACE_INTERNAL_COPIED(n, event, thread, category, name, __VA_ARGS__)
#ifdef __cplusplus
// One expression, to the end of which names and values stay that were given, such as those of temporary
// objects.
#define TRACE_INTERNAL_COPIED(n, event, thread, category, name, ...)                                                  \
  do {                                                                                                                \
    if (TRACE_CATEGORY_ENABLED(category)) {                                                                           \
      ::trace::internal::WriteCopied((category), (name),                                                              \
                                     ::trace::internal::Names<n>{{TRACE_INTERNAL_NAMES_##n(__VA_ARGS__) ""}}, event,  \
                                     (zx_koid_t)(thread),                                                             \
                                     ::trace::internal::Hold(0 TRACE_INTERNAL_VALUES_##n(__VA_ARGS__)));              \
    }                                                                                                                 \
  } while (0)
#else
#define TRACE_INTERNAL_COPIED(n, event, thread, category, name, ...)                                                  \
  do {                                                                                                                \
    if (TRACE_CATEGORY_ENABLED(category)) {                                                                           \
      const char* const trace_internal_names__[] = {TRACE_INTERNAL_NAMES_##n(__VA_ARGS__) ""};                        \
      const trace_internal_call_t trace_internal_call__ =                                                             \
          trace_internal_make_call(NULL, (category), (name), trace_internal_names__, NULL);                           \
      const trace_internal_event_t trace_internal_event__ = event;                                                    \
      TRACE_INTERNAL_HOLD(trace_internal_values__, TRACE_INTERNAL_VALUES_##n(__VA_ARGS__));                           \
      TRACE_INTERNAL_FILL(n, trace_internal_array__, trace_internal_values__);                                        \
      trace_internal_write_copied_event(&trace_internal_call__, &trace_internal_event__, (zx_koid_t)(thread),         \
                                        trace_internal_array__, n);                                                   \
    }                                                                                                                 \
  } while (0)
#endif
#endif

// The rest of the enclosing block.
#define TRACE_EVENT0(category, name) TRACE_DURATION(category, name)
#define TRACE_EVENT1(category, name, name1, value1) TRACE_DURATION(category, name, name1, value1)
#define TRACE_EVENT2(category, name, name1, value1, name2, value2) \
  TRACE_DURATION(category, name, name1, value1, name2, value2)
// The same, and where a flow comes from or goes to.
#define TRACE_EVENT_WITH_FLOW0(category, name, bind_id, flow_flags) \
  TRACE_DURATION(category, name); \
  TRACE_INTERNAL_FLOW(category, name, bind_id, flow_flags)
#define TRACE_EVENT_WITH_FLOW1(category, name, bind_id, flow_flags, name1, value1) \
  TRACE_DURATION(category, name, name1, value1); \
  TRACE_INTERNAL_FLOW(category, name, bind_id, flow_flags)
#define TRACE_EVENT_WITH_FLOW2(category, name, bind_id, flow_flags, name1, value1, name2, value2) \
  TRACE_DURATION(category, name, name1, value1, name2, value2); \
  TRACE_INTERNAL_FLOW(category, name, bind_id, flow_flags)
#define TRACE_INTERNAL_FLOW(category, name, bind_id, flow_flags)                     \
  do {                                                                               \
    switch ((flow_flags) & (TRACE_EVENT_FLAG_FLOW_IN | TRACE_EVENT_FLAG_FLOW_OUT)) { \
      case TRACE_EVENT_FLAG_FLOW_OUT:                                                \
        TRACE_FLOW_BEGIN(category, name, TRACE_INTERNAL_ID(bind_id));                \
        break;                                                                       \
      case TRACE_EVENT_FLAG_FLOW_IN | TRACE_EVENT_FLAG_FLOW_OUT:                     \
        TRACE_FLOW_STEP(category, name, TRACE_INTERNAL_ID(bind_id));                 \
        break;                                                                       \
      case TRACE_EVENT_FLAG_FLOW_IN:                                                 \
        TRACE_FLOW_END(category, name, TRACE_INTERNAL_ID(bind_id));                  \
        break;                                                                       \
      default:                                                                       \
        break;                                                                       \
    }                                                                                \
  } while (0)
// A task, from where it was posted: for C++.
#define TRACE_TASK_EXECUTION(run_function, task)                                         \
  TRACE_DURATION("toplevel", run_function, "src_file", (task).posted_from.file_name(), \
                 "src_func", (task).posted_from.function_name())

#define TRACE_EVENT_INSTANT0(category, name, scope) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_INSTANT(scope), category, name)
#define TRACE_EVENT_INSTANT1(category, name, scope, name1, value1) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_INSTANT(scope), category, name, name1, value1)
#define TRACE_EVENT_INSTANT2(category, name, scope, name1, value1, name2, value2) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_INSTANT(scope), category, name, name1, value1, name2, value2)
#define TRACE_EVENT_INSTANT_WITH_FLAGS0(category, name, scope_and_flags) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_INSTANT(scope_and_flags), category, name)
#define TRACE_EVENT_INSTANT_WITH_FLAGS1(category, name, scope_and_flags, name1, value1) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_INSTANT(scope_and_flags), category, name, name1, value1)
#define TRACE_EVENT_COPY_INSTANT0(category, name, scope) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_AN_INSTANT(scope), 0, category, name)
#define TRACE_EVENT_COPY_INSTANT1(category, name, scope, name1, value1) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_AN_INSTANT(scope), 0, category, name, name1, value1)
#define TRACE_EVENT_COPY_INSTANT2(category, name, scope, name1, value1, name2, value2) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_AN_INSTANT(scope), 0, category, name, name1, value1, name2, value2)
#define TRACE_EVENT_INSTANT_WITH_TIMESTAMP0(category, name, scope, timestamp) \
  TRACE_INTERNAL_ADD_AT(TRACE_INTERNAL_AN_INSTANT(scope), timestamp, category, name)
#define TRACE_EVENT_INSTANT_WITH_TIMESTAMP1(category, name, scope, timestamp, name1, value1) \
  TRACE_INTERNAL_ADD_AT(TRACE_INTERNAL_AN_INSTANT(scope), timestamp, category, name, name1, value1)

#define TRACE_EVENT_BEGIN0(category, name) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_A(DURATION_BEGIN), category, name)
#define TRACE_EVENT_BEGIN1(category, name, name1, value1) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_A(DURATION_BEGIN), category, name, name1, value1)
#define TRACE_EVENT_BEGIN2(category, name, name1, value1, name2, value2) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_A(DURATION_BEGIN), category, name, name1, value1, name2, value2)
// Flags change nothing.
#define TRACE_EVENT_BEGIN_WITH_FLAGS0(category, name, flags) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_A(DURATION_BEGIN), category, name)
#define TRACE_EVENT_BEGIN_WITH_FLAGS1(category, name, flags, name1, value1) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_A(DURATION_BEGIN), category, name, name1, value1)
#define TRACE_EVENT_COPY_BEGIN0(category, name) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_A(DURATION_BEGIN), 0, category, name)
#define TRACE_EVENT_COPY_BEGIN1(category, name, name1, value1) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_A(DURATION_BEGIN), 0, category, name, name1, value1)
#define TRACE_EVENT_COPY_BEGIN2(category, name, name1, value1, name2, value2) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_A(DURATION_BEGIN), 0, category, name, name1, value1, name2, value2)
// Of an operation that may cross threads, on the thread of an id, which is what gettid() returns.
#define TRACE_EVENT_BEGIN_WITH_ID_TID_AND_TIMESTAMP0(category, name, id, thread_id, timestamp) \
  TRACE_INTERNAL_COPY_AT(TRACE_INTERNAL_AN_ID(ASYNC_BEGIN, id), timestamp, thread_id, category, name)
#define TRACE_EVENT_BEGIN_WITH_ID_TID_AND_TIMESTAMP1(category, name, id, thread_id, timestamp, name1, value1) \
  TRACE_INTERNAL_COPY_AT(TRACE_INTERNAL_AN_ID(ASYNC_BEGIN, id), timestamp, thread_id, category, name, name1, value1)
#define TRACE_EVENT_BEGIN_WITH_ID_TID_AND_TIMESTAMP2(category, name, id, thread_id, timestamp, name1, value1, name2, value2) \
  TRACE_INTERNAL_COPY_AT(TRACE_INTERNAL_AN_ID(ASYNC_BEGIN, id), timestamp, thread_id, category, name, name1, value1, name2, value2)
#define TRACE_EVENT_COPY_BEGIN_WITH_ID_TID_AND_TIMESTAMP0(category, name, id, thread_id, timestamp) \
  TRACE_INTERNAL_COPY_AT(TRACE_INTERNAL_AN_ID(ASYNC_BEGIN, id), timestamp, thread_id, category, name)
#define TRACE_EVENT_COPY_BEGIN_WITH_ID_TID_AND_TIMESTAMP1(category, name, id, thread_id, timestamp, name1, value1) \
  TRACE_INTERNAL_COPY_AT(TRACE_INTERNAL_AN_ID(ASYNC_BEGIN, id), timestamp, thread_id, category, name, name1, value1)
#define TRACE_EVENT_COPY_BEGIN_WITH_ID_TID_AND_TIMESTAMP2(category, name, id, thread_id, timestamp, name1, value1, name2, value2) \
  TRACE_INTERNAL_COPY_AT(TRACE_INTERNAL_AN_ID(ASYNC_BEGIN, id), timestamp, thread_id, category, name, name1, value1, name2, value2)

#define TRACE_EVENT_END0(category, name) TRACE_INTERNAL_ADD(TRACE_INTERNAL_A(DURATION_END), category, name)
#define TRACE_EVENT_END1(category, name, name1, value1) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_A(DURATION_END), category, name, name1, value1)
#define TRACE_EVENT_END2(category, name, name1, value1, name2, value2) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_A(DURATION_END), category, name, name1, value1, name2, value2)
#define TRACE_EVENT_END_WITH_FLAGS0(category, name, flags) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_A(DURATION_END), category, name)
#define TRACE_EVENT_END_WITH_FLAGS1(category, name, flags, name1, value1) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_A(DURATION_END), category, name, name1, value1)
#define TRACE_EVENT_COPY_END0(category, name) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_A(DURATION_END), 0, category, name)
#define TRACE_EVENT_COPY_END1(category, name, name1, value1) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_A(DURATION_END), 0, category, name, name1, value1)
#define TRACE_EVENT_COPY_END2(category, name, name1, value1, name2, value2) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_A(DURATION_END), 0, category, name, name1, value1, name2, value2)
#define TRACE_EVENT_END_WITH_ID_TID_AND_TIMESTAMP0(category, name, id, thread_id, timestamp) \
  TRACE_INTERNAL_COPY_AT(TRACE_INTERNAL_AN_ID(ASYNC_END, id), timestamp, thread_id, category, name)
#define TRACE_EVENT_END_WITH_ID_TID_AND_TIMESTAMP1(category, name, id, thread_id, timestamp, name1, value1) \
  TRACE_INTERNAL_COPY_AT(TRACE_INTERNAL_AN_ID(ASYNC_END, id), timestamp, thread_id, category, name, name1, value1)
#define TRACE_EVENT_END_WITH_ID_TID_AND_TIMESTAMP2(category, name, id, thread_id, timestamp, name1, value1, name2, value2) \
  TRACE_INTERNAL_COPY_AT(TRACE_INTERNAL_AN_ID(ASYNC_END, id), timestamp, thread_id, category, name, name1, value1, name2, value2)
#define TRACE_EVENT_COPY_END_WITH_ID_TID_AND_TIMESTAMP0(category, name, id, thread_id, timestamp) \
  TRACE_INTERNAL_COPY_AT(TRACE_INTERNAL_AN_ID(ASYNC_END, id), timestamp, thread_id, category, name)
#define TRACE_EVENT_COPY_END_WITH_ID_TID_AND_TIMESTAMP1(category, name, id, thread_id, timestamp, name1, value1) \
  TRACE_INTERNAL_COPY_AT(TRACE_INTERNAL_AN_ID(ASYNC_END, id), timestamp, thread_id, category, name, name1, value1)
#define TRACE_EVENT_COPY_END_WITH_ID_TID_AND_TIMESTAMP2(category, name, id, thread_id, timestamp, name1, value1, name2, value2) \
  TRACE_INTERNAL_COPY_AT(TRACE_INTERNAL_AN_ID(ASYNC_END, id), timestamp, thread_id, category, name, name1, value1, name2, value2)

// A mark is an instant of its thread.
#define TRACE_EVENT_MARK_WITH_TIMESTAMP0(category, name, timestamp) \
  TRACE_INTERNAL_ADD_AT(TRACE_INTERNAL_AN_INSTANT(TRACE_EVENT_SCOPE_THREAD), timestamp, category, name)
#define TRACE_EVENT_MARK_WITH_TIMESTAMP1(category, name, timestamp, name1, value1) \
  TRACE_INTERNAL_ADD_AT(TRACE_INTERNAL_AN_INSTANT(TRACE_EVENT_SCOPE_THREAD), timestamp, category, name, name1, value1)
#define TRACE_EVENT_MARK_WITH_TIMESTAMP2(category, name, timestamp, name1, value1, name2, value2) \
  TRACE_INTERNAL_ADD_AT(TRACE_INTERNAL_AN_INSTANT(TRACE_EVENT_SCOPE_THREAD), timestamp, category, name, name1, value1, name2, value2)
#define TRACE_EVENT_COPY_MARK(category, name) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_AN_INSTANT(TRACE_EVENT_SCOPE_THREAD), 0, category, name)
#define TRACE_EVENT_COPY_MARK1(category, name, name1, value1) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_AN_INSTANT(TRACE_EVENT_SCOPE_THREAD), 0, category, name, name1, value1)
#define TRACE_EVENT_COPY_MARK_WITH_TIMESTAMP(category, name, timestamp) \
  TRACE_INTERNAL_COPY_AT(TRACE_INTERNAL_AN_INSTANT(TRACE_EVENT_SCOPE_THREAD), timestamp, 0, category, name)
// So is a sample.
#define TRACE_EVENT_SAMPLE_WITH_TID_AND_TIMESTAMP0(category, name, thread_id, timestamp) \
  TRACE_INTERNAL_COPY_AT(TRACE_INTERNAL_AN_INSTANT(TRACE_EVENT_SCOPE_THREAD), timestamp, thread_id, category, name)
#define TRACE_EVENT_SAMPLE_WITH_TID_AND_TIMESTAMP1(category, name, thread_id, timestamp, name1, value1) \
  TRACE_INTERNAL_COPY_AT(TRACE_INTERNAL_AN_INSTANT(TRACE_EVENT_SCOPE_THREAD), timestamp, thread_id, category, name, name1, value1)
#define TRACE_EVENT_SAMPLE_WITH_TID_AND_TIMESTAMP2(category, name, thread_id, timestamp, name1, value1, name2, value2) \
  TRACE_INTERNAL_COPY_AT(TRACE_INTERNAL_AN_INSTANT(TRACE_EVENT_SCOPE_THREAD), timestamp, thread_id, category, name, name1, value1, name2, value2)
// Its id is an argument.
#define TRACE_EVENT_SAMPLE_WITH_ID1(category, name, id, name1, value1) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_INSTANT(TRACE_EVENT_SCOPE_THREAD), category, name, "id", TRACE_INTERNAL_UINT64(TRACE_INTERNAL_ID(id)), name1, value1)

#define TRACE_COUNTER1(category, name, value) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(COUNTER, 0), category, name, "value", value)
#define TRACE_COUNTER2(category, name, name1, value1, name2, value2) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(COUNTER, 0), category, name, name1, value1, name2, value2)
#define TRACE_COUNTER_WITH_FLAG1(category, name, flag, value) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(COUNTER, 0), category, name, "value", value)
#define TRACE_COPY_COUNTER1(category, name, value) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_AN_ID(COUNTER, 0), 0, category, name, "value", value)
#define TRACE_COPY_COUNTER2(category, name, name1, value1, name2, value2) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_AN_ID(COUNTER, 0), 0, category, name, name1, value1, name2, value2)
#define TRACE_COUNTER_WITH_TIMESTAMP1(category, name, timestamp, value) \
  TRACE_INTERNAL_ADD_AT(TRACE_INTERNAL_AN_ID(COUNTER, 0), timestamp, category, name, "value", value)
#define TRACE_COUNTER_WITH_TIMESTAMP2(category, name, timestamp, name1, value1, name2, value2) \
  TRACE_INTERNAL_ADD_AT(TRACE_INTERNAL_AN_ID(COUNTER, 0), timestamp, category, name, name1, value1, name2, value2)
#define TRACE_COUNTER_ID1(category, name, id, value) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(COUNTER, id), category, name, "value", value)
#define TRACE_COUNTER_ID2(category, name, id, name1, value1, name2, value2) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(COUNTER, id), category, name, name1, value1, name2, value2)
#define TRACE_COPY_COUNTER_ID1(category, name, id, value) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_AN_ID(COUNTER, id), 0, category, name, "value", value)
#define TRACE_COPY_COUNTER_ID2(category, name, id, name1, value1, name2, value2) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_AN_ID(COUNTER, id), 0, category, name, name1, value1, name2, value2)

#define TRACE_EVENT_ASYNC_BEGIN0(category, name, id) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(ASYNC_BEGIN, id), category, name)
#define TRACE_EVENT_ASYNC_BEGIN1(category, name, id, name1, value1) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(ASYNC_BEGIN, id), category, name, name1, value1)
#define TRACE_EVENT_ASYNC_BEGIN2(category, name, id, name1, value1, name2, value2) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(ASYNC_BEGIN, id), category, name, name1, value1, name2, value2)
#define TRACE_EVENT_ASYNC_BEGIN_WITH_TIMESTAMP0(category, name, id, timestamp) \
  TRACE_INTERNAL_ADD_AT(TRACE_INTERNAL_AN_ID(ASYNC_BEGIN, id), timestamp, category, name)
#define TRACE_EVENT_ASYNC_BEGIN_WITH_TIMESTAMP1(category, name, id, timestamp, name1, value1) \
  TRACE_INTERNAL_ADD_AT(TRACE_INTERNAL_AN_ID(ASYNC_BEGIN, id), timestamp, category, name, name1, value1)
#define TRACE_EVENT_ASYNC_BEGIN_WITH_TIMESTAMP2(category, name, id, timestamp, name1, value1, name2, value2) \
  TRACE_INTERNAL_ADD_AT(TRACE_INTERNAL_AN_ID(ASYNC_BEGIN, id), timestamp, category, name, name1, value1, name2, value2)
#define TRACE_EVENT_COPY_ASYNC_BEGIN0(category, name, id) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_AN_ID(ASYNC_BEGIN, id), 0, category, name)
#define TRACE_EVENT_COPY_ASYNC_BEGIN1(category, name, id, name1, value1) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_AN_ID(ASYNC_BEGIN, id), 0, category, name, name1, value1)
#define TRACE_EVENT_COPY_ASYNC_BEGIN2(category, name, id, name1, value1, name2, value2) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_AN_ID(ASYNC_BEGIN, id), 0, category, name, name1, value1, name2, value2)
#define TRACE_EVENT_COPY_ASYNC_BEGIN_WITH_TIMESTAMP0(category, name, id, timestamp) \
  TRACE_INTERNAL_COPY_AT(TRACE_INTERNAL_AN_ID(ASYNC_BEGIN, id), timestamp, 0, category, name)

#define TRACE_EVENT_ASYNC_END0(category, name, id) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(ASYNC_END, id), category, name)
#define TRACE_EVENT_ASYNC_END1(category, name, id, name1, value1) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(ASYNC_END, id), category, name, name1, value1)
#define TRACE_EVENT_ASYNC_END2(category, name, id, name1, value1, name2, value2) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(ASYNC_END, id), category, name, name1, value1, name2, value2)
#define TRACE_EVENT_ASYNC_END_WITH_TIMESTAMP0(category, name, id, timestamp) \
  TRACE_INTERNAL_ADD_AT(TRACE_INTERNAL_AN_ID(ASYNC_END, id), timestamp, category, name)
#define TRACE_EVENT_ASYNC_END_WITH_TIMESTAMP1(category, name, id, timestamp, name1, value1) \
  TRACE_INTERNAL_ADD_AT(TRACE_INTERNAL_AN_ID(ASYNC_END, id), timestamp, category, name, name1, value1)
#define TRACE_EVENT_ASYNC_END_WITH_TIMESTAMP2(category, name, id, timestamp, name1, value1, name2, value2) \
  TRACE_INTERNAL_ADD_AT(TRACE_INTERNAL_AN_ID(ASYNC_END, id), timestamp, category, name, name1, value1, name2, value2)
#define TRACE_EVENT_COPY_ASYNC_END0(category, name, id) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_AN_ID(ASYNC_END, id), 0, category, name)
#define TRACE_EVENT_COPY_ASYNC_END1(category, name, id, name1, value1) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_AN_ID(ASYNC_END, id), 0, category, name, name1, value1)
#define TRACE_EVENT_COPY_ASYNC_END2(category, name, id, name1, value1, name2, value2) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_AN_ID(ASYNC_END, id), 0, category, name, name1, value1, name2, value2)
#define TRACE_EVENT_COPY_ASYNC_END_WITH_TIMESTAMP0(category, name, id, timestamp) \
  TRACE_INTERNAL_COPY_AT(TRACE_INTERNAL_AN_ID(ASYNC_END, id), timestamp, 0, category, name)

// A step is a moment of the operation, with its name as an argument.
#define TRACE_EVENT_ASYNC_STEP_INTO0(category, name, id, step) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(ASYNC_INSTANT, id), category, name, "step", TRACE_INTERNAL_TEXT(step))
#define TRACE_EVENT_ASYNC_STEP_INTO1(category, name, id, step, name1, value1) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(ASYNC_INSTANT, id), category, name, "step", TRACE_INTERNAL_TEXT(step), name1, value1)
#define TRACE_EVENT_ASYNC_STEP_PAST0(category, name, id, step) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(ASYNC_INSTANT, id), category, name, "step", TRACE_INTERNAL_TEXT(step))
#define TRACE_EVENT_ASYNC_STEP_PAST1(category, name, id, step, name1, value1) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(ASYNC_INSTANT, id), category, name, "step", TRACE_INTERNAL_TEXT(step), name1, value1)
#define TRACE_EVENT_ASYNC_STEP_INTO_WITH_TIMESTAMP0(category, name, id, step, timestamp) \
  TRACE_INTERNAL_ADD_AT(TRACE_INTERNAL_AN_ID(ASYNC_INSTANT, id), timestamp, category, name, "step", TRACE_INTERNAL_TEXT(step))

#define TRACE_EVENT_NESTABLE_ASYNC_BEGIN0(category, name, id) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(ASYNC_BEGIN, id), category, name)
#define TRACE_EVENT_NESTABLE_ASYNC_BEGIN1(category, name, id, name1, value1) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(ASYNC_BEGIN, id), category, name, name1, value1)
#define TRACE_EVENT_NESTABLE_ASYNC_BEGIN2(category, name, id, name1, value1, name2, value2) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(ASYNC_BEGIN, id), category, name, name1, value1, name2, value2)
#define TRACE_EVENT_NESTABLE_ASYNC_BEGIN_WITH_TIMESTAMP0(category, name, id, timestamp) \
  TRACE_INTERNAL_ADD_AT(TRACE_INTERNAL_AN_ID(ASYNC_BEGIN, id), timestamp, category, name)
#define TRACE_EVENT_NESTABLE_ASYNC_BEGIN_WITH_TIMESTAMP1(category, name, id, timestamp, name1, value1) \
  TRACE_INTERNAL_ADD_AT(TRACE_INTERNAL_AN_ID(ASYNC_BEGIN, id), timestamp, category, name, name1, value1)
#define TRACE_EVENT_NESTABLE_ASYNC_BEGIN_WITH_TIMESTAMP2(category, name, id, timestamp, name1, value1, name2, value2) \
  TRACE_INTERNAL_ADD_AT(TRACE_INTERNAL_AN_ID(ASYNC_BEGIN, id), timestamp, category, name, name1, value1, name2, value2)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_BEGIN0(category, name, id) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_AN_ID(ASYNC_BEGIN, id), 0, category, name)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_BEGIN1(category, name, id, name1, value1) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_AN_ID(ASYNC_BEGIN, id), 0, category, name, name1, value1)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_BEGIN2(category, name, id, name1, value1, name2, value2) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_AN_ID(ASYNC_BEGIN, id), 0, category, name, name1, value1, name2, value2)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_BEGIN_WITH_TIMESTAMP0(category, name, id, timestamp) \
  TRACE_INTERNAL_COPY_AT(TRACE_INTERNAL_AN_ID(ASYNC_BEGIN, id), timestamp, 0, category, name)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_BEGIN_WITH_TIMESTAMP1(category, name, id, timestamp, name1, value1) \
  TRACE_INTERNAL_COPY_AT(TRACE_INTERNAL_AN_ID(ASYNC_BEGIN, id), timestamp, 0, category, name, name1, value1)
#define TRACE_EVENT_NESTABLE_ASYNC_BEGIN_WITH_FLAGS0(category, name, id, flags) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(ASYNC_BEGIN, id), category, name)
#define TRACE_EVENT_NESTABLE_ASYNC_BEGIN_WITH_TIMESTAMP_AND_FLAGS0(category, name, id, timestamp, flags) \
  TRACE_INTERNAL_ADD_AT(TRACE_INTERNAL_AN_ID(ASYNC_BEGIN, id), timestamp, category, name)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_BEGIN_WITH_TTS2(category, name, id, name1, value1, name2, value2) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_AN_ID(ASYNC_BEGIN, id), 0, category, name, name1, value1, name2, value2)

#define TRACE_EVENT_NESTABLE_ASYNC_INSTANT0(category, name, id) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(ASYNC_INSTANT, id), category, name)
#define TRACE_EVENT_NESTABLE_ASYNC_INSTANT1(category, name, id, name1, value1) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(ASYNC_INSTANT, id), category, name, name1, value1)
#define TRACE_EVENT_NESTABLE_ASYNC_INSTANT2(category, name, id, name1, value1, name2, value2) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(ASYNC_INSTANT, id), category, name, name1, value1, name2, value2)
#define TRACE_EVENT_NESTABLE_ASYNC_INSTANT_WITH_TIMESTAMP0(category, name, id, timestamp) \
  TRACE_INTERNAL_ADD_AT(TRACE_INTERNAL_AN_ID(ASYNC_INSTANT, id), timestamp, category, name)
#define TRACE_EVENT_NESTABLE_ASYNC_INSTANT_WITH_TIMESTAMP1(category, name, id, timestamp, name1, value1) \
  TRACE_INTERNAL_ADD_AT(TRACE_INTERNAL_AN_ID(ASYNC_INSTANT, id), timestamp, category, name, name1, value1)
#define TRACE_EVENT_NESTABLE_ASYNC_INSTANT_WITH_TIMESTAMP2(category, name, id, timestamp, name1, value1, name2, value2) \
  TRACE_INTERNAL_ADD_AT(TRACE_INTERNAL_AN_ID(ASYNC_INSTANT, id), timestamp, category, name, name1, value1, name2, value2)

#define TRACE_EVENT_NESTABLE_ASYNC_END0(category, name, id) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(ASYNC_END, id), category, name)
#define TRACE_EVENT_NESTABLE_ASYNC_END1(category, name, id, name1, value1) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(ASYNC_END, id), category, name, name1, value1)
#define TRACE_EVENT_NESTABLE_ASYNC_END2(category, name, id, name1, value1, name2, value2) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(ASYNC_END, id), category, name, name1, value1, name2, value2)
#define TRACE_EVENT_NESTABLE_ASYNC_END_WITH_TIMESTAMP0(category, name, id, timestamp) \
  TRACE_INTERNAL_ADD_AT(TRACE_INTERNAL_AN_ID(ASYNC_END, id), timestamp, category, name)
#define TRACE_EVENT_NESTABLE_ASYNC_END_WITH_TIMESTAMP1(category, name, id, timestamp, name1, value1) \
  TRACE_INTERNAL_ADD_AT(TRACE_INTERNAL_AN_ID(ASYNC_END, id), timestamp, category, name, name1, value1)
#define TRACE_EVENT_NESTABLE_ASYNC_END_WITH_TIMESTAMP2(category, name, id, timestamp, name1, value1, name2, value2) \
  TRACE_INTERNAL_ADD_AT(TRACE_INTERNAL_AN_ID(ASYNC_END, id), timestamp, category, name, name1, value1, name2, value2)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_END0(category, name, id) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_AN_ID(ASYNC_END, id), 0, category, name)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_END1(category, name, id, name1, value1) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_AN_ID(ASYNC_END, id), 0, category, name, name1, value1)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_END2(category, name, id, name1, value1, name2, value2) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_AN_ID(ASYNC_END, id), 0, category, name, name1, value1, name2, value2)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_END_WITH_TIMESTAMP0(category, name, id, timestamp) \
  TRACE_INTERNAL_COPY_AT(TRACE_INTERNAL_AN_ID(ASYNC_END, id), timestamp, 0, category, name)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_END_WITH_TIMESTAMP1(category, name, id, timestamp, name1, value1) \
  TRACE_INTERNAL_COPY_AT(TRACE_INTERNAL_AN_ID(ASYNC_END, id), timestamp, 0, category, name, name1, value1)
#define TRACE_EVENT_NESTABLE_ASYNC_END_WITH_FLAGS0(category, name, id, flags) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(ASYNC_END, id), category, name)
#define TRACE_EVENT_NESTABLE_ASYNC_END_WITH_TIMESTAMP_AND_FLAGS0(category, name, id, timestamp, flags) \
  TRACE_INTERNAL_ADD_AT(TRACE_INTERNAL_AN_ID(ASYNC_END, id), timestamp, category, name)
#define TRACE_EVENT_COPY_NESTABLE_ASYNC_END_WITH_TTS2(category, name, id, name1, value1, name2, value2) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_AN_ID(ASYNC_END, id), 0, category, name, name1, value1, name2, value2)

#define TRACE_EVENT_FLOW_BEGIN0(category, name, id) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(FLOW_BEGIN, id), category, name)
#define TRACE_EVENT_FLOW_BEGIN1(category, name, id, name1, value1) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(FLOW_BEGIN, id), category, name, name1, value1)
#define TRACE_EVENT_FLOW_BEGIN2(category, name, id, name1, value1, name2, value2) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(FLOW_BEGIN, id), category, name, name1, value1, name2, value2)
#define TRACE_EVENT_COPY_FLOW_BEGIN0(category, name, id) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_AN_ID(FLOW_BEGIN, id), 0, category, name)
#define TRACE_EVENT_COPY_FLOW_BEGIN1(category, name, id, name1, value1) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_AN_ID(FLOW_BEGIN, id), 0, category, name, name1, value1)
#define TRACE_EVENT_COPY_FLOW_BEGIN2(category, name, id, name1, value1, name2, value2) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_AN_ID(FLOW_BEGIN, id), 0, category, name, name1, value1, name2, value2)

#define TRACE_EVENT_FLOW_END0(category, name, id) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(FLOW_END, id), category, name)
#define TRACE_EVENT_FLOW_END1(category, name, id, name1, value1) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(FLOW_END, id), category, name, name1, value1)
#define TRACE_EVENT_FLOW_END2(category, name, id, name1, value1, name2, value2) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(FLOW_END, id), category, name, name1, value1, name2, value2)
#define TRACE_EVENT_FLOW_END_BIND_TO_ENCLOSING0(category, name, id) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(FLOW_END, id), category, name)
#define TRACE_EVENT_COPY_FLOW_END0(category, name, id) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_AN_ID(FLOW_END, id), 0, category, name)
#define TRACE_EVENT_COPY_FLOW_END1(category, name, id, name1, value1) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_AN_ID(FLOW_END, id), 0, category, name, name1, value1)
#define TRACE_EVENT_COPY_FLOW_END2(category, name, id, name1, value1, name2, value2) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_AN_ID(FLOW_END, id), 0, category, name, name1, value1, name2, value2)
#define TRACE_EVENT_FLOW_STEP0(category, name, id, step) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(FLOW_STEP, id), category, name, "step", TRACE_INTERNAL_TEXT(step))
#define TRACE_EVENT_FLOW_STEP1(category, name, id, step, name1, value1) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(FLOW_STEP, id), category, name, "step", TRACE_INTERNAL_TEXT(step), name1, value1)
#define TRACE_EVENT_COPY_FLOW_STEP0(category, name, id, step) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_AN_ID(FLOW_STEP, id), 0, category, name, "step", TRACE_INTERNAL_TEXT(step))
#define TRACE_EVENT_COPY_FLOW_STEP1(category, name, id, step, name1, value1) \
  TRACE_INTERNAL_COPY(TRACE_INTERNAL_AN_ID(FLOW_STEP, id), 0, category, name, "step", TRACE_INTERNAL_TEXT(step), name1, value1)

// The life of an object is an operation, and a snapshot is a moment of it.
#define TRACE_EVENT_OBJECT_CREATED_WITH_ID(category, name, id) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(ASYNC_BEGIN, id), category, name)
#define TRACE_EVENT_OBJECT_SNAPSHOT_WITH_ID(category, name, id, snapshot) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(ASYNC_INSTANT, id), category, name, "snapshot", snapshot)
#define TRACE_EVENT_OBJECT_SNAPSHOT_WITH_ID_AND_TIMESTAMP(category, name, id, timestamp, snapshot) \
  TRACE_INTERNAL_ADD_AT(TRACE_INTERNAL_AN_ID(ASYNC_INSTANT, id), timestamp, category, name, "snapshot", snapshot)
#define TRACE_EVENT_OBJECT_DELETED_WITH_ID(category, name, id) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_ID(ASYNC_END, id), category, name)

// A context is a duration of the thread, with the id as an argument.
#define TRACE_EVENT_ENTER_CONTEXT(category, name, context) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_A(DURATION_BEGIN), category, name, "context", TRACE_INTERNAL_UINT64(TRACE_INTERNAL_ID(context)))
#define TRACE_EVENT_LEAVE_CONTEXT(category, name, context) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_A(DURATION_END), category, name, "context", TRACE_INTERNAL_UINT64(TRACE_INTERNAL_ID(context)))
#define TRACE_EVENT_SCOPED_CONTEXT(category, name, context) \
  TRACE_DURATION(category, name, "context", TRACE_INTERNAL_UINT64(TRACE_INTERNAL_ID(context)))

// What is no event of the timeline is an instant.
#define TRACE_EVENT_METADATA1(category, name, name1, value1) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_INSTANT(TRACE_EVENT_SCOPE_PROCESS), category, name, name1, value1)
#define TRACE_LINK_IDS(category, name, id, linked_id) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_INSTANT(TRACE_EVENT_SCOPE_THREAD), category, name, "id", TRACE_INTERNAL_UINT64(TRACE_INTERNAL_ID(id)), "linked_id", TRACE_INTERNAL_UINT64(TRACE_INTERNAL_ID(linked_id)))
#define TRACE_EVENT_CLOCK_SYNC_RECEIVER(sync_id) \
  TRACE_INTERNAL_ADD(TRACE_INTERNAL_AN_INSTANT(TRACE_EVENT_SCOPE_GLOBAL), "__metadata", "clock_sync", "sync_id", sync_id)
// At the moment `issue_end_ts`.
#define TRACE_EVENT_CLOCK_SYNC_ISSUER(sync_id, issue_ts, issue_end_ts) \
  TRACE_INTERNAL_ADD_AT(TRACE_INTERNAL_AN_INSTANT(TRACE_EVENT_SCOPE_GLOBAL), issue_end_ts, "__metadata", "clock_sync", \
                        "sync_id", sync_id, "issue_ts", TRACE_INTERNAL_INT64(TRACE_INTERNAL_MICROS(issue_ts)))

#endif  // TRACE_CHROMIUM_H_
