//! Stops a writing thread after each single instruction of each kind of operation, lets another thread of its
//! process commit events meanwhile, and reads the buffer as if the process had been killed there; now and
//! then it is.
//!
//! What a stopped process leaves in shared memory is what a killed one leaves. Every committed record must be
//! found, nothing else, and all that is missing must be counted. The one event that is under way may be there
//! or not; once it is there it stays.
//!
//! `instructions [NAME]`: only the operations whose name contains NAME.

mod held_up;
mod scopes;
#[path = "../../../zx-sim/tests/conformance/skip.rs"]
mod skip;

use std::fs::{File, OpenOptions};
use std::num::NonZeroU64;
use std::process::{Child, Command, ExitCode};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use trace_engine::engine::{self, Engine};
use trace_engine::{BufferMode, Config, Disposition, Region, Scope, blob_record, instant};
use trace_format::buffer::Layout;
use trace_format::scopes::SCOPES_BYTES;
use trace_format::slab::LossReason;
use trace_format::units::TicksPerSecond;
use trace_reader::buffer::{Activity, BufferPart, BufferReader, Source};
use zx_sim::{Handle, Mapping, Vmo, map_over};

const BUFFER_BYTES: u64 = 64 << 10;
const RATE: u64 = 1_000_000_000;
/// Says which role this program plays: the operation, the mode and the directory of the files.
const ROLE: &str = "TRACE_TEST_ROLE";
/// The role of a program that only tries whether its parent may trace it.
const TRIAL: &str = "trial";
const MODES: [BufferMode; 3] = [BufferMode::Oneshot, BufferMode::Circular, BufferMode::Streaming];

/// What is taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Event,
    FirstUseOfStrings,
    FirstEventOfThread,
    CrossingSlabs,
    CrossingHalves,
    RecordLargerThanASlab,
    Recall,
    Refusal,
    ThreadExit,
}

const OPERATIONS: [Operation; 9] = [
    Operation::Event,
    Operation::FirstUseOfStrings,
    Operation::FirstEventOfThread,
    Operation::CrossingSlabs,
    Operation::CrossingHalves,
    Operation::RecordLargerThanASlab,
    Operation::Recall,
    Operation::Refusal,
    Operation::ThreadExit,
];

impl Operation {
    /// Events of 16 bytes before it.
    fn events_before(self, layout: &Layout) -> u64 {
        let per_slab = layout.slab_bytes / 16;
        let per_half = u64::from(layout.slabs_per_half) * per_slab;
        match self {
            Self::Event | Self::FirstUseOfStrings | Self::RecordLargerThanASlab | Self::ThreadExit => 1,
            Self::FirstEventOfThread => 0,
            Self::CrossingSlabs => per_slab,
            // The other thread has one slab.
            Self::CrossingHalves => per_half - per_slab,
            Self::Recall | Self::Refusal => per_half * u64::from(layout.mode.halves()) - per_slab,
        }
    }

    /// The other thread commits after so many steps of the first.
    fn steps_per_commit(self) -> u64 {
        // It has to have room left in its slab when the first has none.
        if self == Self::Recall { 500 } else { 7 }
    }

    /// Records that the operation writes.
    fn records(self) -> u64 {
        if self == Self::ThreadExit { 0 } else { 1 }
    }

    fn run(self) {
        match self {
            Self::FirstUseOfStrings => {
                instant!("fresh category", "fresh name", Scope::Thread, "fresh argument" => 1_u64);
            }
            Self::RecordLargerThanASlab => blob_record!("cat", 1, "large", &[7; 700]),
            // Its end is stepped through, too.
            Self::ThreadExit => {}
            _ => small(),
        }
    }
}

/// 16 bytes once its site has indices.
fn small() {
    instant!("cat", "small", Scope::Thread);
}

/// What both processes share beside the buffer.
struct Page(Mapping);

impl Page {
    fn open(directory: &str) -> Self {
        Self(map(&format!("{directory}/page")))
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < 8);
        // SAFETY: inside the mapping, which is page-aligned and only touched through atomics.
        unsafe { &*self.0.as_ptr().cast::<AtomicU64>().add(index) }
    }

    /// Events that the other thread is to have written.
    fn wanted(&self) -> &AtomicU64 {
        self.word(0)
    }

    /// Events that it has written.
    fn written(&self) -> &AtomicU64 {
        self.word(1)
    }

    /// Not 0 if the event that it is to write next is that of a new thread, with a definition of its own.
    fn wants_thread(&self) -> &AtomicU64 {
        self.word(3)
    }

    /// Thread id of the thread that is stepped through, when it is ready.
    fn ready(&self) -> &AtomicU64 {
        self.word(2)
    }

    /// Not 0 when a process that was held up is to end.
    fn is_over(&self) -> &AtomicU64 {
        self.word(4)
    }

    /// Records that a process which was held up has found in its buffer, and those that it has counted as
    /// lost.
    fn accounts(&self) -> [&AtomicU64; 2] {
        [self.word(5), self.word(6)]
    }
}

