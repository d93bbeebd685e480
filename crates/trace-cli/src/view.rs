//! `trace view`: passes a trace to the Perfetto UI, which a browser loads from the network or from a local
//! copy.
//!
//! The page fetches the trace from this program, once and whole. No other page gets it: its address has a
//! token in it that cannot be guessed, and requests are answered only if they were sent to the address that
//! is listened at, so that the name of another site which resolves to this machine is of no use.

mod attendance;
mod body;
mod port;
mod server;
mod site;

use crate::args::View;
use crate::exit::Failure;
use crate::input::{as_archive, name, open, problem};
use crate::stdio::say;
use attendance::GRACE;
use site::Site;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::path::Path;
use trace_reader::{ReadError, Reader};

/// The only port that pages of ui.perfetto.dev may fetch from, according to their content security policy.
const PORT: u16 = 9001;
/// A page that is served here may use any port.
const ANY_PORT: u16 = 0;

/// Serves the trace until the page has it, or is closed, or this is interrupted.
pub fn run(options: &View) -> Result<(), Failure> {
    // Check the input before the server starts.
    check(&options.input)?;
    if let Some(ui) = options.ui.as_ref().filter(|ui| !ui.join("index.html").is_file()) {
        let text = format!("--ui: {} has no index.html: it is not a copy of the UI", ui.display());
        return Err(Failure::usage(text));
    }
    let listener = listen(if options.ui.is_some() { ANY_PORT } else { PORT })?;
    let address = listener.local_addr().map_err(|error| failed(&error))?;
    let site = Site::new(options, address).map_err(|error| failed(&error))?;
    let page = site.page();
    say!("trace: {page}");
    let seconds = GRACE.as_secs();
    match options.ui {
        Some(_) => say!("trace: this ends {seconds} s after the page was closed, or on Ctrl-C"),
        None => say!("trace: this ends {seconds} s after the page has fetched the trace, or on Ctrl-C"),
    }
    let has_display =
        ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"].iter().any(|name| std::env::var_os(name).is_some());
    if !options.no_open && has_display && open::that_detached(&page).is_err() {
        say!("trace: no browser found; open the address in one");
    }
    server::run(listener, site).map_err(|error| failed(&error))
}

/// Fails if a file is no trace.
fn check(path: &Path) -> Result<(), Failure> {
    let file = open(path)?;
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Ok(());
    }
    let archive = as_archive(file).map_err(|error| failed(&error))?;
    let first = Reader::new(archive).and_then(|mut reader| reader.next_item().map(drop));
    match first {
        Err(error @ ReadError::NoTrace { .. }) => {
            Err(Failure::new(format!("{}: {}", name(path), problem(&error))))
        }
        _ => Ok(()),
    }
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
