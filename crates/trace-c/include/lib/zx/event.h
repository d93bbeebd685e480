// An object that can be signalled.
#ifndef LIB_ZX_EVENT_H_
#define LIB_ZX_EVENT_H_

#include <lib/zx/object.h>

namespace zx {

class event final : public object<event> {
 public:
  using object<event>::object;
  static zx_status_t create(uint32_t options, event* result) {
    return zx_event_create(options, result->reset_and_get_address());
  }
};

}  // namespace zx

#endif  // LIB_ZX_EVENT_H_