fn open(path: &str) -> File {
    OpenOptions::new().read(true).write(true).open(path).expect("the file is there")
}

fn map(path: &str) -> Mapping {
    Vmo::from_handle(Handle::new(open(path).into()))
        .and_then(|vmo| vmo.map())
        .expect("the file can be mapped")
}

/// Records into the buffer of a directory.
fn start(directory: &str, mode: BufferMode) -> Engine {
    let mapping = map(&format!("{directory}/buffer"));
    let (base, length) = (mapping.as_ptr(), mapping.len());
    // SAFETY: a mapping of so many bytes that its owner keeps, and that nothing refers to.
    let region = unsafe { Region::from_mapping(base, length, Box::new(mapping)) };
    let pages = open(&format!("{directory}/pages"));
    // SAFETY: memory of the engine's, which it says.
    let map = move |memory, bytes| unsafe { map_over(&pages, memory, 0..bytes as u64) };
    // SAFETY: nothing else maps this file, or refers to that memory.
    let region = unsafe { region.with_scopes(Box::new(map)) };
    let config = Config::new(u64::from(std::process::id()), "p", RATE);
    let engine = engine::initialize(region, mode, config).expect("the engine is idle");
    engine.start(Disposition::Retain, &[]).expect("the engine starts");
    engine
}

/// Asks the parent to trace this thread, and stops.
fn begin_to_be_stepped(page: &Page) {
    // SAFETY: asks to be traced by the parent, which waits for that, and stops.
    unsafe {
        assert_eq!(libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0), 0);
        page.ready().store(libc::syscall(libc::SYS_gettid) as u64, Ordering::Release);
        libc::raise(libc::SIGSTOP);
    }
}

/// The process that is stepped through.
fn play(role: &str) {
    let mut parts = role.split(' ');
    let mut number = || parts.next().and_then(|part| part.parse::<usize>().ok()).expect("a number");
    let (operation, mode) = (OPERATIONS[number()], MODES[number()]);
    let directory = parts.next().expect("a directory");
    let page = Page::open(directory);
    let _engine = start(directory, mode);
    let layout = Layout::new(BUFFER_BYTES, mode).expect("a size");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            loop {
                let written = page.written().load(Ordering::Relaxed);
                if page.wanted().load(Ordering::Acquire) > written {
                    if page.wants_thread().load(Ordering::Relaxed) == 0 {
                        small();
                    } else {
                        std::thread::spawn(small).join().expect("no panic");
                    }
                    page.written().store(written + 1, Ordering::Release);
                } else {
                    std::thread::yield_now();
                }
            }
        });
        scope.spawn(|| {
            (0..operation.events_before(&layout)).for_each(|_| small());
            begin_to_be_stepped(&page);
            operation.run();
            if operation != Operation::ThreadExit {
                // SAFETY: says that it is done.
                unsafe { libc::raise(libc::SIGSTOP) };
            }
        });
    });
}

/// The buffer's file.
struct Buffer<'a>(&'a Vmo);

impl Source for Buffer<'_> {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> std::io::Result<usize> {
        self.0.read_at(offset, bytes).map_err(std::io::Error::other)
    }
}

impl Buffer<'_> {
    fn reader(self, mode: BufferMode, part: BufferPart) -> BufferReader<Self> {
        let rate = TicksPerSecond(NonZeroU64::new(RATE).expect("not zero"));
        BufferReader::open(self, BUFFER_BYTES, mode, rate, part).expect("the header is whole")
    }
}

/// The stepped process and its files, gone when it is over.
struct Stepped {
    child: Child,
    thread: libc::pid_t,
    page: Page,
    buffer: Vmo,
    pages: Vmo,
    mode: BufferMode,
    _directory: tempfile::TempDir,
}

impl Drop for Stepped {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Stepped {
    /// A process at the beginning of an operation.
    fn new(operation: usize, mode: usize) -> Self {
        let mut stepped = Self::spawn(&format!("{operation} {mode}"), MODES[mode]);
        stepped.commit(1);
        stepped
    }

