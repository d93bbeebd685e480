//! What one recording takes from the kernel: its events, or those that it permits without privileges, and
//! metrics.

use crate::categories::EventSelection;
use crate::collector::{Collector, Retained};
use crate::cpu_counters::CpuCounters;
use crate::metrics::{self, MetricsSampler};
use crate::profiler::{self, Profiler};
use crate::report;
use crate::service::Options;
use crate::tracefs::{Error, Tracefs};
use crate::unprivileged::{self, OwnThreads};
use std::time::{Duration, Instant};
use zx_sim::ticks::{self, Source};

/// How often the kernel is read.
const INTERVAL: Duration = Duration::from_millis(10);

/// The source of events.
enum Events {
    Tracefs(Box<Collector>, Box<EventSelection>),
    OwnThreads(Box<OwnThreads>),
}

/// A running recording.
pub struct Recording {
    events: Option<Events>,
    next: Instant,
    metrics: Option<Box<MetricsSampler>>,
    counters: Option<Box<CpuCounters>>,
    profiler: Option<Box<Profiler>>,
}

impl Recording {
    /// Starts recording the wanted categories; none if there are none. What cannot be recorded is reported.
    pub fn start(
        tracefs: &Result<Tracefs, Error>,
        options: &Options,
        is_wanted: impl Fn(&str) -> bool,
        listed: &[String],
        retained: Option<Retained>,
    ) -> Option<Self> {
        let events = start_events(tracefs, options, EventSelection::new(&is_wanted, listed), retained);
        let wanted = metrics::MetricSet::new(&is_wanted);
        let metrics =
            (!wanted.is_nothing()).then(|| Box::new(MetricsSampler::start(wanted, options.sample_interval)));
        let counters = CpuCounters::start(&is_wanted, options.sample_interval).map(Box::new);
        let sampling = options.sampling.filter(|_| is_wanted(profiler::CATEGORY));
        let profiler =
            sampling.map(|sampling| Box::new(Profiler::start(sampling, trace_provider::ticks_per_second())));
        let is_anything = events.is_some() || metrics.is_some() || counters.is_some() || profiler.is_some();
        is_anything.then(|| Self { events, next: Instant::now(), metrics, counters, profiler })
    }

    /// When something is due next.
    pub fn next(&self) -> Instant {
        let has_rings = self.events.is_some() || self.profiler.is_some();
        let events = has_rings.then_some(self.next);
        let metrics = self.metrics.as_ref().map(|metrics| metrics.next());
        let counters = self.counters.as_ref().map(|counters| counters.next());
        events.into_iter().chain(metrics).chain(counters).min().unwrap_or(self.next)
    }

    /// Does what is due.
    pub fn serve(&mut self) {
        if let Some(metrics) = &mut self.metrics {
            metrics.sample_if_due();
        }
        if let Some(counters) = &mut self.counters {
            counters.sample_if_due();
        }
        if Instant::now() < self.next {
            return;
        }
        if let Some(profiler) = &mut self.profiler {
            profiler.drain();
        }
        let has_more = match &mut self.events {
            Some(Events::Tracefs(collector, _)) => collector.drain(),
            Some(Events::OwnThreads(threads)) => {
                threads.drain();
                Ok(false)
            }
            None => Ok(false),
        };
        match has_more {
            Ok(true) => {}
            // On a fixed grid, however long it took.
            Ok(false) => {
                while self.next <= Instant::now() {
                    self.next += INTERVAL;
                }
            }
            Err(error) => {
                report(&error.to_string());
                drop(self.finish_events());
            }
        }
    }

    /// Ends it, and reads the rest. Retained events are for the next recording.
    pub fn finish(mut self) -> Option<Retained> {
        let retained = self.finish_events();
        if let Some(metrics) = self.metrics.take() {
            metrics.finish();
        }
        if let Some(counters) = self.counters.take() {
            counters.finish();
        }
        if let Some(profiler) = self.profiler.take() {
            profiler.finish();
        }
        retained
    }

    fn finish_events(&mut self) -> Option<Retained> {
        match self.events.take()? {
            Events::Tracefs(collector, wanted) => {
                collector.finish(Some(*wanted).filter(|wanted| wanted.retains))
            }
            Events::OwnThreads(threads) => {
                threads.finish();
                None
            }
        }
    }
}

fn start_events(
    tracefs: &Result<Tracefs, Error>,
    options: &Options,
    mut wanted: EventSelection,
    retained: Option<Retained>,
) -> Option<Events> {
    if wanted.is_nothing() {
        return None;
    }
    if wanted.retains && (options.is_on_demand || !wanted.probes.is_empty()) {
        report(match options.is_on_demand {
            true => {
                "kernel:retain: nothing is retained: this provider ends with the recording; run trace ktrace"
            }
            false => "kernel:retain: nothing is retained: probes are removed with their recording",
        });
        wanted.retains = false;
    }
    let started = match tracefs {
        Ok(tracefs) => clock().and_then(|clock| {
            let collector = Collector::start(tracefs, clock, options.buffer_kilobytes, &wanted, retained)?;
            Ok(Events::Tracefs(Box::new(collector), Box::new(wanted)))
        }),
        Err(error) if wanted.has_switches() && unprivileged::is_permitted() => {
            report(&format!(
                "{error}; without it only context switches of this user's programs are recorded"
            ));
            let rate = trace_provider::ticks_per_second();
            Ok(Events::OwnThreads(Box::new(OwnThreads::start(rate))))
        }
        Err(error) => {
            report(&not_recorded(error));
            return None;
        }
    };
    started.map_err(|error| report(&not_recorded(&error))).ok()
}

fn not_recorded(error: &Error) -> String {
    format!("kernel events are not recorded: {error}")
}

/// The kernel's name for the clock of this machine's traces.
fn clock() -> Result<&'static str, Error> {
    match ticks::source() {
        Source::Tsc => Ok("x86-tsc"),
        Source::Monotonic => Ok("mono"),
        other => Err(Error::OtherClock(other.name())),
    }
}
