//! A document, read from its beginning to wherever it ends: a list of events, or an object that has the list
//! in one of its members.
//= docs/import.md#json

use super::batch::{Batch, Step, syntax_error};
use super::begin::{begins_with_event, is_lines};
use super::entry::{self, Importer};
use super::mended::{mended, mended_text};
use super::other_files::ObjectMembers;
use super::plain::{self, Keys, Span};
use crate::import::ImportError;
use crate::import::hand_over::HandOver;
use crate::import::scanner::{Scanner, Size, SourcePosition};
use memchr::memmem;
use serde::de::IgnoredAny;
use std::io::{Read, Write};

/// Why reading a document stops.
pub(super) enum Stop {
    /// The file ends before the document does.
    CutOff,
    Failed(ImportError),
}

impl Stop {
    /// Within a value.
    fn cut(error: Option<ImportError>) -> Self {
        error.map_or(Self::CutOff, Self::Failed)
    }
}

impl From<ImportError> for Stop {
    fn from(error: ImportError) -> Self {
        Self::Failed(error)
    }
}

pub(super) type Over<'scope, 'env, W> = HandOver<'scope, 'env, Batch, Importer<W>>;

pub(super) struct Document<'a, 'scope, 'env, R, W> {
    scanner: Scanner<R>,
    /// Where the steps of the batch go.
    over: &'a mut Over<'scope, 'env, W>,
    batch: Batch,
    /// Those that an event is expected to have.
    keys: Keys,
    /// Members of the outermost object, until one of them shows that it is a trace.
    members: ObjectMembers,
    /// A list of events, or of the scheduler's events, was found.
    has_events: bool,
}

/// What kind of document it was.
pub(super) struct Kind {
    members: ObjectMembers,
    has_events: bool,
}

impl Kind {
    /// The kind of a file that is no trace, if so many objects were in lists of events, with or without
    /// phases.
    pub fn other_file(&self, objects: u64, has_phases: bool, is_cut_off: bool) -> Option<String> {
        if self.has_events {
            let is_other = objects > 0 && !has_phases;
            return is_other.then(|| format!("objects in a list, {objects} of them, without a phase (`ph`)"));
        }
        let likeness = self.members.kind().map(|kind| format!("what looks like {kind}"));
        likeness.or_else(|| (!is_cut_off).then(|| self.members.to_string()))
    }
}

