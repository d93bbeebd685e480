// The basic types that signatures of this library use.
#ifndef ZIRCON_TYPES_H_
#define ZIRCON_TYPES_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zircon/compiler.h>
#include <zircon/errors.h>
#include <zircon/time.h>

typedef int32_t zx_status_t;

// An object that this library made for the process; 0 is none.
typedef uint32_t zx_handle_t;
#define ZX_HANDLE_INVALID ((zx_handle_t)0)

// Process ids and thread ids, and whatever a program gives ids of its own.
typedef uint64_t zx_koid_t;
#define ZX_KOID_INVALID ((uint64_t)0)
#define ZX_KOID_KERNEL ((uint64_t)1)
#define ZX_KOID_FIRST ((uint64_t)1024)

typedef uint32_t zx_signals_t;
#define ZX_SIGNAL_NONE ((zx_signals_t)0u)
#define ZX_OBJECT_READABLE ((zx_signals_t)1u << 0)
#define ZX_OBJECT_WRITABLE ((zx_signals_t)1u << 1)
#define ZX_OBJECT_PEER_CLOSED ((zx_signals_t)1u << 2)
#define ZX_EVENT_SIGNALED ((zx_signals_t)1u << 3)
#define ZX_USER_SIGNAL_0 ((zx_signals_t)1u << 24)
#define ZX_USER_SIGNAL_1 ((zx_signals_t)1u << 25)
#define ZX_USER_SIGNAL_2 ((zx_signals_t)1u << 26)
#define ZX_USER_SIGNAL_3 ((zx_signals_t)1u << 27)
#define ZX_USER_SIGNAL_4 ((zx_signals_t)1u << 28)
#define ZX_USER_SIGNAL_5 ((zx_signals_t)1u << 29)
#define ZX_USER_SIGNAL_6 ((zx_signals_t)1u << 30)
#define ZX_USER_SIGNAL_7 ((zx_signals_t)1u << 31)

typedef uint32_t zx_obj_type_t;
#define ZX_OBJ_TYPE_PROCESS ((zx_obj_type_t)1u)
#define ZX_OBJ_TYPE_THREAD ((zx_obj_type_t)2u)

// With the NUL at the end.
#define ZX_MAX_NAME_LEN ((size_t)32u)

#endif  // ZIRCON_TYPES_H_
