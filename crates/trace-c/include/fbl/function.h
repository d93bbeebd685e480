// The function class of older programs.
#ifndef FBL_FUNCTION_H_
#define FBL_FUNCTION_H_

#include <lib/fit/function.h>

namespace fbl {

template <typename T>
using Function = fit::function<T>;
using Closure = fit::closure;

}  // namespace fbl

#endif  // FBL_FUNCTION_H_
