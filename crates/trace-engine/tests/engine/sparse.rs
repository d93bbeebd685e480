//! A buffer whose memory is allocated while it is written, and may not be there.

use crate::own_process::is_own_process;
use crate::refused_call::refuse;
use crate::skip::skip;
use crate::support::{Memory, Read, Trace, alone};
use std::ffi::CString;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use trace_engine::{
    BufferMode, Config, Disposition, Region, Scope, Site, Track, duration, engine, ffi, instant,
    track_duration,
};
use trace_format::buffer::{CHUNK_BYTES, Layout};
use trace_format::scopes::{HEADER_BYTES, SCOPES_BYTES, SLOT_BYTES, SLOTS, Slot, field};
use trace_format::slab::{LossReason, SlabState};

const MIB: usize = 1 << 20;
const BYTES: usize = 4 * MIB;
const CHUNKS: u64 = BYTES as u64 / CHUNK_BYTES;
const MODES: [BufferMode; 3] = [BufferMode::Oneshot, BufferMode::Circular, BufferMode::Streaming];
/// Bytes of an event of these tests.
const EVENT_BYTES: u64 = 32;

/// Memory for a buffer, of which some is there.
#[derive(Clone)]
struct Chunks {
    /// Chunks that can still be allocated.
    left: Arc<AtomicU64>,
    /// The numbers of those that are.
    backed: Arc<Mutex<Vec<u64>>>,
}

/// A trace in a buffer for which there are so many chunks of memory, beside what it begins with.
fn start(mode: BufferMode, chunks: u64) -> (Trace, Chunks) {
    let layout = Layout::new(BYTES as u64, mode).unwrap();
    let first: u64 = layout.first_parts().iter().map(|part| (part.end - part.start) / CHUNK_BYTES).sum();
    // In oneshot mode, the two parts share chunks.
    let first = if mode == BufferMode::Oneshot { first - 2 } else { first };
    let memory = Chunks { left: Arc::new(AtomicU64::new(first + chunks)), backed: Arc::default() };
    let (region, words) = Region::on_heap(BYTES);
    let own = memory.clone();
    let region = region.with_backing(Box::new(move |part| {
        let mut backed = own.backed.lock().unwrap();
        let take = |left: u64| left.checked_sub(1);
        let is_there = own.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
        backed.extend(is_there.then_some(part.start / CHUNK_BYTES));
        is_there
    }));
    let trace = Trace::start_on(region, Memory::Heap(words), mode, &[]);
    assert_eq!(memory.left.load(Ordering::Relaxed), chunks);
    (trace, memory)
}

fn write(numbers: std::ops::Range<u64>) {
    numbers.for_each(|n| instant!("cat", "event", Scope::Thread, "n" => n));
}

/// Slabs that have been used, in chunks that have no memory.
fn unbacked_slabs(trace: &Trace, memory: &Chunks) -> usize {
    let backed = memory.backed.lock().unwrap();
    let words = trace.slab_words();
    let used = words.iter().enumerate().filter(|(_, word)| word.state() != SlabState::Empty);
    let first = BYTES as u64 - words.len() as u64 * trace.slab_bytes();
    used.filter(|(slab, _)| !backed.contains(&((first + *slab as u64 * trace.slab_bytes()) / CHUNK_BYTES)))
        .count()
}

fn losses(read: &Read) -> Vec<(LossReason, u64)> {
    let all = LossReason::ALL.map(|reason| (reason, read.loss(reason)));
    all.into_iter().filter(|(_, count)| *count > 0).collect()
}

//= docs/buffer.md#memory
#[test]
fn memory_that_comes_in_time_is_no_different() {
    const THREADS: u64 = 4;
    const EVENTS: u64 = 20_000;
    for mode in MODES {
        let (trace, memory) = start(mode, CHUNKS);
        let before = memory.backed.lock().unwrap().len() as u64;
        std::thread::scope(|scope| (0..THREADS).for_each(|_| _ = scope.spawn(|| write(0..EVENTS))));
        assert_eq!(unbacked_slabs(&trace, &memory), 0, "{mode:?}");
        let backed = memory.backed.lock().unwrap().len() as u64;
        let needed = THREADS * EVENTS * EVENT_BYTES / CHUNK_BYTES;
        // Each of the threads may ask for the same.
        assert!(
            backed >= before + needed - 4 && backed <= before + THREADS * (needed + 2),
            "{mode:?}: {backed}"
        );
        let read = trace.stop();
        assert_eq!((read.events.len() as u64, losses(&read)), (THREADS * EVENTS, vec![]), "{mode:?}");
    }
}

