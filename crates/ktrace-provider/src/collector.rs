//! One recording of the kernel: from the instance's first page to its last.

use crate::applications::{self, Applications};
use crate::categories::{EventSelection, META, PROBE};
use crate::decoder::{Decoder, Texts};
use crate::format::Format;
use crate::instance::{CpuLosses, Instance};
use crate::merge::{Merge, Merged};
use crate::page::PageLayout;
use crate::probes::Probe;
use crate::records::EngineRecords;
use crate::tracefs::{Error, Tracefs};
use crate::{POINT_CATEGORY, processes, report};
use std::time::{Duration, Instant};
use trace_engine::ffi;
use trace_format::slab::LossReason;
use zx_sim::ticks;

/// How many pages of a CPU are read before the others have their turn.
const PAGES_AT_ONCE: usize = 64;
/// How often the kernel's counts of losses are read, if nothing shows a loss before.
const LOSSES_INTERVAL: Duration = Duration::from_secs(1);
/// Categories whose events include this provider's own reads of the kernel, which would make each read longer
/// than the last.
const OF_THREADS: [&str; 4] = ["kernel:syscall", "kernel:vm", "kernel:memory", "kernel:contention"];
/// The event of each text in `trace_marker`.
const PRINT: &str = "ftrace/print";

/// A running recording.
pub struct Collector {
    instance: Instance,
    layout: PageLayout,
    merge: Merge,
    decoder: Decoder<EngineRecords>,
    /// The losses of each CPU at the last check, and the time of that.
    losses: Vec<(u16, CpuLosses, u64)>,
    looked: Instant,
}

/// The kernel's recording into its buffer between two recordings.
//= docs/kernel.md#retained-events
pub struct Retained {
    wanted: EventSelection,
    instance: Instance,
}

impl Collector {
    /// Starts recording the wanted categories. Tracepoints that the kernel does not have are reported and
    /// skipped.
    ///
    /// # Errors
    /// No instance can be made.
    pub fn start(
        tracefs: &Tracefs,
        clock: &'static str,
        buffer_kilobytes: u64,
        wanted: &EventSelection,
        retained: Option<Retained>,
    ) -> Result<Self, Error> {
        let layout = tracefs.page_layout()?;
        // An instance that records something else is removed first: its name is needed.
        let retained = retained.filter(|retained| wanted.retains && retained.wanted == *wanted);
        let mut instance = match retained {
            Some(retained) => retained.instance,
            None => Instance::create(tracefs, clock, buffer_kilobytes)?,
        };
        let texts = Texts { markers: wanted.markers, others: wanted.texts };
        let mut decoder = Decoder::new(EngineRecords::new(), texts);
        decoder.applications = Applications::new(&wanted.applications, applications::names_of);
        enable_wanted(tracefs, &mut instance, &mut decoder, wanted);
        let now = ticks::now();
        // Events that were overwritten between two recordings are missing in neither.
        let losses =
            instance.cpus().map(|cpu| (cpu, instance.losses(cpu).unwrap_or_default(), now)).collect();
        instance.set_tracing(true)?;
        for cpu in instance.cpus() {
            decoder.kernel.cpu(cpu);
        }
        // After the kernel has begun to report: no process appears unseen in between.
        processes::scan(&mut decoder.kernel);
        Ok(Self { instance, layout, merge: Merge::default(), decoder, losses, looked: Instant::now() })
    }

    /// Reads the kernel's events; true if there are more.
    ///
    /// # Errors
    /// The kernel can no longer be read.
    pub fn drain(&mut self) -> Result<bool, Error> {
        let (mut horizon, mut has_more, mut has_lost) = (u64::MAX, false, false);
        for (index, (cpu, ..)) in self.losses.iter().enumerate() {
            let mut read_up_to = None;
            for page in 0.. {
                let before = ticks::now();
                if page == PAGES_AT_ONCE {
                    has_more = true;
                    break;
                }
                if !self.instance.read_page(index, self.merge.page(&self.layout))? {
                    self.merge.give_back(&self.layout);
                    read_up_to = Some(before);
                    break;
                }
                read_up_to = self.merge.keep(&self.layout, *cpu).or(read_up_to);
            }
            horizon = horizon.min(read_up_to.unwrap_or(0));
        }
        let decoder = &mut self.decoder;
        self.merge.take_until(horizon, |at, cpu, what| match what {
            Merged::Event(payload) => decoder.event(at, cpu, payload),
            Merged::Lost(count) => {
                has_lost = true;
                decoder.lost(cpu, at, count);
            }
        });
        if has_lost || self.looked.elapsed() >= LOSSES_INTERVAL {
            self.count_losses();
        }
        Ok(has_more)
    }

