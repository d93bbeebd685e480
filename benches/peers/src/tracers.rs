//! The tracers, each with the fastest of the ways it offers to record a named scope and a named moment.

use crate::timed;
use std::any::Any;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is measured of a tracer.
pub struct Tracer {
    /// As in the table.
    pub name: &'static str,
    /// Begins to record; ends when the result is dropped.
    pub begin: fn() -> Box<dyn Any>,
    /// So many scopes; nanoseconds per scope.
    pub span: Option<fn(u64) -> f64>,
    /// So many moments.
    pub instant: Option<fn(u64) -> f64>,
    /// Waits until what was recorded is where it belongs, where there is a way.
    pub flush: fn(),
}

/// In the order of the table: two floors, this project's engine, the others.
pub const TRACERS: &[Tracer] = &[
    Tracer {
        name: "reading the clock once / twice",
        begin: nothing,
        span: Some(|events| {
            timed(events, |_| {
                black_box((zx_sim::ticks::now(), zx_sim::ticks::now()));
            })
        }),
        instant: Some(|events| {
            timed(events, |_| {
                black_box(zx_sim::ticks::now());
            })
        }),
        flush: || (),
    },
    Tracer {
        name: "… and storing 16 bytes",
        begin: nothing,
        span: Some(|events| {
            let memory = memory(events);
            timed(events, |number| {
                black_box(zx_sim::ticks::now());
                store(&memory, number);
            })
        }),
        instant: Some(|events| {
            let memory = memory(events);
            timed(events, |number| store(&memory, number))
        }),
        flush: || (),
    },
    Tracer {
        name: "trace-engine",
        begin: engine,
        span: Some(|events| {
            timed(events, |_| {
                trace_engine::duration!("peer", "span");
            })
        }),
        instant: Some(|events| {
            timed(events, |_| trace_engine::instant!("peer", "instant", trace_engine::Scope::Thread))
        }),
        flush: || (),
    },
    crate::ours::TRACER,
    Tracer {
        name: "fastrace",
        begin: fastrace,
        span: Some(|events| {
            in_roots(events, || {
                let _span = fastrace::local::LocalSpan::enter_with_local_parent("span");
            })
        }),
        instant: Some(|events| {
            in_roots(events, || fastrace::local::LocalSpan::add_event(fastrace::Event::new("instant")))
        }),
        flush: fastrace::flush,
    },
    Tracer {
        name: "tracy-client",
        begin: || Box::new(tracy_client::Client::start()),
        span: Some(|events| {
            timed(events, |_| {
                let _span = tracy_client::span!("span");
            })
        }),
        instant: Some(|events| {
            let client = tracy_client::Client::running().expect("it was started");
            timed(events, |_| client.message("instant", 0))
        }),
        flush: || (),
    },
    Tracer {
        name: "perfetto-sdk",
        begin: perfetto_sdk,
        span: Some(|events| {
            timed(events, |_| {
                perfetto_sdk::scoped_track_event!("peer", "span");
            })
        }),
        instant: Some(|events| timed(events, |_| perfetto_sdk::track_event_instant!("peer", "instant"))),
        flush: || (),
    },
    Tracer {
        name: "puffin",
        begin: || {
            puffin::set_scopes_on(true);
            Box::new(())
        },
        span: Some(|events| {
            let nanos = timed(events, |_| {
                puffin::profile_scope!("span");
            });
            puffin::GlobalProfiler::lock().new_frame();
            nanos
        }),
        instant: None,
        flush: || (),
    },
    Tracer {
        name: "micromegas-tracing",
        begin: micromegas,
        span: Some(|events| {
            let _thread = micromegas_tracing::guards::TracingThreadGuard::new();
            timed(events, |_| {
                micromegas_tracing::span_scope!("span");
            })
        }),
        // Its log took less than reading the clock in a trial, so that it seems to be filtered.
        instant: None,
        flush: || {
            micromegas_tracing::dispatch::flush_thread_buffer();
            micromegas_tracing::dispatch::flush_log_buffer();
        },
    },
    Tracer {
        name: "hotpath",
        begin: hotpath,
        span: Some(|events| {
            timed(events, |_| {
                hotpath::measure_block!("span", ());
            })
        }),
        instant: None,
        flush: || (),
    },
    Tracer {
        name: "dial9",
        begin: dial9,
        span: None,
        instant: Some(|events| {
            timed(events, |_| dial9::record_event(Moment { at: dial9::core::clock_monotonic_ns() }))
        }),
        flush: || (),
    },
    #[cfg(feature = "lttng")]
    crate::lttng::TRACER,
];

perfetto_sdk::track_event_categories! {
    pub mod categories {
        ("peer", "The comparison", []),
    }
}
use categories as perfetto_te_ns;

fn perfetto_sdk() -> Box<dyn Any> {
    use perfetto_sdk::producer::{Backends, Producer, ProducerInitArgsBuilder};

    Producer::init(ProducerInitArgsBuilder::new().backends(Backends::IN_PROCESS).build());
    perfetto_sdk::track_event::TrackEvent::init();
    perfetto_te_ns::register().expect("categories are registered");
    Box::new(perfetto_session("peer"))
}

