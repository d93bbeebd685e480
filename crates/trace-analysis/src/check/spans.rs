//! Begins and ends that belong together: durations, async operations, flows.
//!
//! Durations and operations are paired in the order of their times, which is that of the file for most
//! threads and operations; the others are sorted first. Of names, only hashes are kept.
//= docs/meaning.md#which-begin-an-end-belongs-to

use super::flows::{FlowPart, Flows};
use super::found::{EventPosition, Found, Unmatched, What};
use super::late::{LateParts, Part};
use super::nesting::{Nesting, Over};
use std::io;
use trace_format::event::EventKind;
use trace_format::scopes::Ending;
use trace_format::units::{Koid, Nanos, Offset, ProviderId};
use trace_model::{Begin, Ended, MAX_OPEN_OF_ID, Pairing, Partings, token};
use trace_reader::{Disorder, Event, Resolved, Text, Thread, ThreadNumbers};

/// The remark about ends of durations that have another name or category than their begin.
pub(super) const MISMATCHED: &str = "mismatched-end";
/// The remark about operations that end by another name than they began by.
pub(super) const MISMATCHED_ASYNC: &str = "mismatched-async-end";
/// The remark about operations that end in another process than they began in.
pub(super) const CROSSING: &str = "crossing-async";

/// The remark about slices that had not ended when the recording, the program or the thread did.
pub(super) const OPEN: &str = "open-scope";

/// Threads that are distinguished.
const MAX_THREADS: usize = 1 << 20;

/// Why a span has no end, and how many nanoseconds it had lasted.
fn why(ending: Ending, lasted: Option<u64>) -> String {
    let after = lasted.map_or_else(String::new, |lasted| format!(", after {lasted} ns"));
    format!("{}{after}", ending.text())
}

/// A duration or an operation that has begun.
#[derive(Clone, Copy, Debug)]
struct Begun {
    offset: Offset,
    provider: ProviderId,
    is_chosen: bool,
    at: Nanos,
    process: Koid,
    /// What it is known by if it has no end.
    what: What,
    /// Stand for the texts.
    category: u64,
    name: u64,
}

impl Begin for Begun {}

/// All spans that are open.
#[derive(Debug)]
pub(super) struct Spans<'a> {
    disorder: &'a Disorder,
    late: LateParts,
    threads: ThreadNumbers,
    pairing: Pairing<Begun>,
    partings: Partings,
    nesting: Nesting,
    flows: Flows,
    limit: usize,
    /// Some have been dropped, so that an unmatched one means nothing.
    is_full: bool,
}

impl<'a> Spans<'a> {
    pub fn new(limit: usize, disorder: &'a Disorder) -> Self {
        Self {
            disorder,
            late: LateParts::default(),
            threads: ThreadNumbers::default(),
            pairing: Pairing::default().with_count(limit),
            partings: Partings::default(),
            nesting: Nesting::default(),
            flows: Flows::default(),
            limit,
            is_full: false,
        }
    }

    /// Takes a record that is no event.
    pub fn other(&mut self, record: &Resolved<'_>) {
        self.partings.note(record);
    }

    /// Matches an event, and passes on what is wrong with it, if that is about something that is chosen.
    pub fn event(
        &mut self,
        place: EventPosition,
        event: &Event<'_>,
        is_chosen: bool,
        found: &mut impl FnMut(Found),
    ) {
        let Event { thread, time, category, name, .. } = *event;
        if self.is_full {
            return;
        }
        if let Some((ending, lasted)) = event.ending() {
            let Thread { process, thread } = thread;
            if is_chosen {
                found((OPEN, format!("{name:?} on thread {process}/{thread}: {}", why(ending, lasted))));
            }
            return;
        }
        let part = |is_end, id| {
            let category = token(category);
            Part { is_end, id, at: time.nanos(), thread, place, category, name, is_chosen }
        };
        match event.kind {
            EventKind::DurationBegin => self.part(&part(false, None), category, found),
            EventKind::DurationEnd => self.part(&part(true, None), category, found),
            EventKind::AsyncBegin { id } => self.part(&part(false, Some(id)), category, found),
            EventKind::AsyncEnd { id } => self.part(&part(true, Some(id)), category, found),
            EventKind::FlowBegin { id } => self.flow(id, FlowPart::Begin, place, is_chosen, found),
            EventKind::FlowStep { id } => self.flow(id, FlowPart::Step, place, is_chosen, found),
            EventKind::FlowEnd { id } => self.flow(id, FlowPart::End, place, is_chosen, found),
            EventKind::DurationComplete { end } => {
                let (begin, end) = (time.nanos(), end.to_nanos(time.rate));
                // One that ends before it begins is reported as that.
                if begin <= end {
                    let over = Over { thread, begin, end, place, name, is_chosen };
                    self.nesting.duration(&over, self.disorder).into_iter().for_each(found);
                }
            }
            // An instant of an operation need not have one.
            EventKind::AsyncInstant { .. }
            | EventKind::Instant { .. }
            | EventKind::Counter { .. }
            | EventKind::Unknown { .. } => {}
        }
    }

    fn flow(
        &mut self,
        id: u64,
        part: FlowPart,
        place: EventPosition,
        is_chosen: bool,
        found: &mut impl FnMut(Found),
    ) {
        self.flows.part(id, part, place, is_chosen);
        self.full().into_iter().for_each(found);
    }

