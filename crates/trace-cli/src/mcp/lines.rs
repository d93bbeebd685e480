//! Lines of an input that may be hostile: none is kept beyond a limit.

/// Longest line, without its end.
pub const MAX_BYTES: usize = 1 << 20;

/// A line.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// All of it, without its end.
    Whole(Vec<u8>),
    /// It had more than [`MAX_BYTES`], and was skipped.
    TooLong,
}

/// Splits bytes into lines.
#[derive(Debug, Default)]
pub struct Lines {
    begun: Vec<u8>,
    /// The line was too long already, and what follows up to its end is skipped.
    is_skipping: bool,
}

impl Lines {
    /// The lines that end in these bytes; one that is too long comes as soon as that is known.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (part, is_end) = match part.split_last() {
                Some((b'\n', rest)) => (rest, true),
                _ => (part, false),
            };
            if !self.is_skipping && self.begun.len() + part.len() > MAX_BYTES {
                self.begun = Vec::new();
                self.is_skipping = true;
                lines.push(Line::TooLong);
            }
            if !self.is_skipping {
                self.begun.extend_from_slice(part);
            }
            if is_end && !std::mem::take(&mut self.is_skipping) {
                lines.push(Line::Whole(std::mem::take(&mut self.begun)));
            }
        }
        lines
    }

    /// What stood behind the last end of a line.
    pub fn finish(&mut self) -> Option<Line> {
        let rest = std::mem::take(&mut self.begun);
        (!rest.is_empty()).then_some(Line::Whole(rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn whole(text: &str) -> Line {
        Line::Whole(text.as_bytes().to_vec())
    }

    //= docs/mcp.md#limits
    #[test]
    fn a_line_that_is_too_long_is_skipped_alone() {
        let mut lines = Lines::default();
        let longest = "x".repeat(MAX_BYTES);
        assert_eq!(
            lines.push(format!("a\n\n{longest}\nb").as_bytes()),
            [whole("a"), whole(""), whole(&longest)]
        );
        assert_eq!(lines.push(longest.as_bytes()), [Line::TooLong]);
        assert_eq!(lines.push(longest.as_bytes()), []);
        assert_eq!(lines.push(b"y\nc\nd"), [whole("c")]);
        assert_eq!(lines.finish(), Some(whole("d")));
        assert_eq!(lines.finish(), None);
        assert_eq!(lines.push(format!("{longest}x\ne\n").as_bytes()), [Line::TooLong, whole("e")]);
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_they_arrive(
            text in "[a-c\n]{0,60}",
            cuts in prop::collection::vec(0_usize..60, 0..6),
        ) {
            let mut lines = Lines::default();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let mut found = Vec::new();
            for cut in cuts.windows(2) {
                found.extend(lines.push(&text.as_bytes()[cut[0]..cut[1]]));
            }
            found.extend(lines.finish());
            let mut expected: Vec<Line> = text.split('\n').map(whole).collect();
            if text.is_empty() || text.ends_with('\n') {
                expected.pop();
            }
            prop_assert_eq!(found, expected);
        }
    }
}
