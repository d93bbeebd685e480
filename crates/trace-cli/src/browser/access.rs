//! Which requests are answered: those to the address that is listened at, below a token that cannot be
//! guessed.

use super::body::Content;
use hyper::body::Bytes;
use hyper::header::{
    CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Request, Response, StatusCode};
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;

/// Browsers let no page of another origin have such an answer, in whatever element.
pub const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
/// A page that opens a window with such a page has no hold of it, and does not see where it goes.
pub const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const SAME_ORIGIN: HeaderValue = HeaderValue::from_static("same-origin");
/// Bytes of randomness in the token.
const TOKEN_BYTES: usize = 16;

/// The address and the token of a server.
#[derive(Debug)]
pub struct Access {
    /// The address that it listens at, as required in the header `Host`.
    authority: String,
    token: String,
}

impl Access {
    /// With a new token.
    pub fn new(address: SocketAddr) -> io::Result<Self> {
        let mut random = [0; TOKEN_BYTES];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let token = random.iter().fold(String::new(), |mut token, byte| {
            let _ = write!(token, "{byte:02x}");
            token
        });
        Ok(Self::with_token(address, token))
    }

    /// With a token.
    pub fn with_token(address: SocketAddr, token: String) -> Self {
        Self { authority: address.to_string(), token }
    }

    /// The origin of pages that are served here.
    pub fn origin(&self) -> String {
        format!("http://{}", self.authority)
    }

    /// The address below which requests are answered, with a slash at its end.
    pub fn place(&self) -> String {
        format!("http://{}/{}/", self.authority, self.token)
    }

    /// Whether a request was sent to the address that is listened at. A page of another site whose name
    /// resolves to this machine sends that name.
    pub fn is_for_us<B>(&self, request: &Request<B>) -> bool {
        let mut hosts = request.headers().get_all(HOST).iter();
        let (host, more) = (hosts.next(), hosts.next());
        let authority = request.uri().authority();
        host.is_some_and(|host| host == self.authority.as_str())
            && more.is_none()
            && authority.is_none_or(|authority| authority == self.authority.as_str())
    }

    /// Whether no page of another origin has sent a request, as far as the browser names it.
    pub fn is_of_our_page<B>(&self, request: &Request<B>) -> bool {
        let origin = self.origin();
        request.headers().get_all(ORIGIN).iter().all(|sender| sender == origin.as_str())
    }

    /// The rest of a path below the token.
    pub fn below_token<'a>(&self, path: &'a str) -> Option<&'a str> {
        path.strip_prefix('/').and_then(|path| path.strip_prefix(&self.token)?.strip_prefix('/'))
    }
}

/// Nothing is kept, guessed or passed on.
pub fn guard(headers: &mut HeaderMap) {
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
}

/// Pages of other origins get nothing.
pub fn guard_origin(headers: &mut HeaderMap) {
    headers.insert(RESOURCE_POLICY, SAME_ORIGIN);
    headers.insert(OPENER_POLICY, SAME_ORIGIN);
}

/// An answer of a type.
pub fn with_type(content: Content, kind: &'static str) -> Response<Content> {
    let mut response = Response::new(content);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// An answer without a body.
pub fn empty(status: StatusCode) -> Response<Content> {
    let mut response = Response::new(Content::Bytes(Bytes::new()));
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ() {
        let token = || Access::new(SocketAddr::from(([127, 0, 0, 1], 80))).unwrap().token;
        let (one, other) = (token(), token());
        assert!(one != other && one.len() == 2 * TOKEN_BYTES, "{one} {other}");
    }
}
