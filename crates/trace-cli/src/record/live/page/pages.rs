//! The resources of the server: the page, and the stream that feeds it.

use crate::browser::access::{self, Access, empty, with_type};
use crate::browser::attendance::Attendance;
use crate::browser::body::Content;
use crate::browser::hub::{Events, Hub};
use crate::browser::server::Answers;
use hyper::body::Bytes;
use hyper::header::{ALLOW, CONTENT_SECURITY_POLICY, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use std::sync::Arc;

/// Beside the policy in the page: no other page may have it in a frame.
const POLICY: HeaderValue = HeaderValue::from_static("frame-ancestors 'none'");

/// The resources.
#[derive(Debug)]
pub struct Pages {
    access: Access,
    page: Bytes,
    hub: Arc<Hub>,
}

impl Pages {
    pub fn new(access: Access, page: Vec<u8>, hub: Arc<Hub>) -> Self {
        Self { access, page: page.into(), hub }
    }
}

impl Answers for Pages {
    //= docs/live.md#in-a-browser
    fn answer<B>(&self, request: &Request<B>, attendance: &Arc<Attendance>) -> Response<Content> {
        if !self.access.is_for_us(request) || !self.access.is_of_our_page(request) {
            return empty(StatusCode::FORBIDDEN);
        }
        if request.method() != Method::GET {
            let mut refused = empty(StatusCode::METHOD_NOT_ALLOWED);
            refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
            return refused;
        }
        let mut answer = match self.access.below_token(request.uri().path()) {
            Some("") => with_type(Content::Bytes(self.page.clone()), "text/html; charset=utf-8"),
            Some("events") => {
                attendance.note_served();
                with_type(Content::Events(Events::new(self.hub.clone())), "text/event-stream")
            }
            _ => empty(StatusCode::NOT_FOUND),
        };
        let headers = answer.headers_mut();
        access::guard(headers);
        access::guard_origin(headers);
        headers.insert(CONTENT_SECURITY_POLICY, POLICY);
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::{HOST, HeaderName, ORIGIN, REFERRER_POLICY};

    const ADDRESS: &str = "127.0.0.1:4321";

    fn ask(pages: &Pages, method: &str, uri: &str, headers: &[(HeaderName, &str)]) -> Response<Content> {
        let request = Request::builder().method(method).uri(uri);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(name, *value));
        pages.answer(&request.body(()).unwrap(), &Arc::new(Attendance::new()))
    }

    //= docs/live.md#in-a-browser
    #[test]
    fn only_the_page_below_the_token_is_answered() {
        let access = Access::with_token(ADDRESS.parse().unwrap(), "secret".to_owned());
        let pages = Pages::new(access, b"page".to_vec(), Arc::default());
        let status = |method: &str, uri: &str, headers: &[(HeaderName, &str)]| {
            ask(&pages, method, uri, headers).status().as_u16()
        };
        let host = (HOST, ADDRESS);
        for uri in ["/secret/", "/secret/events"] {
            assert_eq!(status("GET", uri, std::slice::from_ref(&host)), 200, "{uri}");
            assert_eq!(status("GET", uri, &[host.clone(), (ORIGIN, "http://127.0.0.1:4321")]), 200, "{uri}");
            for origin in ["http://evil.example", "null", "http://127.0.0.1:80"] {
                assert_eq!(status("GET", uri, &[host.clone(), (ORIGIN, origin)]), 403, "{uri} {origin}");
            }
            for wrong in ["evil.example:4321", "localhost:4321", "127.0.0.1"] {
                assert_eq!(status("GET", uri, &[(HOST, wrong)]), 403, "{uri} {wrong}");
            }
            assert_eq!(status("POST", uri, std::slice::from_ref(&host)), 405, "{uri}");
        }
        for uri in ["/", "/events", "/secret", "/secretive/", "/other/events", "/secret/events/", "/secret/x"]
        {
            assert_eq!(status("GET", uri, std::slice::from_ref(&host)), 404, "{uri}");
        }
        for uri in ["/secret/", "/secret/events", "/missing"] {
            let answer = ask(&pages, "GET", uri, std::slice::from_ref(&host));
            let header = |name: HeaderName| answer.headers().get(name).unwrap().to_str().unwrap().to_owned();
            assert_eq!(header(access::RESOURCE_POLICY), "same-origin");
            assert_eq!(header(access::OPENER_POLICY), "same-origin");
            assert_eq!(header(REFERRER_POLICY), "no-referrer");
            assert_eq!(header(CONTENT_SECURITY_POLICY), "frame-ancestors 'none'");
        }
    }
}
