//! `trace report`: a trace as one page that works offline.
//= docs/report.md#the-command

use crate::args::viewing::Report;
use crate::convert;
use crate::counted::Counted;
use crate::exit::Failure;
use crate::input::{self, again, is_stdin, open};
use crate::output::{OutputFile, refuse_input, remove_on_signal};
use crate::stdio::{self, Stdout, say};
use std::io;
use std::path::{Path, PathBuf};
use trace_convert::ConvertError;
use trace_format::shown::Shown;
use trace_report::{ReportError, Written};

/// Ending of the page's name if it is derived from the input's.
const SUFFIX: &str = "html";

/// Writes the page.
pub fn run(options: &Report) -> Result<(), Failure> {
    let input = &options.input;
    let output = match &options.output_file {
        Some(output) => output.clone(),
        None if is_stdin(input) => PathBuf::from("-"),
        None => default_output(input),
    };
    let is_stdout = is_stdin(&output);
    if is_stdout && stdio::is_stdout_terminal() {
        return Err(Failure::usage("stdout is a terminal; redirect it, or name a file with -o"));
    }
    if is_stdout && options.open {
        return Err(Failure::usage("--open: the page goes to stdout; name a file with -o"));
    }
    refuse_input(input, &output)?;
    let _removing = remove_on_signal()?;
    if is_stdout {
        return match written(input, &mut Stdout) {
            Ok(written) => report_problems(input, &written),
            // A reader that closes its end early is no failure.
            Err(Problem::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(problem) => Err(problem.into_failure(Path::new("stdout"))),
        };
    }
    let (written, path) = to_file(input, &output)?;
    say!("trace: {} in {}", Counted(written.summary.events, "events"), Shown(&path.display().to_string()));
    if options.open {
        show(&path);
    }
    report_problems(input, &written)
}

/// Writes the page of a new recording beside it, and opens it.
pub fn of_recording(archive: &Path, recording: &Path) -> Result<(), Failure> {
    let (_, path) = to_file(archive, &default_output(recording))?;
    say!("trace: report in {}", Shown(&path.display().to_string()));
    show(&path);
    Ok(())
}

/// Writes the page of a trace beside it.
pub fn instead_of_viewer(input: &Path, is_opened: bool) -> Result<(), Failure> {
    let _removing = remove_on_signal()?;
    let (written, path) = to_file(input, &default_output(input))?;
    say!("trace: report in {}", Shown(&path.display().to_string()));
    if is_opened {
        show(&path);
    }
    report_problems(input, &written)
}

/// The name of a trace's page.
pub fn default_output(input: &Path) -> PathBuf {
    convert::plain_name(input).with_extension(SUFFIX)
}

fn to_file(input: &Path, output: &Path) -> Result<(Written, PathBuf), Failure> {
    // The input first: without it, no output is created.
    if !is_stdin(input) {
        drop(open(input)?);
    }
    let mut file = OutputFile::create(output)?;
    let written = written(input, file.file()).map_err(|problem| problem.into_failure(output))?;
    Ok((written, file.finish()?))
}

/// Opens a page where there is a display; its name has been printed.
fn show(path: &Path) {
    let has_display =
        ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"].iter().any(|name| std::env::var_os(name).is_some());
    if has_display && open::that_detached(path).is_err() {
        say!("trace: no browser found; open the file in one");
    }
}

enum Problem {
    Failure(Failure),
    Write(io::Error),
}

impl Problem {
    fn into_failure(self, output: &Path) -> Failure {
        match self {
            Self::Failure(failure) => failure,
            Self::Write(error) => Failure::new(format!("cannot write {}: {error}", output.display())),
        }
    }
}

fn written(input: &Path, output: &mut dyn io::Write) -> Result<Written, Problem> {
    let opened = open(input).and_then(|file| again(file, input, "reading"));
    let (mut trace, import) = opened.map_err(Problem::Failure)?;
    trace.name =
        input.file_name().map_or_else(|| input::name(input), |name| name.to_string_lossy().into_owned());
    if is_stdin(input) {
        trace.name = input::name(input);
    }
    let written = trace_report::write(trace, || import.problems(), output).map_err(|error| match error {
        ReportError::Write(error) | ReportError::Convert(ConvertError::Write(error)) => Problem::Write(error),
        error => {
            Problem::Failure(Failure::new(format!("{}: {}", input::name(input), input::problem(&error))))
        }
    })?;
    match import.problem() {
        Some(why) if written.summary.events == 0 => {
            Err(Problem::Failure(Failure::new(format!("{}: {why}", input::name(input)))))
        }
        _ => Ok(written),
    }
}

/// Reports what is not on the page, as conversions do.
fn report_problems(input: &Path, written: &Written) -> Result<(), Failure> {
    convert::report_summary(&written.summary, "a report");
    match &written.summary.stopped {
        Some(why) => Err(input::stopped(input, why.error(), "the report is of what comes before")),
        None => Ok(()),
    }
}
