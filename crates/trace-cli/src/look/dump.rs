//! `trace dump`: one line for each record.

use crate::args::Dump;
use crate::files::input::{self, again, as_archive, chosen, name, open, survey};
use crate::files::several::each;
use crate::shell::exit::Failure;
use crate::shell::progress;
use crate::shell::stdio::{self, Stdout, closed_is_enough, say};
use json::JsonLine;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;
use trace_convert::{Filter, Selected};
use trace_format::shown::Shown;
use trace_reader::dump::{Line, RawLine};
use trace_reader::{Item, ReadError, Reader, Resolved};

mod json;

/// Prints every record.
pub fn run(options: &Dump) -> Result<u8, Failure> {
    let is_one = options.inputs.len() == 1;
    each(&options.inputs, |input| {
        if !is_one && !options.json {
            stdio::print(&format!("# {}\n", Shown(&name(input))))?;
        }
        let file = (!is_one).then(|| name(input));
        of_trace(options, input, file.as_deref()).map(|()| 0)
    })
}

/// `shown` is the trace's name in each object, if there are several.
fn of_trace(options: &Dump, input: &Path, shown: Option<&str>) -> Result<(), Failure> {
    let selection = options.selecting.selection()?;
    let failed = |error: ReadError| input::failed(input, &error);
    let file = open(input)?;
    let bytes = file.metadata().map_or(0, |metadata| metadata.len());
    // Lines and a bar on one terminal would interfere with each other.
    let bar = progress::bar("reading", if stdio::is_stdout_terminal() { 0 } else { bytes });
    let unreadable = |error: io::Error| Failure::unreadable(format!("cannot read {}: {error}", name(input)));
    let (archive, mut selected) = match selection.is_all() {
        true => (as_archive(progress::reading(file, &bar)).map_err(unreadable)?, None),
        false => {
            let (mut trace, _) = again(file, input, "reading")?;
            let (disorder, survey) = survey(&mut trace, input)?;
            let filter = Filter::of(chosen(&selection, survey, input)?);
            let mut open = || (trace.open)().map(BufReader::new).map_err(unreadable);
            let selected = Selected::in_time(filter, disorder, open()?).map_err(unreadable)?;
            (Box::new(open()?) as Box<dyn Read>, Some(selected))
        }
    };
    let mut reader = Reader::new(archive).map_err(failed)?;
    let mut output = BufWriter::new(Stdout);
    let result = loop {
        match reader.next_item() {
            Ok(Some(record)) if !is_selected(&mut selected, &record) => {}
            Ok(Some(record)) => match write(&mut output, &record, options, shown) {
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

/// Whether a record is selected. Of those without a time and a name, only what is missing is.
//= docs/selecting.md#other-records
fn is_selected(selected: &mut Option<Selected>, record: &Resolved<'_>) -> bool {
    let Some(selected) = selected else { return true };
    selected.keeps_record(&record.item).unwrap_or(matches!(
        record.item,
        Item::Loss(_) | Item::ProviderEvent { .. } | Item::Malformed { .. } | Item::Damage { .. }
    ))
}

fn write(
    output: &mut impl Write,
    record: &Resolved<'_>,
    options: &Dump,
    file: Option<&str>,
) -> io::Result<()> {
    if options.json {
        serde_json::to_writer(&mut *output, &JsonLine { record, file })?;
        writeln!(output)
    } else if options.raw {
        writeln!(output, "{}", RawLine(record))
    } else {
        writeln!(output, "{}", Line(record))
    }
}
