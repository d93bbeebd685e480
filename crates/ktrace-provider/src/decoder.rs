//! Turns the kernel's events into records.
//= docs/kernel.md#records

use crate::applications::Applications;
use crate::format::{FieldLocation, Format, Kind};
use crate::processes;
use crate::semantics::{Head, Interrupt, Semantics, Task};
use crate::symbols::Symbols;
use foldhash::{HashMap, HashMapExt};
use trace_format::argument::{Argument, ArgumentValue, MAX_ARGUMENTS};
use trace_format::event::{EventKind, Scope};
use trace_format::scheduling::ThreadState;
use trace_format::units::{Thread, Ticks};
use trace_linux::{CLONE_THREAD, IRQ, Kernel, META, POWER, Records, SYSCALL, Side, inline, soft_interrupt};

/// Maximum depth of nested interrupts and of a thread's open operations; deeper ones are lost ends.
const MAX_NESTED: usize = 16;
const INSTANT: EventKind = EventKind::Instant { scope: Scope::Thread };
const VM: &[u8] = b"kernel:vm";
const WORKQUEUE: &[u8] = b"kernel:workqueue";
const CONTENTION: &[u8] = b"kernel:contention";
const MEMORY: &[u8] = b"kernel:memory";
/// The counts of `rss_stat`, by their numbers.
const RESIDENT: [&[u8]; 4] = [b"file", b"anon", b"swap", b"shmem"];

/// A known event.
struct Point {
    semantics: Semantics,
    category: Box<[u8]>,
    name: Box<[u8]>,
    /// Its own fields, for an instant.
    fields: Vec<(Box<[u8]>, FieldLocation)>,
}

/// A handler that runs on a CPU.
struct Running {
    at: u64,
    kind: Interrupt,
    number: u32,
    name: Box<[u8]>,
}

/// An open operation of a thread in the kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Doing {
    Call(u64),
    Work(u64),
    Contention,
}

/// Selects texts in `trace_marker`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Texts {
    /// Android's.
    pub markers: bool,
    /// Others.
    pub others: bool,
}

/// Turns events into records.
pub struct Decoder<R> {
    /// The state of threads, and the output of records.
    pub kernel: Kernel<R>,
    head: Option<Head>,
    /// By the event's number.
    points: Vec<Option<Point>>,
    running: Vec<Vec<Running>>,
    doing: HashMap<u32, Vec<Doing>>,
    symbols: Symbols,
    texts: Texts,
    /// Whose markers are wanted.
    pub applications: Applications,
    /// The last time of each CPU.
    last: Vec<u64>,
}

impl<R: Records> Decoder<R> {
    /// A decoder without any known event.
    pub fn new(records: R, texts: Texts) -> Self {
        Self {
            kernel: Kernel::new(records),
            head: None,
            points: Vec::new(),
            running: Vec::new(),
            doing: HashMap::new(),
            symbols: Symbols::default(),
            texts,
            applications: Applications::new(&[], |_| None),
            last: Vec::new(),
        }
    }

    /// Adds an event.
    pub fn add(&mut self, category: &str, format: &Format) {
        self.add_named(category, &format.name, Semantics::of(format), format);
    }

    /// As [`Decoder::add`], but as an instant with its fields, whatever else it may mean.
    pub fn add_instant(&mut self, category: &str, name: &str, format: &Format) {
        self.add_named(category, name, Semantics::Other, format);
    }

    fn add_named(&mut self, category: &str, name: &str, semantics: Semantics, format: &Format) {
        self.head = self.head.or_else(|| Head::of(format));
        let index = usize::from(format.id);
        if self.points.len() <= index {
            self.points.resize_with(index + 1, || None);
        }
        // An event that is named by itself and belongs to a category, too, keeps its meaning.
        if self.points[index].as_ref().is_some_and(|point| !matches!(point.semantics, Semantics::Other)) {
            return;
        }
        let own = format.fields.iter().filter(|field| !field.name.starts_with("common_"));
        let fields = own.map(|field| (field.name.as_bytes().into(), field.place)).collect();
        let (category, name) = (category.as_bytes().into(), name.as_bytes().into());
        self.points[index] = Some(Point { semantics, category, name, fields });
    }

