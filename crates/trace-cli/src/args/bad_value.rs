//! A value that makes no sense: an option's, a file's or a request's.

/// What is wrong with it, or what was expected, in words for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadValue(String);

impl From<String> for BadValue {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for BadValue {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}
