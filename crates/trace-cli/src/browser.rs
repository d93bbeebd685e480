//! A server for browsers on this machine: one page, or the Perfetto UI and one trace.

pub mod access;
pub mod attendance;
pub mod body;
mod forward;
pub mod hub;
mod port;
pub mod server;

use crate::args::viewing::View;
use crate::shell::caller;
use crate::shell::exit::Failure;
use crate::shell::stdio::say;
use std::io::{ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use trace_archive::output::TemporaryFile;

/// The only port that pages of ui.perfetto.dev may fetch from, according to their content security policy.
pub const PORT: u16 = 9001;

/// A page that is served here may use any port.
pub const ANY_PORT: u16 = 0;

/// How to reach the page over ssh, if this runs there.
pub fn say_forward(port: u16) {
    if let Some(command) = forward::command(port) {
        say!(
            "trace: over ssh, run this on the machine with the browser, and open the address there: {command}"
        );
    }
}

/// Opens the page by a file of this user's that leads there, which has to stay as long as it may be opened:
/// all users see the arguments of a browser, and the address lets read the trace.
//= docs/perfetto.md#access
pub fn open_browser(options: &View, page: &str) -> Option<TemporaryFile> {
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

pub fn failed(error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot serve the trace: {error}"))
}

pub fn listen(port: u16) -> Result<TcpListener, Failure> {
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
