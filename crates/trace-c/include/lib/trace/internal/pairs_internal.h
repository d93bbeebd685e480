// Lists of pairs of argument names and values, for the preprocessor.
//
// All macros take the whole list of arguments that the user wrote, or one with a `~` behind it, so that no
// list is ever empty: that is the same in every mode of every compiler.
#ifndef LIB_TRACE_INTERNAL_PAIRS_INTERNAL_H_
#define LIB_TRACE_INTERNAL_PAIRS_INTERNAL_H_

#if defined(__GNUC__)
#pragma GCC system_header
#endif

#define TRACE_INTERNAL_CAT(a, b) TRACE_INTERNAL_CAT_(a, b)
#define TRACE_INTERNAL_CAT_(a, b) a##b

// How many pairs stand behind 1 to 6 other arguments. What is no list of at most 15 pairs becomes a name that
// nothing has, and which says what is wrong; up to 31 pairs.
#define TRACE_INTERNAL_TOO_MANY_4 \
  an_event_has_at_most_15_arguments, an_event_has_at_most_15_arguments, an_event_has_at_most_15_arguments, \
  an_event_has_at_most_15_arguments
#define TRACE_INTERNAL_TOO_MANY_16 \
  TRACE_INTERNAL_TOO_MANY_4, TRACE_INTERNAL_TOO_MANY_4, TRACE_INTERNAL_TOO_MANY_4, TRACE_INTERNAL_TOO_MANY_4
#define TRACE_INTERNAL_PAIRS_BEHIND_1(...) TRACE_INTERNAL_PAIRS_BEHIND_2(~, __VA_ARGS__)
#define TRACE_INTERNAL_PAIRS_BEHIND_2(...) \
  TRACE_INTERNAL_PICK_OF(__VA_ARGS__, TRACE_INTERNAL_TOO_MANY_16, TRACE_INTERNAL_TOO_MANY_16, 15, \
  arguments_come_in_pairs, 14, arguments_come_in_pairs, 13, \
  arguments_come_in_pairs, 12, arguments_come_in_pairs, 11, arguments_come_in_pairs, 10, arguments_come_in_pairs, \
  9, arguments_come_in_pairs, 8, arguments_come_in_pairs, 7, arguments_come_in_pairs, 6, arguments_come_in_pairs, \
  5, arguments_come_in_pairs, 4, arguments_come_in_pairs, 3, arguments_come_in_pairs, 2, arguments_come_in_pairs, \
  1, arguments_come_in_pairs, 0, missing_arguments, ~)
#define TRACE_INTERNAL_PAIRS_BEHIND_3(first, ...) TRACE_INTERNAL_PAIRS_BEHIND_2(__VA_ARGS__)
#define TRACE_INTERNAL_PAIRS_BEHIND_4(first, ...) TRACE_INTERNAL_PAIRS_BEHIND_3(__VA_ARGS__)
#define TRACE_INTERNAL_PAIRS_BEHIND_5(first, ...) TRACE_INTERNAL_PAIRS_BEHIND_4(__VA_ARGS__)
#define TRACE_INTERNAL_PAIRS_BEHIND_6(first, ...) TRACE_INTERNAL_PAIRS_BEHIND_5(__VA_ARGS__)
// So that names of lists are replaced first.
#define TRACE_INTERNAL_PICK_OF(...) TRACE_INTERNAL_PICK(__VA_ARGS__)
#define TRACE_INTERNAL_PICK(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, \
  a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, \
  a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50, a51, a52, a53, a54, a55, a56, a57, a58, a59, \
  a60, a61, a62, a63, a64, n, ...) n

