// The calling thread as an object.
#ifndef ZIRCON_THREADS_H_
#define ZIRCON_THREADS_H_

#include <zircon/types.h>

__BEGIN_CDECLS

// On each thread the handle refers to the thread that uses it.
zx_handle_t zx_thread_self(void);

__END_CDECLS

#endif  // ZIRCON_THREADS_H_
