// Loops that are the default dispatchers of threads.
#ifndef LIB_ASYNC_LOOP_DEFAULT_H_
#define LIB_ASYNC_LOOP_DEFAULT_H_

#include <lib/async-loop/loop.h>
#include <lib/async/default.h>

__BEGIN_CDECLS

// Of the thread that makes the loop, and of those it starts.
extern const async_loop_config_t kAsyncLoopConfigAttachToCurrentThread;
// Only of those it starts.
extern const async_loop_config_t kAsyncLoopConfigNoAttachToCurrentThread;

__END_CDECLS

#endif  // LIB_ASYNC_LOOP_DEFAULT_H_
