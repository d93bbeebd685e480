// What LTTng is asked to record. Its own headers read this file several times.
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER peer
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "tracepoints.h"
#if !defined(TRACE_PEERS_TRACEPOINTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define TRACE_PEERS_TRACEPOINTS_H
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_EVENT(peer, begin, LTTNG_UST_TP_ARGS(void), LTTNG_UST_TP_FIELDS())
LTTNG_UST_TRACEPOINT_EVENT(peer, end, LTTNG_UST_TP_ARGS(void), LTTNG_UST_TP_FIELDS())
LTTNG_UST_TRACEPOINT_EVENT(peer, instant, LTTNG_UST_TP_ARGS(void), LTTNG_UST_TP_FIELDS())
#endif
#include <lttng/tracepoint-event.h>
