// A connection to the trace manager that has not been used yet.
#ifndef LIB_ZX_CHANNEL_H_
#define LIB_ZX_CHANNEL_H_

#include <lib/zx/object.h>

namespace zx {

class channel final : public object<channel> {
 public:
  using object<channel>::object;
};

}  // namespace zx

#endif  // LIB_ZX_CHANNEL_H_
