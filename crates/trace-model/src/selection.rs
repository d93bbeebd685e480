//! What of a trace a user asks for, and whether something is a part of it.
//!
//! [`Selection`] is the request. [`Survey`] finds in an earlier pass what the request needs to know of a
//! trace, and [`Chosen`] answers for that trace. Pairs and nesting are those of the whole trace: a caller
//! asks where it counts or writes something, behind [`crate::Pairing`] and [`crate::Nesting`].
//= docs/selecting.md#selecting

use crate::pattern::Pattern;
use std::fmt;
use std::io::Read;
use std::sync::Arc;
use trace_reader::item::{EventKind, Koid};
use trace_reader::{
    Disorder, DisorderFinder, Event, Item, Mark, Names, ReadError, Reader, Resolved, Thread, Time, Value,
};

/// Patterns of one kind: a text is chosen if one of those that are wanted matches it, or none is there, and
/// none of the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    wanted: Vec<Pattern>,
    excluded: Vec<Pattern>,
}

impl Choice {
    /// The choice of some entries; those that begin with a hyphen exclude.
    #[must_use]
    pub fn of<T: AsRef<str>>(entries: impl IntoIterator<Item = T>) -> Self {
        let mut choice = Self::default();
        for entry in entries {
            let entry = entry.as_ref();
            match entry.strip_prefix('-') {
                Some(excluded) => choice.excluded.push(Pattern::of(excluded)),
                None => choice.wanted.push(Pattern::of(entry)),
            }
        }
        choice
    }

    /// Whether everything is chosen.
    #[must_use]
    pub const fn is_all(&self) -> bool {
        self.wanted.is_empty() && self.excluded.is_empty()
    }

    fn has(&self, matches: impl Fn(&Pattern) -> bool) -> bool {
        !self.excluded.iter().any(&matches) && (self.wanted.is_empty() || self.wanted.iter().any(matches))
    }

    /// Whether a category is chosen, or one of several that an event lists separated by commas. One of these
    /// that is excluded excludes the event.
    #[must_use]
    pub fn has_category(&self, category: &str) -> bool {
        self.has(|pattern| pattern.matches_category(category))
    }

    /// Whether an object with a number and perhaps a name is chosen, by either.
    fn has_object(&self, number: u64, name: Option<&str>) -> bool {
        self.is_all() || {
            let number = number.to_string();
            self.has(|pattern| {
                name.is_some_and(|name| pattern.matches(name)) || pattern.exact() == Some(&number)
            })
        }
    }
}

/// A point in time, as a user names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Nanoseconds since the first event of the trace.
    FromBegin(u64),
    /// Nanoseconds on the clock of the trace.
    At(u64),
    /// Nanoseconds since 1970.
    Utc(i64),
}

/// What of a trace is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// By category.
    pub categories: Choice,
    /// By name.
    pub names: Choice,
    /// By name or number of the process.
    pub processes: Choice,
    /// By name or number of the thread.
    pub threads: Choice,
    /// What begins at this time or later.
    pub from: Option<Moment>,
    /// What begins before this time.
    pub to: Option<Moment>,
    /// What begins in so many nanoseconds before the last event, or at its time.
    pub last: Option<u64>,
}

/// Why a selection makes no sense for a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoWindow {
    /// There is nothing from which a time of day could be computed.
    NoWallClock,
    /// It ends before it begins, or then.
    Empty,
}

impl fmt::Display for NoWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoWallClock => "the trace does not have the wall clock, so no time of day can be selected",
            Self::Empty => "the end of the selected time is not behind its begin",
        })
    }
}

impl std::error::Error for NoWindow {}

impl Selection {
    /// Whether everything is chosen.
    #[must_use]
    pub const fn is_all(&self) -> bool {
        self.categories.is_all() && self.names.is_all() && self.has_all_threads() && self.has_all_times()
    }

    const fn has_all_threads(&self) -> bool {
        self.processes.is_all() && self.threads.is_all()
    }

    const fn has_all_times(&self) -> bool {
        self.from.is_none() && self.to.is_none() && self.last.is_none()
    }

    /// Whether a trace can only be asked after a [`Survey`] of it: names may come behind what they name, and
    /// most times are relative to others.
    #[must_use]
    pub fn needs_survey(&self) -> bool {
        let is_relative =
            |moment: Option<Moment>| matches!(moment, Some(Moment::FromBegin(_) | Moment::Utc(_)));
        !self.has_all_threads() || self.last.is_some() || is_relative(self.from) || is_relative(self.to)
    }

    /// What of a trace is chosen; nothing if that is everything.
    ///
    /// # Errors
    /// The selected time makes no sense for this trace.
    pub fn choose(&self, survey: Survey) -> Result<Option<Chosen>, NoWindow> {
        if self.is_all() {
            return Ok(None);
        }
        let (first, last) = survey.times.unwrap_or_default();
        let at = |moment| match moment {
            Moment::FromBegin(nanos) => Ok(first.saturating_add(nanos)),
            Moment::At(nanos) => Ok(nanos),
            Moment::Utc(utc) => {
                let offset = survey.utc_offset.ok_or(NoWindow::NoWallClock)?;
                // What is before the clock's zero is before the trace.
                Ok(u64::try_from(i128::from(utc) - i128::from(offset)).unwrap_or(0))
            }
        };
        let from = self.from.map(at).transpose()?.max(self.last.map(|length| last.saturating_sub(length)));
        let to = self.to.map(at).transpose()?;
        if to.is_some_and(|to| to <= from.unwrap_or(0)) {
            return Err(NoWindow::Empty);
        }
        Ok(Some(Chosen {
            selection: self.clone(),
            from: from.unwrap_or(0),
            to,
            names: Arc::new(survey.names),
        }))
    }
}

