// A provider for the whole life of the process.
#ifndef LIB_TRACE_PROVIDER_START_H_
#define LIB_TRACE_PROVIDER_START_H_

#include <zircon/compiler.h>

__BEGIN_CDECLS

// Joins the trace manager, with a thread of its own. Returns at once; while a recording is running, when this
// process is being recorded.
void trace_provider_start(void);

__END_CDECLS

#endif  // LIB_TRACE_PROVIDER_START_H_
