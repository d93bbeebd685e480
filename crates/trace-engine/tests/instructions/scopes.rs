//! Stops a thread after each instruction of scopes in each other, and looks at what is open.
//!
//! Whatever a killed process leaves, each scope is there once: as a record, as one that is open, or not yet.

use super::{BufferMode, MODES, Page, Stepped, begin_to_be_stepped, start};
use std::collections::BTreeSet;
use trace_engine::duration;
use trace_format::event::{Event, EventKind};
use trace_format::record::RecordHeader;
use trace_format::scopes::{HEADER_BYTES, SLOT_BYTES, SLOTS, Slot, SlotWords, field};
use trace_reader::buffer::{Activity, BufferPart};
use zx_sim::Vmo;

pub const ROLE: &str = "scopes";

/// How many scopes have ended and are open, from one moment to the next.
const STATES: [(usize, usize); 7] = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 1), (3, 0)];

fn nest() {
    duration!("cat", "outer");
    {
        duration!("cat", "first");
    }
    duration!("cat", "second", "number" => 7_u64);
}

/// The process that is stepped through: `FIRST MODE DIRECTORY`, where the first scopes of its thread are
/// stepped through, or those that follow.
pub fn play(role: &str) {
    let mut parts = role.split(' ');
    let is_first = parts.next() == Some("true");
    let mode = MODES[parts.next().and_then(|mode| mode.parse::<usize>().ok()).expect("a mode")];
    let directory = parts.next().expect("a directory");
    let page = Page::open(directory);
    let _engine = start(directory, mode);
    let step = || {
        if !is_first {
            nest();
        }
        begin_to_be_stepped(&page);
        nest();
        // SAFETY: says that it is done.
        unsafe { libc::raise(libc::SIGSTOP) };
    };
    std::thread::scope(|scope| _ = scope.spawn(step));
}

/// When the scopes began that are open in the pages of a file.
fn open(pages: &Vmo) -> BTreeSet<u64> {
    let mut bytes = vec![0; (HEADER_BYTES + SLOTS * SLOT_BYTES) as usize];
    assert_eq!(pages.read_at(0, &mut bytes).ok(), Some(bytes.len()));
    let word = |place: usize| u64::from_le_bytes(bytes[place * 8..][..8].try_into().expect("a word"));
    let run = word(field::RUN);
    let mut begins = BTreeSet::new();
    for slot in 0..SLOTS as usize {
        let start = (HEADER_BYTES / 8) as usize + slot * (SLOT_BYTES / 8) as usize;
        let words: SlotWords = core::array::from_fn(|place| word(start + place));
        begins
            .extend(Slot::new(&words, run).into_iter().flat_map(|slot| slot.scopes()).map(|open| open.start));
    }
    begins
}

impl Stepped {
    /// When the scopes began that have a record.
    fn ended(&self) -> BTreeSet<u64> {
        let part = BufferPart::Rest(Activity::Quiet);
        let mut reader = super::Buffer(&self.buffer).reader(self.mode, part);
        let mut out = Vec::new();
        while reader.read_batch(&mut out).expect("the buffer can be read") {}
        assert_eq!(reader.findings().bad_records, 0, "{:?}", reader.findings().first_bad);
        let mut begins = BTreeSet::new();
        let mut records = &out[..];
        while let Some((header, _)) = records.split_first_chunk() {
            let size = RecordHeader(u64::from_le_bytes(*header)).size().bytes();
            let (record, rest) = records.split_at(size);
            records = rest;
            if let Some(Ok(Event { timestamp, kind: EventKind::DurationComplete { .. }, .. })) =
                Event::of_record(record)
            {
                assert!(begins.insert(timestamp.0), "each scope has one record");
            }
        }
        begins
    }
}

fn step_through(is_first: bool, number: usize, mode: BufferMode) {
    let stepped = Stepped::spawn(&format!("{ROLE} {is_first} {number}"), mode);
    let (mut steps, mut seen) = (0, vec![STATES[0]]);
    let before = stepped.ended();
    loop {
        let ended: BTreeSet<u64> = stepped.ended().difference(&before).copied().collect();
        let open = open(&stepped.pages).difference(&ended).filter(|begin| !before.contains(begin)).count();
        let state = (ended.len(), open);
        if seen.last() != Some(&state) {
            seen.push(state);
        }
        assert_eq!(seen, STATES[..seen.len().min(STATES.len())], "{is_first}, {mode:?}, instruction {steps}");
        if !stepped.step() {
            break;
        }
        steps += 1;
    }
    assert_eq!(seen, STATES, "{is_first}, {mode:?}");
    println!("scopes, {mode:?}, the first ones of their thread: {is_first}: {steps} instructions");
}

pub fn try_all(wanted: &str) {
    if !ROLE.contains(wanted) {
        return;
    }
    for (number, mode) in MODES.into_iter().enumerate() {
        [true, false].into_iter().for_each(|is_first| step_through(is_first, number, mode));
    }
}
