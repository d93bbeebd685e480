//! Holds a thread of a stream up after one of its instructions, while another goes round through the whole
//! buffer, and lets it go on: again and again, each time a few instructions later. Whatever was written is
//! saved or counted in the end.

use crate::{BUFFER_BYTES, Buffer, Page, Stepped, begin_to_be_stepped, open, small, start};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use trace_engine::engine::Engine;
use trace_engine::{BufferMode, blob_record};
use trace_format::buffer::Layout;
use trace_reader::buffer::{Activity, BufferPart, BufferReader};
use zx_sim::{Handle, Vmo};

/// How the role of such a process begins.
pub const ROLE: &str = "held-up";
const MODE: BufferMode = BufferMode::Streaming;
/// Fewer than stand between any two steps that belong together.
const STRIDE: u64 = 9;

/// What a thread is held up in. Each claims: the slab of the thread was taken back.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Event,
    /// A little larger than a slab.
    Run,
}

const OPERATIONS: [Operation; 2] = [Operation::Event, Operation::Run];

impl Operation {
    fn run(self) {
        match self {
            Self::Event => small(),
            Self::Run => blob_record!("cat", 1, "large", &[7; 256]),
        }
    }
}

/// The process that is held up.
pub fn play(role: &str) {
    let (operation, directory) = role.split_once(' ').expect("an operation and a directory");
    let operation = OPERATIONS[operation.parse::<usize>().expect("a number")];
    let page = Page::open(directory);
    let engine = start(directory, MODE);
    let buffer = Vmo::from_handle(Handle::new(open(&format!("{directory}/buffer")).into())).expect("a file");
    let is_over = || page.is_over().load(Ordering::Acquire) != 0;
    let mut reader = None;
    std::thread::scope(|scope| {
        let stepped = scope.spawn(|| {
            small();
            begin_to_be_stepped(&page);
            while !is_over() {
                operation.run();
                // SAFETY: says that it is done.
                unsafe { libc::raise(libc::SIGSTOP) };
            }
        });
        while !stepped.is_finished() {
            let written = page.written().load(Ordering::Relaxed);
            if page.wanted().load(Ordering::Acquire) > written {
                small();
                save(&engine, &buffer, &mut reader);
                page.written().store(written + 1, Ordering::Release);
            } else {
                std::thread::yield_now();
            }
        }
    });
    let stopped = engine.stop(Instant::now() + Duration::from_secs(60)).expect("the engine is started");
    assert_eq!(stopped.stragglers, 0);
    read(&buffer, &mut reader, BufferPart::Rest(Activity::Quiet));
    let reader = reader.expect("it was read");
    let lost: u64 = reader.losses().expect("a ledger").iter().map(|(_, loss)| loss.count).sum();
    let accounts = [reader.findings().rolling_records, lost];
    for (place, count) in page.accounts().into_iter().zip(accounts) {
        place.store(count, Ordering::Release);
    }
}

/// What a manager does: saves a half that is full.
fn save<'a>(engine: &Engine, buffer: &'a Vmo, reader: &mut Option<BufferReader<Buffer<'a>>>) {
    let Some(request) = engine.service().and_then(|service| service.save) else {
        return;
    };
    let (wrapped_count, durable_bytes) = (request.wrapped_count, request.durable_bytes);
    read(buffer, reader, BufferPart::Half { wrapped_count, durable_bytes });
    engine.mark_saved(request).expect("it was handed over");
}

fn read<'a>(buffer: &'a Vmo, reader: &mut Option<BufferReader<Buffer<'a>>>, part: BufferPart) {
    let mut out = Vec::new();
    let reader = match reader {
        Some(reader) => {
            reader.begin(part).expect("the header is whole");
            reader
        }
        None => reader.insert(Buffer(buffer).reader(MODE, part)),
    };
    while reader.read_batch(&mut out).expect("the buffer can be read") {}
    assert_eq!(reader.findings().bad_records, 0, "{:?}", reader.findings().first_bad);
}

/// All operations whose name contains these letters.
//= docs/buffer.md#late-threads
pub fn try_all(wanted: &str) {
    for (number, operation) in OPERATIONS.iter().enumerate() {
        let name = format!("HeldUp{operation:?}");
        if name.contains(wanted) {
            let (times, instructions) = hold_up(number);
            println!("{name}: {times} times in {instructions} instructions");
        }
    }
}

/// Returns how often a thread was held up, and the instructions of the operation.
fn hold_up(operation: usize) -> (u64, u64) {
    let mut stepped = Stepped::spawn(&format!("{ROLE} {operation}"), MODE);
    let layout = Layout::new(BUFFER_BYTES, MODE).expect("a size");
    let events = |slabs: u64| slabs * (layout.slab_bytes / 16);
    let slabs = u64::from(layout.slab_count());
    // Over what the thread has a ticket for and a little further, where the half is not full, and so not
    // saved; or up to it, so that it is written over next. Slabs that are left behind are skipped.
    let rounds = [events(slabs + 2), events(slabs - 12)];
    let (mut times, mut instructions) = (0, 0);
    let is_held_up = |stepped: &Stepped, instructions: u64| (0..instructions).all(|_| stepped.step());
    stepped.commit(rounds[0]);
    while is_held_up(&stepped, instructions) {
        stepped.commit(rounds[times as usize % 2]);
        assert!(stepped.go_on(), "it has ended");
        // What it has now is taken back, too.
        stepped.commit(rounds[0]);
        times += 1;
        instructions += STRIDE;
    }
    stepped.page.is_over().store(1, Ordering::Release);
    assert!(!stepped.go_on(), "it goes on");
    let deadline = Instant::now() + Duration::from_secs(60);
    while stepped.child.try_wait().expect("a child").is_none() {
        assert!(Instant::now() < deadline, "it does not end");
        std::thread::yield_now();
    }
    let [kept, lost] = stepped.page.accounts().map(|count| count.load(Ordering::Acquire));
    let written = stepped.page.written().load(Ordering::Acquire);
    // One before, one each time, and the one that was stepped through to its end.
    let expected = written + times + 2;
    assert_eq!(kept + lost, expected, "{:?}: {kept} kept, {lost} lost", OPERATIONS[operation]);
    (times, instructions)
}
