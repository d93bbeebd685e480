//! Subscribers of the `tracing` crate, which record the same spans and events, with their fields.

use crate::timed;
use crate::tracers::{engine, perfetto_session};
use std::any::Any;
use std::fs::File;
use std::hint::black_box;
use std::io::BufWriter;
use std::sync::Mutex;
use tracing::{info, info_span};
use tracing_subscriber::prelude::*;

/// A subscriber that is measured.
pub struct Subscriber {
    /// As in the table.
    pub name: &'static str,
    /// Becomes the subscriber of the process; ends when the result is dropped.
    pub begin: fn() -> Box<dyn Any>,
}

/// What is measured of each, in the order of the table.
pub const KINDS: [(&str, fn(u64) -> f64); 5] = [
    ("event", |events| timed(events, |_| info!("a message of some length"))),
    ("event, two fields", |events| {
        timed(events, |n| info!(n, text = black_box("sixteen bytes ok"), "a message"))
    }),
    ("two fields", |events| timed(events, |n| info!(n, text = black_box("sixteen bytes ok")))),
    ("span", |events| {
        timed(events, |_| {
            let _span = info_span!("a span").entered();
        })
    }),
    ("span, a field", |events| {
        timed(events, |n| {
            let _span = info_span!("a span", n).entered();
        })
    }),
];

/// In the order of the table: two floors, ours, the others.
pub const SUBSCRIBERS: &[Subscriber] = &[
    Subscriber { name: "no subscriber", begin: || Box::new(()) },
    Subscriber {
        name: "registry alone",
        begin: || {
            tracing_subscriber::registry().init();
            Box::new(())
        },
    },
    Subscriber {
        name: "tracing-fxt, its subscriber",
        begin: || {
            let subscriber = tracing_fxt::Options::new().subscriber();
            tracing::subscriber::set_global_default(subscriber).expect("the only one");
            engine()
        },
    },
    Subscriber {
        name: "tracing-fxt, a layer",
        begin: || {
            tracing_subscriber::registry().with(tracing_fxt::layer()).init();
            engine()
        },
    },
    Subscriber {
        name: "tracing-fxt, a layer, always",
        begin: || {
            tracing_subscriber::registry().with(tracing_fxt::Options::new().always().layer()).init();
            engine()
        },
    },
    Subscriber {
        name: "tracing-fxt, a layer, lifetimes",
        begin: || {
            tracing_subscriber::registry().with(tracing_fxt::Options::new().lifetimes().layer()).init();
            engine()
        },
    },
    Subscriber {
        name: "tracing-perfetto-file, threads",
        begin: || perfetto_file(tracing_perfetto_file::SpanMode::ThreadTracks),
    },
    Subscriber {
        name: "tracing-perfetto-file, lifetimes",
        begin: || perfetto_file(tracing_perfetto_file::SpanMode::SpanTracks),
    },
    Subscriber {
        name: "tracing-perfetto-file, both",
        begin: || perfetto_file(tracing_perfetto_file::SpanMode::Both),
    },
    Subscriber {
        name: "tracing-perfetto-sdk",
        begin: || {
            tracing_perfetto_sdk::init_in_process();
            tracing_subscriber::registry().with(tracing_perfetto_sdk::PerfettoLayer::new()).init();
            Box::new(perfetto_session("tracing"))
        },
    },
    Subscriber { name: "tracing-perfetto", begin: perfetto },
    Subscriber { name: "tracing-chrome", begin: chrome },
    Subscriber {
        name: "tracing-tracy",
        begin: || {
            tracing_subscriber::registry().with(tracing_tracy::TracyLayer::default()).init();
            Box::new(())
        },
    },
];

fn chrome() -> Box<dyn Any> {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let (layer, guard) =
        tracing_chrome::ChromeLayerBuilder::new().file(file.path()).include_args(true).build();
    tracing_subscriber::registry().with(layer).init();
    Box::new((guard, file))
}

fn perfetto() -> Box<dyn Any> {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let writer = BufWriter::new(File::create(file.path()).expect("the file is there"));
    let layer = tracing_perfetto::PerfettoLayer::new(Mutex::new(writer)).with_debug_annotations(true);
    tracing_subscriber::registry().with(layer).init();
    Box::new(file)
}

fn perfetto_file(mode: tracing_perfetto_file::SpanMode) -> Box<dyn Any> {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let writer = File::create(file.path()).expect("the file is there");
    let (layer, guard) = tracing_perfetto_file::PerfettoLayer::builder(writer)
        .span_mode(mode)
        .with_debug_annotations()
        .build();
    tracing_subscriber::registry().with(layer).init();
    Box::new((guard, file))
}
