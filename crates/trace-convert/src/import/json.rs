//! Chrome's JSON, in both containers, and the JSON of Fuchsia's exporter: also truncated, with extra commas,
//! or with numbers as text.
//= docs/import.md#json

mod batch;
mod begin;
mod document;
mod entry;
mod mended;
mod number;
mod numbering;
mod open_operations;
mod open_slices;
mod other_files;
mod plain;
mod postponed;
mod system;

use super::ImportError;
use super::hand_over::HandOver;
use super::writer::Writer;
use crate::Summary;
use document::{Document, Stop};
use entry::Importer;
use std::io::{Read, Write};
use std::sync::{Mutex, PoisonError};

/// Converts a JSON trace into an archive.
///
/// # Errors
/// The input cannot be read, is no JSON or no trace, or the archive cannot be written.
pub fn import(mut input: impl Read, mut output: impl Write + Send) -> Result<Summary, ImportError> {
    import_from(&mut input, &mut output)
}

fn import_from(input: &mut dyn Read, output: &mut (dyn Write + Send)) -> Result<Summary, ImportError> {
    let importer = Mutex::new(Importer::new(Writer::new(output, "json")));
    let (kind, result) = std::thread::scope(|scope| {
        let mut over = HandOver::new(scope, &importer);
        let (kind, result) = Document::new(input, &mut over).read();
        // It failed at an earlier place of the document.
        (kind, over.end().map_err(Stop::Failed).and(result))
    });
    let mut importer = importer.into_inner().unwrap_or_else(PoisonError::into_inner);
    let result = importer.catch_up().map_err(Stop::Failed).and(result);
    let is_cut_off = matches!(result, Err(Stop::CutOff));
    let other_file = kind.other_file(importer.objects, importer.has_phases, is_cut_off);
    // The bytes were read before.
    let _ = importer.end();
    if is_cut_off {
        importer.writer.cut_off();
    }
    let has_any = importer.has_any;
    let finished = importer.writer.finish("a JSON trace");
    match (result, other_file) {
        (Err(Stop::Failed(error)), _) if !has_any => Err(error.unless_unwritten(finished)),
        (Err(Stop::Failed(error)), _) => ImportError::ended(Err(error), finished),
        (_, Some(found)) => Err(ImportError::NoTrace { found }.unless_unwritten(finished)),
        _ => finished,
    }
}

pub(super) use begin::{begins_trace, has_trace, is_odd_list};
pub use begin::{is_json, is_lines};

#[cfg(test)]
mod tests;
