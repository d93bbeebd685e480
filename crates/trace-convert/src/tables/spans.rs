//! Open spans, and what has to be sorted before it is paired.

use crate::members::joined;
use std::cmp::Ordering::Equal;
use std::io;
use trace_format::scopes::{END_ARGUMENT, Ending, LASTED_ARGUMENT};
use trace_format::units::{Koid, ProviderId};
use trace_model::{Begin, Ended, Pairing, Unended, token};
use trace_reader::sorter::{Sorter, changed, words};
use trace_reader::{Disorder, Event, OperationKey, Text, Thread, ThreadNumbers};

/// Bytes of the names and arguments of those that are open.
const MAX_OPEN_BYTES: usize = 64 << 20;
/// Threads that are distinguished.
const MAX_THREADS: usize = 1 << 20;

/// The operation that a span belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// It is a poll of the one with this id.
    Poll(u64),
    /// It began in the one with this id.
    Within(u64),
}

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
    pub of: Option<Of>,
    pub args: Box<str>,
    /// Why it has no end, if the trace says so.
    pub ending: Option<Ending>,
}

impl Open {
    fn operation(&self, id: u64) -> trace_model::OperationKey {
        let category = token(Text(self.category.as_bytes()));
        trace_model::OperationKey { process: self.thread.process, category, id }
    }

    /// Says in its arguments, an object in JSON, why it has no end, and how long it had lasted.
    pub fn say_why(&mut self, ending: Ending, lasted: u64) {
        self.ending = Some(ending);
        let why = serde_json::json!({ END_ARGUMENT: ending.text(), LASTED_ARGUMENT: lasted });
        self.args = joined(&self.args, &why.to_string()).into();
    }

    fn name(&self) -> u64 {
        token(Text(self.name.as_bytes()))
    }
}

impl Begin for Open {
    fn heap_bytes(&self) -> usize {
        self.category.len() + self.name.len() + self.args.len()
    }
}

pub(super) struct Spans {
    threads: ThreadNumbers,
    pairing: Pairing<Open>,
    unended: Unended<Thread, Open>,
}

impl Default for Spans {
    fn default() -> Self {
        let pairing = Pairing::default().with_bytes(MAX_OPEN_BYTES);
        Self { threads: ThreadNumbers::default(), pairing, unended: Unended::new(MAX_OPEN_BYTES) }
    }
}

impl Spans {
    /// False if there are too many.
    pub fn begin(&mut self, open: Open) -> bool {
        match open.async_id {
            _ if open.ending.is_some() => self.unended.begin(open.thread, open.at, open),
            Some(id) => self.pairing.begin_operation(&open.operation(id), open.name(), open),
            None => match self.threads.number(open.thread, MAX_THREADS) {
                Some(thread) => self.pairing.begin(thread, open),
                None => false,
            },
        }
    }

    /// A slice of a thread that began at this time has a record.
    #[inline]
    pub fn has_ended(&mut self, thread: Thread, at: u64) {
        self.unended.has_ended(thread, at);
    }

    /// What an end ends.
    pub fn end(&mut self, end: &Open) -> Ended<Open> {
        match end.async_id {
            Some(id) => self.pairing.end_operation(&end.operation(id), end.name()),
            None => match self.threads.number(end.thread, MAX_THREADS) {
                Some(thread) => self.pairing.end(thread),
                None => Ended::Refused,
            },
        }
    }

    /// Spans that never ended, in the order of their beginnings, which is the same each time. Of those of a
    /// thread, each is inside of the ones before it.
    pub fn rest(mut self) -> Vec<Open> {
        let durations = self.pairing.take_threads().map(|(_, open)| open);
        let mut rest: Vec<Open> = durations.chain(self.pairing.take_operations()).collect();
        rest.extend(self.unended.into_rest());
        // Spans of one thread, or of one operation, are in order already.
        rest.sort_by(|a, b| {
            let key = |open: &Open| (open.at, open.thread, open.async_id);
            let is_of_thread = a.async_id.is_none();
            key(a).cmp(&key(b)).then_with(|| if is_of_thread { Equal } else { a.category.cmp(&b.category) })
        });
        rest
    }
}

/// What a part of a slice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Begin,
    End,
    /// All of it, with its end.
    Complete(u64),
}