/// The trace is what came before the first refusal.
//= docs/buffer.md#memory
#[test]
fn a_oneshot_buffer_ends_where_its_memory_does() {
    const EVENTS: u64 = 60_000;
    let (trace, memory) = start(BufferMode::Oneshot, 5);
    write(0..EVENTS);
    assert_eq!(unbacked_slabs(&trace, &memory), 0);
    assert_eq!(trace.spare_word(LossReason::Full), 0, "a larger buffer is no help");
    let slabs = trace.slab_words();
    let used = slabs.iter().filter(|word| word.state() == SlabState::Closed).count() as u64;
    let read = trace.stop();
    let kept = read.events.len() as u64;
    assert_eq!(kept, used * (4096 / EVENT_BYTES));
    assert!(kept * EVENT_BYTES > 5 * CHUNK_BYTES && kept * EVENT_BYTES <= 7 * CHUNK_BYTES, "{kept}");
    assert!(read.events.iter().map(|event| event.u64("n")).eq(0..kept));
    assert_eq!(losses(&read), [(LossReason::NotBacked, EVENTS - kept)]);
    assert_eq!(read.header.end_ts, Some(read.loss_entry(LossReason::NotBacked).first));
}

/// What has memory is written over.
//= docs/buffer.md#memory
#[test]
fn a_circular_buffer_is_as_large_as_its_memory() {
    const EVENTS: u64 = 60_000;
    let (trace, memory) = start(BufferMode::Circular, 5);
    write(0..EVENTS);
    assert_eq!(unbacked_slabs(&trace, &memory), 0);
    let read = trace.stop();
    let kept = read.events.len() as u64;
    assert!(kept * EVENT_BYTES > 5 * CHUNK_BYTES && kept * EVENT_BYTES <= 9 * CHUNK_BYTES, "{kept}");
    let last = read.events.last().unwrap().u64("n");
    assert_eq!(last, EVENTS - 1);
    assert_eq!(losses(&read), [(LossReason::Overwritten, EVENTS - kept)]);
}

/// Records larger than a slab find room where there is memory for all of their slabs.
//= docs/buffer.md#memory
#[test]
fn a_large_record_is_lost_where_its_run_has_no_memory() {
    for mode in [BufferMode::Oneshot, BufferMode::Circular] {
        let (trace, memory) = start(mode, 0);
        let large = "x".repeat(30_000);
        for n in 0..10_u64 {
            instant!("cat", "large", Scope::Thread, "n" => n, "text" => large.as_str());
        }
        assert_eq!(unbacked_slabs(&trace, &memory), 0, "{mode:?}");
        let read = trace.stop();
        let kept = read.events.len() as u64;
        assert!((1..10).contains(&kept), "{mode:?}: {kept}");
        let lost = if mode == BufferMode::Oneshot { LossReason::NotBacked } else { LossReason::Overwritten };
        assert_eq!(losses(&read), [(lost, 10 - kept)], "{mode:?}");
    }
}

//= docs/buffer.md#memory
#[test]
fn a_stream_goes_on_with_the_memory_that_it_has() {
    const EVENTS: u64 = 60_000;
    let (mut trace, memory) = start(BufferMode::Streaming, 2);
    for part in 0..EVENTS / 15_000 {
        write(part * 15_000..(part + 1) * 15_000);
        let service = trace.engine.service().unwrap();
        if let Some(request) = service.save {
            trace.save(request);
        }
    }
    assert_eq!(unbacked_slabs(&trace, &memory), 0);
    let read = trace.stop();
    let kept = read.events.len() as u64;
    let lost = losses(&read);
    assert!(kept > EVENTS / 10, "{kept}");
    let [(LossReason::NotBacked, count)] = lost[..] else { panic!("{lost:?}") };
    assert_eq!(kept + count, EVENTS);
}

