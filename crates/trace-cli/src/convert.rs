//! `trace convert`, and the conversion behind `record -o x.json`.

pub mod filter;

#[cfg(feature = "parquet")]
mod partition;
mod profiles;
mod tables;

use crate::args::format::{Compression, Format, Target, of_name};
use crate::args::selecting::Selecting;
use crate::args::{Container, Convert, Stacks};
use crate::files::account::{self, Accounting};
use crate::files::input::{self, ImportReport, is_stdin, open};
use crate::files::output::{OutputFile, Place, refuse_input, remove_on_signal};
use crate::files::several::{each, in_directory, traces_and_output};
use crate::shell::exit::{Failure, LOST, NO};
use crate::shell::json::Answer;
use crate::shell::progress;
use crate::shell::stdio::{self, Stdout, say};
use indicatif::ProgressBar;
use profiles::Profile;
use serde_json::json;
use std::error::Error;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use trace_analysis::counted::Counted;
pub use trace_client::convert::Job;
use trace_client::convert::{self as archive, jobs, odd_finder};
use trace_client::destination::Written;
use trace_convert::tables::Trace;
use trace_convert::{ConvertError, Filter, Stopped, Summary};
use trace_model::{Selection, Survey};
use trace_reader::ReadError;

/// Converts traces.
pub fn run(options: &Convert) -> Result<u8, Failure> {
    // trace2json has its input as an option, and its output too.
    let files: Vec<PathBuf> = options.input_file.iter().chain(&options.files).cloned().collect();
    let (traces, output) = traces_and_output(&files, options.output.as_ref())?;
    let of_several = traces.len() > 1 && !options.partitioned;
    refuse_traces(options, &traces, output.as_deref().filter(|_| options.output.is_none()))?;
    let mut outputs = match output.as_deref().filter(|_| of_several) {
        Some(directory) => {
            let (to, profile) = checked(options, None)?;
            in_directory(directory, &traces, |trace| plain_name(trace).with_extension(suffix(to, profile)))?
                .into_iter()
        }
        None => Vec::new().into_iter(),
    };
    each(&traces, |trace| {
        let output = if of_several { outputs.next() } else { output.clone() };
        of_trace(options, trace, output.as_ref()).map(|()| 0)
    })
}

/// Refuses a second name that exists and has the ending of another format: the shell may have expanded a
/// pattern, and it is a trace.
fn refuse_traces(options: &Convert, traces: &[PathBuf], output: Option<&Path>) -> Result<(), Failure> {
    let (Some(output), Some(to)) = (output, options.format) else { return Ok(()) };
    traces.iter().try_for_each(|trace| refuse_input(trace, output))?;
    match of_name(output).0 {
        Some(named) if !is_of_name(to, named) && output.exists() => Err(Failure::usage(format!(
            "{} exists, and its name has the ending of another format: several traces need a directory for what is written, \
             -o DIR, and -o {0} replaces it",
            output.display()
        ))),
        _ => Ok(()),
    }
}

/// Whether an output may have the ending of the format `named`.
fn is_of_name(to: Target, named: Format) -> bool {
    match to {
        Target::Catapult | Target::Chrome | Target::Speedscope | Target::Firefox => {
            matches!(named, Format::Catapult | Format::Chrome)
        }
        Target::Csv | Target::Parquet => false,
        Target::Fxt | Target::Perfetto | Target::Folded => to.format() == Some(named),
    }
}

/// What is converted to, by the options and by the name of the output; none for tables.
fn checked(options: &Convert, named: Option<&PathBuf>) -> Result<(Option<Format>, Option<Profile>), Failure> {
    let by_name = named.and_then(|output| of_name(output).0);
    // Only folded stacks are of something.
    let is_folded = by_name.is_none() && (options.by_thread || options.stacks != Stacks::default());
    let target = options.format.or(is_folded.then_some(Target::Folded));
    let to = target.map_or(by_name, Target::format);
    let profile = Profile::of(options, to == Some(Format::Folded));
    if to.is_none() && target.is_none() {
        return Err(Failure::usage(
            "--format is needed where the name of the result does not tell the format, such as --format catapult",
        ));
    }
    check(options, to, named)?;
    Ok((to, profile))
}

