// For C++: which classes are strings: those with data() and length().
#ifndef LIB_TRACE_INTERNAL_STRING_TRAITS_H_
#define LIB_TRACE_INTERNAL_STRING_TRAITS_H_

#if defined(__GNUC__)
#pragma GCC system_header
#endif

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace trace {
namespace internal {

template <typename T, typename = void>
constexpr bool is_string = false;
template <typename T>
constexpr bool is_string<T, std::void_t<decltype(std::declval<const T&>().data()),
                                        decltype(std::declval<const T&>().length())>> =
    std::is_convertible<decltype(std::declval<const T&>().data()), const char*>::value &&
    std::is_convertible<decltype(std::declval<const T&>().length()), size_t>::value;

}  // namespace internal
}  // namespace trace

#endif  // LIB_TRACE_INTERNAL_STRING_TRAITS_H_
