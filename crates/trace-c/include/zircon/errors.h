// Results of calls: 0 is good, errors are negative.
#ifndef ZIRCON_ERRORS_H_
#define ZIRCON_ERRORS_H_

#define ZX_OK (0)
#define ZX_ERR_INTERNAL (-1)
#define ZX_ERR_NOT_SUPPORTED (-2)
#define ZX_ERR_NO_RESOURCES (-3)
#define ZX_ERR_NO_MEMORY (-4)
#define ZX_ERR_INVALID_ARGS (-10)
#define ZX_ERR_BAD_HANDLE (-11)
#define ZX_ERR_WRONG_TYPE (-12)
#define ZX_ERR_OUT_OF_RANGE (-14)
#define ZX_ERR_BUFFER_TOO_SMALL (-15)
#define ZX_ERR_BAD_STATE (-20)
#define ZX_ERR_TIMED_OUT (-21)
#define ZX_ERR_SHOULD_WAIT (-22)
#define ZX_ERR_CANCELED (-23)
#define ZX_ERR_PEER_CLOSED (-24)
#define ZX_ERR_NOT_FOUND (-25)
#define ZX_ERR_ALREADY_EXISTS (-26)
#define ZX_ERR_ALREADY_BOUND (-27)
#define ZX_ERR_UNAVAILABLE (-28)
#define ZX_ERR_ACCESS_DENIED (-30)
#define ZX_ERR_IO (-40)
#define ZX_ERR_NO_SPACE (-54)

#endif  // ZIRCON_ERRORS_H_