/// The ending of the name of what is converted to.
fn suffix(to: Option<Format>, profile: Option<Profile>) -> &'static str {
    profile.map(Profile::suffix).or(to.map(Format::suffix)).unwrap_or(tables::SUFFIX)
}

fn of_trace(options: &Convert, input: &Path, named: Option<&PathBuf>) -> Result<(), Failure> {
    let (to, profile) = checked(options, named)?;
    let place = match named {
        Some(output) => Place::named(output),
        None if is_stdin(input) => Place::named("-"),
        None => Place::unused(&stem(input), suffix(to, profile))?,
    };
    let (is_stdout, output) = (place.is_stdout(), &place.path);
    if is_stdout && to.is_some_and(Format::is_binary) && stdio::is_stdout_terminal() {
        return Err(Failure::usage("stdout is a terminal; redirect it, or name a file"));
    }
    refuse_input(input, output)?;
    let _removing = remove_on_signal()?;
    // The input first: without it, no output is created.
    if !is_stdin(input) {
        drop(open(input)?);
    }
    let selection = options.selecting.selection()?;
    let accounting = account::begin(options.json && !is_stdout, input, &selection)?;
    let (filter, opened) = selected(&options.pattern, &selection, input)?;
    let (name, shown) = match (profile, to) {
        (Some(profile), _) => (profile.name(), profile.shown()),
        (None, Some(to)) => (name_of(to), shown(to)),
        (None, None) => return tables::run(input, opened, output, options, filter, accounting),
    };
    if let Some(system) = &options.system_event_output_file {
        refuse_input(input, system)?;
        if system == output {
            return Err(Failure::usage(format!("{}: two outputs have this name", system.display())));
        }
    }
    let mut system = options.system_event_output_file.as_deref().map(OutputFile::create).transpose()?;
    if is_stdout && options.json {
        return Err(Failure::usage("--json: the trace goes to stdout already"));
    }
    let compression = if is_stdout { Compression::None } else { of_name(output).1 };
    let system_output = system.as_mut().map(|file| file.file() as &mut dyn Write);
    let write = |mut output: Written<'_>| match profile {
        Some(profile) => profiles::convert(input, opened, profile, compression, filter, output.writer()),
        None => {
            let (to, roots) = (to.unwrap_or_default(), profiles::roots(options));
            let (container, jobs) = (container(options), jobs(options.jobs));
            let level = None;
            let job = Job { to, compression, level, container, filter, system_output, jobs, roots };
            convert(input, opened, job, output)
        }
    };
    let (converted, path) = if is_stdout {
        match write(Written::Stream(&mut Stdout)) {
            Ok(converted) => (converted, None),
            Err(Problem::Failure(failure)) => return Err(failure),
            // A reader that closes its end early is no failure.
            Err(Problem::OutputClosed) => (Converted::default(), None),
            Err(problem) => return Err(problem.into_failure(Path::new("stdout"))),
        }
    } else {
        let mut file = place.create()?;
        match write(Written::File(file.file())) {
            Ok(converted) => (converted, Some(file)),
            Err(problem) => return Err(problem.into_failure(output)),
        }
    };
    let summary = &converted.summary;
    let has_nothing = |summary: &Summary| summary.events == 0 && summary.stopped.is_none();
    let nothing = match (profile, to) {
        (Some(profile), _) => Some(profile.nothing()),
        (None, Some(Format::Folded)) => Some(
            "the trace has no samples: record with --profile 99, or fold its slices with --stacks slices",
        ),
        _ => None,
    };
    if let Some(nothing) = nothing.filter(|_| summary.as_ref().is_some_and(has_nothing)) {
        return Err(Failure::with_code(NO, format!("{}: {nothing}", input::name(input))));
    }
    let advise =
        |summary: &Summary| report(summary, shown, profile.is_none() && to == Some(Format::Catapult));
    if let Err(failure) = converted.check(options.strict) {
        summary.iter().for_each(advise);
        // The temporary file is removed.
        return Err(failure);
    }
    if let Some(system) = system {
        system.finish()?;
    }
    if let Some(file) = path {
        let path = file.finish()?;
        match summary {
            Some(summary) => say!("trace: {} in {}", Counted(summary.events, "events"), path.display()),
            None => say!("trace: {} in {}", Counted(converted.copied, "events"), path.display()),
        }
        if let Some(accounting) = accounting {
            converted.answer(accounting, &path, name).give();
        }
    }
    summary.iter().for_each(advise);
    converted.check_input(input)
}

