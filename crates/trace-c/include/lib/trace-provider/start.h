// A provider for the whole life of the process.
#ifndef LIB_TRACE_PROVIDER_START_H_
#define LIB_TRACE_PROVIDER_START_H_

#include <zircon/compiler.h>

__BEGIN_CDECLS

// Registers with the trace manager, on a thread of its own. Cannot fail. Returns immediately, unless a
// recording is running: then it blocks until this process has joined it. That takes a few milliseconds; it
// gives up when the manager does not respond for 5 s.
void trace_provider_start(void);

__END_CDECLS

#endif  // LIB_TRACE_PROVIDER_START_H_