// The names, each with a comma behind it.
#define TRACE_INTERNAL_NAMES_0(...)
#define TRACE_INTERNAL_NAMES_1(name, value, ...) (name), TRACE_INTERNAL_NAMES_0(__VA_ARGS__)
#define TRACE_INTERNAL_NAMES_2(name, value, ...) (name), TRACE_INTERNAL_NAMES_1(__VA_ARGS__)
#define TRACE_INTERNAL_NAMES_3(name, value, ...) (name), TRACE_INTERNAL_NAMES_2(__VA_ARGS__)
#define TRACE_INTERNAL_NAMES_4(name, value, ...) (name), TRACE_INTERNAL_NAMES_3(__VA_ARGS__)
#define TRACE_INTERNAL_NAMES_5(name, value, ...) (name), TRACE_INTERNAL_NAMES_4(__VA_ARGS__)
#define TRACE_INTERNAL_NAMES_6(name, value, ...) (name), TRACE_INTERNAL_NAMES_5(__VA_ARGS__)
#define TRACE_INTERNAL_NAMES_7(name, value, ...) (name), TRACE_INTERNAL_NAMES_6(__VA_ARGS__)
#define TRACE_INTERNAL_NAMES_8(name, value, ...) (name), TRACE_INTERNAL_NAMES_7(__VA_ARGS__)
#define TRACE_INTERNAL_NAMES_9(name, value, ...) (name), TRACE_INTERNAL_NAMES_8(__VA_ARGS__)
#define TRACE_INTERNAL_NAMES_10(name, value, ...) (name), TRACE_INTERNAL_NAMES_9(__VA_ARGS__)
#define TRACE_INTERNAL_NAMES_11(name, value, ...) (name), TRACE_INTERNAL_NAMES_10(__VA_ARGS__)
#define TRACE_INTERNAL_NAMES_12(name, value, ...) (name), TRACE_INTERNAL_NAMES_11(__VA_ARGS__)
#define TRACE_INTERNAL_NAMES_13(name, value, ...) (name), TRACE_INTERNAL_NAMES_12(__VA_ARGS__)
#define TRACE_INTERNAL_NAMES_14(name, value, ...) (name), TRACE_INTERNAL_NAMES_13(__VA_ARGS__)
#define TRACE_INTERNAL_NAMES_15(name, value, ...) (name), TRACE_INTERNAL_NAMES_14(__VA_ARGS__)

// In C a value is a trace_arg_value_t. Another type has to be an error: in an initializer a number would
// become the first member of the structure, and the values behind it the next ones.
#ifdef __cplusplus
#define TRACE_INTERNAL_VALUE(value) (value)
#else
#define TRACE_INTERNAL_VALUE(value) (1 ? (value) : *(const volatile trace_arg_value_t*)NULL)
#endif

// The values, each with a comma in front of it.
#define TRACE_INTERNAL_VALUES_0(...)
#define TRACE_INTERNAL_VALUES_1(name, value, ...) , TRACE_INTERNAL_VALUE(value) TRACE_INTERNAL_VALUES_0(__VA_ARGS__)
#define TRACE_INTERNAL_VALUES_2(name, value, ...) , TRACE_INTERNAL_VALUE(value) TRACE_INTERNAL_VALUES_1(__VA_ARGS__)
#define TRACE_INTERNAL_VALUES_3(name, value, ...) , TRACE_INTERNAL_VALUE(value) TRACE_INTERNAL_VALUES_2(__VA_ARGS__)
#define TRACE_INTERNAL_VALUES_4(name, value, ...) , TRACE_INTERNAL_VALUE(value) TRACE_INTERNAL_VALUES_3(__VA_ARGS__)
#define TRACE_INTERNAL_VALUES_5(name, value, ...) , TRACE_INTERNAL_VALUE(value) TRACE_INTERNAL_VALUES_4(__VA_ARGS__)
#define TRACE_INTERNAL_VALUES_6(name, value, ...) , TRACE_INTERNAL_VALUE(value) TRACE_INTERNAL_VALUES_5(__VA_ARGS__)
#define TRACE_INTERNAL_VALUES_7(name, value, ...) , TRACE_INTERNAL_VALUE(value) TRACE_INTERNAL_VALUES_6(__VA_ARGS__)
#define TRACE_INTERNAL_VALUES_8(name, value, ...) , TRACE_INTERNAL_VALUE(value) TRACE_INTERNAL_VALUES_7(__VA_ARGS__)
#define TRACE_INTERNAL_VALUES_9(name, value, ...) , TRACE_INTERNAL_VALUE(value) TRACE_INTERNAL_VALUES_8(__VA_ARGS__)
#define TRACE_INTERNAL_VALUES_10(name, value, ...) , TRACE_INTERNAL_VALUE(value) TRACE_INTERNAL_VALUES_9(__VA_ARGS__)
#define TRACE_INTERNAL_VALUES_11(name, value, ...) , TRACE_INTERNAL_VALUE(value) TRACE_INTERNAL_VALUES_10(__VA_ARGS__)
#define TRACE_INTERNAL_VALUES_12(name, value, ...) , TRACE_INTERNAL_VALUE(value) TRACE_INTERNAL_VALUES_11(__VA_ARGS__)
#define TRACE_INTERNAL_VALUES_13(name, value, ...) , TRACE_INTERNAL_VALUE(value) TRACE_INTERNAL_VALUES_12(__VA_ARGS__)
#define TRACE_INTERNAL_VALUES_14(name, value, ...) , TRACE_INTERNAL_VALUE(value) TRACE_INTERNAL_VALUES_13(__VA_ARGS__)
#define TRACE_INTERNAL_VALUES_15(name, value, ...) , TRACE_INTERNAL_VALUE(value) TRACE_INTERNAL_VALUES_14(__VA_ARGS__)

