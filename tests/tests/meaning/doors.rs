//! The doors of the tool, and what each should say about a trace.

use super::model::{Meaning, Slice};
use super::records::{Kind, Record, Thread};
use super::rows::{Class, Expected};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};
use trace_tests::perfetto::Version;

/// A way to get an answer about a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Door {
    Check,
    Query,
    /// `trace convert --format csv`.
    Csv,
    Stats,
    Assert,
    Measure,
    /// `trace convert --format folded`.
    Folded,
    /// `trace convert --format speedscope`.
    Speedscope,
    /// `trace convert --format firefox`.
    Firefox,
    /// A converted file, as another reader sees it.
    Export(Format, Peer),
}

/// A format of converted files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    Perfetto,
    Chrome,
    Catapult,
    /// That of `trace report`.
    Page,
}

/// A reader of other software.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    Perfetto(Version),
    Viewer,
    /// The modules of a page, which draw what is on it.
    Page,
}

pub const V52: Peer = Peer::Perfetto(Version::V52);
pub const V55: Peer = Peer::Perfetto(Version::V55);

/// Those of which the test itself reads the answer.
pub const COMMANDS: [Door; 9] = [
    Door::Check,
    Door::Query,
    Door::Csv,
    Door::Stats,
    Door::Assert,
    Door::Measure,
    Door::Folded,
    Door::Speedscope,
    Door::Firefox,
];

/// Readers, and the formats that each of them reads. Perfetto refuses Catapult's format.
pub const READERS: [(Peer, &[Format]); 4] = [
    (V52, &[Format::Perfetto, Format::Chrome]),
    (V55, &[Format::Perfetto, Format::Chrome]),
    (Peer::Viewer, &[Format::Chrome, Format::Catapult]),
    (Peer::Page, &[Format::Page]),
];

/// Threads from this number on are lanes of Chrome's format: further rows for slices that overlap.
pub const FIRST_LANE: u64 = 1 << 31;
pub const LAST_LANE: u64 = u32::MAX as u64;

/// Threads whose numbers a format or its readers cannot hold have numbers from here to [`FIRST_LANE`].
pub const FIRST_REPLACED: u64 = 1 << 30;
/// The number of such a thread in rows.
pub const REPLACED: &str = "replaced";

impl Format {
    /// Those of `trace convert`.
    pub const CONVERTED: [Self; 3] = [Self::Perfetto, Self::Chrome, Self::Catapult];

    /// As `trace convert --format` has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Perfetto => "perfetto",
            Self::Chrome => "chrome",
            Self::Catapult => "catapult",
            Self::Page => "page",
        }
    }
}

impl Display for Door {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Check => f.write_str("check"),
            Self::Query => f.write_str("query"),
            Self::Csv => f.write_str("convert --format csv"),
            Self::Stats => f.write_str("stats"),
            Self::Assert => f.write_str("assert"),
            Self::Measure => f.write_str("measure"),
            Self::Folded => f.write_str("convert --format folded"),
            Self::Speedscope => f.write_str("convert --format speedscope"),
            Self::Firefox => f.write_str("convert --format firefox"),
            Self::Export(_, Peer::Page) => f.write_str("report"),
            Self::Export(format, Peer::Viewer) => write!(f, "convert --format {}, Catapult", format.name()),
            Self::Export(format, Peer::Perfetto(version)) => {
                write!(f, "convert --format {}, Perfetto {version:?}", format.name())
            }
        }
    }
}

/// The row of a slice or an operation.
pub fn slice_row(track: impl Display, category: &str, name: &str, begin: u64, length: Option<u64>) -> String {
    match length {
        Some(length) => format!("{track} {category}:{name} {begin} +{length}"),
        None => format!("{track} {category}:{name} {begin} open"),
    }
}

pub fn parent_row(slice: &str, parent: Option<&str>) -> String {
    parent.map_or_else(|| format!("{slice} in nothing"), |parent| format!("{slice} in {parent}"))
}

pub fn self_row(slice: &str, own: Option<u64>) -> String {
    own.map_or_else(|| format!("{slice} self unknown"), |own| format!("{slice} self {own}"))
}

pub fn name_row(thread: &str, name: &str) -> String {
    format!("{name} on {thread:?}")
}

