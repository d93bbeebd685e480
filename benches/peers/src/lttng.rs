//! LTTng-UST, which comes with Debian: its tracepoints are C, its sessions are its daemon's.

use crate::tracers::Tracer;
use std::any::Any;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

// SAFETY: the functions of `tracepoints.c`, with these signatures; they may be called at any time.
unsafe extern "C" {
    safe fn peer_lttng_is_enabled() -> i32;
    safe fn peer_lttng_spans(events: u64);
    safe fn peer_lttng_instants(events: u64);
}

/// A pair of tracepoints for a span: there is no other way.
pub const TRACER: Tracer = Tracer {
    name: "LTTng-UST",
    begin,
    span: Some(|events| crate::timed_in_c(events, peer_lttng_spans)),
    instant: Some(|events| crate::timed_in_c(events, peer_lttng_instants)),
    flush: || (),
};

/// A session of the daemon, into buffers that go round, with the daemon's files in a directory of its own.
struct Session {
    name: String,
    _directory: tempfile::TempDir,
}

fn lttng(arguments: &[&str]) -> Output {
    let output = Command::new("lttng").arg("--no-sessiond").args(arguments).output();
    output.expect("lttng runs: apt-get install lttng-tools liblttng-ust-dev")
}

fn begin() -> Box<dyn Any> {
    let directory = tempfile::tempdir().expect("a directory");
    let session = Session { name: format!("peer-{}", std::process::id()), _directory: directory };
    let name = session.name.as_str();
    if !lttng(&["list"]).status.success() {
        let started = Command::new("lttng-sessiond").arg("--daemonize").output().expect("the daemon starts");
        assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
    }
    let output = format!("--output={}", session._directory.path().display());
    for arguments in [
        &["create", name, &output][..],
        &[
            "enable-channel",
            "--userspace",
            "--session",
            name,
            "--overwrite",
            "--subbuf-size=1M",
            "--num-subbuf=4",
            "ring",
        ],
        &["enable-event", "--userspace", "--session", name, "--channel", "ring", "peer:*"],
        &["start", name],
    ] {
        let output = lttng(arguments);
        assert!(output.status.success(), "lttng {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let deadline = Instant::now() + Duration::from_secs(10);
    while peer_lttng_is_enabled() == 0 {
        assert!(Instant::now() < deadline, "LTTng does not enable its tracepoints");
        std::thread::yield_now();
    }
    Box::new(session)
}

impl Drop for Session {
    fn drop(&mut self) {
        lttng(&["destroy", "--no-wait", &self.name]);
    }
}
