// A provider for the whole life of the process.
#ifndef LIB_TRACE_PROVIDER_START_H_
#define LIB_TRACE_PROVIDER_START_H_

#include <stdbool.h>
#include <zircon/compiler.h>

__BEGIN_CDECLS

// Registers with the trace manager, on a thread of its own. Cannot fail. Returns immediately, unless a
// recording is running: then it blocks until this process has joined it. That takes a few milliseconds; it
// gives up when the manager does not respond for 5 s.
void trace_provider_start(void);

// Records from now on, into a buffer of the program's own, until a recording of a manager takes that over;
// without one, `trace recover` writes an archive. The categories are separated by commas; "" means all. False
// if that is not possible: the reason is printed on stderr. Programs need not call this for users who set
// TRACE_STARTUP: the library looks for that when it is loaded.
bool trace_startup_begin(const char* categories);

// The same, if an argument is `--trace-startup=CATEGORIES`, or `--trace-startup` for all categories. False if
// none is.
bool trace_startup_begin_by_arguments(int argc, char** argv);

__END_CDECLS

#endif  // LIB_TRACE_PROVIDER_START_H_
