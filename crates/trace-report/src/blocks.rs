//! Entries in the order of their times become blocks: columns of one or more tracks, compressed.

use crate::arguments::Arguments;
use crate::columns::{put_number, put_signed};
use crate::entry::{Entry, OPEN};
use crate::fold::Fold;
use crate::tracks::{Kind, Track};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;
use trace_model::{Interval, Place, Placing, TrackRows};

/// How many entries a block has at most.
const BLOCK_ENTRIES: u64 = 1 << 16;
/// How many tracks a block has at most: all of them are decoded together.
const BLOCK_TRACKS: usize = 256;
/// About how many bytes of columns wait in memory.
const MAX_WAITING_BYTES: usize = 8 << 20;

/// Pages have 16 bits for the number of a row.
const LAST_ROW: usize = u16::MAX as usize;

/// The columns of a track that are not yet in a block.
#[derive(Debug, Default)]
struct Columns {
    count: u64,
    last: u64,
    at: Vec<u8>,
    length: Vec<u8>,
    depth: Vec<u8>,
    what: Vec<u8>,
    arguments: Arguments,
    template: Vec<u8>,
    values: Vec<f64>,
    /// Of folded slices.
    sums: Vec<u8>,
}

impl Columns {
    /// Adds a time.
    fn begin(&mut self, at: u64) {
        put_number(&mut self.at, at - self.last);
        self.last = at;
        self.count += 1;
    }

    fn bytes(&self) -> usize {
        let columns = [&self.at, &self.length, &self.depth, &self.what, &self.template, &self.sums];
        let columns: usize = columns.iter().map(|column| column.len()).sum();
        columns + self.arguments.bytes() + 8 * self.values.len()
    }

    fn write(&self, track: u32, kind: Kind, out: &mut Vec<u8>) {
        put_number(out, track.into());
        put_number(out, self.count);
        out.extend_from_slice(&self.at);
        if kind == Kind::Counter {
            put_values(out, &self.values);
            return;
        }
        if kind.has_length() {
            out.extend_from_slice(&self.length);
            out.extend_from_slice(&self.depth);
        }
        out.extend_from_slice(&self.what);
        if kind == Kind::Folded {
            out.extend_from_slice(&self.sums);
            return;
        }
        out.extend_from_slice(&self.template);
        self.arguments.write(out);
    }
}

/// Whole numbers as differences (0), others as they are in memory (1).
fn put_values(out: &mut Vec<u8>, values: &[f64]) {
    let is_whole = |value: &f64| value.fract() == 0.0 && value.abs() < (1_u64 << 53) as f64;
    if !values.iter().all(is_whole) {
        out.push(1);
        out.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        return;
    }
    out.push(0);
    let mut before = 0;
    for value in values {
        let value = *value as i64;
        put_signed(out, value - before);
        before = value;
    }
}

/// Slices that are shorter than `cut` are folded, those that begin in intervals of this width together.
#[derive(Clone, Copy, Debug)]
pub struct Folding {
    pub cut: u64,
    pub width: u64,
}

/// What was folded.
#[derive(Clone, Copy, Debug, Default)]
pub struct Folded {
    pub count: u64,
    pub sum: u64,
}

/// What all blocks have in common.
#[derive(Debug, Default)]
pub struct Made {
    /// How many rows each track has; tracks of folded slices follow the others.
    pub rows: Vec<u32>,
    /// For each block, its tracks and how many entries they have in it.
    pub directory: Vec<Vec<(u32, u64)>>,
    /// For each track of folded slices, the track that they are of.
    pub folded_tracks: Vec<u32>,
    pub folded: Folded,
    /// How many slices are drawn over others.
    pub drawn_over: u64,
}

/// The state of a track while its entries arrive.
#[derive(Debug, Default)]
struct State {
    /// Slices that are being folded, by row, and the interval that they begin in.
    folds: BTreeMap<u32, Fold>,
    interval: u64,
    /// The track that takes them.
    folded: Option<u32>,
    /// Of operations.
    operations: TrackRows,
    rows: u32,
    columns: Option<Box<Columns>>,
}

