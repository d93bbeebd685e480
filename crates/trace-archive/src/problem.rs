//! The text of an error with its sources.

use std::error::Error;

/// The message of an error and of each of its sources, unless the message before quotes it: messages of other
/// packages may quote their source, ours do not.
///
/// This is the only place that goes through sources to print them, so that none is printed twice; the tidy
/// test checks both.
#[must_use]
pub fn problem(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let message = source.to_string();
        if !text.contains(&message) {
            text = format!("{text}: {message}");
        }
        next = source.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fmt, io};

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read")]
    struct Chained(#[source] io::Error);

    /// Quotes its source, as errors of other packages do.
    #[derive(Debug)]
    struct Quoted(io::Error);

    impl fmt::Display for Quoted {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "cannot read: {}", self.0)
        }
    }

    impl Error for Quoted {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn a_source_is_printed_once() {
        let source = || io::Error::other("no such file");
        assert_eq!(problem(&Chained(source())), "cannot read: no such file");
        assert_eq!(problem(&Quoted(source())), "cannot read: no such file");
        assert_eq!(problem(&io::Error::other(Chained(source()))), "cannot read: no such file");
    }
}