// Whether all names are constants of the program.
#define TRACE_INTERNAL_CONSTANT_NAMES_0(...) 1
#define TRACE_INTERNAL_CONSTANT_NAMES_1(name, value, ...) \
  (__builtin_constant_p(name) && TRACE_INTERNAL_CONSTANT_NAMES_0(__VA_ARGS__))
#define TRACE_INTERNAL_CONSTANT_NAMES_2(name, value, ...) \
  (__builtin_constant_p(name) && TRACE_INTERNAL_CONSTANT_NAMES_1(__VA_ARGS__))
#define TRACE_INTERNAL_CONSTANT_NAMES_3(name, value, ...) \
  (__builtin_constant_p(name) && TRACE_INTERNAL_CONSTANT_NAMES_2(__VA_ARGS__))
#define TRACE_INTERNAL_CONSTANT_NAMES_4(name, value, ...) \
  (__builtin_constant_p(name) && TRACE_INTERNAL_CONSTANT_NAMES_3(__VA_ARGS__))
#define TRACE_INTERNAL_CONSTANT_NAMES_5(name, value, ...) \
  (__builtin_constant_p(name) && TRACE_INTERNAL_CONSTANT_NAMES_4(__VA_ARGS__))
#define TRACE_INTERNAL_CONSTANT_NAMES_6(name, value, ...) \
  (__builtin_constant_p(name) && TRACE_INTERNAL_CONSTANT_NAMES_5(__VA_ARGS__))
#define TRACE_INTERNAL_CONSTANT_NAMES_7(name, value, ...) \
  (__builtin_constant_p(name) && TRACE_INTERNAL_CONSTANT_NAMES_6(__VA_ARGS__))
#define TRACE_INTERNAL_CONSTANT_NAMES_8(name, value, ...) \
  (__builtin_constant_p(name) && TRACE_INTERNAL_CONSTANT_NAMES_7(__VA_ARGS__))
#define TRACE_INTERNAL_CONSTANT_NAMES_9(name, value, ...) \
  (__builtin_constant_p(name) && TRACE_INTERNAL_CONSTANT_NAMES_8(__VA_ARGS__))
#define TRACE_INTERNAL_CONSTANT_NAMES_10(name, value, ...) \
  (__builtin_constant_p(name) && TRACE_INTERNAL_CONSTANT_NAMES_9(__VA_ARGS__))
#define TRACE_INTERNAL_CONSTANT_NAMES_11(name, value, ...) \
  (__builtin_constant_p(name) && TRACE_INTERNAL_CONSTANT_NAMES_10(__VA_ARGS__))
#define TRACE_INTERNAL_CONSTANT_NAMES_12(name, value, ...) \
  (__builtin_constant_p(name) && TRACE_INTERNAL_CONSTANT_NAMES_11(__VA_ARGS__))
#define TRACE_INTERNAL_CONSTANT_NAMES_13(name, value, ...) \
  (__builtin_constant_p(name) && TRACE_INTERNAL_CONSTANT_NAMES_12(__VA_ARGS__))
#define TRACE_INTERNAL_CONSTANT_NAMES_14(name, value, ...) \
  (__builtin_constant_p(name) && TRACE_INTERNAL_CONSTANT_NAMES_13(__VA_ARGS__))
#define TRACE_INTERNAL_CONSTANT_NAMES_15(name, value, ...) \
  (__builtin_constant_p(name) && TRACE_INTERNAL_CONSTANT_NAMES_14(__VA_ARGS__))

