//! What was found in a document, for the thread that writes its records.

use super::entry::Importer;
use super::mended::{MAX_MENDED_BYTES, mended};
use super::plain::{PlainEvent, Span};
use crate::import::ImportError;
use crate::import::hand_over::Worker;
use crate::import::scanner::SourcePosition;
use crate::members::distinct;
use memchr::memmem;
use serde_json::Value;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

/// How many bytes of an error's context are shown.
const SHOWN_BYTES: usize = 40;
/// How many events are looked for where one of them has no end.
const MAX_EVENTS: usize = 64;
/// How much a batch has at most.
const MAX_STEPS: usize = 4096;

/// A part of the document that is a part of the trace.
pub(super) enum Step {
    /// An event of the usual form.
    Plain(PlainEvent),
    /// Any event, by its place in the buffer.
    Event(Span),
    SystemEvent(Span),
    /// Text of ftrace's.
    SystemText(Box<str>),
    /// A member of the outermost object, which has no events.
    Member(Box<str>),
}

/// Steps, and the text that they are in.
#[derive(Default)]
pub(super) struct Batch {
    /// What the scanner has read.
    text: Arc<Vec<u8>>,
    /// A byte of it, and its position in the file.
    first: (usize, SourcePosition),
    steps: Vec<Step>,
    /// Names and values of arguments of plain events, relative to their event.
    pub arguments: Vec<(Span, Span)>,
}

impl Batch {
    /// Whether a step in this text can be added.
    pub fn has_room(&self, text: &Arc<Vec<u8>>) -> bool {
        self.steps.is_empty() || self.steps.len() < MAX_STEPS && Arc::ptr_eq(&self.text, text)
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Begins with a text; a place in it that is not behind any step, and its position.
    pub fn begin(&mut self, text: &Arc<Vec<u8>>, first: (usize, SourcePosition)) {
        self.text = Arc::clone(text);
        self.first = first;
    }

    #[inline]
    pub fn push(&mut self, step: Step) {
        self.steps.push(step);
    }

    fn text(&self, span: Span) -> &[u8] {
        self.text.get(span.range()).unwrap_or_default()
    }

    /// The position of a place in the text, which is not before the first one.
    fn position(&self, place: usize) -> SourcePosition {
        let (first, position) = self.first;
        position.after(self.text.get(first..place).unwrap_or_default())
    }
}

impl<W: Write> Worker<Batch> for Importer<W> {
    fn work(&mut self, batch: &mut Batch) -> Result<(), ImportError> {
        for step in &batch.steps {
            match step {
                Step::Plain(event) => {
                    let text = batch.text(event.text);
                    if !self.plain_event(event, text, &batch.arguments) {
                        self.parsed(batch, event.text, Self::event);
                    }
                }
                Step::Event(text) => self.parsed(batch, *text, Self::event),
                Step::SystemEvent(text) => self.parsed(batch, *text, Self::system_event),
                Step::SystemText(text) => self.system_text(text)?,
                Step::Member(name) => self.member(name),
            }
            self.writer.flush_if_full().map_err(ImportError::Write)?;
        }
        if let Some(postponed) = &mut self.postponed {
            postponed.failed().map_err(ImportError::Wait)?;
        }
        batch.steps.clear();
        batch.arguments.clear();
        // The scanner can use it again.
        batch.text = Arc::default();
        Ok(())
    }
}

impl<W: Write> Importer<W> {
    /// An event of either kind, and those behind it where its end was not found.
    fn parsed(
        &mut self,
        batch: &Batch,
        span: Span,
        take: fn(&mut Self, &[u8]) -> Result<(), serde_json::Error>,
    ) {
        let Range { mut start, end } = span.range();
        for _ in 0..MAX_EVENTS {
            let Some(text) = batch.text.get(start..end) else { return };
            let Err(error) = take(self, text) else { return };
            let length = self.mended(text, &error, batch.position(start), take);
            start += length;
            let rest = text.get(length..).unwrap_or_default();
            start += rest.iter().take_while(|byte| byte.is_ascii_whitespace() || **byte == b',').count();
            if start >= end {
                return;
            }
        }
    }

    /// An event that is invalid JSON, which drops at most this event. Returns its length.
    fn mended(
        &mut self,
        text: &[u8],
        error: &serde_json::Error,
        position: SourcePosition,
        take: fn(&mut Self, &[u8]) -> Result<(), serde_json::Error>,
    ) -> usize {
        let mended = mended(text);
        let mut try_again = |text: Option<&str>| text.is_some_and(|text| take(self, text.as_bytes()).is_ok());
        let json = mended.as_ref().map(|mended| &*mended.json);
        let is_kept = try_again(json) || {
            let text = json.or_else(|| std::str::from_utf8(text).ok());
            try_again(text.and_then(distinct).as_deref())
        };
        let mended = mended.filter(|_| is_kept);
        self.writer
            .skip_many("members that cannot be read", mended.as_ref().map_or(0, |mended| mended.left_out));
        // An error within a part has its position relative to the part, but one of the whole has it in
        // the whole.
        let of_all = (text.len() <= MAX_MENDED_BYTES).then(|| serde_json::from_slice::<Value>(text).err());
        let error = syntax_error(position, text, of_all.flatten().as_ref().unwrap_or(error));
        self.malformed(&error, if is_kept { 0 } else { events_in(text) });
        mended.map_or(text.len(), |mended| mended.length)
    }
}

/// How many events are in a text of which none can be read.
fn events_in(text: &[u8]) -> u64 {
    memmem::find_iter(text, b"\"ph\"").count().max(1) as u64
}

/// An error inside a value, with its position in the file.
pub(super) fn syntax_error(value: SourcePosition, text: &[u8], error: &serde_json::Error) -> ImportError {
    // Line and column within the value count from 1 and 0.
    let line = error.line().max(1) as u64;
    let column = error.column().max(1) as u64;
    let column = if line == 1 { value.column + column - 1 } else { column };
    let message = error.to_string();
    let problem = message.split(" at line ").next().unwrap_or_default();
    let start = String::from_utf8_lossy(&text[..text.len().min(SHOWN_BYTES)]);
    ImportError::Syntax { line: value.line + line - 1, column, problem: format!("{problem} in {start:?}") }
}
