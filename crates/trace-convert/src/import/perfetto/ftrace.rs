//! The kernel's events in packets.

use super::wire::{self, Fields, bundle_bytes};
use super::{Importer, MAX_DECODED_BYTES, NO_RELATION};
use crate::export::perfetto::messages::{CLOCK_BOOTTIME, CompactSched, FtraceEvent, PowerState, SchedWaking};
use crate::export::perfetto::published;
use std::io::Write;
use trace_format::argument::{Argument, ArgumentValue};
use trace_format::event::EventKind;
use trace_format::scheduling::ThreadState;
use trace_linux::{CLONE_THREAD, IRQ, POWER, Records, SYSCALL, Side, inline, soft_interrupt};

/// Flags of an event: in a hard or a soft interrupt.
const IN_INTERRUPT: u32 = 8 | 16;
/// Fields of an event besides its contents: its time, its thread, and these flags.
const BESIDE: [u32; 3] = [1, 2, 5];
/// A bundle's field with an event.
const EVENT: u32 = 2;
/// The kernel's own names of threads are shorter.
const MAX_NAME_BYTES: usize = 255;

/// The thread that runs on a CPU.
pub(super) struct Running {
    tid: u32,
    prio: i32,
    name: Box<str>,
}

impl Running {
    fn new(tid: u32, prio: i32, name: &str) -> Self {
        Self { tid, prio, name: name[..name.floor_char_boundary(MAX_NAME_BYTES)].into() }
    }
}

/// The lowest bit that is set.
//= docs/import.md#kernel-events
fn thread_state(bits: i64) -> ThreadState {
    match bits & 0xff {
        0 => ThreadState::RUNNING,
        bits => match bits & -bits {
            4 | 8 => ThreadState::SUSPENDED,
            16 | 128 => ThreadState::DEAD,
            32 => ThreadState::DYING,
            _ => ThreadState::BLOCKED,
        },
    }
}

fn woken(waking: &SchedWaking) -> Side<'_> {
    Side {
        tid: waking.pid.unwrap_or(0) as u32,
        name: waking.comm.as_deref().map(str::as_bytes),
        prio: waking.prio.unwrap_or(0),
    }
}

impl<W: Write> Importer<W> {
    /// A bundle of events, which are decoded one by one.
    pub(super) fn bundle(&mut self, offset: u64, bytes: &[u8]) {
        if bundle_bytes(bytes) > MAX_DECODED_BYTES {
            return self.kernel.writer.skip("packets that are too large");
        }
        let bundle = match wire::bundle(bytes) {
            Ok((bundle, texts)) => {
                self.mended_texts += texts;
                bundle
            }
            Err(error) => return self.kernel.writer.undecodable(offset, "kernel event bundle", &error),
        };
        let events = || {
            let fields = Fields::of(bytes).filter(|(number, _)| *number == EVENT);
            fields.filter_map(|(_, payload)| payload)
        };
        let cpu = u16::try_from(bundle.cpu.unwrap_or(0)).unwrap_or(u16::MAX);
        if bundle.ftrace_clock.is_some_and(|clock| clock != 0) {
            return self.kernel.writer.skip("kernel events of another clock than the boot clock");
        }
        if bundle.lost_events == Some(true) {
            let first = events().find_map(|event| wire::event(event).ok()?.0.timestamp);
            let first = first.or_else(|| bundle.compact_sched.as_ref()?.switch_timestamp.first().copied());
            let first = first.and_then(|first| self.kernel_time(first));
            self.kernel.lost(first.unwrap_or(0), cpu, None);
        }
        if let Some(compact) = &bundle.compact_sched {
            self.switches(cpu, compact);
            self.wakings(compact);
        }
        for event in events() {
            match wire::event(event) {
                Ok((decoded, texts)) => {
                    self.mended_texts += texts;
                    self.kernel_event(cpu, &decoded, event);
                }
                Err(error) => self.kernel.writer.undecodable(offset, "kernel event", &error),
            }
        }
    }

