//! `trace dump`: one line for each record.

use crate::args::Dump;
use crate::exit::Failure;
use crate::input::{as_archive, name, open, problem};
use crate::progress;
use crate::stdio::{self, Stdout, closed_is_enough, say};
use json::JsonLine;
use std::io::{self, BufWriter, Write};
use trace_reader::dump::{Line, RawLine};
use trace_reader::{ReadError, Reader, Resolved};

mod json;

/// Prints every record.
pub fn run(options: &Dump) -> Result<(), Failure> {
    let failed =
        |error: ReadError| Failure::unreadable(format!("{}: {}", name(&options.input), problem(&error)));
    let file = open(&options.input)?;
    let bytes = file.metadata().map_or(0, |metadata| metadata.len());
    // Lines and a bar on one terminal would interfere with each other.
    let bar = progress::bar("reading", if stdio::is_stdout_terminal() { 0 } else { bytes });
    let unreadable =
        |error: io::Error| Failure::unreadable(format!("cannot read {}: {error}", name(&options.input)));
    let archive = as_archive(progress::reading(file, &bar)).map_err(unreadable)?;
    let mut reader = Reader::new(archive).map_err(failed)?;
    let mut output = BufWriter::new(Stdout);
    let result = loop {
        match reader.next_item() {
            Ok(Some(record)) => match write(&mut output, &record, options) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                Err(error) => break closed_is_enough(Err(error)),
            },
            Ok(None) => break Ok(()),
            Err(error) => break Err(failed(error)),
        }
    };
    let flushed = output.flush();
    bar.finish_and_clear();
    for (kind, count, first) in reader.warnings().by_kind() {
        for warning in first {
            say!("trace: byte {}: {}", warning.offset, warning.kind);
        }
        let more = count - first.len() as u64;
        if more > 0 {
            say!("trace: and {more} more of kind {kind}");
        }
    }
    result?;
    closed_is_enough(flushed)
}

fn write(output: &mut impl Write, record: &Resolved<'_>, options: &Dump) -> io::Result<()> {
    if options.json {
        serde_json::to_writer(&mut *output, &JsonLine(record))?;
        writeln!(output)
    } else if options.raw {
        writeln!(output, "{}", RawLine(record))
    } else {
        writeln!(output, "{}", Line(record))
    }
}