/// What is converted, and the trace, if it had to be read for that.
fn selected(
    patterns: &[String],
    selection: &Selection,
    input: &Path,
) -> Result<(Filter, Option<Opened>), Failure> {
    let (survey, opened) = match selection.needs_survey() {
        true => {
            let (mut trace, import) = open(input).and_then(|file| input::again(file, input, "reading"))?;
            let survey = input::survey(&mut trace, input)?.1;
            (survey, Some((trace, import)))
        }
        false => (Survey::default(), None),
    };
    let filter = Filter::new(patterns, input::chosen(selection, survey, input)?);
    Ok((filter.map_err(|why| Failure::usage(format!("--pattern: {why}")))?, opened))
}

fn container(options: &Convert) -> archive::Container {
    match options.container {
        Some(Container::Array) => archive::Container::Array,
        Some(Container::Object) | None => archive::Container::Object,
    }
}

/// Checks for options of other formats.
fn check(options: &Convert, to: Option<Format>, named: Option<&PathBuf>) -> Result<(), Failure> {
    let refuse = |text: &str| Err(Failure::usage(text.to_owned()));
    if options.container.is_some() && to != Some(Format::Chrome) {
        return refuse("--container is for --format chrome");
    }
    if options.partitioned && options.format != Some(Target::Parquet) {
        return refuse("--partitioned is for --format parquet");
    }
    if options.partitioned && named.is_none() {
        return refuse("--partitioned needs OUT, the directory of the tables of all traces");
    }
    if options.spreadsheet && options.format != Some(Target::Csv) {
        return refuse("--spreadsheet is for --format csv");
    }
    if options.system_event_output_file.is_some() && to != Some(Format::Catapult) {
        return refuse("--system-event-output-file is for --format catapult");
    }
    let is_folded = to == Some(Format::Folded);
    if (options.by_thread || options.stacks != Stacks::default()) && !is_folded {
        return refuse("--stacks and --by-thread are for --format folded");
    }
    let Selecting { category, within } = &options.selecting;
    let has_texts = !(options.pattern.is_empty() && category.is_empty() && within.name.is_empty());
    if has_texts && is_folded && options.stacks == Stacks::Samples {
        return refuse("--pattern, --category and --name are for events: samples have none");
    }
    if (has_texts || !within.selection().is_all()) && to == Some(Format::Fxt) {
        return refuse("an archive is copied as a whole: trace filter writes categories and processes of it");
    }
    Ok(())
}

/// A name without its endings.
pub fn stem(path: &Path) -> PathBuf {
    plain_name(path).with_extension("")
}

/// A name without the suffix of its compression.
pub fn plain_name(path: &Path) -> PathBuf {
    match of_name(path).1 {
        Compression::None => path.to_owned(),
        Compression::Gzip | Compression::Zstd => path.with_extension(""),
    }
}

/// Converts an archive into another format. A reader that closes its end early is no failure.
pub fn transform(archive: &Path, job: Job<'_>, output: Written<'_>) -> Result<Option<Summary>, Failure> {
    match convert(archive, None, job, output) {
        Ok(converted) => converted.check_input(archive).map(|()| converted.summary),
        Err(Problem::Failure(failure)) => Err(failure),
        Err(Problem::OutputClosed) => Ok(None),
        Err(Problem::Write(error)) => Err(Failure::new(format!("cannot write the trace: {error}"))),
    }
}

/// What `--format` calls a format.
const fn name_of(format: Format) -> &'static str {
    match format {
        Format::Fxt => "fxt",
        Format::Catapult => "catapult",
        Format::Chrome => "chrome",
        Format::Perfetto => "perfetto",
        Format::Folded => "folded",
    }
}

