//! `trace dump`: one line for each record.

use crate::args::Dump;
use crate::convert::open;
use crate::exit::Failure;
use crate::progress;
use std::io::{self, BufReader, BufWriter, IsTerminal, Write};
use trace_reader::Reader;
use trace_reader::dump::Line;

/// Prints every record.
pub fn run(options: &Dump) -> Result<(), Failure> {
    let failed = |what: &dyn std::fmt::Display| Failure::new(format!("{}: {what}", options.input.display()));
    let file = open(&options.input)?;
    let bytes = file.metadata().map_or(0, |metadata| metadata.len());
    // Lines and a bar on one terminal would be in each other's way.
    let bar = progress::bar("reading", if io::stdout().is_terminal() { 0 } else { bytes });
    let input = progress::reading(BufReader::new(file), &bar);
    let mut reader = Reader::new(input).map_err(|error| failed(&error))?;
    let mut output = BufWriter::new(io::stdout().lock());
    let result = loop {
        match reader.next_item() {
            Ok(Some(record)) => match writeln!(output, "{}", Line(&record)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                Err(error) => break Err(Failure::new(format!("cannot write to stdout: {error}"))),
            },
            Ok(None) => break Ok(()),
            Err(error) => break Err(failed(&error)),
        }
    };
    let flushed = output.flush();
    bar.finish_and_clear();
    for warning in reader.warnings() {
        eprintln!("trace: byte {}: {}", warning.offset, warning.kind);
    }
    result?;
    match flushed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}