/// What a [`Selection`] needs to know of a trace.
#[derive(Debug, Default)]
pub struct Survey {
    /// The earliest and the latest time of a record.
    times: Option<(u64, u64)>,
    /// What has to be added to a time for the wall clock.
    utc_offset: Option<i64>,
    has_recording: bool,
    names: Names,
}

impl Survey {
    /// Reads an archive, as far as it can be read, for this and for its order.
    ///
    /// # Errors
    /// The input is no archive at all.
    pub fn find(input: impl Read) -> Result<(Disorder, Self), ReadError> {
        let mut reader = Reader::new(input)?;
        let (mut finder, mut survey) = (DisorderFinder::default(), Self::default());
        while let Ok(Some(record)) = reader.next_item() {
            survey.record(&record);
            if let Item::Event(event) = &record.item {
                finder.event(event);
            }
        }
        Ok((finder.finish(), survey.with_names(reader.into_names())))
    }

    /// Takes a record, in the order of the archive.
    pub fn record(&mut self, record: &Resolved<'_>) {
        match &record.item {
            Item::Event(event) => {
                let mark = Mark::of(record.provider, event);
                if mark == Some(Mark::Recovered) {
                    return;
                }
                self.time(event.time);
                if let EventKind::DurationComplete { end } = event.kind {
                    self.time(Time { ticks: end, ..event.time });
                }
                if mark == Some(Mark::Begin) {
                    self.recording(event);
                }
            }
            Item::Scheduling { time, .. }
            | Item::Log { time, .. }
            | Item::Profiler { time, .. }
            | Item::LargeBlob { event: Some((time, ..)), .. } => self.time(*time),
            _ => {}
        }
    }

    /// With the names at the end of the trace.
    #[must_use]
    pub fn with_names(self, names: Names) -> Self {
        Self { names, ..self }
    }

    fn time(&mut self, time: Time) {
        let at = time.nanos().0;
        let times = self.times.get_or_insert((at, at));
        *times = (times.0.min(at), times.1.max(at));
    }

    /// Of several recordings in one trace, the first one has the clock, as in the tables.
    fn recording(&mut self, event: &Event<'_>) {
        if !self.has_recording {
            self.has_recording = true;
            if let Some(Value::Uint64(utc)) = event.arguments.find("wall_clock_ns") {
                let utc = i64::try_from(utc).ok();
                self.utc_offset = utc.and_then(|utc| utc.checked_sub_unsigned(event.time.nanos().0));
            }
        }
    }
}

/// What of one trace is chosen. Questions about something that a record does not have are not asked: such a
/// record is chosen as far as they are concerned.
#[derive(Clone, Debug)]
pub struct Chosen {
    selection: Selection,
    from: u64,
    to: Option<u64>,
    names: Arc<Names>,
}

impl Chosen {
    /// Whether a category is chosen, as [`Choice::has_category`] says.
    #[must_use]
    pub fn has_category(&self, category: &str) -> bool {
        self.selection.categories.has_category(category)
    }

    /// Whether a category makes no difference.
    #[must_use]
    pub const fn has_all_categories(&self) -> bool {
        self.selection.categories.is_all()
    }

    /// Whether a name is chosen.
    #[must_use]
    pub fn has_name(&self, name: &str) -> bool {
        self.selection.names.has(|pattern| pattern.matches(name))
    }

    /// Whether a process is chosen, by its number or the name that its caller knows.
    #[must_use]
    pub fn has_process(&self, process: Koid, name: Option<&str>) -> bool {
        self.selection.processes.has_object(process.0, name)
    }

    /// Whether a thread is chosen, without its process.
    #[must_use]
    pub fn has_thread_alone(&self, thread: Koid, name: Option<&str>) -> bool {
        self.selection.threads.has_object(thread.0, name)
    }

    /// Whether a thread and its process are chosen, by their numbers or their names at the end of the trace.
    #[must_use]
    pub fn has_thread(&self, thread: Thread) -> bool {
        if self.selection.has_all_threads() {
            return true;
        }
        let process = self.names.process(thread.process).map(|name| name.to_str());
        let name = self.names.thread(thread).map(|name| name.to_str());
        self.has_process(thread.process, process.as_deref())
            && self.has_thread_alone(thread.thread, name.as_deref())
    }

    /// The same of a thread by its number alone.
    #[must_use]
    pub fn has_thread_number(&self, thread: Koid) -> bool {
        self.has_thread(Thread { process: self.names.process_of(thread).unwrap_or_default(), thread })
    }

    /// Whether something at a time, or that begins then, is chosen.
    #[inline]
    #[must_use]
    pub fn has_time(&self, at: u64) -> bool {
        self.from <= at && self.to.is_none_or(|to| at < to)
    }

    /// The first time that is chosen, and the first behind these; and what is chosen at any time, if that is
    /// not everything.
    #[must_use]
    pub fn split_times(self) -> (u64, Option<u64>, Option<Self>) {
        let (from, to) = (self.from, self.to);
        let Selection { categories, names, .. } = &self.selection;
        let is_all = categories.is_all() && names.is_all() && self.selection.has_all_threads();
        (from, to, (!is_all).then_some(Self { from: 0, to: None, ..self }))
    }

    /// What of a time span is chosen.
    #[must_use]
    pub fn within(&self, (begin, end): (u64, u64)) -> (u64, u64) {
        let begin = begin.max(self.from);
        (begin, self.to.map_or(end, |to| end.min(to)).max(begin))
    }
}

#[cfg(test)]
mod tests;