/// Makes blocks of entries.
pub struct Blocks<'a> {
    placing: Placing<Making<'a>>,
    /// The time of the last slice.
    at: u64,
}

/// Takes what is placed.
struct Making<'a> {
    tracks: &'a [Track],
    states: Vec<State>,
    /// Subtracted from all times, and what they are divided by.
    base: u64,
    unit: u64,
    waiting_bytes: usize,
    /// Arguments of slices that wait for their places.
    args: Vec<u8>,
    activity: Activity,
    folding: Folding,
    made: Made,
    /// Takes a block.
    take: &'a mut dyn FnMut(Vec<u8>) -> io::Result<()>,
}

/// How busy processes were over time: of the outermost slices of their threads.
#[derive(Debug)]
pub struct Activity {
    owners: Vec<u32>,
    /// For each process with slices, nanoseconds in each part of the time.
    busy: BTreeMap<u32, Box<[f32; Self::PARTS]>>,
    base: u64,
    part: f64,
}

impl Activity {
    const PARTS: usize = 240;
    /// Processes that are looked at, and those that are shown.
    const LOOKED_AT: usize = 2000;
    const SHOWN: usize = 64;

    /// `owners` has the process of each thread.
    pub fn new(owners: Vec<u32>, times: (u64, u64)) -> Self {
        let part = ((times.1 - times.0) as f64 / Self::PARTS as f64).max(1.0);
        Self { owners, busy: BTreeMap::new(), base: times.0, part }
    }

    fn add(&mut self, thread: u64, at: u64, length: u64) {
        let Some(process) = self.owners.get(thread as usize) else { return };
        if self.busy.len() >= Self::LOOKED_AT && !self.busy.contains_key(process) {
            return;
        }
        let busy = self.busy.entry(*process).or_insert_with(|| Box::new([0.0; Self::PARTS]));
        let (from, last) = (at.saturating_sub(self.base) as f64 / self.part, (Self::PARTS - 1) as f64);
        let to = (from + length as f64 / self.part).min(last + 1.0);
        for place in from.min(last) as usize..=to.min(last) as usize {
            let covered = to.min(place as f64 + 1.0) - from.max(place as f64);
            busy[place] += (covered.max(0.0) * self.part) as f32;
        }
    }

    /// The busiest processes, the busiest first, with nanoseconds in each part of the time.
    pub fn busiest(&self) -> Vec<(u32, &[f32])> {
        let mut all: Vec<(u32, &[f32])> =
            self.busy.iter().map(|(process, parts)| (*process, parts.as_slice())).collect();
        let sum = |parts: &[f32]| parts.iter().sum::<f32>();
        all.sort_by(|(_, a), (_, b)| sum(b).total_cmp(&sum(a)));
        all.truncate(Self::SHOWN);
        all
    }
}

impl<'a> Blocks<'a> {
    pub fn new(
        tracks: &'a [Track],
        base: u64,
        unit: u64,
        activity: Activity,
        folding: Folding,
        take: &'a mut dyn FnMut(Vec<u8>) -> io::Result<()>,
    ) -> Self {
        let making = Making {
            tracks,
            states: tracks.iter().map(|_| State::default()).collect(),
            base,
            unit: unit.max(1),
            waiting_bytes: 0,
            args: Vec::new(),
            activity,
            folding,
            made: Made::default(),
            take,
        };
        Self { placing: Placing::new(making), at: 0 }
    }

    /// Takes an entry, in the order of their times.
    pub fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (entry, args) = Entry::decode(bytes)?;
        let making = self.placing.place();
        let kind = making.kind(entry.track);
        let interval = entry.interval();
        if kind != Kind::Thread {
            let row = match kind {
                Kind::Operations => making.states[entry.track as usize].operations.begin(&interval, None),
                _ => (0, false),
            };
            return making.add(entry, row, args);
        }
        if self.at != entry.at {
            self.placing.flush()?;
            self.placing.place().args.clear();
            self.at = entry.at;
        }
        let waiting = &mut self.placing.place().args;
        let from = waiting.len();
        waiting.extend_from_slice(args);
        let place = [from, waiting.len()].map(|place| place as u32);
        self.placing.push(entry.track.into(), &interval, (entry.what, place))
    }

    /// Writes what is left; tracks are in this order in blocks.
    pub fn finish(mut self, order: &[u32]) -> io::Result<(Made, Activity)> {
        self.placing.end()?;
        self.placing.into_place().finish(order)
    }
}

