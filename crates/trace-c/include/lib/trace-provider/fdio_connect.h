// A connection to the trace manager, to be passed to trace_provider_create().
#ifndef LIB_TRACE_PROVIDER_FDIO_CONNECT_H_
#define LIB_TRACE_PROVIDER_FDIO_CONNECT_H_

#include <zircon/types.h>

__BEGIN_CDECLS

// The connection is made when it is used.
zx_status_t trace_provider_connect_with_fdio(zx_handle_t* out_client);

// An older name.
static inline __attribute__((__unused__)) zx_status_t tracelink_provider_connect_with_fdio(zx_handle_t* out_client) {
  return trace_provider_connect_with_fdio(out_client);
}

__END_CDECLS

#endif  // LIB_TRACE_PROVIDER_FDIO_CONNECT_H_
