// Loops that are the default dispatchers of threads.
#ifndef LIB_ASYNC_LOOP_DEFAULT_H_
#define LIB_ASYNC_LOOP_DEFAULT_H_

#include <lib/async-loop/loop.h>
#include <lib/async/default.h>

__BEGIN_CDECLS

// The default of the thread that creates the loop, and of the threads that the loop starts.
extern const async_loop_config_t kAsyncLoopConfigAttachToCurrentThread;
// The default only of the threads that the loop starts.
extern const async_loop_config_t kAsyncLoopConfigNoAttachToCurrentThread;

__END_CDECLS

#endif  // LIB_ASYNC_LOOP_DEFAULT_H_
