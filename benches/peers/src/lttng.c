/* One function for each way to use the events. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng.h"

int peer_lttng_is_on(void)
{
    return lttng_ust_tracepoint_enabled(trace_peers, instant) != 0;
}

void peer_lttng_instants(unsigned long long count)
{
    for (unsigned long long number = 0; number < count; number++)
        lttng_ust_tracepoint(trace_peers, instant);
}

void peer_lttng_spans(unsigned long long count)
{
    for (unsigned long long number = 0; number < count; number++) {
        lttng_ust_tracepoint(trace_peers, begin);
        lttng_ust_tracepoint(trace_peers, end);
    }
}
