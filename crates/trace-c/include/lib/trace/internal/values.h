// For C++: what a value of any type becomes in a trace, and lists of them. For C see arity.h.
#ifndef LIB_TRACE_INTERNAL_VALUES_H_
#define LIB_TRACE_INTERNAL_VALUES_H_

#if defined(__GNUC__)
#pragma GCC system_header
#endif

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include <lib/trace/internal/string_traits.h>
#include <lib/trace/internal/write.h>

namespace trace {
namespace internal {

template <typename T>
constexpr bool is_never = false;

// A character array: its last element is left out if it is NUL.
template <typename T>
struct CharArray : std::false_type {};
template <size_t n>
struct CharArray<char[n]> : std::true_type {
  static constexpr size_t size = n;
};

template <typename T>
TRACE_INTERNAL_INLINE trace_arg_value_t MakeInteger(T value) {
  static_assert(sizeof(T) <= 8, "an argument of a trace event has at most 64 bits");
  if constexpr (std::is_signed<T>::value) {
    if constexpr (sizeof(T) <= 4) {
      return trace_make_int32_arg_value(static_cast<int32_t>(value));
    } else {
      return trace_make_int64_arg_value(static_cast<int64_t>(value));
    }
  } else if constexpr (sizeof(T) <= 4) {
    return trace_make_uint32_arg_value(static_cast<uint32_t>(value));
  } else {
    return trace_make_uint64_arg_value(static_cast<uint64_t>(value));
  }
}

// Unscoped enumerations are numbers; others say nothing of their own accord.
template <typename T, bool is_enum = std::is_enum<T>::value>
struct IsNumberEnum : std::false_type {};
template <typename T>
struct IsNumberEnum<T, true> : std::is_convertible<T, typename std::underlying_type<T>::type> {};

// What values of a type are rendered into when their event is recorded: a specialization has the type of the
// text, and a function Render().
template <typename T, typename = void>
struct Rendering {
  using Text = void;
};

enum class Kind { kOther, kNumber, kRendered };
template <typename T>
constexpr Kind kind_of = !std::is_void<typename Rendering<T>::Text>::value                ? Kind::kRendered
                         : std::is_arithmetic<T>::value || std::is_enum<T>::value ? Kind::kNumber
                                                                                   : Kind::kOther;

template <typename U>
TRACE_INTERNAL_INLINE trace_arg_value_t MakeValue(const U& value) {
  using T = typename std::remove_cv<U>::type;
  if constexpr (std::is_same<T, trace_arg_value_t>::value) {
    return value;
  } else if constexpr (std::is_same<T, std::nullptr_t>::value) {
    return trace_make_null_arg_value();
  } else if constexpr (std::is_same<T, bool>::value) {
    return trace_make_bool_arg_value(value);
  } else if constexpr (std::is_integral<T>::value) {
    return MakeInteger(static_cast<T>(value));
  } else if constexpr (IsNumberEnum<T>::value) {
    return MakeInteger(static_cast<typename std::underlying_type<T>::type>(value));
  } else if constexpr (std::is_floating_point<T>::value) {
    return trace_make_double_arg_value(static_cast<double>(value));
  } else if constexpr (CharArray<T>::value) {
    constexpr size_t size = CharArray<T>::size;
    return trace_make_string_arg_value(
        trace_make_inline_string_ref(value, value[size - 1] == '\0' ? size - 1 : size));
  } else if constexpr (std::is_same<T, const char*>::value) {
    return trace_make_string_arg_value(trace_make_inline_c_string_ref(value));
  } else if constexpr (std::is_pointer<T>::value) {
    return trace_make_pointer_arg_value(reinterpret_cast<uintptr_t>(value));
  } else if constexpr (std::is_array<T>::value || std::is_function<T>::value) {
    return trace_make_pointer_arg_value(reinterpret_cast<uintptr_t>(&value));
  } else if constexpr (is_string<T>) {
    return trace_make_string_arg_value(trace_make_inline_string_ref(value.data(), value.length()));
  } else {
    static_assert(is_never<T>,
                  "a trace event cannot have an argument of this type: give a number, a string, a pointer or TA_...()");
  }
}

// A value until its event is written: a number as it is, a temporary string whole, and of all other values
// what goes into the trace.
template <typename T, bool is_temporary, Kind kind = kind_of<T>>
class Held {
 public:
  TRACE_INTERNAL_INLINE_MEMBER explicit Held(const T& value) : value_(MakeValue(value)) {}
  TRACE_INTERNAL_INLINE_MEMBER trace_arg_value_t Get() const { return value_; }

 private:
  trace_arg_value_t value_;
};

template <typename T, bool is_temporary>
class Held<T, is_temporary, Kind::kNumber> {
 public:
  TRACE_INTERNAL_INLINE_MEMBER explicit Held(const T& value) : value_(value) {}
  TRACE_INTERNAL_INLINE_MEMBER trace_arg_value_t Get() const { return MakeValue(value_); }

 private:
  T value_;
};

template <typename T, bool is_temporary>
class Held<T, is_temporary, Kind::kRendered> {
 public:
  explicit Held(const T& value) : text_(Rendering<T>::Render(value)) {}
  trace_arg_value_t Get() const { return MakeValue(text_); }

