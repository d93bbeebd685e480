#include <trace/event.h>

void peer_ours_spans(uint64_t events) {
  for (uint64_t number = 0; number < events; number++) {
    TRACE_DURATION("peer", "span");
  }
}

void peer_ours_instants(uint64_t events) {
  for (uint64_t number = 0; number < events; number++) {
    TRACE_INSTANT("peer", "instant", TRACE_SCOPE_THREAD);
  }
}