pub fn log_row(track: impl Display, message: &str, at: u64) -> String {
    format!("{track} {message:?} {at}")
}

pub fn counter_row(process: impl Display, name: &str, at: u64, value: f64) -> String {
    format!("{process} {name} {at} {value}")
}

/// Perfetto's processor has every arrow leave the slice that began first.
pub fn arrow_row(peer: Peer, from: (String, u64), to: (String, u64)) -> String {
    let is_backwards = (to.1, &to.0) < (from.1, &from.0);
    let (from, to) = if peer != Peer::Viewer && is_backwards { (to, from) } else { (from, to) };
    format!("{} {} to {} {}", from.0, from.1, to.0, to.1)
}

/// The row of a part of a flow.
pub fn flow_row(thread: impl Display, category: &str, name: &str, at: u64, id: u64, phase: &str) -> String {
    format!("{thread} {category}:{name} {at} id {id} {phase}")
}

/// Lengths of slices or operations of one name. Several commands print them.
#[derive(Clone, Debug, Default)]
pub struct Lengths {
    pub ended: u64,
    pub open: u64,
    pub sum: u64,
    pub greatest: u64,
    pub own: u64,
}

impl Lengths {
    fn add(&mut self, length: Option<u64>, own: Option<u64>) {
        let Some(length) = length else {
            self.open += 1;
            return;
        };
        self.ended += 1;
        self.sum += length;
        self.greatest = self.greatest.max(length);
        self.own += own.unwrap_or(0);
    }

    /// What is known if all of them are counted, also those that have not ended.
    pub fn in_all(&self, name: &str) -> String {
        format!("{name}: {} in all, {}", self.ended + self.open, self.of_ended())
    }

    /// What is known if those are counted that have ended.
    pub fn row(&self, name: &str) -> String {
        format!("{name}: {} ended, {}", self.ended, self.of_ended())
    }

    fn of_ended(&self) -> String {
        format!("sum {}, greatest {}", self.sum, self.greatest)
    }

    pub fn self_row(&self, name: &str) -> String {
        format!("{name}: self {}", self.own)
    }
}

/// A name with its category.
pub type Name = (String, String);

pub fn name_text((category, name): &Name) -> String {
    format!("{category}:{name}")
}

fn length(slice: &Slice) -> Option<u64> {
    Some(slice.end? - slice.begin)
}

impl Meaning {
    pub fn lengths_of_slices(&self) -> BTreeMap<Name, Lengths> {
        self.lengths_of(|slice| !slice.is_poll)
    }

    pub fn lengths_of_polls(&self) -> BTreeMap<Name, Lengths> {
        self.lengths_of(|slice| slice.is_poll)
    }

    fn lengths_of(&self, is_wanted: impl Fn(&&Slice) -> bool) -> BTreeMap<Name, Lengths> {
        let mut lengths: BTreeMap<Name, Lengths> = BTreeMap::new();
        for slice in self.slices.iter().filter(is_wanted) {
            let name = (slice.category.clone(), slice.name.clone());
            lengths.entry(name).or_default().add(length(slice), slice.own);
        }
        lengths
    }

    pub fn lengths_of_operations(&self) -> BTreeMap<Name, Lengths> {
        let mut lengths: BTreeMap<Name, Lengths> = BTreeMap::new();
        for operation in &self.operations {
            let name = (operation.category.clone(), operation.name.clone());
            let length = operation.end.map(|end| end - operation.begin);
            lengths.entry(name).or_default().add(length, length);
        }
        lengths
    }

    /// Names that only slices, or only operations, have. Some commands count all events of a name together.
    pub fn names(&self) -> (BTreeMap<Name, Lengths>, BTreeMap<Name, Lengths>) {
        let (slices, operations) = (self.lengths_of_slices(), self.lengths_of_operations());
        let others = self.records.iter().filter(|record| {
            let of_flow = [Kind::FlowBegin { id: 0 }, Kind::FlowStep { id: 0 }, Kind::FlowEnd { id: 0 }];
            let is = |kind| std::mem::discriminant(&record.kind) == std::mem::discriminant(kind);
            of_flow.iter().chain([&Kind::Instant]).any(is)
        });
        let others: BTreeSet<Name> =
            others.map(|record| (record.category.clone(), record.name.clone())).collect();
        let only = |these: &BTreeMap<Name, Lengths>, those: &BTreeMap<Name, Lengths>| {
            let these =
                these.iter().filter(|(name, _)| !those.contains_key(*name) && !others.contains(*name));
            these.map(|(name, lengths)| (name.clone(), lengths.clone())).collect()
        };
        (only(&slices, &operations), only(&operations, &slices))
    }

