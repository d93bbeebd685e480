//! Chrome's JSON, in both containers, and the JSON of Fuchsia's exporter: also truncated, with extra commas,
//! or with numbers as text.
//= docs/import.md#json

mod document;
mod entry;
mod mended;
mod number;
mod open_slices;
mod other_files;
mod plain;
mod system;

use super::ImportError;
use super::writer::Writer;
use crate::Summary;
use document::{Document, Stop};
use entry::Importer;
use std::io::{Read, Write};

/// Converts a JSON trace into an archive.
///
/// # Errors
/// The input cannot be read, is no JSON or no trace, or the archive cannot be written.
pub fn import(input: impl Read, output: impl Write) -> Result<Summary, ImportError> {
    let mut importer = Importer::new(Writer::new(output, "json"));
    let mut document = Document::new(input, &mut importer);
    let result = document.read();
    let is_cut_off = matches!(result, Err(Stop::CutOff));
    let other_file = document.other_file(is_cut_off);
    // The bytes were read before.
    let _ = importer.end();
    if is_cut_off {
        importer.writer.cut_off();
    }
    let has_any = importer.has_any;
    let summary = importer.writer.finish().map_err(ImportError::Write)?;
    match (result, other_file) {
        (Err(Stop::Failed(error)), _) if has_any => Err(error.after(summary)),
        (Err(Stop::Failed(error)), _) => Err(error),
        (_, Some(found)) => Err(ImportError::NoTrace { found }),
        _ => Ok(summary),
    }
}

#[cfg(test)]
mod tests;