impl Place for Making<'_> {
    /// The number of its name, and the place of its arguments.
    type Item = (u32, [u32; 2]);
    /// The row.
    type Kept = usize;
    type Track = TrackRows;

    #[inline]
    fn begin(
        &mut self,
        (track, rows): (u64, &mut TrackRows),
        slice: &Interval,
        (what, [from, to]): Self::Item,
        parent: Option<(&Interval, &usize)>,
    ) -> io::Result<Option<usize>> {
        let (row, is_taken) = rows.begin(slice, parent.map(|(_, row)| *row));
        let length = if slice.end == u64::MAX { OPEN } else { slice.duration() };
        if row == 0 {
            let owner = self.tracks[track as usize].owner;
            self.activity.add(owner, slice.begin, length.min(1 << 62));
        }
        let args = std::mem::take(&mut self.args);
        let of_slice = args.get(from as usize..to as usize).unwrap_or_default();
        let added = self.add(Entry::new(slice.begin, length, track as u32, what), (row, is_taken), of_slice);
        self.args = args;
        added.map(|()| Some(row))
    }
}

impl Making<'_> {
    fn kind(&self, track: u32) -> Kind {
        self.tracks.get(track as usize).map_or(Kind::Folded, |track| track.kind)
    }

    /// Adds an entry to the columns of its track, in a row in which another one may be.
    fn add(&mut self, entry: Entry, (row, is_taken): (usize, bool), args: &[u8]) -> io::Result<()> {
        let depth = row.min(LAST_ROW);
        self.made.drawn_over += u64::from(is_taken || row > depth);
        let kind = self.kind(entry.track);
        let state = &mut self.states[entry.track as usize];
        state.rows = state.rows.max(depth as u32 + 1);
        if kind.has_length() && entry.length < self.folding.cut {
            return self.fold(entry, depth as u32);
        }
        let columns = state.columns.get_or_insert_default();
        let before = columns.bytes();
        columns.begin((entry.at - self.base) / self.unit);
        if kind == Kind::Counter {
            columns.values.push(f64::from_bits(entry.length));
        } else {
            if kind.has_length() {
                let length =
                    if entry.length == OPEN { 0 } else { (entry.length / self.unit).saturating_add(1) };
                put_number(&mut columns.length, length);
                put_number(&mut columns.depth, depth as u64);
            }
            put_number(&mut columns.what, entry.what.into());
            let template = columns.arguments.push(args);
            put_number(&mut columns.template, template.into());
        }
        self.waiting_bytes += columns.bytes() - before;
        self.make_room(entry.track)
    }

    /// Writes what there is no room for.
    fn make_room(&mut self, track: u32) -> io::Result<()> {
        if self.states[track as usize].columns.as_ref().is_some_and(|columns| columns.count >= BLOCK_ENTRIES)
        {
            self.write(&[track])?;
        }
        while self.waiting_bytes > MAX_WAITING_BYTES {
            self.write_largest()?;
        }
        Ok(())
    }

    /// Adds a slice to those of its interval.
    fn fold(&mut self, entry: Entry, row: u32) -> io::Result<()> {
        let Entry { at, length, track, what, .. } = entry;
        let interval = (at - self.base) / self.folding.width.max(1);
        if self.states[track as usize].interval != interval {
            self.write_folds(track)?;
        }
        self.made.folded.count += 1;
        self.made.folded.sum = self.made.folded.sum.saturating_add(length);
        let state = &mut self.states[track as usize];
        state.interval = interval;
        let folds = state.folds.entry(row);
        folds.and_modify(|fold| fold.add(at, length, what)).or_insert_with(|| Fold::of(at, length, what));
        Ok(())
    }

    /// Writes the folded slices of a track's interval into columns, in the order of their times.
    fn write_folds(&mut self, track: u32) -> io::Result<()> {
        let state = &mut self.states[track as usize];
        let mut folds: Vec<(u32, Fold)> = std::mem::take(&mut state.folds).into_iter().collect();
        if folds.is_empty() {
            return Ok(());
        }
        let folded = match state.folded {
            Some(folded) => folded,
            None => {
                let folded = self.states.len() as u32;
                self.states[track as usize].folded = Some(folded);
                self.states.push(State::default());
                self.made.folded_tracks.push(track);
                folded
            }
        };
        folds.sort_by_key(|(_, fold)| fold.from);
        let state = &mut self.states[folded as usize];
        let columns = state.columns.get_or_insert_default();
        let before = columns.bytes();
        for (row, fold) in folds {
            state.rows = state.rows.max(row + 1);
            columns.begin((fold.from - self.base) / self.unit);
            put_number(&mut columns.length, ((fold.to - fold.from) / self.unit).saturating_add(1));
            put_number(&mut columns.depth, row.into());
            put_number(&mut columns.what, fold.what.into());
            put_number(&mut columns.sums, fold.count);
            put_number(&mut columns.sums, fold.sum / self.unit);
        }
        self.waiting_bytes += columns.bytes() - before;
        self.make_room(folded)
    }

    fn write_largest(&mut self) -> io::Result<()> {
        let mut waiting: Vec<(usize, u32)> = (0..)
            .zip(&self.states)
            .filter_map(|(track, state)| state.columns.as_ref().map(|columns| (columns.bytes(), track)))
            .collect();
        waiting.sort_by_key(|(bytes, _)| Reverse(*bytes));
        // Half of all, so that this happens rarely.
        let mut freed = 0;
        let enough = |(bytes, _): &&(usize, u32)| {
            let is_wanted = freed < MAX_WAITING_BYTES / 2;
            freed += bytes;
            is_wanted
        };
        let tracks: Vec<u32> = waiting.iter().take_while(enough).map(|(_, track)| *track).collect();
        self.write_packed(&tracks)
    }

    /// Writes the columns of some tracks, several in a block as long as it is not full.
    fn write_packed(&mut self, tracks: &[u32]) -> io::Result<()> {
        let (mut together, mut count) = (Vec::new(), 0);
        for track in tracks {
            let Some(columns) = &self.states[*track as usize].columns else { continue };
            let is_full = count + columns.count > BLOCK_ENTRIES || together.len() == BLOCK_TRACKS;
            if count > 0 && is_full {
                self.write(&std::mem::take(&mut together))?;
                count = 0;
            }
            count += self.states[*track as usize].columns.as_ref().map_or(0, |columns| columns.count);
            together.push(*track);
        }
        self.write(&together)
    }

    fn write(&mut self, tracks: &[u32]) -> io::Result<()> {
        let mut bytes = Vec::new();
        let mut contents = Vec::new();
        for track in tracks {
            let Some(columns) = self.states[*track as usize].columns.take() else { continue };
            self.waiting_bytes = self.waiting_bytes.saturating_sub(columns.bytes());
            columns.write(*track, self.kind(*track), &mut bytes);
            contents.push((*track, columns.count));
        }
        if contents.is_empty() {
            return Ok(());
        }
        self.made.directory.push(contents);
        (self.take)(bytes)
    }

    fn finish(mut self, order: &[u32]) -> io::Result<(Made, Activity)> {
        for track in 0..self.tracks.len() as u32 {
            self.write_folds(track)?;
        }
        let folded = self.tracks.len() as u32..self.states.len() as u32;
        let order: Vec<u32> = order.iter().copied().chain(folded).collect();
        self.write_packed(&order)?;
        self.made.rows = self.states.iter().map(|state| state.rows).collect();
        Ok((self.made, self.activity))
    }
}
