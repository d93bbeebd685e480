// The dispatcher of the calling thread.
#ifndef LIB_ASYNC_DEFAULT_H_
#define LIB_ASYNC_DEFAULT_H_

#include <lib/async/dispatcher.h>

__BEGIN_CDECLS

// NULL if the thread has none.
async_dispatcher_t* async_get_default_dispatcher(void);
void async_set_default_dispatcher(async_dispatcher_t* dispatcher);

__END_CDECLS

#endif  // LIB_ASYNC_DEFAULT_H_