// Whether names that are no literals are those that the site has listed.
#define TRACE_INTERNAL_SAME_NAMES_0(storage, ...) 1
#define TRACE_INTERNAL_SAME_NAMES_1(storage, name, value, ...) \
  TRACE_INTERNAL_IS_SAME((storage)->bytes, name, name) && TRACE_INTERNAL_SAME_NAMES_0((storage) + 1, __VA_ARGS__)
#define TRACE_INTERNAL_SAME_NAMES_2(storage, name, value, ...) \
  TRACE_INTERNAL_IS_SAME((storage)->bytes, name, name) && TRACE_INTERNAL_SAME_NAMES_1((storage) + 1, __VA_ARGS__)
#define TRACE_INTERNAL_SAME_NAMES_3(storage, name, value, ...) \
  TRACE_INTERNAL_IS_SAME((storage)->bytes, name, name) && TRACE_INTERNAL_SAME_NAMES_2((storage) + 1, __VA_ARGS__)
#define TRACE_INTERNAL_SAME_NAMES_4(storage, name, value, ...) \
  TRACE_INTERNAL_IS_SAME((storage)->bytes, name, name) && TRACE_INTERNAL_SAME_NAMES_3((storage) + 1, __VA_ARGS__)
#define TRACE_INTERNAL_SAME_NAMES_5(storage, name, value, ...) \
  TRACE_INTERNAL_IS_SAME((storage)->bytes, name, name) && TRACE_INTERNAL_SAME_NAMES_4((storage) + 1, __VA_ARGS__)
#define TRACE_INTERNAL_SAME_NAMES_6(storage, name, value, ...) \
  TRACE_INTERNAL_IS_SAME((storage)->bytes, name, name) && TRACE_INTERNAL_SAME_NAMES_5((storage) + 1, __VA_ARGS__)
#define TRACE_INTERNAL_SAME_NAMES_7(storage, name, value, ...) \
  TRACE_INTERNAL_IS_SAME((storage)->bytes, name, name) && TRACE_INTERNAL_SAME_NAMES_6((storage) + 1, __VA_ARGS__)
#define TRACE_INTERNAL_SAME_NAMES_8(storage, name, value, ...) \
  TRACE_INTERNAL_IS_SAME((storage)->bytes, name, name) && TRACE_INTERNAL_SAME_NAMES_7((storage) + 1, __VA_ARGS__)
#define TRACE_INTERNAL_SAME_NAMES_9(storage, name, value, ...) \
  TRACE_INTERNAL_IS_SAME((storage)->bytes, name, name) && TRACE_INTERNAL_SAME_NAMES_8((storage) + 1, __VA_ARGS__)
#define TRACE_INTERNAL_SAME_NAMES_10(storage, name, value, ...) \
  TRACE_INTERNAL_IS_SAME((storage)->bytes, name, name) && TRACE_INTERNAL_SAME_NAMES_9((storage) + 1, __VA_ARGS__)
#define TRACE_INTERNAL_SAME_NAMES_11(storage, name, value, ...) \
  TRACE_INTERNAL_IS_SAME((storage)->bytes, name, name) && TRACE_INTERNAL_SAME_NAMES_10((storage) + 1, __VA_ARGS__)
#define TRACE_INTERNAL_SAME_NAMES_12(storage, name, value, ...) \
  TRACE_INTERNAL_IS_SAME((storage)->bytes, name, name) && TRACE_INTERNAL_SAME_NAMES_11((storage) + 1, __VA_ARGS__)
#define TRACE_INTERNAL_SAME_NAMES_13(storage, name, value, ...) \
  TRACE_INTERNAL_IS_SAME((storage)->bytes, name, name) && TRACE_INTERNAL_SAME_NAMES_12((storage) + 1, __VA_ARGS__)
#define TRACE_INTERNAL_SAME_NAMES_14(storage, name, value, ...) \
  TRACE_INTERNAL_IS_SAME((storage)->bytes, name, name) && TRACE_INTERNAL_SAME_NAMES_13((storage) + 1, __VA_ARGS__)
#define TRACE_INTERNAL_SAME_NAMES_15(storage, name, value, ...) \
  TRACE_INTERNAL_IS_SAME((storage)->bytes, name, name) && TRACE_INTERNAL_SAME_NAMES_14((storage) + 1, __VA_ARGS__)

#define TRACE_INTERNAL_IS_SAME(known, text, value) \
  (__builtin_constant_p(text) || trace_internal_is_same_text(known, value))

#endif  // LIB_TRACE_INTERNAL_PAIRS_INTERNAL_H_