    /// Names of instants, which other readers show as slices without length.
    pub fn instants(&self) -> BTreeSet<&str> {
        let instants = self.records.iter().filter(|record| record.kind == Kind::Instant);
        instants.map(|record| &*record.name).collect()
    }
}

/// What a door should say about a trace.
pub fn expected(door: Door, meaning: &Meaning) -> Expected {
    let mut expected = Expected::default();
    match door {
        Door::Check => {
            for (kind, count) in &meaning.problems {
                expected.add(Class::Problems, format!("{kind} {count}"));
            }
        }
        Door::Stats => {
            for (kind, names) in [
                ("slice", meaning.lengths_of_slices()),
                ("operation", meaning.lengths_of_operations()),
                ("poll", meaning.lengths_of_polls()),
            ] {
                for (name, lengths) in names {
                    let text = format!("{kind} {}", name_text(&name));
                    if lengths.ended > 0 {
                        expected.add(Class::Sums, lengths.row(&text));
                        if kind != "operation" {
                            expected.add(Class::SelfSums, lengths.self_row(&text));
                        }
                    }
                    if lengths.open > 0 {
                        expected.add(Class::Sums, format!("{text}: {} open", lengths.open));
                    }
                }
            }
        }
        Door::Assert => {
            let (slices, operations) = meaning.names();
            for (name, lengths) in slices.iter().chain(&operations) {
                expected.add(Class::Sums, lengths.in_all(&name_text(name)));
            }
            for (name, lengths) in &slices {
                expected.add(Class::SelfSums, lengths.self_row(&name_text(name)));
            }
        }
        Door::Measure => {
            let (slices, operations) = meaning.names();
            for (name, lengths) in slices.iter().chain(&operations) {
                expected.add(Class::Sums, lengths.row(&name_text(name)));
            }
        }
        Door::Folded => stacks(meaning, &mut expected),
        Door::Speedscope => of_speedscope(meaning, &mut expected),
        Door::Query | Door::Csv | Door::Firefox => all(meaning, &mut expected),
        Door::Export(Format::Page, _) => {
            all(meaning, &mut expected);
            // In a picture, a slice without length may as well be in what ends there.
            for slice in meaning.slices.iter().filter(|slice| slice.end == Some(slice.begin)) {
                let row = slice_row(slice.thread, &slice.category, &slice.name, slice.begin, Some(0));
                let parent = slice.parent.map(|parent| &*meaning.slices[parent].name);
                allow_ending(meaning, slice, (&row, &parent_row(&row, parent)), &mut expected);
            }
        }
        Door::Export(format, peer) => of_export(format, peer, meaning, &mut expected),
    }
    expected
}

/// Everything that is in tables.
fn all(meaning: &Meaning, expected: &mut Expected) {
    slices(meaning, expected);
    operations(meaning, expected);
    for record in &meaning.records {
        of_record(record, expected);
    }
}

fn slices(meaning: &Meaning, expected: &mut Expected) {
    for slice in &meaning.slices {
        let row = slice_row(slice.thread, &slice.category, &slice.name, slice.begin, length(slice));
        let parent = slice.parent.map(|parent| &*meaning.slices[parent].name);
        expected.add(Class::Parents, parent_row(&row, parent));
        add_name(meaning, slice, expected);
        expected.add(Class::SelfTimes, self_row(&row, slice.own));
        expected.add(Class::Slices, row);
    }
}

fn add_name(meaning: &Meaning, slice: &Slice, expected: &mut Expected) {
    if let Some(thread) = meaning.names.get(&slice.thread) {
        expected.add(Class::Names, name_row(thread, &slice.name));
    }
}

