//! `trace filter`: an archive with less in it, for traces that are passed on.
//= docs/filter.md#the-command

use crate::args::filter::Filter;
use crate::args::format::{Compression, Format, of_name};
use crate::args::selecting::categories;
use crate::convert;
use crate::files::account;
use crate::files::input::{self, ImportReport, again, is_stdin, open};
use crate::files::output::{OutputFile, Problem, refuse_input, remove_on_signal};
use crate::files::several::{each, in_directory, traces_and_output};
use crate::shell::exit::{Failure, NO};
use crate::shell::progress;
use crate::shell::stdio::{self, Stdout, say};
use serde_json::json;
use std::cell::Cell;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;
use trace_analysis::counted::Counted;
use trace_client::compressor::Manner;
use trace_client::convert::Encoder;
use trace_config::near;
use trace_convert::filtered::{self, Filtered, Options};
use trace_convert::{ConvertError, seekable};
use trace_format::shown::Shown;
use trace_model::Selection;

/// Maximum number of changed characters between a category and one that may have been meant.
const MAX_CHANGES: usize = 3;

/// Writes what remains of a trace.
pub fn run(options: &Filter) -> Result<u8, Failure> {
    let (traces, output) = traces_and_output(&options.files, options.output.as_ref())?;
    let output = output.ok_or_else(|| Failure::usage("no output is named"))?;
    if let [trace] = &traces[..] {
        return of_trace(options, trace, &output).map(|()| 0);
    }
    let named = |trace: &Path| convert::plain_name(trace).with_extension("fxt");
    let mut outputs = in_directory(&output, &traces, named)?.into_iter();
    each(&traces, |trace| {
        outputs.next().map_or(Ok(()), |output| of_trace(options, trace, &output)).map(|()| 0)
    })
}

