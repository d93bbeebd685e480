//! The Linux kernel's events as records: the scheduler, interrupts, markers of programs, names.
//= docs/import.md#kernel-events

use crate::marker::{Marker, Scope as MarkerScope};
use crate::open_markers::OpenMarkers;
use crate::records::{Records, inline};
use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use trace_format::argument::{Argument, ArgumentValue, Arguments};
use trace_format::event::{EventKind, Scope};
use trace_format::record::Record;
use trace_format::scheduling::{
    IDLE_WEIGHT, INCOMING_WEIGHT_ARGUMENT, OUTGOING_WEIGHT_ARGUMENT, Scheduling, ThreadState, WAKER_ARGUMENT,
    WEIGHT_ARGUMENT,
};
use trace_format::units::{Koid, Thread, ThreadKoid, Ticks};

/// The idle thread of CPU n has this number and n: Linux has one number for all of them.
const IDLE: u32 = 0x7fff_0000;

/// Category of markers that programs write into `trace_marker`.
pub const ATRACE: &[u8] = b"atrace";
/// Category of interrupts.
pub const IRQ: &[u8] = b"kernel:irq";
/// Category of the kernel's records about its own trace.
pub const META: &[u8] = b"kernel:meta";
/// Category of frequencies and idle states.
pub const POWER: &[u8] = b"kernel:power";
/// Category of other text in `trace_marker`, and of probes.
pub const PROBE: &[u8] = b"kernel:probe";
/// Category of system calls.
pub const SYSCALL: &[u8] = b"kernel:syscall";
/// Tracepoints that have no meaning of their own here.
pub const OTHER: &[u8] = b"kernel:tp";

/// The name under which ends of durations without a begin in the trace are counted.
pub const END_WITHOUT_BEGIN: &str = "ends of spans that began before the trace";

/// Threads whose process and name are remembered.
const MAX_THREADS: usize = 1 << 20;
/// Memory for remembered names of threads; beyond it, a name is written each time that it is reported.
const MAX_NAMES_BYTES: usize = 64 << 20;
/// Maximum memory of a name besides its text.
const ENTRY_BYTES: usize = 64;

const SOFT_INTERRUPTS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// A name for a kind of soft interrupt.
pub fn soft_interrupt(vector: u32) -> &'static str {
    usize::try_from(vector).ok().and_then(|vector| SOFT_INTERRUPTS.get(vector).copied()).unwrap_or("?")
}

/// A thread on one side of a context switch.
pub struct Side<'a> {
    /// Its number; 0 is the idle thread's.
    pub tid: u32,
    /// None where the kernel does not report it.
    pub name: Option<&'a [u8]>,
    /// Linux's priority: lower is stronger.
    pub prio: i32,
}

/// Turns the kernel's reports into records.
pub struct Kernel<R> {
    /// The output of records.
    pub writer: R,
    /// The process of each thread.
    processes: HashMap<u32, u32>,
    /// Names of threads.
    names: HashMap<u32, Box<[u8]>>,
    names_bytes: usize,
    /// Processes that have a name of their own, better than their first thread's.
    named: HashSet<u32>,
    /// Markers whose ends have not come yet; none if ends may come before their begins.
    open: Option<OpenMarkers>,
    /// The numbers that processes of other pid namespaces have for themselves.
    called: HashMap<u32, u32>,
    /// CPUs whose own thread has its name.
    cpus: Vec<bool>,
    /// `sched_waking` is recorded, so that `sched_wakeup` would repeat it.
    has_waking: bool,
}

impl<R: Records> Kernel<R> {
    /// Starts without any known thread.
    pub fn new(writer: R) -> Self {
        let open = writer.is_in_order().then(OpenMarkers::new);
        Self {
            writer,
            processes: HashMap::new(),
            names: HashMap::new(),
            names_bytes: 0,
            named: HashSet::new(),
            open,
            called: HashMap::new(),
            cpus: Vec::new(),
            has_waking: false,
        }
    }

