// The names of Chromium's macros, so that code with them is recorded here.
//
// Categories, names and names of arguments are literals, as there. In C each value is given with one of the
// TA_ macros (see lib/trace/event_args.h).
#ifndef TRACE_CHROMIUM_H_
#define TRACE_CHROMIUM_H_

#if defined(__GNUC__)
#pragma GCC system_header
#endif

#include <lib/trace/event.h>

#define TRACE_EVENT_SCOPE_THREAD TRACE_SCOPE_THREAD
#define TRACE_EVENT_SCOPE_PROCESS TRACE_SCOPE_PROCESS
#define TRACE_EVENT_SCOPE_GLOBAL TRACE_SCOPE_GLOBAL

#define TRACE_EVENT_FLAG_NONE (0u)
#define TRACE_EVENT_FLAG_FLOW_IN (1u << 8)
#define TRACE_EVENT_FLAG_FLOW_OUT (1u << 9)

#define TRACE_DISABLED_BY_DEFAULT(name) "disabled-by-default-" name
// Every string is copied.
#define TRACE_STR_COPY(string) (string)
// Ids are numbers or addresses; what tells those of processes apart is the process.
#define TRACE_ID_LOCAL(id) (id)
#define TRACE_ID_GLOBAL(id) (id)
#define TRACE_ID_WITH_SCOPE(scope, id) (id)

#define TRACE_EVENT_CATEGORY_GROUP_ENABLED(category_group, out) (*(out) = TRACE_CATEGORY_ENABLED(category_group))

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
}  // namespace internal
}  // namespace trace
#define TRACE_INTERNAL_ID(id) (::trace::internal::MakeId(id))
#else
#define TRACE_INTERNAL_ID(id) ((uint64_t)(uintptr_t)(id))
#endif

// The rest of the enclosing block.
#define TRACE_EVENT0(category, name) TRACE_DURATION(category, name)
#define TRACE_EVENT1(category, name, name1, value1) TRACE_DURATION(category, name, name1, value1)
#define TRACE_EVENT2(category, name, name1, value1, name2, value2) \
  TRACE_DURATION(category, name, name1, value1, name2, value2)

// The same, and where a flow comes from or goes to.
#define TRACE_EVENT_WITH_FLOW0(category, name, bind_id, flow_flags) \
  TRACE_DURATION(category, name);                                   \
  TRACE_INTERNAL_FLOW(category, name, bind_id, flow_flags)
#define TRACE_EVENT_WITH_FLOW1(category, name, bind_id, flow_flags, name1, value1) \
  TRACE_DURATION(category, name, name1, value1);                                   \
  TRACE_INTERNAL_FLOW(category, name, bind_id, flow_flags)
#define TRACE_EVENT_WITH_FLOW2(category, name, bind_id, flow_flags, name1, value1, name2, value2) \
  TRACE_DURATION(category, name, name1, value1, name2, value2);                                   \
  TRACE_INTERNAL_FLOW(category, name, bind_id, flow_flags)
#define TRACE_INTERNAL_FLOW(category, name, bind_id, flow_flags)                                          \
  do {                                                                                                    \
    switch ((flow_flags) & (TRACE_EVENT_FLAG_FLOW_IN | TRACE_EVENT_FLAG_FLOW_OUT)) {                      \
      case TRACE_EVENT_FLAG_FLOW_OUT:                                                                     \
        TRACE_FLOW_BEGIN(category, name, TRACE_INTERNAL_ID(bind_id));                                     \
        break;                                                                                            \
      case TRACE_EVENT_FLAG_FLOW_IN | TRACE_EVENT_FLAG_FLOW_OUT:                                          \
        TRACE_FLOW_STEP(category, name, TRACE_INTERNAL_ID(bind_id));                                      \
        break;                                                                                            \
      case TRACE_EVENT_FLAG_FLOW_IN:                                                                      \
        TRACE_FLOW_END(category, name, TRACE_INTERNAL_ID(bind_id));                                       \
        break;                                                                                            \
      default:                                                                                            \
        break;                                                                                            \
    }                                                                                                     \
  } while (0)

#define TRACE_EVENT_BEGIN0(category, name) TRACE_DURATION_BEGIN(category, name)
#define TRACE_EVENT_BEGIN1(category, name, name1, value1) TRACE_DURATION_BEGIN(category, name, name1, value1)
#define TRACE_EVENT_BEGIN2(category, name, name1, value1, name2, value2) \
  TRACE_DURATION_BEGIN(category, name, name1, value1, name2, value2)
#define TRACE_EVENT_END0(category, name) TRACE_DURATION_END(category, name)
#define TRACE_EVENT_END1(category, name, name1, value1) TRACE_DURATION_END(category, name, name1, value1)
#define TRACE_EVENT_END2(category, name, name1, value1, name2, value2) \
  TRACE_DURATION_END(category, name, name1, value1, name2, value2)

#define TRACE_EVENT_INSTANT0(category, name, scope) TRACE_INSTANT(category, name, scope)
#define TRACE_EVENT_INSTANT1(category, name, scope, name1, value1) TRACE_INSTANT(category, name, scope, name1, value1)
#define TRACE_EVENT_INSTANT2(category, name, scope, name1, value1, name2, value2) \
  TRACE_INSTANT(category, name, scope, name1, value1, name2, value2)

#define TRACE_COUNTER1(category, name, value) TRACE_COUNTER(category, name, 0, "value", value)
#define TRACE_COUNTER2(category, name, name1, value1, name2, value2) \
  TRACE_COUNTER(category, name, 0, name1, value1, name2, value2)