impl<'a, 'scope, 'env, R: Read, W: Write + Send + 'scope> Document<'a, 'scope, 'env, R, W> {
    pub fn new(input: R, over: &'a mut Over<'scope, 'env, W>) -> Self {
        let (batch, keys, members) = (Batch::default(), Keys::default(), ObjectMembers::default());
        let scanner = Scanner::new(input);
        Self { scanner, over, batch, keys, members, has_events: false }
    }

    /// Reads it, and hands everything over.
    ///
    /// # Errors
    /// The file is cut off, cannot be read, or is no JSON outside of the events; or the archive cannot be
    /// written.
    pub fn read(mut self) -> (Kind, Result<(), Stop>) {
        let result = self.whole();
        // What comes before an error is a part of the archive.
        let result = self.hand().map_err(Stop::Failed).and(result);
        (Kind { members: self.members, has_events: self.has_events }, result)
    }

    fn whole(&mut self) -> Result<(), Stop> {
        self.scanner.pass_byte_order_mark()?;
        loop {
            match self.scanner.peek()? {
                Some(b'[') => self.events()?,
                Some(b'{') if self.is_without_list() => self.events_without_list()?,
                Some(b'{') => self.object(Self::member)?,
                Some(_) => return Err(self.scanner.error("expected [ or {").into()),
                None => return Err(self.scanner.error("the file is empty").into()),
            }
            // Behind a bracket that is one too many.
            self.scanner.take(b',')?;
            match self.scanner.peek()? {
                // What kind of file it is says more than what is behind its first value.
                _ if !self.has_events => return Ok(()),
                None => return Ok(()),
                // Traces behind each other.
                Some(b'[' | b'{') => {}
                Some(other) => {
                    let problem = format!("expected the end of the file, found {:?}", char::from(other));
                    return Err(self.scanner.error(problem).into());
                }
            }
        }
    }

    /// Whether events come next that are in no list. Only the first of them may be odd.
    fn is_without_list(&mut self) -> bool {
        let text = self.scanner.beginning();
        if self.has_events { begins_with_event(text) } else { is_lines(text) }
    }

    /// Hands the batch over, if it has anything.
    fn hand(&mut self) -> Result<(), ImportError> {
        if self.batch.is_empty() { Ok(()) } else { self.over.hand(&mut self.batch) }
    }

    /// Adds a step in the text that the scanner has; a place that is not behind it, and its position.
    fn add(&mut self, step: Step, first: (usize, SourcePosition)) -> Result<(), Stop> {
        self.make_room()?;
        if self.batch.is_empty() {
            self.batch.begin(self.scanner.buffer(), first);
        }
        self.batch.push(step);
        Ok(())
    }

    /// Hands the batch over if it has no room for what the scanner has.
    fn make_room(&mut self) -> Result<(), ImportError> {
        if self.batch.has_room(self.scanner.buffer()) { Ok(()) } else { self.hand() }
    }

    /// The next byte that is no white space; it is not consumed.
    fn peek(&mut self) -> Result<u8, Stop> {
        self.scanner.peek()?.ok_or(Stop::CutOff)
    }

    /// Objects in a list; extra commas are accepted.
    fn list(&mut self, object: fn(&mut Self) -> Result<(), Stop>) -> Result<(), Stop> {
        self.scanner.take(b'[')?;
        loop {
            match self.peek()? {
                b'{' => object(self)?,
                b',' => self.scanner.pass(1),
                b']' => {
                    self.scanner.pass(1);
                    return Ok(());
                }
                other => {
                    // Of an event that ended too early, or where it had not begun.
                    if !self.rest_of_event()? {
                        let problem = format!("expected an event, found {:?}", char::from(other));
                        return Err(self.scanner.error(problem).into());
                    }
                }
            }
        }
    }

    /// The members of an object; the function reads each value.
    fn object(&mut self, member: fn(&mut Self, &str) -> Result<(), Stop>) -> Result<(), Stop> {
        self.scanner.take(b'{')?;
        loop {
            match self.peek()? {
                b'"' => {
                    let name = self.name()?;
                    member(self, &name)?;
                }
                b',' => self.scanner.pass(1),
                b'}' => {
                    self.scanner.pass(1);
                    return Ok(());
                }
                other => {
                    let problem = format!("expected a member's name, found {:?}", char::from(other));
                    return Err(self.scanner.error(problem).into());
                }
            }
        }
    }

    /// A member's name, and the colon after it.
    fn name(&mut self) -> Result<String, Stop> {
        let (_, text) = self.scanner.value()?.ok_or(Stop::CutOff)?;
        // An invalid one is not a known member.
        let name =
            serde_json::from_slice(text).unwrap_or_else(|_| String::from_utf8_lossy(text).into_owned());
        match self.peek()? {
            b':' => self.scanner.pass(1),
            _ => return Err(self.scanner.error(format!("expected : after {name:?}")).into()),
        }
        Ok(name)
    }

    fn member(&mut self, name: &str) -> Result<(), Stop> {
        match (name, self.peek()?) {
            ("traceEvents", b'[') => self.events(),
            // A text that contains the list.
            ("traceEvents", b'"') => {
                let place = self.scanner.place();
                let (list, end) = match self.scanner.value_if_small()? {
                    Size::Small(text) => {
                        let list = serde_json::from_slice::<String>(text);
                        (list.map_err(|error| syntax_error(place, text, &error))?, None)
                    }
                    Size::Large => return Err(self.scanner.error("a value of more than 64 MiB").into()),
                    Size::Cut(text, error) => {
                        (before_cut(text, b"}").unwrap_or_default().into(), Some(Stop::cut(error)))
                    }
                };
                self.has_events = true;
                self.hand()?;
                let mut inner = Document::new(list.as_bytes(), self.over);
                let result = inner.whole();
                inner.hand().map_err(Stop::Failed).and(end.map_or(result, Err))
            }
            //= docs/import.md#beside-the-events
            ("systemTraceEvents", b'{') => {
                self.has_events = true;
                self.object(Self::system_member)
            }
            ("systemTraceEvents", b'"') => {
                self.has_events = true;
                self.system_text(name)
            }
            ("traceEvents", other) => {
                let problem = format!("expected a list of events, found {:?}", char::from(other));
                Err(self.scanner.error(problem).into())
            }
            _ => {
                self.members.push(name);
                let first = (self.scanner.start(), self.scanner.place());
                self.add(Step::Member(name.into()), first)?;
                self.pass_value()
            }
        }
    }

    /// The text of ftrace's in a member, if it is not too large.
    fn system_text(&mut self, name: &str) -> Result<(), Stop> {
        let first = (self.scanner.start(), self.scanner.place());
        let (text, end) = match self.scanner.value_if_small()? {
            Size::Small(text) => (system_text(text), None),
            Size::Large => (None, None),
            Size::Cut(text, error) => (lines_before_cut(text), Some(Stop::cut(error))),
        };
        let step = text.map_or_else(|| Step::Member(name.into()), Step::SystemText);
        // The buffer is another one if the text was large.
        let first =
            if self.scanner.start() < first.0 { (self.scanner.start(), self.scanner.place()) } else { first };
        self.add(step, first)?;
        end.map_or(Ok(()), Err)
    }

    fn system_member(&mut self, name: &str) -> Result<(), Stop> {
        match (name, self.peek()?) {
            ("events", b'[') => self.list(Self::system_event),
            _ => self.pass_value(),
        }
    }

    fn pass_value(&mut self) -> Result<(), Stop> {
        self.scanner.pass_value()?.then_some(()).ok_or(Stop::CutOff)
    }

    fn events(&mut self) -> Result<(), Stop> {
        self.has_events = true;
        self.list(Self::event)
    }

    /// Events behind each other, as one in each line.
    fn events_without_list(&mut self) -> Result<(), Stop> {
        self.has_events = true;
        loop {
            match self.scanner.peek()? {
                Some(b'{') => self.event()?,
                Some(b',') => self.scanner.pass(1),
                None | Some(b'[') => return Ok(()),
                Some(_) if self.rest_of_event()? => {}
                Some(_) => return Ok(()),
            }
        }
    }

    fn event(&mut self) -> Result<(), Stop> {
        self.make_room()?;
        let Self { scanner, batch, keys, .. } = self;
        let Some(event) = plain::event(scanner.buffered(), scanner.start(), keys, &mut batch.arguments)
        else {
            return self.parsed(Step::Event);
        };
        let length = event.text.range().len();
        if batch.is_empty() {
            let first = (scanner.start(), scanner.place());
            batch.begin(scanner.buffer(), first);
        }
        batch.push(Step::Plain(event));
        scanner.pass(length);
        Ok(())
    }

    /// Adds what is before the next event, as an event that cannot be read; false if there is no other.
    fn rest_of_event(&mut self) -> Result<bool, Stop> {
        let position = self.scanner.place();
        let Some(length) = self.scanner.next_of_list(entry::is_event) else { return Ok(false) };
        let start = self.scanner.start();
        let text = self.scanner.buffered().get(..length).unwrap_or_default();
        let own = without_comma(text).len();
        self.scanner.pass(length);
        match Span::new(start..start + own) {
            Some(text) => self.add(Step::Event(text), (start, position)).map(|()| true),
            None => Ok(false),
        }
    }

    fn system_event(&mut self) -> Result<(), Stop> {
        self.parsed(Step::SystemEvent)
    }

    /// An event of either kind, of any form.
    fn parsed(&mut self, step: fn(Span) -> Step) -> Result<(), Stop> {
        let value = self.scanner.value_of_list(entry::is_event, is_sound)?;
        let (position, text) = value.ok_or(Stop::CutOff)?;
        let length = text.len();
        let own = if text.ends_with(b"}") { length } else { without_comma(text).len() };
        let start = self.scanner.start() - length;
        match Span::new(start..start + own) {
            Some(text) => self.add(step(text), (start, position)),
            None => Err(self.scanner.error("a value of more than 64 MiB").into()),
        }
    }
}

