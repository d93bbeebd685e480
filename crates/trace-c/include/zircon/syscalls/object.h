// States of threads, in records of context switches.
#ifndef ZIRCON_SYSCALLS_OBJECT_H_
#define ZIRCON_SYSCALLS_OBJECT_H_

#include <zircon/types.h>

#define ZX_THREAD_STATE_NEW (0u)
#define ZX_THREAD_STATE_RUNNING (1u)
#define ZX_THREAD_STATE_SUSPENDED (2u)
#define ZX_THREAD_STATE_BLOCKED (3u)
#define ZX_THREAD_STATE_DYING (4u)
#define ZX_THREAD_STATE_DEAD (5u)

#endif  // ZIRCON_SYSCALLS_OBJECT_H_