/// Names from the outermost slice to the innermost, with the own times of all that have this stack.
fn stacks(meaning: &Meaning, expected: &mut Expected) {
    let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
    for slice in &meaning.slices {
        let mut stack = slice.name.clone();
        let mut outer = slice.parent;
        while let Some(parent) = outer.map(|parent| &meaning.slices[parent]) {
            stack = format!("{};{stack}", parent.name);
            outer = parent.parent;
        }
        let Thread { process, thread } = slice.thread;
        let thread = meaning
            .names
            .get(&slice.thread)
            .map_or_else(|| format!("thread_{thread}"), |name| name.replace(' ', "_"));
        *stacks.entry(format!("{process};{thread};{stack}")).or_default() += slice.own.unwrap_or(0);
    }
    for (stack, own) in stacks.into_iter().filter(|(_, own)| *own > 0) {
        expected.add(Class::Stacks, format!("{stack} {own}"));
    }
}

fn of_speedscope(meaning: &Meaning, expected: &mut Expected) {
    for slice in &meaning.slices {
        let row = slice_row(slice.thread, &slice.category, &slice.name, slice.begin, length(slice));
        let parents = parent_row(&row, slice.parent.map(|parent| &*meaning.slices[parent].name));
        // What overlaps is in a further profile, without what encloses both.
        if slice.overlaps && slice.parent.is_some() {
            expected.allow(Class::Parents, &parents, parent_row(&row, None));
        }
        expected.add(Class::Parents, parents);
        expected.add(Class::Slices, row);
    }
}

fn operations(meaning: &Meaning, expected: &mut Expected) {
    for operation in &meaning.operations {
        let length = operation.end.map(|end| end - operation.begin);
        let (category, name) = (&operation.category, &operation.name);
        expected
            .add(Class::Operations, slice_row(operation.process, category, name, operation.begin, length));
    }
}

fn of_record(record: &Record, expected: &mut Expected) {
    let Record { at, thread, category, name, kind } = record;
    let flow = |id, phase| flow_row(thread, category, name, *at, id, phase);
    match kind {
        Kind::Instant => expected.add(Class::Instants, slice_row(thread, category, name, *at, Some(0))),
        Kind::OperationInstant { .. } => {
            expected.add(Class::Instants, slice_row(thread, category, name, *at, Some(0)));
        }
        Kind::Log => expected.add(Class::Logs, log_row(thread, name, *at)),
        Kind::FlowBegin { id } => expected.add(Class::Flows, flow(*id, "begin")),
        Kind::FlowStep { id } => expected.add(Class::Flows, flow(*id, "step")),
        Kind::FlowEnd { id } => expected.add(Class::Flows, flow(*id, "end")),
        Kind::Counter { id, samples } => {
            for (series, value) in samples {
                let name = format!("{category}:{name}#{id}.{series}");
                expected.add(Class::Counters, counter_row(thread.process, &name, *at, *value as f64));
            }
        }
        _ => {}
    }
}