    /// Ends the recording, and reads the rest. If later events are to be retained, the kernel goes on.
    pub fn finish(mut self, retained: Option<EventSelection>) -> Option<Retained> {
        let ended = self.instance.set_tracing(false);
        let mut rest = || -> Result<(), Error> {
            while self.drain()? {}
            Ok(())
        };
        let drained = rest();
        let decoder = &mut self.decoder;
        self.merge.take_until(u64::MAX, |at, cpu, what| match what {
            Merged::Event(payload) => decoder.event(at, cpu, payload),
            Merged::Lost(count) => decoder.lost(cpu, at, count),
        });
        decoder.finish();
        self.count_losses();
        for error in [ended.err(), drained.err()].into_iter().flatten() {
            report(&error.to_string());
        }
        if self.decoder.applications.kept() > 0 {
            let kept = self.decoder.applications.kept();
            report(&format!("{kept} markers are of processes that had ended, perhaps of other applications"));
        }
        if self.merge.damaged() > 0 {
            report(&format!("{} pages of the kernel could not be read to their end", self.merge.damaged()));
        }
        let retained = Retained { wanted: retained?, instance: self.instance };
        retained.instance.set_tracing(true).ok().map(|()| retained)
    }

    /// Adds the kernel's losses since the last check to the ledger.
    //= docs/kernel.md#losses
    fn count_losses(&mut self) {
        self.looked = Instant::now();
        let now = ticks::now();
        for (cpu, before, since) in &mut self.losses {
            let Ok(losses) = self.instance.losses(*cpu) else {
                continue;
            };
            let grown = [
                (LossReason::KernelOverrun, losses.overrun, before.overrun),
                (LossReason::KernelDropped, losses.dropped, before.dropped),
                (LossReason::KernelCommitOverrun, losses.commit_overrun, before.commit_overrun),
            ];
            for (reason, count, before) in grown {
                if count > before {
                    ffi::add_losses(reason, count - before, *since, now);
                }
            }
            (*before, *since) = (losses, now);
        }
    }
}

/// Enables the wanted events, as far as the kernel has them.
fn enable_wanted(
    tracefs: &Tracefs,
    instance: &mut Instance,
    decoder: &mut Decoder<EngineRecords>,
    wanted: &EventSelection,
) {
    let not_of_this_thread = format!("common_pid != {}", rustix::thread::gettid().as_raw_nonzero());
    let enable = |instance: &Instance, what: &str, point: &str, add: &mut dyn FnMut(&Format)| {
        let enabled = tracefs.format(point).and_then(|format| {
            add(&format);
            instance.enable(point)
        });
        if let Err(error) = enabled {
            report(&format!("{what}: not recorded: {error}"));
        }
    };
    for (category, points) in &wanted.points {
        // A kernel that lacks an event of a category still has the others.
        for point in tracefs.expand(points) {
            enable(instance, category, &point, &mut |format| decoder.add(category, format));
            if OF_THREADS.contains(category) {
                // A kernel without filters reports a little more.
                let _ = instance.set(&format!("events/{point}/filter"), &not_of_this_thread);
            }
        }
    }
    for points in &wanted.single {
        let found = tracefs.expand(points);
        if found.is_empty() {
            report(&format!("kernel:tp:{}: the kernel has no such event", points.replace('/', ":")));
        }
        for point in found {
            let what = format!("kernel:tp:{}", point.replace('/', ":"));
            enable(instance, &what, &point, &mut |format| {
                decoder.add_instant(POINT_CATEGORY, &format.name, format);
            });
        }
    }
    for category in &wanted.probes {
        let Some(probe) = Probe::parse(category) else {
            report(&format!("{category}: not recorded: its location is missing"));
            continue;
        };
        match instance.add_probe(&probe) {
            Ok(point) => enable(instance, category, &point, &mut |format| {
                decoder.add_instant(PROBE, probe.name(), format);
            }),
            Err(error) => {
                let missing = tracefs.missing_probes(category);
                let complaint = missing
                    .map(str::to_owned)
                    .or_else(|| tracefs.last_complaint())
                    .map_or_else(|| error.to_string(), |why| format!("{why} ({error})"));
                report(&format!("{category}: the kernel rejected this probe: {complaint}"));
            }
        }
    }
    if wanted.markers || wanted.texts {
        // Such a text is an event by itself, whether it is enabled or not.
        let copied = tracefs.format(PRINT).and_then(|format| {
            decoder.add(META, &format);
            instance.copy_markers()
        });
        if let Err(error) = copied {
            report(&format!("markers are not recorded: {error}: this needs Linux 6.14 or newer"));
        }
    }
}
