//! The text of an error with its sources.

use std::error::Error;

/// What an error says, and what each of its sources says that it does not say itself: some messages quote
/// their source.
///
/// The one place that goes through sources to print them, so that none is printed twice; the tidy test holds
/// that.
pub(crate) fn problem(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let said = source.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        next = source.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[derive(Debug, thiserror::Error)]
    enum Sample {
        #[error("cannot read")]
        Chained(#[source] io::Error),
        #[error("cannot read: {0}")]
        Quoted(#[source] io::Error),
    }

    #[test]
    fn a_source_is_printed_once() {
        let source = || io::Error::other("no such file");
        assert_eq!(problem(&Sample::Chained(source())), "cannot read: no such file");
        assert_eq!(problem(&Sample::Quoted(source())), "cannot read: no such file");
        assert_eq!(problem(&io::Error::other(Sample::Chained(source()))), "cannot read: no such file");
    }
}