/// The dispatcher tries again, and threads find memory that came back.
//= docs/buffer.md#memory
#[test]
fn memory_that_comes_back_is_used() {
    let (trace, memory) = start(BufferMode::Circular, 0);
    write(0..60_000);
    memory.left.store(CHUNKS, Ordering::Relaxed);
    let before = memory.backed.lock().unwrap().len() as u64;
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while trace.engine.back_ahead().is_some() {
        assert!(std::time::Instant::now() < deadline, "it is not complete");
        std::thread::yield_now();
    }
    assert_eq!(memory.backed.lock().unwrap().len() as u64, CHUNKS);
    assert!(before < 12, "{before}");
    write(60_000..250_000);
    let read = trace.stop();
    let kept = read.events.len() as u64;
    assert_eq!(losses(&read), [(LossReason::Overwritten, 250_000 - kept)]);
    assert!(kept * EVENT_BYTES > 58 * CHUNK_BYTES, "{kept}");
}

//= docs/buffer.md#memory
#[test]
fn without_memory_for_its_beginning_there_is_no_trace() {
    let (region, _words) = Region::on_heap(BYTES);
    let region = region.with_backing(Box::new(|part| part.start < 2 * CHUNK_BYTES));
    let _alone = alone();
    let error = engine::initialize(region, BufferMode::Circular, Config::new(1, "p", 1)).unwrap_err();
    assert_eq!(error, engine::Error::NotBacked);
    assert_eq!(error.to_string(), "there is no memory for the buffer");
    assert_eq!(engine::state(), engine::State::Idle);
}

/// Unmounts when the test is over, however it ends.
struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        // SAFETY: a path that ends in 0.
        let _ = unsafe { libc::umount2(path(self.0).as_ptr(), libc::MNT_DETACH) };
    }
}

fn path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_encoded_bytes()).unwrap()
}

/// A trace in a sparse file, as a provider has it.
fn start_in_file(vmo: &zx_sim::Vmo, mode: BufferMode) -> Trace {
    let mapping = vmo.map_first(BYTES as u64, true).unwrap();
    let (base, length) = (mapping.as_ptr(), mapping.len());
    let own = vmo.duplicate().unwrap();
    let pages = BYTES as u64..BYTES as u64 + SCOPES_BYTES;
    // SAFETY: memory of the engine's, as `with_scopes` says.
    let map = move |memory, _| unsafe { zx_sim::map_over(&own, memory, pages) };
    let map = Box::new(map);
    // SAFETY: a mapping of so many bytes that its owner keeps, and that nothing refers to; neither does
    // anything refer to the pages.
    let region = unsafe { Region::from_sparse_mapping(base, length, Box::new(mapping)).with_scopes(map) };
    Trace::start_on(region, Memory::Shared(vmo.duplicate().unwrap()), mode, &[])
}

fn sparse_file(directory: &Path, mode: BufferMode) -> zx_sim::Vmo {
    let (bytes, name) = (BYTES as u64 + SCOPES_BYTES, format!("{mode:?}"));
    let parts = Layout::new(BYTES as u64, mode).unwrap().first_parts();
    let mut backing = zx_sim::Backing::begin_sparse(directory, &name, bytes, &parts, 0).unwrap();
    backing.step(u64::MAX).unwrap().unwrap()
}

/// A file system of 6 MiB. None where it cannot be mounted.
fn small_file_system<'a>(directory: &'a Path, test: &str) -> Option<Mounted<'a>> {
    let (none, kind, options) = (c"none".as_ptr(), c"tmpfs".as_ptr(), c"size=6m".as_ptr());
    // SAFETY: texts that end in 0.
    if unsafe { libc::mount(none, path(directory).as_ptr(), kind, 0, options.cast()) } != 0 {
        skip(test, "root", "a small file system cannot be mounted");
        return None;
    }
    Some(Mounted(directory))
}