/// What a reader sees in a converted file. Each difference from what `trace query` says is a rule of the
/// format or of the reader.
fn of_export(format: Format, peer: Peer, meaning: &Meaning, expected: &mut Expected) {
    for slice in &meaning.slices {
        let row = slice_row(slice.thread, &slice.category, &slice.name, slice.begin, length(slice));
        let parent = slice.parent.map(|parent| &*meaning.slices[parent].name);
        let parents = parent_row(&row, parent);
        // What overlaps another slice lies on a further row, without what encloses both.
        if slice.overlaps && parent.is_some() {
            expected.allow(Class::Parents, &parents, parent_row(&row, None));
        }
        allow_touching(peer, meaning, slice, (&row, &parents), expected);
        if format == Format::Chrome && peer != Peer::Viewer {
            allow_whole(meaning, slice, (&row, &parents), expected);
        }
        // Perfetto's processor has thread numbers of 32 bits, and takes thread 0 for the idle one.
        if slice.thread.thread == 0 || slice.thread.thread > u32::MAX.into() {
            let track = format!("{}/{REPLACED}", slice.thread.process);
            let there = slice_row(track, &slice.category, &slice.name, slice.begin, length(slice));
            expected.allow(Class::Slices, &row, there.clone());
            expected.allow(Class::Parents, &parents, parent_row(&there, parent));
        }
        // In Chrome's format a further row is a thread of another number. What is inside lies there, too.
        let mut around = Some(slice);
        let is_on_lane = std::iter::from_fn(|| {
            let this = around?;
            around = this.parent.map(|parent| &meaning.slices[parent]);
            Some(this.overlaps)
        })
        .any(|overlaps| overlaps);
        if is_on_lane && format == Format::Chrome {
            let lane = format!("{}/lane", slice.thread.process);
            let there = slice_row(lane, &slice.category, &slice.name, slice.begin, length(slice));
            expected.allow(Class::Slices, &row, there.clone());
            expected.allow(Class::Parents, &parents, parent_row(&there, parent));
            expected.allow(Class::Parents, &parents, parent_row(&there, None));
            allow_touching(peer, meaning, slice, (&there, &parents), expected);
            if peer != Peer::Viewer {
                allow_whole(meaning, slice, (&there, &parents), expected);
            }
        }
        expected.add(Class::Parents, parents);
        expected.add(Class::Slices, row);
        add_name(meaning, slice, expected);
    }
    operations(meaning, expected);
    for record in &meaning.records {
        let Record { at, thread, category, name, kind } = record;
        match kind {
            // Other readers show an instant as a slice without length.
            Kind::Instant => expected.add(Class::Slices, slice_row(thread, category, name, *at, Some(0))),
            Kind::OperationInstant { .. } => {
                let row = slice_row(thread.process, category, name, *at, Some(0));
                expected.add(Class::Operations, row);
            }
            Kind::Log => {
                // Fuchsia's exporter writes log records as global instants, which belong to no thread.
                let is_global = format != Format::Perfetto;
                let track = if is_global { "global".to_owned() } else { thread.to_string() };
                // Catapult's viewer keeps them beside its threads.
                if peer != Peer::Viewer {
                    expected.add(Class::Logs, log_row(track, name, *at));
                }
            }
            Kind::Counter { id, samples } => {
                for (series, value) in samples {
                    let name = counter_name(format, peer, name, *id, series);
                    expected.add(Class::Counters, counter_row(thread.process, &name, *at, *value as f64));
                }
            }
            _ => {}
        }
    }
    for (from, to) in meaning.arrows.iter().flatten() {
        let [from, to] = [from, to].map(|slice| &meaning.slices[*slice]);
        let end = |slice: &Slice| (slice.name.clone(), slice.begin);
        let row = arrow_row(peer, end(from), end(to));
        if format == Format::Chrome && peer != Peer::Viewer {
            // A part of a flow belongs to a slice without length that is before it, or in which its slice is.
            let others = |slice: &Slice| {
                let thread = slice.thread;
                let is_there = move |other: &&Slice| other.thread == thread && other.end == Some(other.begin);
                meaning.slices.iter().filter(is_there).map(end).chain([end(slice)])
            };
            for (from, to) in others(from).flat_map(|from| others(to).map(move |to| (from.clone(), to))) {
                expected.allow(Class::Arrows, &row, arrow_row(peer, from, to));
            }
        }
        // Catapult's viewer ends an open slice with the last one of its thread, and finds no part of a flow
        // behind that.
        if peer == Peer::Viewer && (from.end.is_none() || to.end.is_none()) {
            expected.allow_missing(Class::Arrows, &row);
        }
        expected.add(Class::Arrows, row);
    }
}

/// Allows other parents for a slice without length, where readers have it inside of what begins or ends at
/// its time. Of `rows`, the first is the slice's own, and the second is the one with its parent that may
/// differ.
fn allow_touching(peer: Peer, meaning: &Meaning, slice: &Slice, rows: (&str, &str), expected: &mut Expected) {
    let (row, parents) = rows;
    if slice.end.is_some_and(|end| end > slice.begin) {
        return;
    }
    // An instant is a slice without length, in which another one of its time may be.
    let is_there = |record: &&Record| (record.thread, record.at) == (slice.thread, slice.begin);
    for record in meaning.records.iter().filter(is_there) {
        match record.kind {
            Kind::Instant => expected.allow(Class::Parents, parents, parent_row(row, Some(&record.name))),
            // Log records without a wall clock are instants in Perfetto's format.
            Kind::Log => expected.allow(Class::Parents, parents, parent_row(row, Some("log"))),
            _ => {}
        }
    }
    // For Catapult's viewer, a slice that begins at the end of another and has no length is inside. An open
    // one has none for it, if nothing follows on its thread.
    if peer == Peer::Viewer {
        allow_ending(meaning, slice, rows, expected);
    }
}

