//! What the records of a trace mean: which slice is inside which, and how much of its time is its own.
//!
//! Everything that answers questions about a trace, or writes it in another format, has its rules from here.
//!
//! * [`Pairing`] finds the begin that an end belongs to.
//! * [`Unended`] has the begins of which the trace says that there is no end; [`Partings`] say why others
//!   have
//!   none.
//! * [`Roots`], [`Placing`] and [`Nesting`] say where slices are in each other: the first two in the order of
//!   ends or of begins without sorting, the last one for any order.
//! * [`Shape`] says how a slice was recorded; [`poll_of`] tells polls from durations of their own.
//! * [`Lanes`] gives the slices of tracks as steps, for formats whose readers know only stacks, and
//!   [`TrackRows`] the rows in which they are drawn.
//! * [`Selection`] says what of a trace is looked at.
#![forbid(unsafe_code)]

mod around;
mod interval;
mod lanes;
mod nesting;
mod odd;
mod pairing;
mod partings;
pub mod pattern;
pub mod percentile;
mod placing;
mod roots;
mod rows;
pub mod selection;
mod shape;
mod unended;

pub use interval::Interval;
pub use lanes::{Lanes, MAX_LANES, Step, Stepping, Steps};
pub use nesting::{Nested, Nesting};
pub use odd::{Odd, OddFinder, OperationKey, has_whole_slices, token};
pub use pairing::{Begin, Ended, MAX_OPEN, MAX_OPEN_OF_ID, Pairing};
pub use partings::Partings;
pub use pattern::Pattern;
pub use placing::{Place, Placing};
pub use roots::{Added, OutOfOrder, Root, Roots};
pub use rows::TrackRows;
pub use selection::{Choice, Chosen, Moment, NoWindow, Selection, Survey};
pub use shape::{Shape, parent_operation_of, poll_of};
pub use unended::Unended;

#[cfg(test)]
mod page;
#[cfg(test)]
mod testing;