/// Slices of threads and operations whose begins and ends are out of order; memory holds 48 MiB, a file the
/// rest.
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
            Some(id) => self.disorder.has_operation(OperationKey::new(Text(part.category.as_bytes()), id)),
            None => self.disorder.has_thread(part.thread),
        }
    }

    /// Whether complete slices of a thread have to wait, so that they have their places among its pairs.
    #[inline]
    pub fn has_thread(&self, thread: Thread) -> bool {
        self.disorder.has_thread(thread)
    }

    /// The id of the operation whose first poll a duration is that begins here.
    #[inline]
    pub fn first_poll(&self, event: &Event<'_>) -> Option<u64> {
        self.disorder.first_poll(event)
    }

    pub fn push(&mut self, part: &Open, role: Role) {
        self.encoded.clear();
        let Open { at, thread, provider, category, name, async_id, of, args, rows: _, ending } = part;
        let (role, end) = match role {
            Role::Begin => (BEGIN, 0),
            Role::End => (END, 0),
            Role::Complete(end) => (COMPLETE, end),
        };
        let has_id = if async_id.is_some() { HAS_ID } else { 0 };
        let (is_of, of) = match *of {
            None => (0, 0),
            Some(Of::Poll(id)) => (IS_POLL, id),
            Some(Of::Within(id)) => (IS_WITHIN, id),
        };
        let reason = ending.map_or(0, |ending| (ending as u64 + 1) << REASON);
        let flags = role | has_id | is_of | reason | u64::from(provider.0) << 32;
        let (process, thread) = (thread.process.0, thread.thread.0);
        let [category_bytes, name_bytes] = [category, name].map(|text| text.len() as u64);
        let id = async_id.unwrap_or(0);
        let words: [u64; WORDS] = [*at, flags, process, thread, id, of, end, category_bytes, name_bytes];
        self.encoded.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        self.encoded.extend([category, name, args].iter().flat_map(|text| text.bytes()));
        self.sorter.get_or_insert_default().push(*at, &self.encoded);
    }

    /// Removes and returns the waiting parts.
    pub fn take(&mut self) -> Self {
        Self { disorder: self.disorder, sorter: self.sorter.take(), encoded: Vec::new() }
    }

    /// Passes on all parts, and what each is, in the order of their times.
    pub fn finish(self, mut take: impl FnMut(Open, Role) -> io::Result<()>) -> io::Result<()> {
        let Some(sorter) = self.sorter else { return Ok(()) };
        sorter.finish(|bytes| match decode(bytes) {
            Some((part, role)) => take(part, role),
            None => Err(changed()),
        })
    }
}

const WORDS: usize = 9;
/// Bits of the second word.
const BEGIN: u64 = 0;
const END: u64 = 1;
const COMPLETE: u64 = 2;
const ROLE: u64 = 3;
const HAS_ID: u64 = 4;
const IS_POLL: u64 = 8;
const IS_WITHIN: u64 = 16;
/// Where it says why a begin has no end, and how many reasons there may be.
const REASON: u32 = 8;
const REASONS: u64 = 15;

fn decode(bytes: &[u8]) -> Option<(Open, Role)> {
    let ([at, flags, process, thread, id, of, end, category, name], texts) = words::<WORDS>(bytes).ok()?;
    let role = match flags & ROLE {
        BEGIN => Role::Begin,
        END => Role::End,
        _ => Role::Complete(end),
    };
    let (category, texts) = std::str::from_utf8(texts).ok()?.split_at_checked(category as usize)?;
    let (name, args) = texts.split_at_checked(name as usize)?;
    let part = Open {
        at,
        rows: 0,
        thread: Thread { process: Koid(process), thread: Koid(thread) },
        provider: ProviderId((flags >> 32) as u32),
        category: category.into(),
        name: name.into(),
        async_id: (flags & HAS_ID != 0).then_some(id),
        of: match flags & (IS_POLL | IS_WITHIN) {
            0 => None,
            IS_POLL => Some(Of::Poll(of)),
            _ => Some(Of::Within(of)),
        },
        args: args.into(),
        ending: Ending::ALL.into_iter().find(|ending| *ending as u64 + 1 == flags >> REASON & REASONS),
    };
    Some((part, role))
}