    /// A time of the boot clock as the trace's; none, which is counted, if no snapshot relates the two.
    fn kernel_time(&mut self, at: u64) -> Option<u64> {
        let found = self.clocks.trace_time(0, Some(CLOCK_BOOTTIME), at);
        if found.is_none() {
            self.kernel.writer.skip(NO_RELATION);
        }
        found
    }

    /// Compact switches name only the incoming thread: the outgoing one is the one before.
    fn switches(&mut self, cpu: u16, compact: &CompactSched) {
        let columns = compact.switch_prev_state.iter().zip(&compact.switch_next_pid);
        let columns = columns.zip(compact.switch_next_prio.iter().zip(&compact.switch_next_comm_index));
        let mut now = 0_u64;
        for (delta, ((state, next), (prio, name))) in compact.switch_timestamp.iter().zip(columns) {
            now = now.saturating_add(*delta);
            let Some(at) = self.kernel_time(now) else { continue };
            let name = compact.intern_table.get(*name as usize).map_or("", String::as_str);
            let incoming = Side { tid: *next as u32, name: Some(name.as_bytes()), prio: *prio };
            let running = Running::new(*next as u32, *prio, name);
            match self.switches.insert(cpu, running) {
                Some(before) => {
                    let outgoing =
                        Side { tid: before.tid, name: Some(before.name.as_bytes()), prio: before.prio };
                    self.kernel.switch(at, cpu, &outgoing, thread_state(*state), &incoming);
                }
                None => self.kernel.writer.skip("first switches of a CPU, which do not tell who ran"),
            }
        }
    }

    fn wakings(&mut self, compact: &CompactSched) {
        let columns = compact.waking_pid.iter().zip(&compact.waking_target_cpu);
        let columns = columns.zip(compact.waking_prio.iter().zip(&compact.waking_comm_index));
        let mut now = 0_u64;
        for (delta, ((tid, cpu), (prio, name))) in compact.waking_timestamp.iter().zip(columns) {
            now = now.saturating_add(*delta);
            let Some(at) = self.kernel_time(now) else { continue };
            let name = compact.intern_table.get(*name as usize).map(String::as_bytes);
            let woken = Side { tid: *tid as u32, name, prio: *prio };
            self.kernel.waking(at, u16::try_from(*cpu).unwrap_or(u16::MAX), &woken, None);
        }
    }

