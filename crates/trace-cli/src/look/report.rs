//! `trace report`: a trace as one page that works offline, or a part of it as a picture.
//= docs/report.md#the-command
//= docs/svg.md#the-command

use crate::args::viewing::Report;
use crate::convert;
use crate::files::input::{self, again, chosen, is_stdin, open, survey};
use crate::files::output::{Place, Problem, refuse_input, remove_on_signal};
use crate::files::several::each;
use crate::shell::caller;
use crate::shell::exit::Failure;
use crate::shell::stdio::{self, Stdout, say};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use trace_analysis::counted::Counted;
use trace_convert::{ConvertError, Summary};
use trace_format::shown::Shown;
use trace_model::selection::Moment;
use trace_model::{Chosen, Selection, Survey};
use trace_report::ReportError;
use trace_report::svg::{self, SvgError, Window};

/// Ending of the page's name if it is derived from the input's.
const SUFFIX: &str = "html";
/// The same of a picture.
const PICTURE: &str = "svg";

/// Of a page that may be ours, as many bytes are looked at.
const PAGE_HEAD_BYTES: u64 = 4096;

/// What is written.
#[derive(Clone, Copy)]
enum Form {
    Page,
    Picture,
}

impl Form {
    const fn name(self) -> &'static str {
        match self {
            Self::Page => "a report",
            Self::Picture => "a picture",
        }
    }
}

/// Refuses a name whose ending promises something else.
fn refuse_ending(output: &Path) -> Result<(), Failure> {
    let is_other =
        |ending: &str| ["pdf", "png", "jpg", "jpeg", "gif", "fxt", "pftrace", "json"].contains(&ending);
    match output.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase()) {
        Some(ending) if is_other(&ending) => Err(Failure::usage(format!(
            "-o {}: a report is a page or a picture: end the name in .html or .svg",
            output.display()
        ))),
        _ => Ok(()),
    }
}

fn form_of(options: &Report) -> Form {
    let ending = options.output.as_ref().and_then(|output| output.extension());
    let is_picture = ending.is_some_and(|ending| ending.eq_ignore_ascii_case(PICTURE));
    if options.svg || is_picture { Form::Picture } else { Form::Page }
}

/// Writes the pages or the pictures.
pub fn run(options: &Report) -> Result<u8, Failure> {
    if options.output.is_some() && options.inputs.len() > 1 {
        return Err(Failure::usage(
            "-o names one page, and there are several traces: without it, each has its own",
        ));
    }
    options.output.iter().try_for_each(|output| refuse_ending(output))?;
    each(&options.inputs, |input| of_trace(options, input).map(|()| 0))
}