 private:
  typename Rendering<T>::Text text_;
};

template <typename T>
class Held<T, true, Kind::kOther> {
 public:
  explicit Held(T&& value) : value_(std::move(value)) {}
  explicit Held(const T& value) : value_(value) {}
  TRACE_INTERNAL_INLINE_MEMBER trace_arg_value_t Get() const { return MakeValue(value_); }

 private:
  T value_;
};

template <typename T>
using Type = typename std::remove_cv<typename std::remove_reference<T>::type>::type;
// Whether what was given is a class object that goes away with the full expression.
template <typename T>
constexpr bool is_temporary = !std::is_lvalue_reference<T>::value && std::is_class<Type<T>>::value &&
                              !std::is_same<Type<T>, trace_arg_value_t>::value;

template <typename... H>
class Values {
 public:
  static constexpr size_t count = sizeof...(H);

  Values() = default;
  template <typename... T>
  TRACE_INTERNAL_INLINE_MEMBER explicit Values(std::in_place_t, T&&... values) : held_(H(std::forward<T>(values))...) {}

  // Writes an event the fast way, if that is possible now.
  TRACE_INTERNAL_INLINE_MEMBER bool Try(const trace_internal_site_t* site, const trace_internal_arg_name_t* names,
                                        const trace_internal_event_t& event) const {
    return Try(site, names, event, std::index_sequence_for<H...>());
  }

  // Writes an event the other way.
  TRACE_INTERNAL_INLINE_MEMBER void Write(const trace_internal_call_t& call, const trace_internal_event_t& event) const {
    trace_arg_value_t values[count + 1];
    Fill(values);
    trace_internal_write_slowly(&call, &event, values, count);
  }

  // Stores all values as they go into the trace.
  TRACE_INTERNAL_INLINE_MEMBER void Fill(trace_arg_value_t* values) const {
    Fill(values, std::index_sequence_for<H...>());
  }

 private:
  template <size_t... i>
  TRACE_INTERNAL_INLINE_MEMBER bool Try(const trace_internal_site_t* site, const trace_internal_arg_name_t* names,
                                        const trace_internal_event_t& event, std::index_sequence<i...>) const {
    const trace_arg_value_t values[] = {std::get<i>(held_).Get()..., trace_make_null_arg_value()};
    trace_internal_record_t record;
    const size_t words = (trace_internal_event_words(&event) + ... + trace_internal_arg_words(&values[i]));
    (void)names;
    if (!trace_internal_begin(&record, site, &event, words)) {
      return false;
    }
    trace_internal_put_time(&record, &event);
    (trace_internal_put_arg(&record, &names[i], &values[i]), ...);
    trace_internal_put_end(&record, &event);
    trace_internal_commit(&record, &event, words, count);
    return true;
  }

  template <size_t... i>
  TRACE_INTERNAL_INLINE_MEMBER void Fill(trace_arg_value_t* values, std::index_sequence<i...>) const {
    (void)values;
    ((values[i] = std::get<i>(held_).Get()), ...);
  }

  std::tuple<H...> held_;
};

// Behind a number that the macros put in front, so that they need not know whether a list is empty.
template <typename... T>
TRACE_INTERNAL_INLINE Values<Held<Type<T>, is_temporary<T>>...> Hold(int, T&&... values) {
  return Values<Held<Type<T>, is_temporary<T>>...>(std::in_place, std::forward<T>(values)...);
}

// The names of a list of arguments.
template <size_t n>
struct Names {
  const char* text[n + 1];
};

// In place of a scope that was entered while nothing was recorded.
struct Off {};

// A complete duration, from the beginning of a block to its end.
template <typename V>
class Scope {
 public:
  TRACE_INTERNAL_INLINE_MEMBER Scope(Off) : begun_{0, 0} {}
  // `word` is what the site's was.
  TRACE_INTERNAL_INLINE_MEMBER Scope(uint64_t word, const trace_internal_call_t& call, bool is_same,
                                     const Names<V::count>& names, V&& values)
      : call_(call),
        names_(names),
        begun_(trace_internal_begin_now(word, is_same, call)),
        is_same_(is_same),
        values_(std::move(values)) {}
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  TRACE_INTERNAL_INLINE_MEMBER ~Scope() {
    if (begun_.start != 0) {
      const uint64_t word = trace_internal_load(&call_.site->word);
      if (word & TRACE_INTERNAL_ON) {
        Write((word & TRACE_INTERNAL_FAST) != 0);
      }
      values_.~V();
    }
  }

 private:
  TRACE_INTERNAL_INLINE_MEMBER void Write(bool is_fast) const {
    const trace_internal_event_t event = trace_internal_make_complete(begun_.start);
    if (is_same_ && is_fast && values_.Try(call_.site, call_.storage, event)) {
      trace_internal_pop_scope(begun_.scope);
    } else {
      const Names<V::count> names = names_;
      const trace_internal_call_t call =
          trace_internal_make_cold_call(call_.site, call_.category, call_.name, names.text, call_.storage);
      values_.Write(call, event);
      if (trace_internal_load(&call_.site->word) & TRACE_INTERNAL_ON) {
        trace_internal_close_scope(begun_.scope);
      }
    }
  }

  trace_internal_call_t call_;
  Names<V::count> names_;
  // Where the scope is off there is nothing else.
  trace_internal_begun_t begun_;
  bool is_same_;
  union {
    V values_;
  };
};

}  // namespace internal
}  // namespace trace

#endif  // LIB_TRACE_INTERNAL_VALUES_H_
