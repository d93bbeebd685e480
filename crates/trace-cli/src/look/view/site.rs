//! The resources of the server, and the checks of requests.

use crate::browser::access::{self, Access, empty, with_type};
use crate::browser::attendance::Attendance;
use crate::browser::body::{Content, Reading};
use crate::browser::server::Answers;
use crate::shell::percent::encoded;
use hyper::body::Bytes;
use hyper::header::{ACCESS_CONTROL_ALLOW_ORIGIN, ALLOW, CONTENT_SECURITY_POLICY, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The origin of the page that may fetch the trace.
const UI: &str = "https://ui.perfetto.dev";
/// What a page that is served here may load: nothing of another place, so that nothing of a trace gets
/// there. Perfetto's page compiles WebAssembly in workers, has styles in its elements, and the trace in
/// blobs; it adds a policy of its own, which forbids other scripts in its text. No other page may have it
/// in a frame.
//= docs/perfetto.md#access
const POLICY: &str = "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; \
    style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; \
    connect-src 'self' data: blob:; worker-src 'self' blob:; object-src 'none'; base-uri 'self'; \
    form-action 'none'; frame-ancestors 'none'";
/// The script keeps a connection open while the page is open. The script is no secret; its connection is
/// below the token, which it finds in the page's address, and which a reloaded page has kept.
const SCRIPT_PATH: &str = "/trace-view.js";
const SCRIPT: &str = r#"const named = /[?&]url=([^&]*\/)/.exec(location.hash);
if (named) sessionStorage.setItem("trace-view", named[1]);
const place = sessionStorage.getItem("trace-view");
if (place) new EventSource(place + "page");
"#;
/// The resource of that connection.
const CONNECTION: &str = "page";

/// What is shown.
#[derive(Debug)]
pub struct Trace {
    pub file: File,
    /// Its name in the address.
    pub name: String,
}

/// The resources of the server.
#[derive(Debug)]
pub struct Site {
    trace: Arc<File>,
    /// The name of the trace in addresses.
    name: String,
    ui: Option<PathBuf>,
    access: Access,
}

impl Site {
    /// A site with a new token.
    pub fn new(trace: Trace, ui: Option<PathBuf>, address: SocketAddr) -> io::Result<Self> {
        Ok(Self::with_access(trace, ui, Access::new(address)?))
    }

    fn with_access(trace: Trace, ui: Option<PathBuf>, access: Access) -> Self {
        let is_plain = |char: char| char.is_ascii_alphanumeric() || "-._~".contains(char);
        let name = encoded(&trace.name, is_plain);
        Self { trace: Arc::new(trace.file), name, ui, access }
    }

    /// The page that shows the trace.
    pub fn page(&self) -> String {
        let (place, name) = (self.access.place(), &self.name);
        let page = self.ui.as_ref().map_or_else(|| UI.to_owned(), |_| self.access.origin());
        format!("{page}/#!/?url={place}{name}")
    }
}

impl Answers for Site {
    fn answer<B>(&self, request: &Request<B>, attendance: &Arc<Attendance>) -> Response<Content> {
        if !self.access.is_for_us(request) {
            return empty(StatusCode::FORBIDDEN);
        }
        let is_read = match *request.method() {
            Method::GET | Method::HEAD => true,
            Method::OPTIONS => false,
            _ => {
                let mut refused = empty(StatusCode::METHOD_NOT_ALLOWED);
                refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS"));
                return refused;
            }
        };
        let path = request.uri().path();
        let below_token = self.access.below_token(path);
        let mut answer = match (below_token, &self.ui) {
            _ if !is_read => Some(empty(StatusCode::NO_CONTENT)),
            (Some(CONNECTION), Some(_)) => {
                attendance.note_served();
                Some(with_type(Content::Open(Bytes::from_static(b":\n\n")), "text/event-stream"))
            }
            // The name is for people: the page may encode it differently.
            (Some(_), _) => {
                let attendance = (request.method() == Method::GET).then(|| attendance.clone());
                whole(self.trace.clone(), attendance, "application/octet-stream")
            }
            (None, Some(_)) if path == SCRIPT_PATH => {
                Some(with_type(Content::Bytes(Bytes::from_static(SCRIPT.as_bytes())), "text/javascript"))
            }
            (None, Some(ui)) => below(ui, path).and_then(|path| ui_file(ui, &path)),
            (None, None) => None,
        }
        .unwrap_or_else(|| empty(StatusCode::NOT_FOUND));
        let headers = answer.headers_mut();
        access::guard(headers);
        if self.ui.is_some() {
            headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
            access::guard_origin(headers);
        }
        if self.ui.is_none() && below_token.is_some() {
            // The page has another origin than the trace.
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static(UI));
        }
        answer
    }
}