fn of_trace(options: &Filter, input: &Path, output: &Path) -> Result<(), Failure> {
    let wanted = wanted(options)?;
    let is_stdout = is_stdin(output);
    let (format, compression) = of_name(output);
    if !is_stdout && !matches!(format, None | Some(Format::Fxt)) {
        let path = output.display();
        return Err(Failure::usage(format!(
            "{path}: trace filter writes FXT: name the file .fxt, and convert it with: trace convert FILE {path}"
        )));
    }
    if is_stdout && options.json {
        return Err(Failure::usage("--json: the trace goes to stdout already"));
    }
    if is_stdout && stdio::is_stdout_terminal() {
        return Err(Failure::usage("stdout is a terminal; redirect it, or name a file"));
    }
    refuse_input(input, output)?;
    let _removing = remove_on_signal()?;
    let accounting = account::begin(options.json, input, &Selection::default())?;
    // The input first: without it, no output is created.
    if !is_stdin(input) {
        drop(open(input)?);
    }
    if is_stdout {
        return match write(input, Compression::None, &options.category, &wanted, &mut Stdout) {
            Ok((filtered, import)) => report(input, &filtered, &import),
            // A reader that closes its end early is no failure.
            Err(Problem::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(problem) => Err(problem.into_failure(Path::new("stdout"))),
        };
    }
    let mut file = OutputFile::create(output)?;
    let written = write(input, compression, &options.category, &wanted, file.file());
    let (filtered, import) = written.map_err(|problem| problem.into_failure(output))?;
    let path = file.finish()?;
    let (kept, removed) = (filtered.summary.events, filtered.removed_events);
    let shown = path.display().to_string();
    say!("trace: {} in {}, {removed} removed", Counted(kept, "events"), Shown(&shown));
    if let Some(accounting) = accounting {
        accounting.finish().answer(machine(&shown, &filtered, &import)).give();
    }
    report(input, &filtered, &import)
}

/// What the options remove.
fn wanted(options: &Filter) -> Result<Options, Failure> {
    let Filter { strip_args, keep_args, redact_strings, category, process, .. } = options;
    let wanted = Options {
        strips_arguments: *strip_args || !keep_args.is_empty(),
        kept_arguments: keep_args.clone(),
        redacts_texts: *redact_strings,
        categories: categories(category)?,
        processes: process.clone(),
    };
    for (list, option) in [(keep_args, "--keep-args"), (category, "--category"), (process, "--process")] {
        if list.iter().any(String::is_empty) {
            return Err(Failure::usage(format!("{option}: a name is empty")));
        }
    }
    if !(wanted.strips_arguments || wanted.redacts_texts || wanted.selects()) {
        return Err(Failure::usage(
            "nothing is to be removed: give --strip-args, --keep-args, --redact-strings, --category or --process",
        ));
    }
    Ok(wanted)
}

fn write(
    input: &Path,
    compression: Compression,
    named: &[String],
    options: &Options,
    output: &mut dyn Write,
) -> Result<(Filtered, ImportReport), Problem> {
    let file = open(input).map_err(Problem::Failure)?;
    let manner = Manner { level: seekable::DEFAULT_LEVEL, has_records: true };
    let mut encoder = Encoder::new(compression, manner, output).map_err(Problem::Write)?;
    let (result, import) = if options.selects() {
        let (mut trace, import) = again(file, input, "filtering").map_err(Problem::Failure)?;
        let open = || (trace.open)().map(BufReader::new);
        (filtered::filter(open, &mut encoder, options), import)
    } else {
        let bar = progress::bar("filtering", file.metadata().map_or(0, |metadata| metadata.len()));
        let archive = input::as_reported_archive(progress::reading(file, &bar));
        let (archive, import) = archive.map_err(|error| Problem::Failure(input::failed(input, &error)))?;
        // It is opened once.
        let archive = Cell::new(Some(archive));
        let open =
            || Ok(BufReader::new(archive.take().unwrap_or_else(|| Box::new(io::empty()) as Box<dyn Read>)));
        let result = filtered::filter(open, &mut encoder, options);
        bar.finish_and_clear();
        (result, import)
    };
    let mut filtered = result.map_err(|error| match error {
        ConvertError::Write(error) => Problem::Write(error),
        error => Problem::Failure(input::failed(input, &error)),
    })?;
    // A trace need not have each category of a group.
    filtered.missing_categories.retain(|missing| named.contains(missing));
    if let Some(name) = filtered.missing_processes.first() {
        return Err(Problem::Failure(Failure::with_code(
            NO,
            format!(
                "{}: --process {}: the trace has no process of this name or number; trace stats --by process lists those with slices",
                input::name(input),
                Shown(name)
            ),
        )));
    }
    encoder.finish().map_err(Problem::Write)?;
    Ok((filtered, import))
}

/// What was written where, and what was removed.
fn machine(file: &str, filtered: &Filtered, import: &ImportReport) -> serde_json::Value {
    let summary = &filtered.summary;
    json!({
        "file": file,
        "events": summary.events,
        "removed_events": filtered.removed_events,
        "records": filtered.records,
        "removed_records": filtered.removed_records,
        "removed_arguments": filtered.removed_arguments,
        "replaced_texts": filtered.replaced_texts,
        "missing_categories": filtered.missing_categories,
        "skipped": convert::counts(&summary.skipped),
        "not_imported": import.left_out(),
    })
}

/// Reports categories without events; the trace may have none just now, or the name is mistyped.
fn warn_of_missing(filtered: &Filtered) {
    for name in &filtered.missing_categories {
        let known = filtered.categories.iter().map(String::as_str);
        let near = near::nearest(name, known, MAX_CHANGES, str::to_owned);
        let hint = near.map_or_else(String::new, |near| format!("; did you mean {}?", Shown(near)));
        say!("trace: warning: --category {}: the trace has no such event{hint}", Shown(name));
    }
}

/// Reports what is missing in the output; an error if the input could not be read to its end.
fn report(input: &Path, filtered: &Filtered, import: &ImportReport) -> Result<(), Failure> {
    warn_of_missing(filtered);
    let summary = &filtered.summary;
    convert::report_summary(summary, "trace filter");
    if let Some(stopped) = &summary.stopped {
        return Err(input::stopped(input, stopped.error(), "what comes before is filtered"));
    }
    let problem = import.problem();
    problem.map_or(Ok(()), |why| Err(Failure::unreadable(format!("{}: {why}", input::name(input)))))
}
