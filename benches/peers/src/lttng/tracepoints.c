#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "tracepoints.h"
#include <stdint.h>

int peer_lttng_is_enabled(void) { return lttng_ust_tracepoint_enabled(peer, instant); }

void peer_lttng_spans(uint64_t events) {
  for (uint64_t number = 0; number < events; number++) {
    lttng_ust_tracepoint(peer, begin);
    lttng_ust_tracepoint(peer, end);
  }
}

void peer_lttng_instants(uint64_t events) {
  for (uint64_t number = 0; number < events; number++) {
    lttng_ust_tracepoint(peer, instant);
  }
}