fn of_trace(options: &Report, input: &Path) -> Result<(), Failure> {
    let (form, selection) = (form_of(options), options.selecting.selection()?);
    let output = match (&options.output, form) {
        (Some(output), _) => Place::named(output),
        (None, _) if is_stdin(input) => Place::named("-"),
        (None, Form::Page) => Place::unused(&convert::stem(input), SUFFIX)?,
        (None, Form::Picture) => Place::unused(&convert::stem(input), PICTURE)?,
    };
    let is_stdout = output.is_stdout();
    if is_stdout && stdio::is_stdout_terminal() {
        return Err(Failure::usage("stdout is a terminal; redirect it, or name a file with -o"));
    }
    if is_stdout && options.open {
        return Err(Failure::usage("--open: the page goes to stdout; name a file with -o"));
    }
    refuse_input(input, &output.path)?;
    let _removing = remove_on_signal()?;
    if is_stdout {
        return match written(input, form, &selection, &mut Stdout) {
            Ok(written) => report_problems(input, form, &written),
            // A reader that closes its end early is no failure.
            Err(Problem::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(problem) => Err(problem.into_failure(Path::new("stdout"))),
        };
    }
    let (written, path) = to_file(input, form, &selection, &output)?;
    say!("trace: {} in {}", Counted(written.events, "events"), Shown(&path.display().to_string()));
    if options.open {
        show(&path);
    }
    report_problems(input, form, &written)
}

/// Writes the page of a new recording beside it, and opens it.
pub fn of_recording(archive: &Path, recording: &Path) -> Result<(), Failure> {
    let (_, path) = to_file(archive, Form::Page, &Selection::default(), &beside(recording)?)?;
    announce(&path, true);
    Ok(())
}

/// Writes the page of a trace beside it.
pub fn instead_of_viewer(input: &Path, is_opened: bool) -> Result<(), Failure> {
    let _removing = remove_on_signal()?;
    let (written, path) = to_file(input, Form::Page, &Selection::default(), &beside(input)?)?;
    announce(&path, is_opened);
    report_problems(input, Form::Page, &written)
}

/// The place of a page beside its trace. A page of ours that is there is of an earlier trace of this name.
fn beside(trace: &Path) -> Result<Place, Failure> {
    let page = default_output(trace);
    if is_report(&page) { Ok(Place::named(page)) } else { Place::unused(&convert::stem(trace), SUFFIX) }
}

/// The page of a whole trace that was written beside it and is of what it has now.
pub fn existing(input: &Path) -> Option<PathBuf> {
    let page = default_output(input);
    let changed = |path: &Path| std::fs::metadata(path).ok()?.modified().ok();
    let is_of_now = !is_stdin(input) && changed(&page)? >= changed(input)? && is_report(&page);
    is_of_now.then_some(page)
}

/// Whether a file is such a page.
pub fn is_report(path: &Path) -> bool {
    let mut begin = Vec::new();
    let read = File::open(path).and_then(|file| file.take(PAGE_HEAD_BYTES).read_to_end(&mut begin));
    read.is_ok() && String::from_utf8_lossy(&begin).contains(trace_report::GENERATOR)
}

/// Prints the name of a page, and opens it if that is wanted.
pub fn announce(page: &Path, is_opened: bool) {
    say!("trace: report in {}", Shown(&page.display().to_string()));
    if is_opened {
        show(page);
    }
}

/// The name of a trace's page.
pub fn default_output(input: &Path) -> PathBuf {
    convert::plain_name(input).with_extension(SUFFIX)
}

fn to_file(
    input: &Path,
    form: Form,
    selection: &Selection,
    output: &Place,
) -> Result<(Summary, PathBuf), Failure> {
    // The input first: without it, no output is created.
    if !is_stdin(input) {
        drop(open(input)?);
    }
    let mut file = output.create()?;
    let written =
        written(input, form, selection, file.file()).map_err(|problem| problem.into_failure(&output.path))?;
    Ok((written, file.finish()?))
}

/// Opens a page where there is a display; its name has been printed.
fn show(path: &Path) {
    let has_display =
        ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"].iter().any(|name| std::env::var_os(name).is_some());
    // Not as root, what a user wrote.
    if has_display && caller::of_command().is_none() && open::that_detached(path).is_err() {
        say!("trace: no browser found; open the file in one");
    }
}

/// Removes times since the beginning from a selection: for a picture, they count from the begin of its axis.
fn take_from_begin(moment: &mut Option<Moment>) -> Option<svg::Moment> {
    let Some(Moment::FromBegin(nanos)) = *moment else { return None };
    *moment = None;
    Some(svg::Moment::FromBegin(nanos))
}

fn written(
    input: &Path,
    form: Form,
    selection: &Selection,
    output: &mut dyn io::Write,
) -> Result<Summary, Problem> {
    let opened = open(input).and_then(|file| again(file, input, "reading"));
    let (mut trace, import) = opened.map_err(Problem::Failure)?;
    trace.name =
        input.file_name().map_or_else(|| input::name(input), |name| name.to_string_lossy().into_owned());
    if is_stdin(input) {
        trace.name = input::name(input);
    }
    let (mut selection, mut window) = (selection.clone(), Window::default());
    if let Form::Picture = form {
        window.from = take_from_begin(&mut selection.from);
        window.to = take_from_begin(&mut selection.to);
    }
    let survey = match selection.needs_survey() {
        true => {
            let (disorder, survey) = survey(&mut trace, input).map_err(Problem::Failure)?;
            trace.disorder = Some(disorder);
            survey
        }
        false => Survey::default(),
    };
    let chosen = chosen(&selection, survey, input).map_err(Problem::Failure)?;
    let failed =
        |text: String| Problem::Failure(Failure::unreadable(format!("{}: {text}", input::name(input))));
    let of_report = |error: ReportError| match error {
        ReportError::Write(error) | ReportError::Convert(ConvertError::Write(error)) => Problem::Write(error),
        ReportError::Read(error) => Problem::Failure(input::failed(input, &error)),
        error => Problem::Failure(input::failed(input, &error)),
    };
    let result = match form {
        Form::Page => trace_report::write(trace, chosen, || import.problems(), output)
            .map(|written| written.summary)
            .map_err(of_report),
        Form::Picture => {
            let times = chosen.map(Chosen::split_times);
            if let Some((from, to, _)) = &times {
                window.from = window.from.or(Some(svg::Moment::At(*from)));
                window.to = window.to.or(to.map(svg::Moment::At));
            }
            let chosen = times.and_then(|(.., chosen)| chosen);
            svg::write(trace, window, chosen, output).map_err(|error| match error {
                SvgError::Report(error) => of_report(error),
                error @ SvgError::Outside { .. } => {
                    Problem::Failure(Failure::usage(format!("{}: {error}", input::name(input))))
                }
                error => failed(error.to_string()),
            })
        }
    };
    match (import.problem(), result) {
        (Some(why), Ok(summary)) if summary.events == 0 => Err(failed(why)),
        (_, result) => result,
    }
}

/// Reports what is not on the page, as conversions do.
fn report_problems(input: &Path, form: Form, summary: &Summary) -> Result<(), Failure> {
    convert::report_summary(summary, form.name());
    match &summary.stopped {
        Some(why) => Err(input::stopped(
            input,
            why.error(),
            &format!("{} is of what comes before", &form.name().replacen("a ", "the ", 1)),
        )),
        None => Ok(()),
    }
}