/// Writes a trace for the Perfetto UI, whose reader drops less of this form than of an archive. A trace whose
/// rest cannot be read is shown up to there.
//= docs/perfetto.md#what-is-served
pub fn for_viewer(trace: &Path, selection: &Selection, output: &mut File) -> Result<(), Failure> {
    let (filter, opened) = selected(&[], selection, trace)?;
    let job = Job { filter, ..Job::new(Format::Perfetto, Compression::None) };
    let converted = match convert(trace, opened, job, Written::File(output)) {
        Ok(converted) => converted,
        Err(Problem::Failure(failure)) => return Err(failure),
        Err(Problem::OutputClosed) => return Ok(()),
        Err(Problem::Write(error)) => {
            let place = std::env::temp_dir();
            return Err(Failure::new(format!(
                "cannot write Perfetto's form of the trace in {}: {error}; set TMPDIR to a directory with more room",
                place.display()
            )));
        }
    };
    converted.summary.iter().for_each(|summary| report_summary(summary, "Perfetto's format"));
    if let Err(failure) = converted.check_input(trace) {
        say!("trace: {}", failure.text);
    }
    Ok(())
}

/// What cannot express something in a format.
const fn shown(format: Format) -> &'static str {
    match format {
        Format::Fxt => "FXT",
        Format::Catapult => "Catapult",
        Format::Chrome => "Chrome's format",
        Format::Perfetto => "Perfetto's format",
        Format::Folded => "a profile",
    }
}

/// Reports what the target could not express, and how to open the result.
pub fn advise(summary: &Summary, to: Format) {
    report(summary, shown(to), to == Format::Catapult);
}

fn report(summary: &Summary, name: &str, is_for_catapult: bool) {
    report_summary(summary, name);
    if is_for_catapult {
        say!(
            "trace: this is for Catapult (chrome://tracing); the Perfetto UI refuses Fuchsia's systemTraceEvents \
             object: give it the .fxt, or convert --format chrome"
        );
    }
}

enum Problem {
    Failure(Failure),
    /// The output cannot be written.
    Write(io::Error),
    /// The output has lost its reader.
    OutputClosed,
}

/// Reports what was skipped, and what is wrong with the trace.
pub fn report_summary(summary: &Summary, target: &str) {
    for (kind, count) in &summary.skipped {
        let them = if *count == 1 { "it" } else { "them" };
        say!("trace: {} skipped: {target} cannot express {them}", Counted(*count, kind));
    }
    for (remark, count) in &summary.remarks {
        say!("trace: {}", Counted(*count, remark));
    }
    if summary.warnings > 0 {
        let first = summary.first_warnings.join("; ");
        say!("trace: {} in the trace: {first}", Counted(summary.warnings, "problems"));
    }
}

/// The result of a conversion.
#[derive(Default)]
struct Converted {
    /// None for a copy, which skips nothing.
    summary: Option<Summary>,
    /// Events in a copy.
    copied: u64,
    /// The report of another format's import.
    import: ImportReport,
    /// Why the copy does not have the rest of the input.
    stopped: Option<ReadError>,
}

/// How often something was met, by kind.
pub fn counts(list: &[(String, u64)]) -> Vec<serde_json::Value> {
    list.iter().map(|(kind, count)| json!({"kind": kind, "count": count})).collect()
}

impl Converted {
    /// An error if something was skipped although that is not allowed.
    fn check(&self, is_strict: bool) -> Result<(), Failure> {
        let skipped = self.summary.iter().flat_map(|summary| &summary.skipped);
        let lost = self.import.left_out() + skipped.map(|(_, count)| count).sum::<u64>();
        if is_strict && lost > 0 {
            return Err(Failure::with_code(
                LOST,
                format!("--strict: {} cannot be expressed in this format", Counted(lost, "records")),
            ));
        }
        Ok(())
    }

    /// What was written where, and what was left out.
    fn answer(&self, accounting: Accounting, path: &Path, format: &str) -> Answer {
        let summary = self.summary.clone().unwrap_or_default();
        let result = json!({
            "file": path.display().to_string(),
            "format": format,
            "events": self.copied + summary.events,
            "skipped": counts(&summary.skipped),
            "not_imported": self.import.left_out(),
            "remarks": counts(&summary.remarks),
        });
        accounting.finish().answer(result)
    }

