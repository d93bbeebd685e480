// The calls that programs with tracing make beside it. Handles are of this library: the system knows nothing
// of them.
#ifndef ZIRCON_SYSCALLS_H_
#define ZIRCON_SYSCALLS_H_

#include <zircon/types.h>

__BEGIN_CDECLS

// The trace clock: what timestamps of events are made of.
zx_ticks_t zx_ticks_get(void);
zx_instant_boot_ticks_t zx_ticks_get_boot(void);
zx_ticks_t zx_ticks_per_second(void);

// CLOCK_MONOTONIC.
zx_time_t zx_clock_get_monotonic(void);
// The time in so many nanoseconds; ZX_TIME_INFINITE if it cannot be said.
zx_time_t zx_deadline_after(zx_duration_t duration);
zx_status_t zx_nanosleep(zx_time_t deadline);

// An object that can be signalled. `options` has to be 0.
zx_status_t zx_event_create(uint32_t options, zx_handle_t* out);
zx_status_t zx_handle_close(zx_handle_t handle);
zx_status_t zx_object_signal(zx_handle_t handle, uint32_t clear_mask, uint32_t set_mask);
// Waits until one of the signals is there. `observed`, which may be NULL, receives those that were there at
// the end.
zx_status_t zx_object_wait_one(zx_handle_t handle, zx_signals_t signals, zx_time_t deadline, zx_signals_t* observed);

__END_CDECLS

#endif  // ZIRCON_SYSCALLS_H_