    /// Records that a thread belongs to a process; 0 if it is unknown.
    pub fn belongs(&mut self, tid: u32, tgid: u32) {
        if tid == 0 || tgid == 0 || self.processes.get(&tid) == Some(&tgid) {
            return;
        }
        if self.processes.len() >= MAX_THREADS && !self.processes.contains_key(&tid) {
            return;
        }
        self.processes.insert(tid, tgid);
        if let Some(name) = self.take_name(tid) {
            self.rename(tid, &name);
        }
    }

    /// Forgets a thread's name.
    fn take_name(&mut self, tid: u32) -> Option<Box<[u8]>> {
        let name = self.names.remove(&tid)?;
        self.names_bytes -= name.len() + ENTRY_BYTES;
        Some(name)
    }

    /// Records a thread's name, as the kernel has it.
    pub fn rename(&mut self, tid: u32, name: &[u8]) {
        if tid == 0 || name.is_empty() || self.names.get(&tid).is_some_and(|known| **known == *name) {
            return;
        }
        self.take_name(tid);
        if self.names_bytes + name.len() + ENTRY_BYTES <= MAX_NAMES_BYTES {
            self.names_bytes += name.len() + ENTRY_BYTES;
            self.names.insert(tid, name.into());
        }
        let thread = self.thread(tid);
        self.writer.name_thread(thread, name);
        if thread.process == thread.thread && !self.named.contains(&tid) {
            self.writer.name_process(thread.process, name);
        }
    }

    /// Records a process's own name.
    pub fn name_process(&mut self, tgid: u32, name: &[u8]) {
        if self.named.len() < MAX_THREADS {
            self.named.insert(tgid);
        }
        self.writer.name_process(Koid(tgid.into()), name);
    }

    /// Records a name from a source that may be out of date.
    pub fn rename_if_unknown(&mut self, tid: u32, name: &[u8]) {
        if !self.names.contains_key(&tid) {
            self.rename(tid, name);
        }
    }

    /// A thread has ended; its number may be reused.
    pub fn forget(&mut self, tid: u32) {
        self.processes.remove(&tid);
        self.take_name(tid);
        self.named.remove(&tid);
        self.called.remove(&tid);
        self.open.iter_mut().for_each(|open| open.forget(tid));
    }

    /// A thread with its process, if that is known.
    pub fn thread(&self, tid: u32) -> Thread {
        let process = self.processes.get(&tid).copied().unwrap_or(0);
        Thread { process: Koid(process.into()), thread: Koid(tid.into()) }
    }

    /// The thread for events of a CPU, whichever thread it runs: its idle thread.
    pub fn cpu(&mut self, cpu: u16) -> Thread {
        let thread = Thread { process: Koid(0), thread: Koid((IDLE + u32::from(cpu)).into()) };
        let cpu = usize::from(cpu);
        if self.cpus.len() <= cpu {
            self.cpus.resize(cpu + 1, false);
        }
        if !std::mem::replace(&mut self.cpus[cpu], true) {
            self.writer.name_thread(thread, format!("cpu-{cpu}").as_bytes());
        }
        thread
    }

    fn scheduled(&mut self, cpu: u16, side: &Side<'_>) -> (ThreadKoid, i32) {
        if side.tid == 0 {
            return (ThreadKoid(self.cpu(cpu).thread), IDLE_WEIGHT);
        }
        side.name.iter().for_each(|name| self.rename(side.tid, name));
        (ThreadKoid(Koid(side.tid.into())), side.prio)
    }