/// Whether a value is JSON, or becomes JSON as a whole: what looks like an event in it is a part of it.
fn is_sound(value: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(value).is_ok()
        || mended(value).is_some_and(|mended| mended.length == value.len())
}

/// What has lost its end, without the comma and the space behind it.
fn without_comma(text: &[u8]) -> &[u8] {
    let text = text.trim_ascii_end();
    text.strip_suffix(b",").unwrap_or(text)
}

/// The whole lines of a text that has lost its end.
fn lines_before_cut(text: &[u8]) -> Option<Box<str>> {
    let mut lines = String::from(before_cut(text, b"\\n")?);
    lines.truncate(lines.rfind('\n')? + 1);
    Some(lines.into())
}

/// A text that has lost its end, up to the last of these marks.
fn before_cut(text: &[u8], mark: &[u8]) -> Option<Box<str>> {
    let end = memmem::rfind(text, mark)? + mark.len();
    system_text(&[&text[..end], b"\""].concat())
}

/// A text without its quotes and escapes; none if it is no JSON.
fn system_text(text: &[u8]) -> Option<Box<str>> {
    let text = String::from_utf8_lossy(text);
    let plain = serde_json::from_str::<String>(&text).ok();
    plain.or_else(|| serde_json::from_str(&mended_text(&text)?).ok()).map(String::into_boxed_str)
}
