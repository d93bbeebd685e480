// Names of results.
#ifndef ZIRCON_STATUS_H_
#define ZIRCON_STATUS_H_

#include <zircon/types.h>

__BEGIN_CDECLS

// The name of a result, such as "ZX_ERR_BAD_STATE"; "(UNKNOWN)" for a number that is none.
const char* zx_status_get_string(zx_status_t status);

__END_CDECLS

#endif  // ZIRCON_STATUS_H_
