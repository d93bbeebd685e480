// Times and durations with a type.
#ifndef LIB_ZX_TIME_H_
#define LIB_ZX_TIME_H_

#include <zircon/syscalls.h>
#include <zircon/time.h>

namespace zx {

// A number of nanoseconds.
class duration final {
 public:
  constexpr duration() = default;
  explicit constexpr duration(zx_duration_t value) : value_(value) {}
  static constexpr duration infinite() { return duration(INT64_MAX); }
  constexpr zx_duration_t get() const { return value_; }
  constexpr bool operator==(duration other) const { return value_ == other.value_; }
  constexpr bool operator!=(duration other) const { return value_ != other.value_; }
  constexpr bool operator<(duration other) const { return value_ < other.value_; }

 private:
  zx_duration_t value_ = 0;
};

constexpr duration nsec(int64_t n) { return duration(ZX_NSEC(n)); }
constexpr duration usec(int64_t n) { return duration(ZX_USEC(n)); }
constexpr duration msec(int64_t n) { return duration(ZX_MSEC(n)); }
constexpr duration sec(int64_t n) { return duration(ZX_SEC(n)); }

// A moment of CLOCK_MONOTONIC.
class time final {
 public:
  constexpr time() = default;
  explicit constexpr time(zx_time_t value) : value_(value) {}
  static constexpr time infinite() { return time(ZX_TIME_INFINITE); }
  static constexpr time infinite_past() { return time(ZX_TIME_INFINITE_PAST); }
  constexpr zx_time_t get() const { return value_; }
  constexpr bool operator==(time other) const { return value_ == other.value_; }
  constexpr bool operator!=(time other) const { return value_ != other.value_; }
  constexpr bool operator<(time other) const { return value_ < other.value_; }

 private:
  zx_time_t value_ = 0;
};

inline time deadline_after(duration duration) { return time(zx_deadline_after(duration.get())); }

}  // namespace zx

#endif  // LIB_ZX_TIME_H_