/// The same for Perfetto's processor and Chrome's format, whose whole slices it ends where the next one
/// begins: of what it has at one time, it takes ends first and whole slices without length last.
fn allow_whole(meaning: &Meaning, slice: &Slice, rows: (&str, &str), expected: &mut Expected) {
    if slice.end != Some(slice.begin) {
        return;
    }
    let (row, parents) = rows;
    let is_there = |other: &&Slice| {
        let has_none = other.end == Some(other.begin);
        other.thread == slice.thread && other.begin == slice.begin && has_none
    };
    for other in meaning.slices.iter().filter(is_there) {
        expected.allow(Class::Parents, parents, parent_row(row, Some(&other.name)));
    }
    let mut around = slice.parent.map(|parent| &meaning.slices[parent]);
    while let Some(ended) = around.filter(|around| around.end == Some(slice.begin)) {
        around = ended.parent.map(|parent| &meaning.slices[parent]);
        expected.allow(Class::Parents, parents, parent_row(row, around.map(|around| &*around.name)));
    }
}

/// The same for what ends where a slice without length is.
fn allow_ending(meaning: &Meaning, slice: &Slice, (row, parents): (&str, &str), expected: &mut Expected) {
    let at_end = |other: &&Slice| (other.thread, other.end) == (slice.thread, Some(slice.begin));
    for other in meaning.slices.iter().filter(at_end) {
        expected.allow(Class::Parents, parents, parent_row(row, Some(&other.name)));
    }
}

/// How a reader composes the name of a counter.
fn counter_name(format: Format, peer: Peer, name: &str, id: u64, series: &str) -> String {
    match (format, peer, id) {
        (Format::Perfetto, ..) => format!("{name}:{series}:{id}"),
        (_, Peer::Perfetto(_), 0) => format!("{name} {series}"),
        (_, Peer::Perfetto(_), id) => format!("{name} id: {id:#x} {series}"),
        (_, Peer::Viewer | Peer::Page, 0) => format!("{name}.{series}"),
        (_, Peer::Viewer | Peer::Page, id) => format!("{name}[{id:#x}].{series}"),
    }
}

/// What a door can be asked about in a trace.
pub fn classes(door: Door, meaning: &Meaning) -> Vec<Class> {
    let mut classes = classes_of(door, meaning);
    let has_names = match door {
        Door::Query | Door::Csv => true,
        Door::Export(format, _) => format != Format::Page,
        _ => false,
    } && !meaning.names.is_empty();
    classes.extend(has_names.then_some(Class::Names));
    classes
}

fn classes_of(door: Door, meaning: &Meaning) -> Vec<Class> {
    match door {
        Door::Check => vec![Class::Problems],
        Door::Query | Door::Csv => vec![
            Class::Slices,
            Class::Parents,
            Class::SelfTimes,
            Class::Operations,
            Class::Instants,
            Class::Logs,
            Class::Counters,
            Class::Flows,
        ],
        Door::Stats | Door::Assert => vec![Class::Sums, Class::SelfSums],
        Door::Measure => vec![Class::Sums],
        Door::Folded => vec![Class::Stacks],
        Door::Speedscope => vec![Class::Slices, Class::Parents],
        // A profile without slices is refused.
        Door::Firefox if meaning.slices.is_empty() => Vec::new(),
        Door::Firefox => vec![Class::Slices, Class::Operations, Class::Instants, Class::Flows],
        Door::Export(Format::Page, _) => {
            vec![Class::Slices, Class::Parents, Class::Operations, Class::Instants, Class::Counters]
        }
        // Fuchsia's dialect has the order of the file, and operations of all processes in one place.
        Door::Export(Format::Catapult, Peer::Viewer) if !meaning.is_in_order() => Vec::new(),
        Door::Export(_, peer) => {
            let mut classes = vec![Class::Slices, Class::Parents, Class::Operations, Class::Counters];
            if peer != Peer::Viewer {
                classes.extend([Class::Logs, Class::Problems]);
            }
            if meaning.arrows.is_some() {
                classes.push(Class::Arrows);
            }
            classes
        }
    }
}
