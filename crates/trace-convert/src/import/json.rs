//! Chrome's JSON, in both containers, and what Fuchsia's exporter writes: also cut off, with a comma too
//! many, with numbers as text.
//= docs/import.md#json

mod entry;
mod number;
mod plain;

use super::scanner::{Place, Scanner};
use super::writer::Writer;
use super::{CUT_OFF, ImportError};
use crate::Summary;
use entry::Importer;
use std::borrow::Cow;
use std::io::{Read, Write};

/// Makes an archive of a JSON trace.
///
/// # Errors
/// The input cannot be read or is no JSON, or the archive cannot be written.
pub fn import(input: impl Read, output: impl Write) -> Result<Summary, ImportError> {
    let mut scanner = Scanner::new(input);
    let mut importer = Importer::new(Writer::new(output, "json"));
    let result = document(&mut scanner, &mut importer);
    // They were read before.
    let _ = importer.end();
    let summary = importer.writer.finish().map_err(ImportError::Write);
    result.and(summary)
}

fn document<R: Read, W: Write>(
    scanner: &mut Scanner<R>,
    importer: &mut Importer<W>,
) -> Result<(), ImportError> {
    match scanner.peek()? {
        Some(b'[') => events(scanner, importer),
        Some(b'{') => members(scanner, importer),
        Some(_) => Err(scanner.error("expected [ or {")),
        None => Err(scanner.error("the file is empty")),
    }
}

/// A list of events, of which the end may be missing.
fn events<R: Read, W: Write>(
    scanner: &mut Scanner<R>,
    importer: &mut Importer<W>,
) -> Result<(), ImportError> {
    scanner.take(b'[')?;
    loop {
        match scanner.peek()? {
            Some(b']') => {
                scanner.take(b']')?;
                return Ok(());
            }
            // One between two, and those that are too many.
            Some(b',') => {
                scanner.take(b',')?;
            }
            Some(b'{') => {
                if let Some(length) = importer.plain_event(scanner.buffered()) {
                    scanner.pass(length);
                    importer.writer.flush_if_full().map_err(ImportError::Write)?;
                    continue;
                }
                let Some((place, text)) = scanner.value()? else {
                    importer.writer.warn(CUT_OFF);
                    return Ok(());
                };
                importer.event(text).map_err(|error| syntax(place, text, &error))?;
                importer.writer.flush_if_full().map_err(ImportError::Write)?;
            }
            Some(other) => {
                let other = char::from(other);
                return Err(scanner.error(format!("expected an event, found {other:?}")));
            }
            None => {
                importer.writer.warn(CUT_OFF);
                return Ok(());
            }
        }
    }
}

/// An object, of which one member has the events.
fn members<R: Read, W: Write>(
    scanner: &mut Scanner<R>,
    importer: &mut Importer<W>,
) -> Result<(), ImportError> {
    scanner.take(b'{')?;
    loop {
        match scanner.peek()? {
            Some(b'}') => return Ok(()),
            Some(b',') => {
                scanner.take(b',')?;
                continue;
            }
            Some(b'"') => {}
            Some(other) => {
                let other = char::from(other);
                return Err(scanner.error(format!("expected a member's name, found {other:?}")));
            }
            None => {
                importer.writer.warn(CUT_OFF);
                return Ok(());
            }
        }
        let Some((place, key)) = scanner.value()? else {
            importer.writer.warn(CUT_OFF);
            return Ok(());
        };
        let name: Cow<'_, str> = serde_json::from_slice(key).map_err(|error| syntax(place, key, &error))?;
        let name = name.into_owned();
        if !scanner.take(b':')? {
            if scanner.peek()?.is_none() {
                importer.writer.warn(CUT_OFF);
                return Ok(());
            }
            return Err(scanner.error(format!("expected : behind {name:?}")));
        }
        if name == "traceEvents" && scanner.peek()? == Some(b'[') {
            events(scanner, importer)?;
            continue;
        }
        let Some((place, text)) = scanner.value()? else {
            importer.writer.warn(CUT_OFF);
            return Ok(());
        };
        if name == "traceEvents" && text.starts_with(b"\"") {
            // A text with the list in it.
            let list: String = serde_json::from_slice(text).map_err(|error| syntax(place, text, &error))?;
            events(&mut Scanner::new(list.as_bytes()), importer)?;
            continue;
        }
        importer.member(&name, text).map_err(|error| syntax(place, text, &error))?;
    }
}

/// An error inside a value, at its place in the file.
fn syntax(value: Place, text: &[u8], error: &serde_json::Error) -> ImportError {
    // Line and column within the value count from 1 and 0.
    let line = error.line().max(1) as u64;
    let column = error.column().max(1) as u64;
    let column = if line == 1 { value.column + column - 1 } else { column };
    let message = error.to_string();
    let problem = message.split(" at line ").next().unwrap_or_default().to_owned();
    let start = String::from_utf8_lossy(&text[..text.len().min(40)]).into_owned();
    ImportError::Syntax { line: value.line + line - 1, column, problem: format!("{problem} in {start}") }
}

#[cfg(test)]
mod tests;
