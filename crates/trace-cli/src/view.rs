//! `trace view`: hands a trace to the Perfetto UI, which a browser loads from the network or from a local
//! copy.

use crate::args::View;
use crate::exit::Failure;
use crate::input::open;
use crate::stdio::say;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Component, Path, PathBuf};
use tiny_http::{Header, Method, Request, Response, Server, StatusCode};

/// The one port that the page of ui.perfetto.dev may fetch from.
const PORT: u16 = 9001;
const UI: &str = "https://ui.perfetto.dev";
/// Where the trace is.
const TRACE: &str = "/trace/";

/// Serves the trace until it is interrupted.
pub fn run(options: &View) -> Result<(), Failure> {
    // Before anything is promised.
    drop(open(&options.input)?);
    if let Some(ui) = options.ui.as_ref().filter(|ui| !ui.join("index.html").is_file()) {
        let text = format!("--ui: {} has no index.html: it is no copy of the UI", ui.display());
        return Err(Failure::usage(text));
    }
    let server = Server::http(SocketAddrV4::new(Ipv4Addr::LOCALHOST, PORT)).map_err(|error| {
        Failure::new(format!(
            "cannot listen on 127.0.0.1:{PORT}, the one port the page may fetch from: {error}; \
             end what uses it, perhaps another trace view"
        ))
    })?;
    let served = Served::new(options);
    let address = served.address();
    say!("trace: {address}\ntrace: press Ctrl-C when the page has loaded the trace");
    let has_display =
        ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"].iter().any(|name| std::env::var_os(name).is_some());
    if !options.no_open && has_display && open::that_detached(&address).is_err() {
        say!("trace: there is no browser here; open the address in one");
    }
    for request in server.incoming_requests() {
        served.answer(request);
    }
    Ok(())
}

/// What can be fetched.
struct Served {
    trace: PathBuf,
    name: String,
    ui: Option<PathBuf>,
}

impl Served {
    fn new(options: &View) -> Self {
        let name =
            options.input.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Self { trace: options.input.clone(), name: escape(&name), ui: options.ui.clone() }
    }

    /// The page that shows the trace.
    fn address(&self) -> String {
        let here = format!("http://127.0.0.1:{PORT}");
        let page = self.ui.as_ref().map_or(UI, |_| &here);
        format!("{page}/#!/?url={here}{TRACE}{}", self.name)
    }

    fn answer(&self, request: Request) {
        let url = request.url().split(['?', '#']).next().unwrap_or_default();
        let path = match (url.strip_prefix(TRACE), &self.ui) {
            (Some(name), _) if name == self.name => Some(self.trace.clone()),
            (_, Some(ui)) => below(ui, url),
            _ => None,
        };
        let sent = match (request.method(), path.and_then(|path| Some((File::open(&path).ok()?, path)))) {
            (Method::Options, _) => request.respond(with_origin(Response::empty(204))),
            // Without a body for HEAD, which the server sees to.
            (Method::Get | Method::Head, Some((file, path))) => {
                let response = with_origin(Response::from_file(file));
                request.respond(with_header(response, "Content-Type", content_type(&path)))
            }
            (Method::Get | Method::Head, None) => request.respond(with_origin(Response::empty(404))),
            _ => request.respond(with_origin(Response::empty(StatusCode(405)))),
        };
        // A browser that goes away is not our concern.
        drop(sent);
    }
}

/// A file below a directory; never one beside it.
fn below(directory: &Path, url: &str) -> Option<PathBuf> {
    let relative = Path::new(url.trim_start_matches('/'));
    if !relative.components().all(|component| matches!(component, Component::Normal(_))) {
        return None;
    }
    let path = directory.join(relative);
    let path = if path.is_dir() { path.join("index.html") } else { path };
    path.is_file().then_some(path)
}

/// A name as a part of an address.
fn escape(name: &str) -> String {
    let escaped = name.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    escaped.collect()
}

/// Lets the page read the answer, which comes from another place than the page.
fn with_origin<R: std::io::Read>(response: Response<R>) -> Response<R> {
    let response = with_header(response, "Access-Control-Allow-Origin", UI);
    with_header(response, "Cache-Control", "no-cache")
}

fn with_header<R: std::io::Read>(response: Response<R>, name: &str, value: &str) -> Response<R> {
    match Header::from_bytes(name, value) {
        Ok(header) => response.with_header(header),
        Err(()) => response,
    }
}

fn content_type(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript",
        Some("css") => "text/css",
        Some("wasm") => "application/wasm",
        Some("json") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("woff2") => "font/woff2",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_below_is_served() {
        let directory = tempfile::tempdir().unwrap();
        let ui = directory.path().join("ui");
        std::fs::create_dir_all(ui.join("v1")).unwrap();
        for (name, text) in [("ui/index.html", "page"), ("ui/v1/a.js", "code"), ("secret", "no")] {
            std::fs::write(directory.path().join(name), text).unwrap();
        }
        assert_eq!(below(&ui, "/"), Some(ui.join("index.html")));
        assert_eq!(below(&ui, "/v1/a.js"), Some(ui.join("v1/a.js")));
        for url in ["/../secret", "/v1/../../secret", "//etc/passwd", "/missing", "/v1"] {
            assert!(below(&ui, url).is_none_or(|path| path == Path::new("never")), "{url}");
        }
    }

    #[test]
    fn names_are_escaped() {
        assert_eq!(escape("a b#ü.fxt"), "a%20b%23%C3%BC.fxt");
    }
}