    /// Decodes an event of a CPU. Events come in the order of their times.
    pub fn event(&mut self, at: u64, cpu: u16, payload: &[u8]) {
        let Some(head) = self.head else {
            return;
        };
        let index = usize::from(cpu);
        if self.last.len() <= index {
            self.last.resize(index + 1, 0);
            self.running.resize_with(index + 1, Vec::new);
        }
        self.last[index] = at;
        let Some(Some(point)) = self.points.get(head.id(payload)) else {
            return;
        };
        let tid = head.tid(payload);
        let kernel = &mut self.kernel;
        match &point.semantics {
            Semantics::Switch { outgoing, state, incoming } => {
                let state = thread_state(state.unsigned(payload));
                kernel.switch(at, cpu, &side(outgoing, payload), state, &side(incoming, payload));
            }
            Semantics::Waking { woken, cpu } => {
                let waker = (!head.is_interrupt(payload)).then_some(tid);
                kernel.waking(at, cpu.unsigned(payload) as u16, &side(woken, payload), waker);
            }
            Semantics::NewTask { tid: new, name, flags } => {
                let new = new.unsigned(payload) as u32;
                let creator = kernel.thread(tid).process.0 as u32;
                let is_thread = flags.unsigned(payload) & CLONE_THREAD != 0;
                kernel.belongs(new, if is_thread { creator } else { new });
                kernel.rename(new, name.text(payload));
            }
            Semantics::Rename { tid, name } => {
                kernel.rename(tid.unsigned(payload) as u32, name.text(payload));
            }
            Semantics::Exec { tid, old, file } => {
                let (tid, old) = (tid.unsigned(payload) as u32, old.unsigned(payload) as u32);
                if old != tid {
                    // Another thread than the first has taken its number.
                    let doing = self.doing.remove(&old).unwrap_or_default();
                    self.doing.insert(tid, doing);
                }
                let path = file.text(payload);
                let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
                kernel.belongs(tid, tid);
                kernel.name_process(tid, name);
            }
            Semantics::Exit => self.end_all(at, tid),
            Semantics::Free { tid } => kernel.forget(tid.unsigned(payload) as u32),
            Semantics::InterruptBegin { kind, number, name } => {
                let number = number.unsigned(payload) as u32;
                let name = name.map_or_else(|| soft_interrupt(number).as_bytes(), |name| name.text(payload));
                let running = &mut self.running[index];
                if running.len() >= MAX_NESTED {
                    running.clear();
                }
                running.push(Running { at, kind: *kind, number, name: name.into() });
            }
            Semantics::InterruptEnd { kind, result } => {
                let result = result.map(|result| result.signed(payload) as i32);
                self.end_interrupt(at, cpu, *kind, result);
            }
            Semantics::CallBegin { number } => {
                let call = Doing::Call(number.unsigned(payload));
                self.begin(at, cpu, tid, call, &[]);
            }
            Semantics::CallEnd => self.end(at, cpu, tid, |doing| matches!(doing, Doing::Call(_))),
            Semantics::WorkBegin { function } => {
                let work = Doing::Work(function.unsigned(payload));
                self.begin(at, cpu, tid, work, &[]);
            }
            Semantics::WorkEnd => self.end(at, cpu, tid, |doing| matches!(doing, Doing::Work(_))),
            Semantics::ContentionBegin { lock, flags } => {
                let arguments = [
                    argument(kernel, b"lock", ArgumentValue::Pointer(lock.unsigned(payload))),
                    argument(kernel, b"flags", ArgumentValue::Uint32(flags.unsigned(payload) as u32)),
                ];
                self.begin(at, cpu, tid, Doing::Contention, &arguments);
            }
            Semantics::ContentionEnd => self.end(at, cpu, tid, |doing| doing == Doing::Contention),
            Semantics::PageFault { address, ip, code } => {
                let code = code.unsigned(payload);
                let flags = fault_flags(code);
                let arguments = [
                    argument(kernel, b"vaddr", ArgumentValue::Pointer(address.unsigned(payload))),
                    argument(kernel, b"flags", ArgumentValue::String(inline(&flags))),
                    argument(kernel, b"ip", ArgumentValue::Pointer(ip.unsigned(payload))),
                ];
                let thread = thread(kernel, cpu, tid);
                kernel.writer.event(at, thread, VM, b"page_fault", INSTANT, &arguments);
            }
            Semantics::Power { cpu, state } => {
                let cpu = cpu.unsigned(payload) as u16;
                // Leaving the idle state is all bits set.
                let state = i64::from(state.unsigned(payload) as u32 as i32);
                let value = argument(kernel, b"state", ArgumentValue::Int64(state));
                let thread = kernel.cpu(cpu);
                let kind = EventKind::Counter { id: cpu.into() };
                kernel.writer.event(at, thread, POWER, &point.name, kind, &[value]);
            }
            Semantics::Resident { is_current, member, bytes } => {
                // For another process, the member is unknown.
                if let (1, Some(member)) =
                    (is_current.unsigned(payload), RESIDENT.get(member.unsigned(payload) as usize))
                {
                    let value = argument(kernel, member, ArgumentValue::Int64(bytes.signed(payload)));
                    let thread = thread(kernel, cpu, tid);
                    let kind = EventKind::Counter { id: 0 };
                    kernel.writer.event(at, thread, MEMORY, b"rss", kind, &[value]);
                }
            }
            Semantics::Marker { text } => {
                let text = text.text(payload);
                let is_wanted = match Kernel::<R>::is_marker(text) {
                    true => self.texts.markers && self.applications.want(at, kernel.process_of(tid)),
                    false => self.texts.others,
                };
                if is_wanted {
                    if let Some(process) = kernel.unknown_caller(tid, text) {
                        let number = processes::own_number(process).unwrap_or(process);
                        kernel.calls_itself(process, number);
                    }
                    kernel.marker(at, tid, text);
                }
            }
            Semantics::Other => {
                let thread = thread(kernel, cpu, tid);
                let shown = point.fields.iter().filter(|(_, place)| place.kind != Kind::Other);
                let shown = shown.take(MAX_ARGUMENTS);
                // Names of files and threads are any bytes.
                let texts = shown.clone().map(|(_, place)| String::from_utf8_lossy(place.text(payload)));
                let texts: Vec<_> = texts.collect();
                let fields = shown.zip(&texts).filter_map(|((name, place), text)| {
                    let value = value(kernel, *place, payload, text.as_bytes())?;
                    Some(argument(kernel, name, value))
                });
                let arguments: Vec<_> = fields.collect();
                kernel.writer.event(at, thread, &point.category, &point.name, INSTANT, &arguments);
            }
        }
    }

