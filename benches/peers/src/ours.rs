//! This project's own events, compiled from C into the same engine.

use crate::tracers::{Tracer, engine};
use trace as _;

// SAFETY: the functions of `events.c`, with these signatures; they may be called at any time.
unsafe extern "C" {
    safe fn peer_ours_spans(events: u64);
    safe fn peer_ours_instants(events: u64);
}

/// As `trace-engine`, from C.
pub const TRACER: Tracer = Tracer {
    name: "trace-engine, in C",
    begin: engine,
    span: Some(|events| crate::timed_in_c(events, peer_ours_spans)),
    instant: Some(|events| crate::timed_in_c(events, peer_ours_instants)),
    flush: || (),
};