/// A file of the UI's; its first page with the script that reports whether it is open.
fn ui_file(ui: &Path, path: &Path) -> Option<Response<Content>> {
    if path != ui.join("index.html") {
        return whole(Arc::new(File::open(path).ok()?), None, content_type(path));
    }
    let mut text = std::fs::read_to_string(path).ok()?;
    let place = text.rfind("</body>").unwrap_or(text.len());
    text.insert_str(place, &format!("<script src=\"{SCRIPT_PATH}\"></script>\n"));
    Some(with_type(Content::Bytes(text.into()), content_type(path)))
}

/// All of a file.
fn whole(
    file: Arc<File>,
    attendance: Option<Arc<Attendance>>,
    kind: &'static str,
) -> Option<Response<Content>> {
    let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    Some(with_type(Content::File(Reading::new(file, metadata.len(), attendance)), kind))
}

/// A file below a directory; never one outside, wherever links lead.
fn below(directory: &Path, url: &str) -> Option<PathBuf> {
    let relative = Path::new(url.trim_start_matches('/'));
    if !relative.components().all(|component| matches!(component, Component::Normal(_))) {
        return None;
    }
    let path = directory.join(relative);
    let path = if path.is_dir() { path.join("index.html") } else { path };
    let is_below = path.canonicalize().ok()?.starts_with(directory.canonicalize().ok()?);
    (is_below && path.is_file()).then_some(path)
}

