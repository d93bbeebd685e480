//! Slices of one thread as a stack whose begins and ends are balanced.

use super::{Entry, OPEN};
use std::io;

/// A begin or an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub at: u64,
    pub what: u32,
    pub is_end: bool,
}

/// The slices of a thread that are open.
#[derive(Default)]
pub(crate) struct Steps {
    /// When they end, and their names.
    stack: Vec<(u64, u32)>,
    has_begun: bool,
}

impl Steps {
    /// Whether no slice was added.
    pub fn is_new(&self) -> bool {
        !self.has_begun
    }

    /// Adds a slice, in order, and passes on the steps up to its begin. False if it overlaps the slice around
    /// it, which a stack cannot have: it was not added.
    pub fn push(
        &mut self,
        slice: &Entry<'_>,
        mut take: impl FnMut(Step) -> io::Result<()>,
    ) -> io::Result<bool> {
        while let Some((at, what)) = self.stack.pop_if(|(end, _)| *end <= slice.at) {
            take(Step { at, what, is_end: true })?;
        }
        if self.stack.last().is_some_and(|(end, _)| *end < slice.end()) {
            return Ok(false);
        }
        self.stack.push((slice.end(), slice.what));
        self.has_begun = true;
        take(Step { at: slice.at, what: slice.what, is_end: false })?;
        Ok(true)
    }

    /// Passes on the remaining ends; what has not ended does so at `last`.
    pub fn finish(&mut self, last: u64, mut take: impl FnMut(Step) -> io::Result<()>) -> io::Result<()> {
        while let Some((end, what)) = self.stack.pop() {
            take(Step { at: if end == OPEN { last } else { end }, what, is_end: true })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::Kind;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn slice(at: u64, length: u64, what: u32) -> Entry<'static> {
        Entry { thread: 0, kind: Kind::Slice, at, length, what, more: b"" }
    }

    fn steps(slices: &[(u64, u64)]) -> (Vec<Step>, Vec<u32>) {
        let (mut steps, mut found, mut refused) = (Steps::default(), Vec::new(), Vec::new());
        let mut take = |step| {
            found.push(step);
            Ok(())
        };
        for (what, (at, length)) in (0..).zip(slices) {
            let is_in = steps.push(&slice(*at, *length, what), &mut take);
            if !is_in.unwrap() {
                refused.push(what);
            }
        }
        steps.finish(100, take).unwrap();
        (found, refused)
    }

    #[test]
    fn begins_and_ends_are_balanced_and_what_overlaps_is_refused() {
        let (found, refused) = steps(&[(0, 10), (2, 3), (4, 2), (10, 0), (10, OPEN), (12, OPEN)]);
        let text: Vec<String> = found
            .iter()
            .map(|step| format!("{}{} {}", if step.is_end { "-" } else { "+" }, step.what, step.at))
            .collect();
        let expected =
            ["+0 0", "+1 2", "-1 5", "-0 10", "+3 10", "-3 10", "+4 10", "+5 12", "-5 100", "-4 100"];
        assert_eq!(text, expected);
        assert_eq!(refused, [2]);
    }

    proptest! {
        /// A stack of any slices in order is balanced, and its times never go back.
        #[test]
        fn any_steps_are_balanced_and_in_order(slices in vec((0_u64..50, prop_oneof![0_u64..20, Just(OPEN)]), 0..40)) {
            let mut slices = slices;
            slices.sort_by_key(|(at, length)| (*at, std::cmp::Reverse(*length)));
            let (found, refused) = steps(&slices);
            prop_assert_eq!(found.len(), 2 * (slices.len() - refused.len()));
            let (mut open, mut at) = (Vec::new(), 0);
            for step in found {
                prop_assert!(step.at >= at);
                at = step.at;
                if step.is_end {
                    prop_assert_eq!(open.pop(), Some(step.what));
                } else {
                    open.push(step.what);
                }
            }
        }
    }
}
