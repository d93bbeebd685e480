// Checks that end the program.
#ifndef ZIRCON_ASSERT_H_
#define ZIRCON_ASSERT_H_

#include <stdio.h>
#include <stdlib.h>

#include <zircon/compiler.h>

#define ZX_PANIC(...)                       \
  do {                                      \
    fprintf(stderr, __VA_ARGS__);           \
    fputc('\n', stderr);                    \
    abort();                                \
  } while (0)

#define ZX_ASSERT(x)                                                              \
  do {                                                                            \
    if (unlikely(!(x))) {                                                         \
      ZX_PANIC("%s:%d: this does not hold: %s", __FILE__, __LINE__, #x);          \
    }                                                                             \
  } while (0)

#ifdef NDEBUG
#define ZX_DEBUG_ASSERT(x) \
  do {                     \
    if (0) {               \
      (void)(x);           \
    }                      \
  } while (0)
#else
#define ZX_DEBUG_ASSERT(x) ZX_ASSERT(x)
#endif

#endif  // ZIRCON_ASSERT_H_
