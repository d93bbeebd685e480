// The calling thread as an object.
#ifndef ZIRCON_THREADS_H_
#define ZIRCON_THREADS_H_

#include <zircon/types.h>

__BEGIN_CDECLS

// Whoever uses the handle means itself with it, on whatever thread.
zx_handle_t zx_thread_self(void);

__END_CDECLS

#endif  // ZIRCON_THREADS_H_