    /// A CPU switches from one thread to another.
    pub fn switch(
        &mut self,
        at: u64,
        cpu: u16,
        outgoing: &Side<'_>,
        state: ThreadState,
        incoming: &Side<'_>,
    ) {
        let (outgoing, outgoing_weight) = self.scheduled(cpu, outgoing);
        let (incoming, incoming_weight) = self.scheduled(cpu, incoming);
        let weights = [
            weight(self.writer.constant(OUTGOING_WEIGHT_ARGUMENT.as_bytes()), outgoing_weight),
            weight(self.writer.constant(INCOMING_WEIGHT_ARGUMENT.as_bytes()), incoming_weight),
        ];
        let switch = Scheduling::ContextSwitch {
            timestamp: Ticks(at),
            cpu,
            outgoing_state: state,
            outgoing,
            incoming,
            arguments: Arguments::from_slice(&weights),
        };
        self.writer.at(at, &Record::Scheduling(switch));
    }

    /// A thread becomes ready to run; `waker` is the thread that woke it, unless an interrupt did.
    pub fn waking(&mut self, at: u64, cpu: u16, woken: &Side<'_>, waker: Option<u32>) {
        self.has_waking = true;
        let (thread, prio) = self.scheduled(cpu, woken);
        let mut arguments = vec![weight(self.writer.constant(WEIGHT_ARGUMENT.as_bytes()), prio)];
        if let Some(waker) = waker.filter(|waker| *waker != 0) {
            let name = self.writer.constant(WAKER_ARGUMENT.as_bytes());
            arguments.push(Argument { name, value: ArgumentValue::Koid(Koid(waker.into())) });
        }
        let wakeup = Scheduling::ThreadWakeup {
            timestamp: Ticks(at),
            cpu,
            thread,
            arguments: Arguments::from_slice(&arguments),
        };
        self.writer.at(at, &Record::Scheduling(wakeup));
    }

    /// The end of a wakeup, which counts only if its beginning is never reported.
    pub fn wakeup(&mut self, at: u64, cpu: u16, woken: &Side<'_>, waker: Option<u32>) {
        if !self.has_waking {
            self.waking(at, cpu, woken, waker);
            self.has_waking = false;
        }
    }

    /// The kernel dropped events of a CPU before this time.
    pub fn lost(&mut self, at: u64, cpu: u16, count: Option<u64>) {
        let thread = self.cpu(cpu);
        let arguments: Vec<_> = count
            .map(|count| Argument {
                name: self.writer.constant(b"num_records"),
                value: ArgumentValue::Uint64(count),
            })
            .into_iter()
            .collect();
        self.writer.event(
            at,
            thread,
            META,
            b"drop_stats",
            EventKind::Instant { scope: Scope::Thread },
            &arguments,
        );
        let count = count.map_or("events".to_owned(), |count| format!("{count} events"));
        self.writer.warn(format!("the kernel lost {count} of CPU {cpu}"));
    }

    /// Whether a line in the kernel's buffer is one of Android's markers.
    #[must_use]
    pub fn is_marker(text: &[u8]) -> bool {
        Marker::parse(trimmed(text)).is_some()
    }

    /// The process of a thread, if it is known.
    #[must_use]
    pub fn process_of(&self, tid: u32) -> Option<u32> {
        self.processes.get(&tid).copied()
    }

    /// The process that a marker comes from and that it has another number for, unless that number is known.
    #[must_use]
    pub fn unknown_caller(&self, tid: u32, text: &[u8]) -> Option<u32> {
        let process = *self.processes.get(&tid)?;
        let tgid = Marker::parse(trimmed(text))?.tgid()?;
        (tgid != 0 && tgid != process && !self.called.contains_key(&process)).then_some(process)
    }

    /// Records the number that a process has in its own pid namespace.
    //= docs/kernel.md#containers
    pub fn calls_itself(&mut self, process: u32, number: u32) {
        if self.called.len() < MAX_THREADS {
            self.called.insert(process, number);
        }
    }