    /// A CPU's events of a span were lost.
    //= docs/kernel.md#losses
    pub fn lost(&mut self, cpu: u16, until: u64, count: Option<u64>) {
        let from = self.last_of(cpu).unwrap_or(until);
        let thread = self.kernel.cpu(cpu);
        let count = u32::try_from(count.unwrap_or(0)).unwrap_or(u32::MAX);
        let arguments = [
            argument(&mut self.kernel, b"num_records", ArgumentValue::Uint32(count)),
            argument(&mut self.kernel, b"num_bytes", ArgumentValue::Uint32(0)),
        ];
        let kind = EventKind::DurationComplete { end: Ticks(until.max(from)) };
        self.kernel.writer.event(from, thread, META, b"drop_stats", kind, &arguments);
    }

    /// The time of the last event of a CPU.
    #[must_use]
    pub fn last_of(&self, cpu: u16) -> Option<u64> {
        self.last.get(usize::from(cpu)).copied().filter(|last| *last != 0)
    }

    /// Nothing more comes: operations that are still open have begun, and their ends are unknown.
    pub fn finish(&mut self) {
        for (cpu, running) in self.running.iter_mut().enumerate() {
            for interrupt in running.drain(..) {
                let thread = self.kernel.cpu(cpu as u16);
                let (name, arguments) = interrupt.describe(&mut self.kernel);
                let kind = EventKind::DurationBegin;
                self.kernel.writer.event(interrupt.at, thread, IRQ, name, kind, &arguments);
            }
        }
    }

    fn end_interrupt(&mut self, at: u64, cpu: u16, kind: Interrupt, result: Option<i32>) {
        let running = &mut self.running[usize::from(cpu)];
        // Later interrupts have ended, and their end events were lost.
        while let Some(interrupt) = running.pop() {
            if interrupt.kind != kind {
                continue;
            }
            let thread = self.kernel.cpu(cpu);
            let (name, mut arguments) = interrupt.describe(&mut self.kernel);
            if let Some(result) = result {
                arguments.push(argument(&mut self.kernel, b"ret", ArgumentValue::Int32(result)));
            }
            let kind = EventKind::DurationComplete { end: Ticks(at) };
            return self.kernel.writer.event(interrupt.at, thread, IRQ, name, kind, &arguments);
        }
    }

