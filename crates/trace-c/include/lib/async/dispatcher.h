// A dispatcher, which runs callbacks: a loop.
#ifndef LIB_ASYNC_DISPATCHER_H_
#define LIB_ASYNC_DISPATCHER_H_

#include <stddef.h>
#include <stdint.h>

#include <zircon/compiler.h>
#include <zircon/types.h>

__BEGIN_CDECLS

typedef struct async_dispatcher async_dispatcher_t;

__END_CDECLS

#endif  // LIB_ASYNC_DISPATCHER_H_
