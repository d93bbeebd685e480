//! The slices of a thread that are in no other one yet, while those that end come one after the other.

use super::OutOfOrder;

/// Slices in the order of their times; none overlap.
#[derive(Debug)]
pub struct Roots<T> {
    pub slices: Vec<Root<T>>,
    last_end: i64,
}

/// A slice that is in no other one yet, or some behind each other, and what is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Root<T> {
    pub ts: i64,
    pub end: i64,
    pub of: T,
}

impl<T> Default for Roots<T> {
    fn default() -> Self {
        Self { slices: Vec::new(), last_end: 0 }
    }
}

impl<T> Roots<T> {
    /// Adds the slice that has ended next, which is around those that are given to a function. `beside` is
    /// empty memory, and is so again afterwards.
    #[inline]
    pub fn add(
        &mut self,
        new: Root<T>,
        beside: &mut Vec<Root<T>>,
        mut inner: impl FnMut(Root<T>),
    ) -> Result<(), OutOfOrder> {
        let Self { slices, last_end } = self;
        if new.end < *last_end {
            return Err(OutOfOrder);
        }
        *last_end = new.end;
        // Nothing is in a slice that begins where it ends.
        while let Some(root) = slices.pop_if(|root| root.ts >= new.end) {
            beside.push(root);
        }
        while let Some(root) = slices.pop_if(|root| root.ts >= new.ts) {
            inner(root);
        }
        if slices.last().is_some_and(|before| before.end > new.ts) {
            return Err(OutOfOrder);
        }
        slices.push(new);
        slices.extend(beside.drain(..).rev());
        Ok(())
    }
}
