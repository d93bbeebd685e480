//! The engine in one process, read back through the buffer reader.

mod alone;
mod circular;
mod definitions;
mod freeze;
mod going_over;
mod hard;
mod hooks;
mod leaked;
mod lifecycle;
mod mirror;
mod model;
mod oneshot;
#[path = "../../src/own_process.rs"]
mod own_process;
mod privacy;
mod recall;
mod refused_call;
mod runs;
mod scopes;
#[path = "../../../zx-sim/tests/conformance/skip.rs"]
mod skip;
mod sparse;
mod streaming;
mod support;
mod tracks;
mod values;
