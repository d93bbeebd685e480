// Arguments of events.
//
// In C, pass each value with one of the TA_ macros. In C++, numbers, strings and pointers need none; TA_KOID
// and TA_CHAR_ARRAY are for values whose type is not sufficient.
#ifndef LIB_TRACE_EVENT_ARGS_H_
#define LIB_TRACE_EVENT_ARGS_H_

#if defined(__GNUC__)
#pragma GCC system_header
#endif

#include <lib/trace-engine/context.h>
#include <lib/trace/internal/pairs_internal.h>
#ifdef __cplusplus
#include <lib/trace/internal/values.h>
#endif

#define TA_NULL() (trace_make_null_arg_value())
#define TA_BOOL(bool_value) (trace_make_bool_arg_value(bool_value))
#define TA_INT32(int32_value) (trace_make_int32_arg_value(int32_value))
#define TA_UINT32(uint32_value) (trace_make_uint32_arg_value(uint32_value))
#define TA_INT64(int64_value) (trace_make_int64_arg_value(int64_value))
#define TA_UINT64(uint64_value) (trace_make_uint64_arg_value(uint64_value))
#define TA_DOUBLE(double_value) (trace_make_double_arg_value(double_value))
#define TA_CHAR_ARRAY(string_value, length) \
  (trace_make_string_arg_value(trace_make_inline_string_ref(string_value, length)))
#define TA_STRING(string_value) (trace_make_string_arg_value(trace_make_inline_c_string_ref(string_value)))
// A constant of the program, which private recordings have, too. It need not stay valid.
#define TA_STRING_LITERAL(string_literal_value) \
  (trace_make_string_literal_arg_value(trace_make_inline_c_string_ref(string_literal_value)))
#define TA_POINTER(pointer_value) (trace_make_pointer_arg_value((uintptr_t)pointer_value))
#define TA_KOID(koid_value) (trace_make_koid_arg_value(koid_value))

// For authors of further macros. Declares an array of arguments, whose names are not registered yet. The
// values must live as long as the array.
#define TRACE_DECLARE_ARGS(...) \
  TRACE_INTERNAL_DECLARE_LIST(TRACE_INTERNAL_PAIRS_BEHIND_2(__VA_ARGS__), __VA_ARGS__, ~)
#define TRACE_INTERNAL_DECLARE_LIST(n, context, variable_name, ...)                          \
  enum { TRACE_INTERNAL_CAT(variable_name, _trace_internal_count) = n };                     \
  trace_arg_t variable_name[TRACE_INTERNAL_CAT(variable_name, _trace_internal_count) == 0 ? 1 : \
                            TRACE_INTERNAL_CAT(variable_name, _trace_internal_count)];       \
  (void)(context);                                                                           \
  TRACE_INTERNAL_FILL_LIST(n, variable_name, __VA_ARGS__)
// Declares what is in the array, which lives as long.
#define TRACE_INTERNAL_FILL_LIST(n, variable_name, ...) TRACE_INTERNAL_FILL_LIST_(n, variable_name, __VA_ARGS__)
#define TRACE_INTERNAL_FILL_LIST_(n, variable_name, ...)                                                     \
  TRACE_INTERNAL_DECLARE_VALUES(TRACE_INTERNAL_CAT(variable_name, _trace_internal_values),                   \
                                TRACE_INTERNAL_VALUES_##n(__VA_ARGS__));                                     \
  const char* const TRACE_INTERNAL_CAT(variable_name, _trace_internal_names)[] = {                           \
      TRACE_INTERNAL_NAMES_##n(__VA_ARGS__) ""};                                                             \
  trace_internal_declare_args(variable_name, TRACE_INTERNAL_CAT(variable_name, _trace_internal_names),       \
                              TRACE_INTERNAL_CAT(variable_name, _trace_internal_values) TRACE_INTERNAL_BEHIND_FIRST, n)

// The number of arguments in an array that TRACE_DECLARE_ARGS has declared.
#define TRACE_NUM_ARGS(variable_name) ((size_t)TRACE_INTERNAL_CAT(variable_name, _trace_internal_count))

// Registers the names of an array of arguments, so that it can be passed to the functions of context.h.
#define TRACE_COMPLETE_ARGS(context, arg_array, num_args) \
  trace_internal_complete_args((context), (arg_array), (num_args))

#ifdef __cplusplus
#define TRACE_INTERNAL_DECLARE_VALUES(variable, ...) const auto variable = ::trace::internal::Hold(0 __VA_ARGS__)
#define TRACE_INTERNAL_BEHIND_FIRST
#else
#define TRACE_INTERNAL_DECLARE_VALUES(variable, ...) \
  const trace_arg_value_t variable[] = {{TRACE_ARG_NULL, {0}} __VA_ARGS__}
#define TRACE_INTERNAL_BEHIND_FIRST +1
#endif

__BEGIN_CDECLS

void trace_internal_complete_args(trace_context_t* context, trace_arg_t* args, size_t num_args);

__END_CDECLS

TRACE_INTERNAL_INLINE void trace_internal_declare_args(trace_arg_t* args, const char* const* names,
                                                       const trace_arg_value_t* values, size_t num_args) {
  size_t i;
  for (i = 0; i < num_args; ++i) {
    args[i].name_ref.encoded_value = 0;
    args[i].name_ref.inline_string = names[i];
    args[i].value = values[i];
  }
}

#ifdef __cplusplus
template <typename V>
TRACE_INTERNAL_INLINE void trace_internal_declare_args(trace_arg_t* args, const char* const* names, const V& held, size_t) {
  trace_arg_value_t values[V::count + 1];
  held.Fill(values);
  // As a pointer: an array would be taken for another list of values.
  const trace_arg_value_t* const first = values;
  trace_internal_declare_args(args, names, first, V::count);
}
#endif

#endif  // LIB_TRACE_EVENT_ARGS_H_