/// The kernel's own answer where a file system becomes full: nothing kills the program, and what is lost is
/// counted.
//= docs/buffer.md#memory
#[test]
fn a_full_file_system_costs_events_and_not_the_program() {
    const EVENTS: u64 = 100_000;
    const TEST: &str = "sparse::a_full_file_system_costs_events_and_not_the_program";
    if !is_own_process(TEST) {
        return;
    }
    for mode in MODES {
        // The one before is used until the program ends.
        let directory = tempfile::tempdir().unwrap();
        let Some(_mounted) = small_file_system(directory.path(), TEST) else { return };
        let vmo = sparse_file(directory.path(), mode);
        assert!(vmo.backed_bytes().unwrap() < MIB as u64, "{mode:?}: sparse");
        // A little more than the beginning has room.
        fs::write(directory.path().join("full"), vec![1; 6 * MIB - 2 * MIB]).unwrap();
        let trace = start_in_file(&vmo, mode);
        write(0..EVENTS);
        assert!(vmo.backed_bytes().unwrap() > MIB as u64, "{mode:?}: what there was is used");
        let read = trace.stop();
        let kept = read.events.len() as u64;
        assert_eq!(read.findings.bad_records, 0);
        let lost = losses(&read);
        let [(lost, count)] = lost[..] else { panic!("{mode:?}: {kept} kept, {lost:?}") };
        let expected =
            if mode == BufferMode::Circular { LossReason::Overwritten } else { LossReason::NotBacked };
        assert_eq!((lost, kept + count), (expected, EVENTS), "{mode:?}");
        assert!(kept > 20_000, "{mode:?}: {kept}");
    }
}

/// The pages of open scopes have memory as far as threads need them.
//= docs/buffer.md#open-scopes
#[test]
fn a_full_file_system_costs_open_scopes_and_not_the_program() {
    const TEST: &str = "sparse::a_full_file_system_costs_open_scopes_and_not_the_program";
    const THREADS: u64 = 20;
    const SLOTS_OF_PAGE: u64 = 4096 / SLOT_BYTES;
    if !is_own_process(TEST) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let Some(_mounted) = small_file_system(directory.path(), TEST) else { return };
    let vmo = sparse_file(directory.path(), BufferMode::Oneshot);
    let trace = start_in_file(&vmo, BufferMode::Oneshot);
    let before = vmo.backed_bytes().unwrap();
    duration!("cat", "first");
    assert_eq!(vmo.backed_bytes().unwrap(), before + 4096, "a page for the first thread");
    let mut full = fs::File::create(directory.path().join("full")).unwrap();
    while full.write_all(&[1; 4096]).is_ok() {}
    let (has_begun, ends) = (Barrier::new(THREADS as usize + 1), Barrier::new(THREADS as usize + 1));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                duration!("cat", "outer");
                has_begun.wait();
                ends.wait();
            });
        }
        has_begun.wait();
        let owners = || {
            let owner = |slot| BYTES as u64 + HEADER_BYTES + slot * SLOT_BYTES;
            (0..SLOTS).filter(|slot| word_at(&vmo, owner(*slot)) != 0).count() as u64
        };
        assert_eq!(owners(), SLOTS_OF_PAGE);
        let refused = word_at(&vmo, BYTES as u64 + field::REFUSED as u64 * 8);
        assert_eq!(refused, THREADS + 1 - SLOTS_OF_PAGE);
        ends.wait();
    });
    assert_eq!(trace.stop().events.len() as u64, THREADS);
}

/// Where all slots are taken, a thread has none until another one ends, with all of its scopes ended or not.
//= docs/buffer.md#open-scopes
#[test]
fn a_thread_takes_the_slot_of_one_that_has_ended() {
    let site = Site::leaked("cat", "left", &[]);
    let file = tempfile::tempdir().unwrap();
    let vmo = sparse_file(file.path(), BufferMode::Oneshot);
    let trace = start_in_file(&vmo, BufferMode::Oneshot);
    let has_slot = || {
        // SAFETY: it has no preconditions.
        let thread = unsafe { libc::gettid() } as u64;
        (0..SLOTS).any(|slot| word_at(&vmo, BYTES as u64 + HEADER_BYTES + slot * SLOT_BYTES) == thread)
    };
    for leaves_one_open in [false, true] {
        let [has_begun, first_ends, ends] = [SLOTS as usize + 1, 2, SLOTS as usize].map(Barrier::new);
        let (first_has_ended, found) = (Barrier::new(2), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            let first = scope.spawn(|| {
                {
                    duration!("cat", "held");
                    has_begun.wait();
                    first_ends.wait();
                }
                if leaves_one_open {
                    let _ = ffi::open_scope(site, trace_engine::now().0);
                }
            });
            for _ in 1..SLOTS {
                scope.spawn(|| {
                    duration!("cat", "held");
                    has_begun.wait();
                    ends.wait();
                });
            }
            scope.spawn(|| {
                has_begun.wait();
                {
                    duration!("cat", "refused");
                    found.lock().unwrap().push(has_slot());
                }
                first_ends.wait();
                first_has_ended.wait();
                {
                    duration!("cat", "late");
                    found.lock().unwrap().push(has_slot());
                }
                ends.wait();
            });
            first.join().unwrap();
            first_has_ended.wait();
        });
        assert_eq!(*found.lock().unwrap(), [false, true], "left open: {leaves_one_open}");
    }
    assert_eq!(trace.stop().events.len() as u64, 2 * (SLOTS + 2));
}

