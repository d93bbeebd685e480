// The owning pointer of older programs.
#ifndef FBL_UNIQUE_PTR_H_
#define FBL_UNIQUE_PTR_H_

#include <memory>

namespace fbl {

template <typename T>
using unique_ptr = std::unique_ptr<T>;

}  // namespace fbl

#endif  // FBL_UNIQUE_PTR_H_