    /// An error if the input could not be read to its end or is not entirely well-formed, although there is a
    /// result.
    //= docs/import.md#what-is-no-json
    //= docs/import.md#what-is-cut-off
    fn check_input(&self, input: &Path) -> Result<(), Failure> {
        let stopped = self.summary.as_ref().and_then(|summary| summary.stopped.as_ref());
        if let Some(error) = self.stopped.as_ref().or(stopped.map(Stopped::error)) {
            return Err(input::stopped(input, error, "what comes before is converted"));
        }
        let problem = self.import.problem();
        problem.map_or(Ok(()), |why| Err(Failure::unreadable(format!("{}: {why}", input::name(input)))))
    }
}

/// A trace that can be read again, and what its import reports.
type Opened = (Trace, ImportReport);

/// A trace that is read several times.
struct Input<'a> {
    path: &'a Path,
    /// A copy, unless it is a regular file.
    copy: Option<Opened>,
}

impl<'a> Input<'a> {
    fn new(path: &'a Path, opened: Option<Opened>, is_read_again: bool) -> Result<Self, Problem> {
        if opened.is_some() {
            return Ok(Self { path, copy: opened });
        }
        let is_file = || !is_stdin(path) && path.metadata().is_ok_and(|metadata| metadata.is_file());
        let copy = if is_read_again && !is_file() {
            let file = open(path).map_err(Problem::Failure)?;
            Some(input::again(file, path, "converting").map_err(Problem::Failure)?)
        } else {
            None
        };
        Ok(Self { path, copy })
    }

    /// An archive, what its import reports, and the progress.
    fn open(&mut self) -> Result<(Box<dyn Read>, ImportReport, ProgressBar), Problem> {
        let failed = |error| Problem::of_read(self.path, &error);
        if let Some((copy, import)) = &mut self.copy {
            let archive = (copy.open)().map_err(failed)?;
            return Ok((Box::new(BufReader::new(archive)), import.clone(), ProgressBar::hidden()));
        }
        let file = open(self.path).map_err(Problem::Failure)?;
        let bar = progress::bar("converting", file.metadata().map_or(0, |metadata| metadata.len()));
        let (archive, import) = input::as_reported_archive(progress::reading(file, &bar)).map_err(failed)?;
        Ok((Box::new(BufReader::new(archive)), import, bar))
    }
}

/// Converts a trace.
fn convert(
    input: &Path,
    opened: Option<Opened>,
    job: Job<'_>,
    output: Written<'_>,
) -> Result<Converted, Problem> {
    let mut trace = Input::new(input, opened, odd_finder(job.to).is_some())?;
    let mut reading = None;
    let open = || {
        let (archive, import, bar) = trace.open()?;
        if let Some((_, before)) = reading.replace((import, bar)) {
            before.finish_and_clear();
        }
        Ok(archive)
    };
    let converted = archive::convert(job, output, open, |error| Problem::of_conversion(input, error));
    let import = reading.map(|(import, bar)| {
        bar.finish_and_clear();
        import
    });
    let archive::Converted { summary, copied, stopped } = converted?;
    Ok(Converted { summary, copied, import: import.unwrap_or_default(), stopped })
}

impl Problem {
    fn into_failure(self, output: &Path) -> Failure {
        match self {
            Self::Failure(failure) => failure,
            Self::Write(error) => cannot_write(output, &error),
            Self::OutputClosed => cannot_write(output, &io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn of_read(input: &Path, error: &io::Error) -> Self {
        Self::Failure(Failure::unreadable(format!("cannot read {}: {error}", input::name(input))))
    }

    fn of_write(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::Write(error),
        }
    }

    fn of_conversion(input: &Path, error: ConvertError) -> Self {
        match error {
            ConvertError::Write(error) => Self::of_write(error),
            ConvertError::Odd(_) => Self::Failure(Failure::unreadable(format!(
                "{}: the trace has changed meanwhile",
                input::name(input)
            ))),
            error => Self::of_input(input, &error),
        }
    }

    fn of_input(input: &Path, error: &(dyn Error + 'static)) -> Self {
        Self::Failure(input::failed(input, error))
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    let path: PathBuf = path.to_owned();
    Failure::new(format!("cannot write {}: {error}", path.display()))
}
