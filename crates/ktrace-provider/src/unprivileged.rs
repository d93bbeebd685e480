//! Recording without privileges: when the threads of the user's own programs run, as reported by
//! `perf_event_open`.
//= docs/kernel.md#without-privileges

use crate::perf::{
    self, COMM, FORK, Feed, IS_EXEC, Kind, LOST, RING_BYTES, Rings, Synchronized, TRAILER_BYTES,
};
use crate::processes;
use crate::records::EngineRecords;
use perf_event::Builder;
use perf_event::events::Software;
use trace_engine::ffi;
use trace_format::argument::{Argument, ArgumentValue, Arguments};
use trace_format::event::EventKind;
use trace_format::record::Record;
use trace_format::scheduling::{Scheduling, ThreadState};
use trace_format::slab::LossReason;
use trace_format::units::{ThreadKoid, Ticks};
use trace_linux::{Kernel, META, Records};

/// Flags of a switch: the thread is the outgoing one; it was preempted.
const IS_OUT: u16 = 1 << 13;
const IS_PREEMPTED: u16 = 1 << 14;
const SWITCH: u32 = 14;

/// The switches of threads, from here on.
pub struct OwnThreads {
    feed: Feed<Item>,
    kernel: Kernel<EngineRecords>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Item {
    at: u64,
    cpu: u16,
    process: u32,
    thread: u32,
    what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    In,
    Out {
        is_preempted: bool,
    },
    Name {
        name: Vec<u8>,
        is_program: bool,
    },
    /// The new one.
    Thread {
        process: u32,
        thread: u32,
    },
    Lost(u64),
}

/// Whether the kernel reports anything at all to a user without privileges.
#[must_use]
pub fn is_permitted() -> bool {
    builder().observe_self().any_cpu().build().is_ok()
}

fn builder() -> Builder<'static> {
    let mut builder = perf::builder(Software::DUMMY);
    builder.exclude_kernel(true).context_switch(true).comm(true).comm_exec(true).task(true);
    builder
}

impl OwnThreads {
    /// Starts with the threads of the user's programs and their children; the process that records comes
    /// first, as the recorded program is its child. Threads for which the kernel has no room are reported.
    #[must_use]
    pub fn start(rate: u64) -> Self {
        let mut kernel = Kernel::new(EngineRecords::new());
        let rings =
            Rings::open("threads", &[Kind { builder: &builder, bytes: RING_BYTES, budget: usize::MAX }]);
        rings.cpus().for_each(|cpu| _ = kernel.cpu(cpu));
        processes::scan(&mut kernel);
        Self { feed: Feed::new(rings, rate, |item| item.at), kernel }
    }

    /// Records the events that the kernel has written.
    pub fn drain(&mut self) {
        self.feed.read(Item::parse).into_iter().for_each(|item| item.record(&mut self.kernel));
    }

    /// Processes the rest.
    pub fn finish(mut self) {
        self.feed.rest(Item::parse).into_iter().for_each(|item| item.record(&mut self.kernel));
    }
}

impl Item {
    /// None for irrelevant records.
    fn parse(kind: u32, flags: u16, bytes: &[u8], clock: &Synchronized) -> Option<Self> {
        let body = bytes.len().checked_sub(TRAILER_BYTES)?;
        let u32_at = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let u64_at = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let what = match kind {
            SWITCH if flags & IS_OUT == 0 => What::In,
            SWITCH => What::Out { is_preempted: flags & IS_PREEMPTED != 0 },
            COMM => What::Name {
                name: crate::format::cut(bytes.get(8..body)?).to_vec(),
                is_program: flags & IS_EXEC != 0,
            },
            FORK => What::Thread { process: u32_at(0)?, thread: u32_at(8)? },
            LOST => What::Lost(u64_at(8)?),
            _ => return None,
        };
        Some(Self {
            process: u32_at(body)?,
            thread: u32_at(body + 4)?,
            at: clock.ticks(u64_at(body + 8)?),
            cpu: u16::try_from(u32_at(body + 16)?).ok()?,
            what,
        })
    }

