//! What the records of a trace mean: which slice is inside which, and how much of its time is its own.
//!
//! Everything that answers questions about a trace, or writes it in another format, has its rules from here.
//!
//! * [`Roots`] and [`Nesting`] say where slices are in each other: the one in the order of ends without
//!   sorting, the other for any order.
//! * [`Lanes`] gives the slices of tracks as steps, for formats whose readers know only stacks.
#![forbid(unsafe_code)]

mod around;
mod interval;
mod lanes;
mod nesting;
mod odd;
mod roots;

pub use interval::Interval;
pub use lanes::{Lanes, MAX_LANES, Step};
pub use nesting::{Nested, Nesting};
pub use odd::{Odd, OddFinder, OperationKey, token};
pub use roots::{Added, OutOfOrder, Root, Roots};

#[cfg(test)]
mod page;
#[cfg(test)]
mod testing;
