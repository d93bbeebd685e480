//! A document, read from its beginning to wherever it ends: a list of events, or an object that has the list
//! in one of its members.
//= docs/import.md#json

use super::entry::Importer;
use super::mended::{MAX_MENDED_BYTES, mended};
use super::other_files::ObjectMembers;
use crate::import::ImportError;
use crate::import::scanner::{Scanner, SourcePosition};
use serde_json::Value;
use std::io::{Read, Write};

/// How many bytes of an error's context are shown.
const SHOWN_BYTES: usize = 40;

/// Why reading a document stops.
pub(super) enum Stop {
    /// The file ends before the document does.
    CutOff,
    Failed(ImportError),
}

impl From<ImportError> for Stop {
    fn from(error: ImportError) -> Self {
        Self::Failed(error)
    }
}

pub(super) struct Document<'a, R, W> {
    scanner: Scanner<R>,
    importer: &'a mut Importer<W>,
    /// Members of the outermost object, until one of them shows that it is a trace.
    members: ObjectMembers,
    /// A list of events, or of the scheduler's events, was found.
    has_events: bool,
}

impl<'a, R: Read, W: Write> Document<'a, R, W> {
    pub fn new(input: R, importer: &'a mut Importer<W>) -> Self {
        let members = ObjectMembers::default();
        Self { scanner: Scanner::new(input), importer, members, has_events: false }
    }

    /// Reads it.
    ///
    /// # Errors
    /// The file is cut off, cannot be read, or is no JSON outside of the events.
    pub fn read(&mut self) -> Result<(), Stop> {
        self.scanner.pass_byte_order_mark()?;
        match self.scanner.peek()? {
            Some(b'[') => self.events(),
            Some(b'{') => self.object(Self::member),
            Some(_) => Err(self.scanner.error("expected [ or {").into()),
            None => Err(self.scanner.error("the file is empty").into()),
        }
    }

    /// The kind of a file that is no trace.
    pub fn other_file(&self, is_cut_off: bool) -> Option<String> {
        let Importer { objects, has_phases, .. } = *self.importer;
        if self.has_events {
            let is_other = objects > 0 && !has_phases;
            return is_other.then(|| format!("objects in a list, {objects} of them, without a phase (`ph`)"));
        }
        let likeness = self.members.kind().map(|kind| format!("what looks like {kind}"));
        likeness.or_else(|| (!is_cut_off).then(|| self.members.to_string()))
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
                    let problem = format!("expected an event, found {:?}", char::from(other));
                    return Err(self.scanner.error(problem).into());
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
                let (place, text) = self.scanner.value()?.ok_or(Stop::CutOff)?;
                let list: String =
                    serde_json::from_slice(text).map_err(|error| syntax_error(place, text, &error))?;
                let mut inner = Document::new(list.as_bytes(), self.importer);
                self.has_events = true;
                inner.events()
            }
            //= docs/import.md#beside-the-events
            ("systemTraceEvents", b'{') => {
                self.has_events = true;
                self.object(Self::system_member)
            }
            _ => {
                self.members.push(name);
                self.importer.member(name);
                self.pass_value()
            }
        }
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

    fn event(&mut self) -> Result<(), Stop> {
        if let Some(length) = self.importer.plain_event(self.scanner.buffered()) {
            self.scanner.pass(length);
            return self.importer.writer.flush_if_full().map_err(|error| ImportError::Write(error).into());
        }
        self.parsed(Importer::event)
    }

    fn system_event(&mut self) -> Result<(), Stop> {
        self.parsed(Importer::system_event)
    }

    /// An event of either kind. Invalid JSON within it drops at most this event.
    fn parsed(
        &mut self,
        take: fn(&mut Importer<W>, &[u8]) -> Result<(), serde_json::Error>,
    ) -> Result<(), Stop> {
        let (place, text) = self.scanner.value()?.ok_or(Stop::CutOff)?;
        if let Err(error) = take(self.importer, text) {
            let is_kept = mended(text).is_some_and(|text| take(self.importer, text.as_bytes()).is_ok());
            // An error within a part has its position relative to the part, but one of the whole has it in
            // the whole.
            let of_all =
                (text.len() <= MAX_MENDED_BYTES).then(|| serde_json::from_slice::<Value>(text).err());
            let error = of_all.flatten().unwrap_or(error);
            self.importer.malformed(&syntax_error(place, text, &error), is_kept);
        }
        self.importer.writer.flush_if_full().map_err(|error| ImportError::Write(error).into())
    }
}

/// An error inside a value, with its position in the file.
fn syntax_error(value: SourcePosition, text: &[u8], error: &serde_json::Error) -> ImportError {
    // Line and column within the value count from 1 and 0.
    let line = error.line().max(1) as u64;
    let column = error.column().max(1) as u64;
    let column = if line == 1 { value.column + column - 1 } else { column };
    let message = error.to_string();
    let problem = message.split(" at line ").next().unwrap_or_default();
    let start = String::from_utf8_lossy(&text[..text.len().min(SHOWN_BYTES)]);
    ImportError::Syntax { line: value.line + line - 1, column, problem: format!("{problem} in {start:?}") }
}