    fn record<R: Records>(self, kernel: &mut Kernel<R>) {
        let Self { at, cpu, process, thread, what } = self;
        match what {
            What::In | What::Out { .. } => {
                kernel.belongs(thread, process);
                let idle = ThreadKoid(kernel.cpu(cpu).thread);
                let own = ThreadKoid(kernel.thread(thread).thread);
                let (outgoing, incoming, outgoing_state) = match what {
                    What::Out { is_preempted: true } => (own, idle, ThreadState::RUNNING),
                    What::Out { is_preempted: false } => (own, idle, ThreadState::BLOCKED),
                    _ => (idle, own, ThreadState::RUNNING),
                };
                let arguments = Arguments::from_slice(&[]);
                let timestamp = Ticks(at);
                let switch = Scheduling::ContextSwitch {
                    timestamp,
                    cpu,
                    outgoing_state,
                    outgoing,
                    incoming,
                    arguments,
                };
                kernel.writer.at(at, &Record::Scheduling(switch));
            }
            What::Name { name, is_program } => {
                kernel.belongs(thread, process);
                kernel.rename(thread, &name);
                if is_program {
                    kernel.name_process(process, &name);
                }
            }
            What::Thread { process, thread } => kernel.belongs(thread, process),
            What::Lost(count) => {
                let cpu = kernel.cpu(cpu);
                let name = kernel.writer.constant(b"num_records");
                let count_value = ArgumentValue::Uint32(u32::try_from(count).unwrap_or(u32::MAX));
                let arguments = [Argument { name, value: count_value }];
                let kind = EventKind::DurationComplete { end: Ticks(at) };
                kernel.writer.event(at, cpu, META, b"drop_stats", kind, &arguments);
                ffi::add_losses(LossReason::KernelOverrun, count, at, at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Lines;

    fn trailer(process: u32, thread: u32, nanos: u64, cpu: u32) -> Vec<u8> {
        let words = [
            &process.to_le_bytes()[..],
            &thread.to_le_bytes(),
            &nanos.to_le_bytes(),
            &cpu.to_le_bytes(),
            &[0; 4],
        ];
        words.concat()
    }

    //= docs/kernel.md#without-privileges
    #[test]
    fn records_say_who_runs() {
        let clock = Synchronized { nanos: 1_000_000, ticks: 5_000_000, rate: 3_000_000_000 };
        let mut kernel = Kernel::new(Lines::default());
        let fork = [&7_u32.to_le_bytes()[..], &5_u32.to_le_bytes(), &8_u32.to_le_bytes(), &[0; 12]].concat();
        let comm = [&7_u32.to_le_bytes()[..], &8_u32.to_le_bytes(), b"worker\0\0"].concat();
        for (kind, flags, body, nanos) in [
            (FORK, 0, fork, 1_000_000),
            (COMM, 0, comm, 1_000_010),
            (SWITCH, 0, Vec::new(), 1_000_020),
            (SWITCH, IS_OUT, Vec::new(), 999_990),
            (SWITCH, IS_OUT | IS_PREEMPTED, Vec::new(), 1_000_030),
        ] {
            let bytes = [body, trailer(7, 8, nanos, 1)].concat();
            Item::parse(kind, flags, &bytes, &clock).unwrap().record(&mut kernel);
        }
        assert_eq!(
            kernel.writer.0,
            [
                "thread 7/8: worker",
                "thread 0/2147418113: cpu-1",
                "5000060 cpu 1: 2147418113 running -> 8",
                "4999970 cpu 1: 8 blocked -> 2147418113",
                "5000090 cpu 1: 8 running -> 2147418113",
            ]
        );
        assert_eq!(Item::parse(SWITCH, 0, &[0; 8], &clock), None);
        assert_eq!(Item::parse(99, 0, &trailer(7, 8, 0, 1), &clock), None);
    }
}