    /// A process in this role, which a directory is added to, when its thread stops for the first time.
    fn spawn(role: &str, mode: BufferMode) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().to_str().expect("a path in UTF-8").to_owned();
        for (name, size) in [("page", 4096), ("buffer", BUFFER_BYTES), ("pages", SCOPES_BYTES)] {
            File::create(directory.path().join(name)).and_then(|file| file.set_len(size)).expect("a file");
        }
        let page = Page::open(&path);
        page.wanted().store(1, Ordering::Release);
        let role = format!("{role} {path}");
        let program = std::env::current_exe().expect("a path");
        let child = Command::new(program).env(ROLE, role).spawn().expect("the program runs");
        let [buffer, pages] = ["buffer", "pages"].map(|name| {
            Vmo::from_handle(Handle::new(open(&format!("{path}/{name}")).into())).expect("a file")
        });
        let mut stepped = Self { child, thread: 0, page, buffer, pages, mode, _directory: directory };
        stepped.wait_until("it is ready", |stepped| stepped.page.ready().load(Ordering::Acquire) != 0);
        stepped.thread = stepped.page.ready().load(Ordering::Acquire) as libc::pid_t;
        assert_eq!(stepped.wait(), Some(libc::SIGSTOP), "it stops where it begins");
        stepped
    }

    fn wait_until(&mut self, what: &str, condition: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !condition(self) {
            assert!(Instant::now() < deadline, "waited in vain until {what}");
            assert!(self.child.try_wait().expect("a child").is_none(), "it ended before {what}");
            std::thread::yield_now();
        }
    }

    /// The signal that the stepped thread has stopped with; none if it is gone.
    fn wait(&self) -> Option<i32> {
        let mut status = 0;
        // SAFETY: a thread that this one traces, and a place for its status.
        let waited = unsafe { libc::waitpid(self.thread, &raw mut status, libc::__WALL) };
        assert_eq!(waited, self.thread, "{}", std::io::Error::last_os_error());
        libc::WIFSTOPPED(status).then(|| libc::WSTOPSIG(status))
    }

    /// Lets the thread run until it stops by itself; false if it has ended.
    fn go_on(&self) -> bool {
        // SAFETY: a thread that this one traces, and that is stopped.
        assert_eq!(unsafe { libc::ptrace(libc::PTRACE_CONT, self.thread, 0, 0) }, 0);
        self.wait() == Some(libc::SIGSTOP)
    }

    /// Lets the thread do one instruction; false if it is at the end of the operation.
    fn step(&self) -> bool {
        // SAFETY: a thread that this one traces, and that is stopped.
        assert_eq!(unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, self.thread, 0, 0) }, 0);
        self.wait() == Some(libc::SIGTRAP)
    }

    /// A step, and now and then an event of the other thread; false if the operation is over.
    fn advance(&mut self, operation: Operation, steps: &mut u64) -> bool {
        let goes_on = self.step();
        *steps += u64::from(goes_on);
        if goes_on && *steps % operation.steps_per_commit() == 0 {
            self.commit(1);
        }
        goes_on
    }

    /// Has the other thread write so many more events.
    fn commit(&mut self, events: u64) {
        let wanted = self.page.wanted().fetch_add(events, Ordering::AcqRel) + events;
        self.wait_until("the other thread has written", |stepped| {
            stepped.page.written().load(Ordering::Acquire) == wanted
        });
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        // A tracer has to collect the end of each thread, or that of the process never comes.
        let take_in = || {
            // SAFETY: nothing is written.
            unsafe { libc::waitpid(self.thread, core::ptr::null_mut(), libc::__WALL) }
        };
        while self.thread != 0 && take_in() == self.thread {}
        let _ = self.child.wait();
    }

    /// Records of both threads that are in the buffer, and those that are counted as lost.
    fn read(&self) -> (u64, u64) {
        let mut reader = Buffer(&self.buffer).reader(self.mode, BufferPart::Rest(Activity::Quiet));
        let mut out = Vec::new();
        while reader.read_batch(&mut out).expect("the buffer can be read") {}
        assert_eq!(reader.findings().bad_records, 0, "{:?}", reader.findings().first_bad);
        let losses = reader.losses().expect("a ledger");
        let sum = |is_it: &dyn Fn(LossReason) -> bool| -> u64 {
            losses.iter().filter(|(reason, _)| is_it(*reason)).map(|(_, loss)| loss.count).sum()
        };
        let (kept, lost) = (reader.findings().rolling_records, sum(&|_| true));
        // What it says that was generated is what is there or lost.
        let written = reader.written().expect("tallies");
        let refused = sum(&|reason| !matches!(reason, LossReason::Overwritten | LossReason::Cleared));
        // Events behind the end of a full buffer are in slabs.
        let refused = refused - reader.findings().late_events;
        assert_eq!(written.records + refused, kept + lost, "{written:?}, {kept} kept, {losses:?}");
        (kept, lost)
    }
}

