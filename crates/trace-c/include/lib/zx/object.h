// Owners of handles.
#ifndef LIB_ZX_OBJECT_H_
#define LIB_ZX_OBJECT_H_

#include <lib/zx/time.h>
#include <zircon/syscalls.h>

namespace zx {

// Owns a handle, and closes it.
template <typename T>
class object {
 public:
  constexpr object() = default;
  explicit constexpr object(zx_handle_t value) : value_(value) {}
  object(object&& other) : value_(other.release()) {}
  object& operator=(object&& other) {
    reset(other.release());
    return *this;
  }
  ~object() { reset(); }

  zx_handle_t get() const { return value_; }
  explicit operator bool() const { return is_valid(); }
  bool is_valid() const { return value_ != ZX_HANDLE_INVALID; }
  zx_handle_t release() {
    zx_handle_t value = value_;
    value_ = ZX_HANDLE_INVALID;
    return value;
  }
  void reset(zx_handle_t value = ZX_HANDLE_INVALID) {
    if (is_valid()) {
      zx_handle_close(value_);
    }
    value_ = value;
  }
  zx_handle_t* reset_and_get_address() {
    reset();
    return &value_;
  }
  zx_status_t signal(uint32_t clear_mask, uint32_t set_mask) const {
    return zx_object_signal(value_, clear_mask, set_mask);
  }
  zx_status_t wait_one(zx_signals_t signals, time deadline, zx_signals_t* observed) const {
    return zx_object_wait_one(value_, signals, deadline.get(), observed);
  }

 private:
  zx_handle_t value_ = ZX_HANDLE_INVALID;
};

}  // namespace zx

#endif  // LIB_ZX_OBJECT_H_
