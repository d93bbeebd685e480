// Arguments of events, by the names that <lib/trace/event_args.h> has for itself in Fuchsia.
#ifndef LIB_TRACE_INTERNAL_EVENT_ARGS_H_
#define LIB_TRACE_INTERNAL_EVENT_ARGS_H_

#if defined(__GNUC__)
#pragma GCC system_header
#endif

#include <assert.h>

#include <lib/trace/event_args.h>

// How many arguments an array has.
#define TRACE_INTERNAL_NUM_ARGS(variable_name) (sizeof(variable_name) / sizeof((variable_name)[0]))
// How many pairs of name and value a list has, of which it has at least one.
#define TRACE_INTERNAL_COUNT_PAIRS(...) (TRACE_INTERNAL_PAIRS_BEHIND_1(~, __VA_ARGS__))
#define TRACE_INTERNAL_COUNT_ARGS(...) TRACE_INTERNAL_COUNT_PAIRS(__VA_ARGS__)

// Declares an array for a list of arguments; TRACE_INTERNAL_INIT_ARGS fills it.
#define TRACE_INTERNAL_ALLOCATE_ARGS(variable_name, ...)             \
  trace_arg_t variable_name[TRACE_INTERNAL_COUNT_ARGS(__VA_ARGS__)]; \
  static_assert(TRACE_INTERNAL_NUM_ARGS(variable_name) <= TRACE_MAX_ARGS, "too many arguments")
#define TRACE_INTERNAL_INIT_ARGS(...) \
  TRACE_INTERNAL_INIT_LIST(TRACE_INTERNAL_PAIRS_BEHIND_1(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_INIT_LIST(n, variable_name, ...) TRACE_INTERNAL_FILL_LIST(n, variable_name, __VA_ARGS__)
// Both at once.
#define TRACE_INTERNAL_DECLARE_ARGS(...) TRACE_DECLARE_ARGS(__VA_ARGS__)
#define TRACE_INTERNAL_COMPLETE_ARGS(context, args, num_args) TRACE_COMPLETE_ARGS(context, args, num_args)

#ifdef __cplusplus

namespace trace {
namespace internal {

template <typename T>
struct is_bool : std::is_same<typename std::remove_cv<T>::type, bool> {};

// What a value becomes in a trace. Strings have to stay where they are.
template <typename T>
trace_arg_value_t MakeArgumentValue(const T& value) {
  return MakeValue(value);
}

}  // namespace internal
}  // namespace trace

#endif  // __cplusplus

#endif  // LIB_TRACE_INTERNAL_EVENT_ARGS_H_