#define TRACE_COUNTER_ID1(category, name, id, value) TRACE_COUNTER(category, name, TRACE_INTERNAL_ID(id), "value", value)
#define TRACE_COUNTER_ID2(category, name, id, name1, value1, name2, value2) \
  TRACE_COUNTER(category, name, TRACE_INTERNAL_ID(id), name1, value1, name2, value2)

#define TRACE_EVENT_ASYNC_BEGIN0(category, name, id) TRACE_ASYNC_BEGIN(category, name, TRACE_INTERNAL_ID(id))
#define TRACE_EVENT_ASYNC_BEGIN1(category, name, id, name1, value1) \
  TRACE_ASYNC_BEGIN(category, name, TRACE_INTERNAL_ID(id), name1, value1)
#define TRACE_EVENT_ASYNC_BEGIN2(category, name, id, name1, value1, name2, value2) \
  TRACE_ASYNC_BEGIN(category, name, TRACE_INTERNAL_ID(id), name1, value1, name2, value2)
// A step is a moment of the operation, with its name as an argument.
#define TRACE_EVENT_ASYNC_STEP_INTO0(category, name, id, step) \
  TRACE_ASYNC_INSTANT(category, name, TRACE_INTERNAL_ID(id), "step", TRACE_INTERNAL_STEP(step))
#define TRACE_EVENT_ASYNC_STEP_INTO1(category, name, id, step, name1, value1) \
  TRACE_ASYNC_INSTANT(category, name, TRACE_INTERNAL_ID(id), "step", TRACE_INTERNAL_STEP(step), name1, value1)
#define TRACE_EVENT_ASYNC_STEP_PAST0(category, name, id, step) TRACE_EVENT_ASYNC_STEP_INTO0(category, name, id, step)
#define TRACE_EVENT_ASYNC_STEP_PAST1(category, name, id, step, name1, value1) \
  TRACE_EVENT_ASYNC_STEP_INTO1(category, name, id, step, name1, value1)
#define TRACE_EVENT_ASYNC_END0(category, name, id) TRACE_ASYNC_END(category, name, TRACE_INTERNAL_ID(id))
#define TRACE_EVENT_ASYNC_END1(category, name, id, name1, value1) \
  TRACE_ASYNC_END(category, name, TRACE_INTERNAL_ID(id), name1, value1)
#define TRACE_EVENT_ASYNC_END2(category, name, id, name1, value1, name2, value2) \
  TRACE_ASYNC_END(category, name, TRACE_INTERNAL_ID(id), name1, value1, name2, value2)
#ifdef __cplusplus
#define TRACE_INTERNAL_STEP(step) static_cast<const char*>(step)
#else
#define TRACE_INTERNAL_STEP(step) TA_STRING(step)
#endif

#define TRACE_EVENT_NESTABLE_ASYNC_BEGIN0(category, name, id) TRACE_EVENT_ASYNC_BEGIN0(category, name, id)
#define TRACE_EVENT_NESTABLE_ASYNC_BEGIN1(category, name, id, name1, value1) \
  TRACE_EVENT_ASYNC_BEGIN1(category, name, id, name1, value1)
#define TRACE_EVENT_NESTABLE_ASYNC_BEGIN2(category, name, id, name1, value1, name2, value2) \
  TRACE_EVENT_ASYNC_BEGIN2(category, name, id, name1, value1, name2, value2)
#define TRACE_EVENT_NESTABLE_ASYNC_INSTANT0(category, name, id) TRACE_ASYNC_INSTANT(category, name, TRACE_INTERNAL_ID(id))
#define TRACE_EVENT_NESTABLE_ASYNC_INSTANT1(category, name, id, name1, value1) \
  TRACE_ASYNC_INSTANT(category, name, TRACE_INTERNAL_ID(id), name1, value1)
#define TRACE_EVENT_NESTABLE_ASYNC_INSTANT2(category, name, id, name1, value1, name2, value2) \
  TRACE_ASYNC_INSTANT(category, name, TRACE_INTERNAL_ID(id), name1, value1, name2, value2)
#define TRACE_EVENT_NESTABLE_ASYNC_END0(category, name, id) TRACE_EVENT_ASYNC_END0(category, name, id)
#define TRACE_EVENT_NESTABLE_ASYNC_END1(category, name, id, name1, value1) \
  TRACE_EVENT_ASYNC_END1(category, name, id, name1, value1)
#define TRACE_EVENT_NESTABLE_ASYNC_END2(category, name, id, name1, value1, name2, value2) \
  TRACE_EVENT_ASYNC_END2(category, name, id, name1, value1, name2, value2)

#define TRACE_EVENT_FLOW_BEGIN0(category, name, id) TRACE_FLOW_BEGIN(category, name, TRACE_INTERNAL_ID(id))
#define TRACE_EVENT_FLOW_BEGIN1(category, name, id, name1, value1) \
  TRACE_FLOW_BEGIN(category, name, TRACE_INTERNAL_ID(id), name1, value1)
#define TRACE_EVENT_FLOW_STEP0(category, name, id, step) \
  TRACE_FLOW_STEP(category, name, TRACE_INTERNAL_ID(id), "step", TRACE_INTERNAL_STEP(step))
#define TRACE_EVENT_FLOW_END0(category, name, id) TRACE_FLOW_END(category, name, TRACE_INTERNAL_ID(id))
#define TRACE_EVENT_FLOW_END1(category, name, id, name1, value1) \
  TRACE_FLOW_END(category, name, TRACE_INTERNAL_ID(id), name1, value1)

#endif  // TRACE_CHROMIUM_H_
