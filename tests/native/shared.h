// A call site whose static is one for all that include this and are loaded together.
#ifndef SHARED_H_
#define SHARED_H_

#include <trace/event.h>

template <typename T>
inline void Shared(T value) {
  TRACE_DURATION("copies", "template", "value", value);
}

#endif  // SHARED_H_
