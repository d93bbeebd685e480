// What the declarations of this library need of the compiler, which is gcc or clang.
#ifndef ZIRCON_COMPILER_H_
#define ZIRCON_COMPILER_H_

#if defined(__GNUC__)
#pragma GCC system_header
#endif

#ifdef __cplusplus
#define __BEGIN_CDECLS extern "C" {
#define __END_CDECLS }
#else
#define __BEGIN_CDECLS
#define __END_CDECLS
#endif

#ifndef likely
#define likely(x) __builtin_expect(!!(x), 1)
#endif
#ifndef unlikely
#define unlikely(x) __builtin_expect(!!(x), 0)
#endif

#ifndef __WEAK
#define __WEAK __attribute__((__weak__))
#endif
#ifndef __EXPORT
#define __EXPORT __attribute__((__visibility__("default")))
#endif
#ifndef __UNUSED
#define __UNUSED __attribute__((__unused__))
#endif
#ifndef __NO_RETURN
#define __NO_RETURN __attribute__((__noreturn__))
#endif

#endif  // ZIRCON_COMPILER_H_