    fn kernel_event(&mut self, cpu: u16, event: &FtraceEvent, bytes: &[u8]) {
        let Some(at) = event.timestamp else {
            return self.kernel.writer.skip("kernel events without a time");
        };
        let Some(at) = self.kernel_time(at) else { return };
        let kernel = &mut self.kernel;
        let tid = event.pid.unwrap_or(0);
        let waker = event.common_flags.is_none_or(|flags| flags & IN_INTERRUPT == 0).then_some(tid);
        let target = |waking: &SchedWaking| {
            waking.target_cpu.and_then(|target| u16::try_from(target).ok()).unwrap_or(cpu)
        };
        if let Some(switch) = &event.sched_switch {
            let side = |tid: Option<i32>, name: &'_ Option<String>, prio: Option<i32>| {
                (tid.unwrap_or(0) as u32, name.clone().unwrap_or_default(), prio.unwrap_or(0))
            };
            let (tid, name, prio) = side(switch.prev_pid, &switch.prev_comm, switch.prev_prio);
            let outgoing = Side { tid, name: Some(name.as_bytes()), prio };
            let (tid, name, prio) = side(switch.next_pid, &switch.next_comm, switch.next_prio);
            let incoming = Side { tid, name: Some(name.as_bytes()), prio };
            let state = thread_state(switch.prev_state.unwrap_or(0));
            kernel.switch(at, cpu, &outgoing, state, &incoming);
            self.switches.insert(cpu, Running::new(tid, prio, &name));
        } else if let Some(waking) = event.sched_waking.as_ref().or(event.sched_wakeup_new.as_ref()) {
            kernel.waking(at, target(waking), &woken(waking), waker);
        } else if let Some(waking) = &event.sched_wakeup {
            kernel.wakeup(at, target(waking), &woken(waking), waker);
        } else if let Some(print) = &event.print {
            kernel.marker(at, tid, print.buf.as_deref().unwrap_or_default().as_bytes());
        } else if let Some(task) = &event.task_newtask {
            let new = task.pid.unwrap_or(0) as u32;
            let is_thread = task.clone_flags.unwrap_or(0) & CLONE_THREAD != 0;
            let creator = kernel.thread(tid).process.0 as u32;
            kernel.belongs(new, if is_thread { creator } else { new });
            kernel.rename(new, task.comm.as_deref().unwrap_or_default().as_bytes());
        } else if let Some(task) = &event.task_rename {
            let name = task.newcomm.as_deref().unwrap_or_default();
            kernel.rename(task.pid.unwrap_or(0) as u32, name.as_bytes());
        } else if let Some(entry) = &event.softirq_entry {
            let vector = entry.vec.unwrap_or(0);
            let name = soft_interrupt(vector).as_bytes();
            self.interrupt(at, cpu, "softirq", ("vec", vector), name);
        } else if let Some(entry) = &event.irq_handler_entry {
            let name = entry.name.as_deref().unwrap_or_default().as_bytes();
            self.interrupt(at, cpu, "irq", ("irq #", entry.irq.unwrap_or(0) as u32), name);
        } else if event.softirq_exit.is_some() || event.irq_handler_exit.is_some() {
            let thread = kernel.cpu(cpu);
            kernel.writer.event(at, thread, IRQ, b"", EventKind::DurationEnd, &[]);
        } else if let Some(call) = &event.sys_enter {
            let (thread, name) = (kernel.thread(tid), format!("sys_{}", call.id.unwrap_or(0)));
            kernel.writer.event(at, thread, SYSCALL, name.as_bytes(), EventKind::DurationBegin, &[]);
        } else if event.sys_exit.is_some() {
            let thread = kernel.thread(tid);
            kernel.writer.event(at, thread, SYSCALL, b"", EventKind::DurationEnd, &[]);
        } else if let Some(state) = &event.cpu_frequency {
            self.power(at, cpu, "cpu_frequency", state);
        } else if let Some(state) = &event.cpu_idle {
            self.power(at, cpu, "cpu_idle", state);
        } else {
            let kind = Fields::of(bytes).map(|(field, _)| field).find(|field| !BESIDE.contains(field));
            let name = kind.and_then(|kind| published::name("FtraceEvent", kind));
            match (name, kind) {
                (Some(name), _) => kernel.writer.skip(format!("{name} kernel events")),
                (None, Some(kind)) => kernel.writer.skip(format!("kernel events with field {kind}")),
                (None, None) => kernel.writer.skip("kernel events of no kind"),
            }
        }
    }

    fn interrupt(&mut self, at: u64, cpu: u16, kind: &str, (number, value): (&str, u32), name: &[u8]) {
        let thread = self.kernel.cpu(cpu);
        let writer = &mut self.kernel.writer;
        let arguments = [
            Argument { name: writer.string(number.as_bytes()), value: ArgumentValue::Uint32(value) },
            Argument { name: writer.string(b"name"), value: ArgumentValue::String(inline(name)) },
        ];
        writer.event(at, thread, IRQ, kind.as_bytes(), EventKind::DurationBegin, &arguments);
    }

    fn power(&mut self, at: u64, cpu: u16, name: &str, state: &PowerState) {
        let cpu = state.cpu_id.and_then(|cpu| u16::try_from(cpu).ok()).unwrap_or(cpu);
        let thread = self.kernel.cpu(cpu);
        let writer = &mut self.kernel.writer;
        // Leaving the idle state is all bits set.
        let value = i64::from(state.state.unwrap_or(0) as i32);
        let value = Argument { name: writer.string(b"state"), value: ArgumentValue::Int64(value) };
        let kind = EventKind::Counter { id: cpu.into() };
        writer.event(at, thread, POWER, name.as_bytes(), kind, &[value]);
    }
}
