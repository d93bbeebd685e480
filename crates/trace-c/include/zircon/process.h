// This process as an object.
#ifndef ZIRCON_PROCESS_H_
#define ZIRCON_PROCESS_H_

#include <zircon/types.h>

__BEGIN_CDECLS

zx_handle_t zx_process_self(void);

__END_CDECLS

#endif  // ZIRCON_PROCESS_H_