    fn part(&mut self, part: &Part<'_>, category: Text<'_>, found: &mut impl FnMut(Found)) {
        let is_late = match part.id {
            None => self.disorder.has_thread(part.thread),
            Some(id) => self.disorder.has_operation(trace_reader::OperationKey::new(category, id)),
        };
        if is_late { self.late.push(part) } else { self.in_order(part, found) }
    }

    fn in_order(&mut self, part: &Part<'_>, found: &mut impl FnMut(Found)) {
        let Part { is_end, id, at, thread, place, category, name, is_chosen } = *part;
        if is_end {
            return match id {
                Some(id) => self.end_operation(part, id, found),
                None => self.end(part, found),
            };
        }
        let what = id.map_or(What::Thread(thread), What::Id);
        let (process, name) = (thread.process, token(name));
        let EventPosition { offset, provider } = place;
        let begun = Begun { offset, provider, is_chosen, at, process, what, category, name };
        match id {
            Some(id) => _ = self.pairing.begin_operation(&part.operation(id), begun.name, begun),
            None => match self.threads.number(thread, MAX_THREADS) {
                Some(number) => _ = self.pairing.begin(number, begun),
                None => return,
            },
        }
        self.full().into_iter().for_each(found);
    }

    /// Ends the innermost duration of a thread.
    fn end(&mut self, part: &Part<'_>, found: &mut impl FnMut(Found)) {
        let Part { at: end, thread, place, category, name, .. } = *part;
        let Thread { process, thread: number } = thread;
        let Some(of) = self.threads.number(thread, MAX_THREADS) else { return };
        let begun = match self.pairing.end(of) {
            Ended::Nothing => {
                if part.is_chosen {
                    let text =
                        format!("end of {name:?} on thread {process}/{number}, which has nothing to end");
                    found(("unmatched-end", text));
                }
                return;
            }
            ended => ended.begun(),
        };
        let Some(begun) = begun else { return };
        // An end need not have a name or a category.
        let is_other = |of_end: u64, of_begin: u64| of_end != token(Text(b"")) && of_end != of_begin;
        let has_other = is_other(token(name), begun.name) || is_other(category, begun.category);
        if has_other && begun.is_chosen {
            let text = format!(
                "end of {name:?} on thread {process}/{number}, where what began last has another name or category"
            );
            found((MISMATCHED, text));
        }
        let over = Over { thread, begin: begun.at, end, place, name, is_chosen: begun.is_chosen };
        self.nesting.duration(&over, self.disorder).into_iter().for_each(found);
    }

    fn end_operation(&mut self, part: &Part<'_>, id: u64, found: &mut impl FnMut(Found)) {
        let Part { thread, name, .. } = *part;
        match self.pairing.end_operation(&part.operation(id), token(name)) {
            Ended::Crossing(begun) if begun.is_chosen => {
                let (begun_in, ended_in) = (begun.process, thread.process);
                let text =
                    format!("id {id:#x} was begun in process {begun_in} and ended in process {ended_in}");
                found((CROSSING, text));
            }
            Ended::Misnamed(begun) if begun.is_chosen && !name.as_bytes().is_empty() => {
                let text = format!("end of {name:?} with id {id:#x}, which was begun by another name");
                found((MISMATCHED_ASYNC, text));
            }
            Ended::Nothing if part.is_chosen => {
                let text = format!("end of {name:?} with id {id:#x}, which has nothing to end");
                found(("unmatched-async-end", text));
            }
            _ => {}
        }
    }

    fn full(&mut self) -> Option<Found> {
        self.is_full = self.pairing.refused() > 0 || self.pairing.open() + self.flows.len() > self.limit;
        self.is_full.then(|| {
            let limit = self.limit;
            let what = match self.pairing.open() + self.flows.len() < limit {
                true => format!("{MAX_OPEN_OF_ID} operations with one id"),
                false => format!("{limit} spans"),
            };
            ("spans-full", format!("more than {what} are open at a time: from here on they are not matched"))
        })
    }

    /// Spans without begin or end, in the order of the file; passes on everything else.
    pub fn finish(&mut self, mut found: impl FnMut(EventPosition, Found)) -> io::Result<Vec<Unmatched>> {
        let mut late = std::mem::take(&mut self.late);
        late.finish(|part| {
            if !self.is_full {
                self.in_order(&part, &mut |problem| found(part.place, problem));
            }
        })?;
        self.nesting.finish(&mut found)?;
        let mut all = Vec::new();
        if self.is_full {
            return Ok(all);
        }
        let durations = self.pairing.take_threads().map(|(_, begun)| ("unmatched-begin", begun));
        let operations = self.pairing.take_operations().map(|begun| ("unmatched-async-begin", begun));
        let all_open = durations.chain(operations).filter(|(_, begun)| begun.is_chosen);
        for (kind, begun) in all_open {
            let Begun { offset, provider, at, process, what, .. } = begun;
            let place = EventPosition { offset, provider };
            let unmatched = Unmatched { kind, count: 1, place, what };
            match self.partings.of(process, at.0) {
                Some((ending, lasted)) => {
                    let text = format!("{}: {}", unmatched.text(), why(ending, Some(lasted)));
                    found(place, (OPEN, text));
                }
                None => all.push(unmatched),
            }
        }
        self.flows.finish(&mut all);
        all.sort_by_key(|unmatched: &Unmatched| unmatched.place.offset);
        Ok(all)
    }
}
