//! Numbers of processes and threads, some of which have texts instead.
//= docs/import.md#processes-and-threads

use super::entry::text;
use super::number::exact;
use crate::import::writer::Writer;
use foldhash::{HashMap, HashSet};
use std::io::Write;
use trace_format::units::Koid;
use trace_linux::{Records, hash};
use trace_reader::Thread;

/// Texts have numbers below this one, the first text the highest.
const LIMIT: u64 = 1 << 31;
/// How many texts have a number of their own; further ones are replaced by their hashes.
const MAX_TEXTS: u64 = 1 << 20;
/// What all of them take at most.
const MAX_TEXT_BYTES: usize = 64 << 20;

/// A process, or a thread of the process.
type Key = (Option<Koid>, Box<str>);

pub(super) struct Numbering {
    texts: HashMap<Key, u64>,
    bytes: usize,
    next: u64,
    /// Numbers of the file that texts could have.
    taken: HashSet<u64>,
    /// There are no more of these.
    is_complete: bool,
}

impl Default for Numbering {
    fn default() -> Self {
        let (texts, taken) = (HashMap::default(), HashSet::default());
        Self { texts, bytes: 0, next: LIMIT - 1, taken, is_complete: false }
    }
}

impl Numbering {
    /// From now on texts have numbers.
    pub fn complete(&mut self) {
        self.is_complete = true;
    }

    /// The thread of an event. An event without a thread is of the one that has its process's number. None
    /// before the numbers are complete, for a text.
    #[inline]
    pub fn thread<W: Write>(
        &mut self,
        (process, thread): (Option<&str>, Option<&str>),
        writer: &mut Writer<W>,
    ) -> Result<Option<Thread>, serde_json::Error> {
        let process = match process {
            Some(raw) => self.number(None, raw, writer)?,
            None => Some(Koid(0)),
        };
        let thread = match thread {
            Some(raw) => self.number(process, raw, writer)?,
            None => process,
        };
        Ok(process.zip(thread).map(|(process, thread)| Thread { process, thread }))
    }

    #[inline]
    fn number<W: Write>(
        &mut self,
        process: Option<Koid>,
        raw: &str,
        writer: &mut Writer<W>,
    ) -> Result<Option<Koid>, serde_json::Error> {
        match exact(raw) {
            Some(number) => Ok(Some(self.take(number))),
            None => self.number_of_text(process, raw, writer),
        }
    }

    /// A number of the file, which no text will have.
    #[inline]
    pub fn take(&mut self, number: u64) -> Koid {
        if (LIMIT - MAX_TEXTS..LIMIT).contains(&number) {
            self.taken.insert(number);
        }
        Koid(number)
    }

    /// All numbers in a text of ftrace's.
    pub fn take_all(&mut self, text: &str) {
        let digits = text.split(|letter: char| !letter.is_ascii_digit());
        digits.filter_map(|digits| digits.parse().ok()).for_each(|number| _ = self.take(number));
    }

    #[cold]
    fn number_of_text<W: Write>(
        &mut self,
        process: Option<Koid>,
        raw: &str,
        writer: &mut Writer<W>,
    ) -> Result<Option<Koid>, serde_json::Error> {
        let text = text(raw)?;
        // With escapes.
        if let Some(number) = exact(&text).filter(|_| raw.contains('\\')) {
            return Ok(Some(self.take(number)));
        }
        if !self.is_complete {
            return Ok(None);
        }
        let key = (process, Box::from(&*text));
        if let Some(number) = self.texts.get(&key) {
            return Ok(Some(Koid(*number)));
        }
        while self.taken.contains(&self.next) {
            self.next -= 1;
        }
        self.bytes += text.len();
        let number = self.next;
        if number <= LIMIT - MAX_TEXTS || self.bytes > MAX_TEXT_BYTES {
            return Ok(Some(Koid(hash(text.as_bytes()))));
        }
        self.next -= 1;
        self.texts.insert(key, number);
        let koid = Koid(number);
        match process {
            Some(process) => writer.name_thread(Thread { process, thread: koid }, text.as_bytes()),
            None => writer.name_process(koid, text.as_bytes()),
        }
        Ok(Some(koid))
    }
}
