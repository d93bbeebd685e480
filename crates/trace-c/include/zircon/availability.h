// Everything is available, at every level.
#ifndef ZIRCON_AVAILABILITY_H_
#define ZIRCON_AVAILABILITY_H_

#define ZX_AVAILABLE_SINCE(level)
#define ZX_REMOVED_SINCE(...)
#define ZX_DEPRECATED_SINCE(...)
#define FUCHSIA_API_LEVEL_AT_LEAST(level) 1
#define FUCHSIA_API_LEVEL_LESS_THAN(level) 0

#endif  // ZIRCON_AVAILABILITY_H_