    /// A line that a program wrote into the kernel's buffer, of any bytes: what is not UTF-8 is replaced.
    //= docs/import.md#markers
    pub fn marker(&mut self, at: u64, tid: u32, text: &[u8]) {
        let text = trimmed(text);
        if text.starts_with(b"trace_event_clock_sync:") {
            return;
        }
        let Some(mut marker) = Marker::parse(text) else {
            let thread = self.thread(tid);
            let text = String::from_utf8_lossy(text);
            let value = ArgumentValue::String(inline(text.as_bytes()));
            let name = self.writer.constant(b"text");
            let argument = Argument { name, value };
            let kind = EventKind::Instant { scope: Scope::Thread };
            return self.writer.event(at, thread, PROBE, b"print", kind, &[argument]);
        };
        if let Some(process) = self.processes.get(&tid)
            && let Some(tgid) = marker.tgid_mut()
            && self.called.get(process) == Some(tgid)
        {
            *tgid = *process;
        }
        let thread = self.marked(tid, &marker);
        let id = marker.id();
        match marker {
            Marker::Begin { name, .. } => {
                self.open.iter_mut().for_each(|open| open.begin(tid, thread, name));
                self.marked_event(at, thread, name, EventKind::DurationBegin, None);
            }
            Marker::End { .. } => self.end_of_marker(at, tid, thread),
            Marker::Counter { name, value, .. } => {
                self.marked_event(at, thread, name, EventKind::Counter { id: 0 }, Some(("value", value)));
            }
            Marker::AsyncBegin { name, .. } => {
                self.open.iter_mut().for_each(|open| open.begin_operation(id, name));
                self.marked_event(at, thread, name, EventKind::AsyncBegin { id }, None);
            }
            Marker::AsyncEnd { name: own, .. } => {
                let begun = self.open.as_mut().and_then(|open| open.end_operation(id));
                let name = begun.as_deref().filter(|name| !name.is_empty()).unwrap_or(own);
                self.marked_event(at, thread, name, EventKind::AsyncEnd { id }, None);
            }
            Marker::Instant { track, name, .. } => {
                let track = track.map(String::from_utf8_lossy);
                let track =
                    track.as_ref().map(|track| ("track", ArgumentValue::String(inline(track.as_bytes()))));
                self.marked_event(at, thread, name, EventKind::Instant { scope: Scope::Thread }, track);
            }
        }
    }

    /// The end of a duration, with name and thread of its begin.
    fn end_of_marker(&mut self, at: u64, tid: u32, thread: Thread) {
        let kind = EventKind::DurationEnd;
        let Some(open) = &mut self.open else {
            return self.marked_event(at, thread, b"", kind, None);
        };
        match open.end(tid, thread) {
            // The thread's process may have become known in between.
            Some(begin) => self.marked_event(at, begin.thread, &begin.name, kind, None),
            None => self.writer.leave_out(END_WITHOUT_BEGIN),
        }
    }

    fn marked_event(
        &mut self,
        at: u64,
        thread: Thread,
        name: &[u8],
        kind: EventKind,
        argument: Option<(&str, ArgumentValue<'_>)>,
    ) {
        let argument =
            argument.map(|(name, value)| Argument { name: self.writer.constant(name.as_bytes()), value });
        let name = String::from_utf8_lossy(name);
        self.writer.event(at, thread, ATRACE, name.as_bytes(), kind, argument.as_slice());
    }

    /// The thread of a marker's event. A process's marker may be written by another process.
    fn marked(&mut self, tid: u32, marker: &Marker<'_>) -> Thread {
        let known = self.processes.get(&tid).copied();
        match (marker.tgid().filter(|tgid| *tgid != 0), known) {
            (Some(tgid), None) => {
                self.belongs(tid, tgid);
                self.thread(tid)
            }
            (Some(tgid), Some(known)) if tgid != known && marker.scope() == MarkerScope::Process => {
                Thread { process: Koid(tgid.into()), thread: Koid(tgid.into()) }
            }
            _ => self.thread(tid),
        }
    }
}

fn weight(name: trace_format::refs::StringRef<'_>, weight: i32) -> Argument<'_> {
    Argument { name, value: ArgumentValue::Int32(weight) }
}

fn trimmed(text: &[u8]) -> &[u8] {
    let text = text.trim_ascii_end();
    text.strip_suffix(b"\0").unwrap_or(text)
}