/// Scopes of tracks, which threads end in any order: names and tracks of those that are open.
//= docs/buffer.md#open-scopes
#[test]
fn scopes_of_tracks_have_entries_until_they_end() {
    static QUEUE: Track = Track::new("queue");
    let file = tempfile::tempdir().unwrap();
    let vmo = sparse_file(file.path(), BufferMode::Oneshot);
    let mut trace = start_in_file(&vmo, BufferMode::Oneshot);
    let open = || {
        let run = word_at(&vmo, BYTES as u64 + field::RUN as u64 * 8);
        let mut starts = Vec::new();
        for slot in 0..SLOTS {
            let at = BYTES as u64 + HEADER_BYTES + slot * SLOT_BYTES;
            let words = std::array::from_fn(|word| word_at(&vmo, at + word as u64 * 8));
            let Some(slot) = Slot::new(&words, run) else { continue };
            for (track, scope) in slot.scopes_of_tracks() {
                assert_eq!(track, QUEUE.id() | 1 << 63);
                starts.push(scope.start);
            }
        }
        starts.sort_unstable();
        starts
    };
    let (has_begun, ends) = (Barrier::new(2), Barrier::new(2));
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            track_duration!("cat", QUEUE, "of a thread");
            has_begun.wait();
            ends.wait();
        });
        has_begun.wait();
        let first = open();
        assert_eq!(first.len(), 1);
        {
            track_duration!("cat", QUEUE, "inside");
            assert_eq!(open()[..1], first);
            assert_eq!(open().len(), 2);
        }
        assert_eq!(open(), first);
        // More than all slots have room for.
        nest(&QUEUE, 1100, &mut || assert_eq!(open().len(), 32 * 31));
        assert_eq!(open(), first);
        // What began in the run before has no entry any more, and ends none.
        trace.pause();
        trace.resume(Disposition::Retain);
        assert_eq!(open(), []);
        track_duration!("cat", QUEUE, "in the second run");
        let second = open();
        assert_eq!(second.len(), 1);
        ends.wait();
        thread.join().unwrap();
        assert_eq!(open(), second);
    });
    assert_eq!(trace.stop().events.len(), 1100 + 3);
}

fn nest(track: &'static Track, count: u32, then: &mut dyn FnMut()) {
    if count == 0 {
        return then();
    }
    track_duration!("cat", *track, "nested");
    nest(track, count - 1, then);
}

fn word_at(vmo: &zx_sim::Vmo, offset: u64) -> u64 {
    let mut word = [0; 8];
    assert_eq!(vmo.read_at(offset, &mut word).unwrap(), 8);
    u64::from_le_bytes(word)
}

/// A filter of system calls, installed while the program is recorded, may refuse the call for memory.
//= docs/buffer.md#memory
#[test]
fn where_the_kernel_refuses_the_call_events_are_lost_and_counted() {
    const EVENTS: u64 = 60_000;
    if !is_own_process("sparse::where_the_kernel_refuses_the_call_events_are_lost_and_counted") {
        return;
    }
    let directory = Path::new("/dev/shm");
    let directory = if directory.is_dir() { tempfile::tempdir_in(directory) } else { tempfile::tempdir() };
    let directory = directory.unwrap();
    let vmo = sparse_file(directory.path(), BufferMode::Oneshot);
    if vmo.backed_bytes().unwrap() >= BYTES as u64 {
        return;
    }
    let trace = start_in_file(&vmo, BufferMode::Oneshot);
    let backed = vmo.backed_bytes().unwrap();
    refuse(libc::SYS_madvise, libc::EPERM);
    assert!(!engine::can_populate());
    write(0..EVENTS);
    assert_eq!(vmo.backed_bytes().unwrap(), backed);
    let read = trace.stop();
    let kept = read.events.len() as u64;
    assert_eq!(losses(&read), [(LossReason::NotBacked, EVENTS - kept)]);
    assert!(kept > CHUNK_BYTES / EVENT_BYTES - 128, "{kept}");
}