/// A session of the process's own for a category, into a buffer of 16 MiB that goes round.
pub fn perfetto_session(category: &str) -> perfetto_sdk::tracing_session::TracingSession {
    use perfetto_sdk::heap_buffer::HeapBuffer;
    use perfetto_sdk::pb_msg::{PbMsg, PbMsgWriter};
    use perfetto_sdk::protos::config::data_source_config::DataSourceConfig;
    use perfetto_sdk::protos::config::trace_config::{
        TraceConfig, TraceConfigBufferConfig, TraceConfigDataSource,
    };
    use perfetto_sdk::protos::config::track_event::track_event_config::TrackEventConfig;

    let writer = PbMsgWriter::new();
    let buffer = HeapBuffer::new(writer.stream_writer());
    let mut message = PbMsg::new(&writer).expect("a message");
    {
        let mut config = TraceConfig { msg: &mut message };
        config.set_buffers(|buffers: &mut TraceConfigBufferConfig| {
            buffers.set_size_kb(16 << 10);
        });
        config.set_data_sources(|sources: &mut TraceConfigDataSource| {
            sources.set_config(|source: &mut DataSourceConfig| {
                source.set_name("track_event");
                source.set_track_event_config(|events: &mut TrackEventConfig| {
                    events.set_enabled_categories(category);
                });
            });
        });
    }
    message.finalize();
    let mut bytes = vec![0; writer.stream_writer().get_written_size()];
    buffer.copy_into(&mut bytes);
    let mut session = perfetto_sdk::tracing_session::TracingSession::in_process().expect("a session");
    session.setup(&bytes);
    session.start_blocking();
    session
}

fn nothing() -> Box<dyn Any> {
    Box::new(())
}

/// Fresh memory, present, for so many events of 16 bytes.
fn memory(events: u64) -> Vec<AtomicU64> {
    (0..2 * events).map(|_| AtomicU64::new(0)).collect()
}

fn store(memory: &[AtomicU64], number: u64) {
    let at = 2 * number as usize;
    memory[at + 1].store(zx_sim::ticks::now(), Ordering::Relaxed);
    memory[at].store(number, Ordering::Release);
}

/// Into a circular buffer, as in a recording that goes on.
pub fn engine() -> Box<dyn Any> {
    use trace_engine::{BufferMode, Config, Disposition, Region, engine};

    let (region, words) = Region::on_heap(16 << 20);
    let config = Config::new(1, "peer", 1);
    let engine = engine::initialize(region, BufferMode::Circular, config).expect("the engine is idle");
    engine.start(Disposition::Retain, &[]).expect("the engine starts");
    Box::new((engine, words))
}

fn fastrace() -> Box<dyn Any> {
    struct Sink;
    impl fastrace::collector::Reporter for Sink {
        fn report(&mut self, spans: Vec<fastrace::prelude::SpanRecord>) {
            black_box(spans);
        }
    }
    fastrace::set_reporter(Sink, fastrace::collector::Config::default());
    Box::new(())
}

/// Below a root of its own for each 5 000: it drops what is beyond 10 240.
fn in_roots(events: u64, emit: impl Fn()) -> f64 {
    const EACH: u64 = 5_000;
    let nanos = timed(events.div_ceil(EACH), |_| {
        let root = fastrace::Span::root("root", fastrace::prelude::SpanContext::random());
        let _guard = root.set_local_parent();
        (0..events.min(EACH)).for_each(|_| emit());
    });
    nanos / events.min(EACH) as f64
}

/// Into blocks that are dropped when they are full.
fn micromegas() -> Box<dyn Any> {
    use micromegas_tracing::event::NullEventSink;
    use micromegas_tracing::guards::TracingSystemGuard;

    const BLOCK: usize = 10 << 20;
    let sink = std::sync::Arc::new(NullEventSink {});
    let guard = TracingSystemGuard::new(BLOCK, BLOCK, BLOCK, sink, Default::default(), true);
    micromegas_tracing::levels::set_max_level(micromegas_tracing::levels::LevelFilter::Info);
    Box::new(guard.expect("the only one"))
}

/// It keeps sums and quantiles of each scope, and no single one.
fn hotpath() -> Box<dyn Any> {
    Box::new(hotpath::HotpathGuardBuilder::new("peer").format(hotpath::Format::None).build())
}

/// A moment of dial9, which has no scopes.
#[derive(dial9::format::TraceEvent)]
struct Moment {
    #[traceevent(timestamp)]
    at: u64,
}

fn dial9() -> Box<dyn Any> {
    let directory = tempfile::tempdir().expect("a directory");
    let writer = dial9::DiskBuffer::single_file(directory.path().join("trace.bin")).expect("a file");
    let recorder = dial9::recorder(writer).build();
    recorder.install_global_handle().expect("the only one");
    Box::new((recorder, directory))
}