    fn begin(&mut self, at: u64, cpu: u16, tid: u32, doing: Doing, arguments: &[Argument<'_>]) {
        // A thread is in one call at a time, and does one work item: the previous end was lost.
        match doing {
            Doing::Call(_) => self.end(at, cpu, tid, |doing| matches!(doing, Doing::Call(_))),
            Doing::Work(_) => self.end(at, cpu, tid, |doing| matches!(doing, Doing::Work(_))),
            Doing::Contention if self.doing.get(&tid).is_some_and(|stack| stack.len() >= MAX_NESTED) => {
                self.end_all(at, tid);
            }
            Doing::Contention => {}
        }
        self.doing.entry(tid).or_default().push(doing);
        self.span(at, cpu, tid, doing, EventKind::DurationBegin, arguments);
    }

    /// Ends the innermost matching operation, and those that began in it; nothing if it had begun before the
    /// trace.
    fn end(&mut self, at: u64, cpu: u16, tid: u32, is_it: impl Fn(Doing) -> bool) {
        let Some(stack) = self.doing.get_mut(&tid) else {
            return;
        };
        let Some(place) = stack.iter().rposition(|doing| is_it(*doing)) else {
            return;
        };
        let ended = stack.split_off(place);
        if stack.is_empty() {
            self.doing.remove(&tid);
        }
        for doing in ended.into_iter().rev() {
            self.span(at, cpu, tid, doing, EventKind::DurationEnd, &[]);
        }
    }

    /// A thread has ended, in the middle of its last call.
    fn end_all(&mut self, at: u64, tid: u32) {
        for doing in self.doing.remove(&tid).unwrap_or_default().into_iter().rev() {
            self.span(at, 0, tid, doing, EventKind::DurationEnd, &[]);
        }
    }

    fn span(
        &mut self,
        at: u64,
        cpu: u16,
        tid: u32,
        doing: Doing,
        kind: EventKind,
        arguments: &[Argument<'_>],
    ) {
        let thread = thread(&mut self.kernel, cpu, tid);
        let writer = &mut self.kernel.writer;
        match doing {
            Doing::Call(number) => match crate::calls::name(number) {
                Some(name) => writer.event(at, thread, SYSCALL, name.as_bytes(), kind, arguments),
                None => {
                    let name = format!("sys_{number}");
                    writer.event(at, thread, SYSCALL, name.as_bytes(), kind, arguments);
                }
            },
            Doing::Work(function) => {
                let name = self.symbols.name(function);
                writer.event(at, thread, WORKQUEUE, name.as_bytes(), kind, arguments);
            }
            Doing::Contention => writer.event(at, thread, CONTENTION, b"contention", kind, arguments),
        }
    }
}

impl Running {
    fn describe<'a>(&'a self, kernel: &mut Kernel<impl Records>) -> (&'static [u8], Vec<Argument<'a>>) {
        let (name, number): (&[u8], &[u8]) = match self.kind {
            Interrupt::Hard => (b"irq", b"irq #"),
            Interrupt::Soft => (b"softirq", b"vec"),
        };
        let text = kernel.writer.string(&self.name);
        let arguments = vec![
            argument(kernel, number, ArgumentValue::Uint32(self.number)),
            argument(kernel, b"name", ArgumentValue::String(text)),
        ];
        (name, arguments)
    }
}

/// The thread that ran, or the CPU if that was the idle one.
fn thread(kernel: &mut Kernel<impl Records>, cpu: u16, tid: u32) -> Thread {
    if tid == 0 { kernel.cpu(cpu) } else { kernel.thread(tid) }
}

fn argument<'a>(kernel: &mut Kernel<impl Records>, name: &'a [u8], value: ArgumentValue<'a>) -> Argument<'a> {
    Argument { name: kernel.writer.constant(name), value }
}

fn side<'a>(task: &Task, payload: &'a [u8]) -> Side<'a> {
    Side {
        tid: task.tid.unsigned(payload) as u32,
        name: Some(task.name.text(payload)),
        prio: task.prio.signed(payload) as i32,
    }
}

/// A field as an argument; none if its kind cannot be expressed.
fn value<'a>(
    kernel: &mut Kernel<impl Records>,
    place: FieldLocation,
    payload: &[u8],
    text: &'a [u8],
) -> Option<ArgumentValue<'a>> {
    Some(match place.kind {
        Kind::Unsigned if place.size == 8 => ArgumentValue::Uint64(place.unsigned(payload)),
        Kind::Unsigned => ArgumentValue::Uint32(place.unsigned(payload) as u32),
        Kind::Signed if place.size == 8 => ArgumentValue::Int64(place.signed(payload)),
        Kind::Signed => ArgumentValue::Int32(place.signed(payload) as i32),
        Kind::Pointer => ArgumentValue::Pointer(place.unsigned(payload)),
        Kind::Bool => ArgumentValue::Bool(place.unsigned(payload) != 0),
        Kind::Text | Kind::TextElsewhere | Kind::TextBehind => {
            ArgumentValue::String(kernel.writer.string(text))
        }
        Kind::Other => return None,
    })
}

/// The state of an outgoing thread: the bits of `prev_state`.
//= docs/kernel.md#records
fn thread_state(bits: u64) -> ThreadState {
    match bits & 0xff {
        // Also one that was preempted, which a bit above these marks.
        0 => ThreadState::RUNNING,
        bits if bits & (0x04 | 0x08) != 0 => ThreadState::SUSPENDED,
        bits if bits & 0x10 != 0 => ThreadState::DEAD,
        bits if bits & 0x20 != 0 => ThreadState::DYING,
        _ => ThreadState::BLOCKED,
    }
}

/// Five letters for the bits of an x86 page fault: page present, write, user mode, reserved bits, instruction
/// fetch.
fn fault_flags(code: u64) -> [u8; 5] {
    let mut flags = *b"pwuri";
    for (bit, flag) in flags.iter_mut().enumerate() {
        if code & 1 << bit == 0 {
            *flag = b'-';
        }
    }
    flags
}

#[cfg(test)]
mod tests;