fn content_type(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript",
        Some("css") => "text/css",
        Some("wasm") => "application/wasm",
        Some("json" | "map") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("txt") => "text/plain; charset=utf-8",
        Some("woff2") => "font/woff2",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::browser::access::{OPENER_POLICY, RESOURCE_POLICY};
    use hyper::header::{HOST, HeaderName, REFERRER_POLICY};

    const ADDRESS: &str = "127.0.0.1:4321";

    fn site(directory: &Path, ui: Option<PathBuf>) -> Site {
        let input = directory.join("a b#.fxt");
        std::fs::write(&input, "trace").unwrap();
        let trace = Trace { file: File::open(input).unwrap(), name: "a b#.fxt".to_owned() };
        Site::with_access(trace, ui, Access::with_token(ADDRESS.parse().unwrap(), "secret".to_owned()))
    }

    /// Status, and whether the page of ui.perfetto.dev may read the answer.
    fn ask(site: &Site, method: &str, uri: &str, hosts: &[&str]) -> (u16, bool) {
        let mut request = Request::builder().method(method).uri(uri);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        let answer = site.answer(&request.body(()).unwrap(), &Arc::new(Attendance::new()));
        let origin = answer.headers().get(ACCESS_CONTROL_ALLOW_ORIGIN);
        assert!(origin.is_none_or(|origin| origin == UI));
        (answer.status().as_u16(), origin.is_some())
    }

    #[test]
    fn the_trace_is_for_those_who_know_the_token_and_ask_here() {
        let directory = tempfile::tempdir().unwrap();
        let site = site(directory.path(), None);
        assert_eq!(site.page(), "https://ui.perfetto.dev/#!/?url=http://127.0.0.1:4321/secret/a%20b%23.fxt");
        for uri in ["/secret/a%20b%23.fxt", "/secret/a", "/secret/?x", "http://127.0.0.1:4321/secret/a"] {
            assert_eq!(ask(&site, "GET", uri, &[ADDRESS]), (200, true), "{uri}");
            assert_eq!(ask(&site, "HEAD", uri, &[ADDRESS]), (200, true), "{uri}");
            assert_eq!(ask(&site, "OPTIONS", uri, &[ADDRESS]), (204, true), "{uri}");
        }
        for uri in
            ["/", "/a%20b%23.fxt", "/secret", "/secrets/a", "/other/secret/a", "//secret/a", SCRIPT_PATH]
        {
            assert_eq!(ask(&site, "GET", uri, &[ADDRESS]), (404, false), "{uri}");
        }
        let wrong: [&[&str]; 6] = [
            &[],
            &["localhost:4321"],
            &["127.0.0.1"],
            &["127.0.0.1:80"],
            &["evil.example:4321"],
            &[ADDRESS, "evil.example"],
        ];
        for hosts in wrong {
            assert_eq!(ask(&site, "GET", "/secret/a", hosts), (403, false), "{hosts:?}");
        }
        assert_eq!(ask(&site, "GET", "http://evil.example/secret/a", &[ADDRESS]), (403, false));
        assert_eq!(ask(&site, "POST", "/", &[ADDRESS]), (405, false));
    }

    #[test]
    fn only_what_is_below_the_copy_is_served() {
        let directory = tempfile::tempdir().unwrap();
        let ui = directory.path().join("ui");
        std::fs::create_dir_all(ui.join("v1")).unwrap();
        for (name, text) in [("ui/index.html", "page"), ("ui/v1/a.js", "code"), ("secret", "no")] {
            std::fs::write(directory.path().join(name), text).unwrap();
        }
        assert_eq!(below(&ui, "/"), Some(ui.join("index.html")));
        assert_eq!(below(&ui, "/v1/a.js"), Some(ui.join("v1/a.js")));
        std::os::unix::fs::symlink("v1/a.js", ui.join("inside.js")).unwrap();
        assert_eq!(below(&ui, "/inside.js"), Some(ui.join("inside.js")));
        std::os::unix::fs::symlink("../secret", ui.join("outside")).unwrap();
        std::os::unix::fs::symlink("..", ui.join("above")).unwrap();
        let leading_out = ["/outside", "/above/secret"];
        for url in
            ["/../secret", "/v1/../../secret", "//etc/passwd", "/missing", "/v1"].iter().chain(&leading_out)
        {
            assert_eq!(below(&ui, url), None, "{url}");
        }
        let site = site(directory.path(), Some(ui));
        assert_eq!(site.page(), "http://127.0.0.1:4321/#!/?url=http://127.0.0.1:4321/secret/a%20b%23.fxt");
        for uri in ["/", "/v1/a.js", SCRIPT_PATH, "/secret/page", "/secret/a"] {
            assert_eq!(ask(&site, "GET", uri, &[ADDRESS]), (200, false), "{uri}");
        }
        assert_eq!(ask(&site, "GET", "/page", &[ADDRESS]), (404, false));
        // A page of another origin has no hold of any answer.
        for uri in ["/", "/v1/a.js", "/secret/a", "/missing"] {
            let request = Request::builder().uri(uri).header(HOST, ADDRESS).body(()).unwrap();
            let answer = site.answer(&request, &Arc::new(Attendance::new()));
            let header = |name: HeaderName| answer.headers().get(name).unwrap().to_str().unwrap().to_owned();
            assert_eq!(header(RESOURCE_POLICY), "same-origin", "{uri}");
            assert_eq!(header(OPENER_POLICY), "same-origin", "{uri}");
            assert_eq!(header(REFERRER_POLICY), "no-referrer", "{uri}");
            let policy = header(CONTENT_SECURITY_POLICY);
            assert!(policy.ends_with("frame-ancestors 'none'") && !policy.contains("http"), "{policy}");
        }
    }
}