/// Steps through one operation in one mode. Returns how many instructions it has, and after which of them the
/// buffer was another.
fn step_through(operation: usize, mode: usize) -> (u64, Vec<u64>) {
    let mut stepped = Stepped::new(operation, mode);
    let (operation, mode) = (OPERATIONS[operation], MODES[mode]);
    let layout = Layout::new(BUFFER_BYTES, mode).expect("a size");
    let before = operation.events_before(&layout);
    let (mut steps, mut has_operation, mut changes) = (0, false, Vec::new());
    let (mut bytes, mut last) = (vec![0; BUFFER_BYTES as usize], Vec::new());
    loop {
        assert_eq!(stepped.buffer.read_at(0, &mut bytes).ok(), Some(bytes.len()));
        if bytes == last {
            if !stepped.advance(operation, &mut steps) {
                break;
            }
            continue;
        }
        last.clone_from(&bytes);
        changes.push(steps);
        let others = stepped.page.written().load(Ordering::Acquire);
        let (kept, lost) = stepped.read();
        let of_operation = (kept + lost).checked_sub(before + others);
        let context = format!("{operation:?}, {mode:?}, instruction {steps}: {kept} kept, {lost} lost");
        match of_operation {
            Some(0) => assert!(!has_operation, "{context}: the record has vanished"),
            Some(1) => has_operation = true,
            _ => panic!("{context}, of {before} + {others} and the one under way"),
        }
        if !stepped.advance(operation, &mut steps) {
            break;
        }
    }
    let others = stepped.page.written().load(Ordering::Acquire);
    let (kept, lost) = stepped.read();
    assert_eq!(kept + lost, before + others + operation.records(), "{operation:?}, {mode:?}: at the end");
    (steps, changes)
}

/// Steps so far and kills.
fn kill_after(operation: usize, mode: usize, steps: u64) {
    let mut stepped = Stepped::new(operation, mode);
    let mut done = 0;
    while done < steps && stepped.advance(OPERATIONS[operation], &mut done) {}
    // It comes with a definition, behind whatever the first has left of its own.
    stepped.page.wants_thread().store(1, Ordering::Relaxed);
    stepped.commit(1);
    let written = stepped.page.written().load(Ordering::Acquire);
    stepped.kill();
    let layout = Layout::new(BUFFER_BYTES, MODES[mode]).expect("a size");
    let before = OPERATIONS[operation].events_before(&layout);
    let (kept, lost) = stepped.read();
    let of_operation = (kept + lost).checked_sub(before + written);
    assert!(
        matches!(of_operation, Some(0 | 1)),
        "{:?}, {:?}, killed after {steps} instructions: {kept} kept, {lost} lost, of {before} + {written}",
        OPERATIONS[operation],
        MODES[mode]
    );
}

fn main() -> ExitCode {
    if let Ok(role) = std::env::var(ROLE) {
        if role == TRIAL {
            // SAFETY: asks to be traced by the parent, and ends.
            let is_traced = unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) } == 0;
            return if is_traced { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
        if let Some(role) = role.strip_prefix(held_up::ROLE) {
            held_up::play(role.trim_start());
        } else if let Some(role) = role.strip_prefix(scopes::ROLE) {
            scopes::play(role.trim_start());
        } else {
            play(&role);
        }
        return ExitCode::SUCCESS;
    }
    let mut trial = Command::new(std::env::current_exe().expect("a path"));
    if !trial.env(ROLE, TRIAL).status().is_ok_and(|status| status.success()) {
        skip::skip("instructions", "ptrace", "processes may not be traced here");
        return ExitCode::SUCCESS;
    }
    let wanted = std::env::args().nth(1).filter(|name| !name.starts_with('-')).unwrap_or_default();
    held_up::try_all(&wanted);
    scopes::try_all(&wanted);
    for (operation, name) in OPERATIONS.iter().map(|operation| format!("{operation:?}")).enumerate() {
        if !name.contains(&wanted) {
            continue;
        }
        for (mode, mode_name) in MODES.iter().enumerate() {
            let (steps, changes) = step_through(operation, mode);
            assert!(steps > 10, "{name} was not stepped through");
            let is_everywhere =
                matches!(OPERATIONS[operation], Operation::FirstUseOfStrings | Operation::Recall)
                    && mode == 0;
            let kills = if is_everywhere { changes } else { vec![steps / 4, steps / 2, steps * 3 / 4] };
            for steps in kills.into_iter().filter(|steps| *steps > 0) {
                kill_after(operation, mode, steps);
            }
            println!("{name}, {mode_name:?}: {steps} instructions");
        }
    }
    ExitCode::SUCCESS
}
