//! The page of a recording that is still running, and what it is fed.
//!
//! A [`Drawer`] takes the records of a recording as they come, and makes messages of them: one for each
//! update, as a line of JSON, which the modules of `ui/live/` read. Much of a message is bounded, so that a
//! page keeps up whatever is recorded: of more slices than a picture shows the longest are passed on, and the
//! others as sums of intervals, as in the page of a large trace.
//= docs/live.md#in-a-browser

mod batch;
mod drawer;
mod running;

pub use drawer::{Drawer, Loss, Message, Moment};

use crate::page::{LIVE, Page};
use std::io;

/// Bytes of a name that pages get.
const MAX_TEXT_BYTES: usize = 1000;

/// As much of a name as pages get. What is shown beside messages has to be cut in the same way, so that pages
/// find it among their names.
#[must_use]
pub fn shorten(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT_BYTES)]
}

/// The page, for a server that feeds it from the resource `events` beside it.
///
/// # Errors
/// Its modules do not fit together, which a test makes sure of.
pub fn page(title: &str) -> io::Result<Vec<u8>> {
    let mut output = Vec::new();
    let page = Page::of(&LIVE)?;
    page.begin(title, false, &mut output)?;
    page.end(&mut output)?;
    Ok(output)
}
