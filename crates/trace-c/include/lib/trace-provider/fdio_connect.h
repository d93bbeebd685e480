// A way to the trace manager, to be given to trace_provider_create().
#ifndef LIB_TRACE_PROVIDER_FDIO_CONNECT_H_
#define LIB_TRACE_PROVIDER_FDIO_CONNECT_H_

#include <zircon/types.h>

__BEGIN_CDECLS

// The manager is looked for when the way is used.
zx_status_t trace_provider_connect_with_fdio(zx_handle_t* out_client);

// What it was called for a while.
static inline __attribute__((__unused__)) zx_status_t tracelink_provider_connect_with_fdio(zx_handle_t* out_client) {
  return trace_provider_connect_with_fdio(out_client);
}

__END_CDECLS

#endif  // LIB_TRACE_PROVIDER_FDIO_CONNECT_H_
