//! Open spans, and begins and ends that have to be sorted before they are paired.

use std::cmp::Ordering::Equal;
use std::collections::HashMap;
use std::io;
use trace_format::units::{Koid, ProviderId};
use trace_reader::sorter::Sorter;
use trace_reader::{Disorder, OperationKey, Text, Thread};

/// How many are kept; later ones are dropped.
const MAX_OPEN: usize = 500_000;

/// A span's beginning, or its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Open {
    pub at: u64,
    /// How many rows of slices there were when it began.
    pub rows: i64,
    pub thread: Thread,
    pub provider: ProviderId,
    pub category: Box<str>,
    pub name: Box<str>,
    pub async_id: Option<u64>,
    pub args: Box<str>,
}

impl Open {
    fn operation(&self, id: u64) -> OperationKey {
        OperationKey::new(Text(self.category.as_bytes()), id)
    }
}

/// The result of an end.
#[derive(Debug)]
pub(super) enum Ended {
    /// The span that it ends.
    Span(Open),
    /// The same, but it began in another process.
    Crossing(Open),
    /// The same, but it began with another name.
    Misnamed(Open),
    /// No span has begun.
    Nothing,
}

#[derive(Default)]
pub(super) struct Spans {
    durations: HashMap<Thread, Vec<Open>>,
    operations: HashMap<OperationKey, Vec<Open>>,
    count: usize,
}

impl Spans {
    /// False if there are too many.
    pub fn begin(&mut self, open: Open) -> bool {
        if self.count >= MAX_OPEN {
            return false;
        }
        self.count += 1;
        match open.async_id {
            Some(id) => self.operations.entry(open.operation(id)).or_default().push(open),
            None => self.durations.entry(open.thread).or_default().push(open),
        }
        true
    }

    /// The span that an end completes.
    pub fn end(&mut self, end: &Open) -> Ended {
        let ended = match end.async_id {
            Some(id) => self.end_operation(end, id),
            None => self.end_duration(end.thread),
        };
        self.count -= usize::from(!matches!(ended, Ended::Nothing));
        ended
    }

    /// The innermost span of a thread.
    fn end_duration(&mut self, thread: Thread) -> Ended {
        let Some(stack) = self.durations.get_mut(&thread) else { return Ended::Nothing };
        let open = stack.pop();
        if stack.is_empty() {
            self.durations.remove(&thread);
        }
        open.map_or(Ended::Nothing, Ended::Span)
    }

    /// The operation's last part with the name in the process, or the last part there; else the last with the
    /// name in another process.
    fn end_operation(&mut self, end: &Open, id: u64) -> Ended {
        let key = end.operation(id);
        let Some(stack) = self.operations.get_mut(&key) else { return Ended::Nothing };
        let in_process = |open: &&Open| open.thread.process == end.thread.process;
        let is_named = |open: &&Open| open.name == end.name;
        let place = stack
            .iter()
            .rposition(|open| in_process(&open) && is_named(&open))
            .or_else(|| stack.iter().rposition(|open| in_process(&open)))
            .or_else(|| stack.iter().rposition(|open| is_named(&open)));
        let Some(open) = place.map(|place| stack.remove(place)) else { return Ended::Nothing };
        if stack.is_empty() {
            self.operations.remove(&key);
        }
        match (in_process(&&open), is_named(&&open)) {
            (true, true) => Ended::Span(open),
            (true, false) => Ended::Misnamed(open),
            (false, _) => Ended::Crossing(open),
        }
    }

    /// Spans that never ended, in the order of their beginnings, which is the same each time. Of those of a
    /// thread, each is inside of the ones before it.
    pub fn rest(self) -> Vec<Open> {
        let mut rest: Vec<Open> =
            self.durations.into_values().chain(self.operations.into_values()).flatten().collect();
        // Spans of one thread, or of one operation, are in order already.
        rest.sort_by(|a, b| {
            let key = |open: &Open| (open.at, open.thread, open.async_id);
            let is_of_thread = a.async_id.is_none();
            key(a).cmp(&key(b)).then_with(|| if is_of_thread { Equal } else { a.category.cmp(&b.category) })
        });
        rest
    }
}

/// Begins and ends that are out of order; memory holds 48 MiB, a file the rest.
pub(super) struct Late<'a> {
    disorder: &'a Disorder,
    sorter: Option<Sorter>,
    encoded: Vec<u8>,
}

impl<'a> Late<'a> {
    pub fn new(disorder: &'a Disorder) -> Self {
        Self { disorder, sorter: None, encoded: Vec::new() }
    }

    /// Whether a begin or an end has to wait.
    pub fn has(&self, part: &Open) -> bool {
        match part.async_id {
            Some(id) => self.disorder.has_operation(part.operation(id)),
            None => self.disorder.has_thread(part.thread),
        }
    }

    pub fn push(&mut self, part: &Open, is_end: bool) {
        self.encoded.clear();
        let Open { at, thread, provider, category, name, async_id, args, rows: _ } = part;
        let flags = u64::from(is_end) | u64::from(async_id.is_some()) << 1 | u64::from(provider.0) << 32;
        let lengths = [category.len() as u64, name.len() as u64];
        let words =
            [*at, flags, thread.process.0, thread.thread.0, async_id.unwrap_or(0), lengths[0], lengths[1]];
        self.encoded.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        self.encoded.extend([category, name, args].iter().flat_map(|text| text.bytes()));
        self.sorter.get_or_insert_default().push(*at, &self.encoded);
    }

    /// Removes and returns the waiting parts.
    pub fn take(&mut self) -> Self {
        Self { disorder: self.disorder, sorter: self.sorter.take(), encoded: Vec::new() }
    }

    /// Passes on all begins and ends, and which of the two each is, in the order of their times.
    pub fn finish(self, mut take: impl FnMut(Open, bool) -> io::Result<()>) -> io::Result<()> {
        let Some(sorter) = self.sorter else { return Ok(()) };
        sorter.finish(|bytes| match decode(bytes) {
            Some((part, is_end)) => take(part, is_end),
            None => Err(io::Error::other("what was sorted has changed")),
        })
    }
}

fn decode(bytes: &[u8]) -> Option<(Open, bool)> {
    let words = bytes.as_chunks::<8>().0.first_chunk::<7>()?;
    let [at, flags, process, thread, id, category, name] = words.map(u64::from_le_bytes);
    let texts = std::str::from_utf8(bytes.get(size_of_val(words)..)?).ok()?;
    let (category, texts) = texts.split_at_checked(category as usize)?;
    let (name, args) = texts.split_at_checked(name as usize)?;
    let part = Open {
        at,
        rows: 0,
        thread: Thread { process: Koid(process), thread: Koid(thread) },
        provider: ProviderId((flags >> 32) as u32),
        category: category.into(),
        name: name.into(),
        async_id: (flags & 2 != 0).then_some(id),
        args: args.into(),
    };
    Some((part, flags & 1 != 0))
}
