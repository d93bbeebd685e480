//! Messages of the `log` crate: `logging alone|beside` prints how many the program's own logger has got, how
//! many details were formatted, and how often the program's own logger was asked whether it is enabled.

use log::{LevelFilter, Log, Metadata, Record, debug, error, info, trace, warn};
use log_fxt::Logger;
use std::sync::atomic::{AtomicUsize, Ordering};
use trace_provider::TraceProvider;

/// Those that the program's own logger has got.
static SEEN: AtomicUsize = AtomicUsize::new(0);
/// How often it was asked.
static ASKED: AtomicUsize = AtomicUsize::new(0);

struct Counting;

impl Log for Counting {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        ASKED.fetch_add(1, Ordering::Relaxed);
        metadata.target() != "quiet"
    }

    fn log(&self, _: &Record<'_>) {
        SEEN.fetch_add(1, Ordering::Relaxed);
    }

    fn flush(&self) {}
}

/// Counts how often it was formatted.
struct Formatted<'a>(&'a AtomicUsize);

impl std::fmt::Display for Formatted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.fetch_add(1, Ordering::Relaxed))
    }
}

fn main() {
    let is_beside = std::env::args().nth(1).is_some_and(|mode| mode == "beside");
    let _provider = if is_beside {
        Logger::new()
            .level(LevelFilter::Trace)
            .beside(Box::new(Counting), LevelFilter::Warn)
            .install()
            .expect("the first logger");
        TraceProvider::new("logging")
    } else {
        log_fxt::init("logging")
    };
    let formatted = AtomicUsize::new(0);
    error!("no {} for {:?}", "room", "file");
    warn!(target: "net", "retrying in {} s", 5);
    info!(target: "quiet", "one literal");
    debug!(target: "net", "packet {}", Formatted(&formatted));
    trace!(target: "net", "detail {}", Formatted(&formatted));
    warn!(target: "quiet", "{}", "long ".repeat(300));
    std::thread::spawn(|| info!(target: "net", "elsewhere")).join().expect("no panic");
    // No target is too long.
    info!(target: &"t".repeat(40_000), "");
    info!(target: "net", port = 80, host = "a host", state:? = Some(1), ok = true; "connected");
    warn!(target: "quiet", error:% = Formatted(&formatted); "");
    let numbers = [&SEEN, &formatted, &ASKED].map(|number| number.load(Ordering::Relaxed));
    println!("{} {} {}", numbers[0], numbers[1], numbers[2]);
    // Where the program asks, its own logger answers for its levels.
    for level in [log::Level::Warn, log::Level::Info] {
        for target in ["quiet", "loud"] {
            print!("{} ", log::log_enabled!(target: target, level));
        }
    }
    println!("{}", ASKED.load(Ordering::Relaxed));
}
