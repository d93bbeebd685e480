//! Names of a thread and its process.

use crate::tables::Cell;
use std::borrow::Cow;
use trace_reader::{Names, Text, Thread};

/// A thread with its names as they are known now.
pub struct Whose<'a> {
    pub thread: Thread,
    process_name: Option<Cow<'a, str>>,
    thread_name: Option<Cow<'a, str>>,
}

fn text<'a>(text: &'a Option<Cow<'_, str>>) -> Cell<'a> {
    text.as_deref().map_or(Cell::Null, Cell::Text)
}

impl<'a> Whose<'a> {
    pub fn new(thread: Thread, names: &'a Names) -> Self {
        Self {
            thread,
            process_name: names.process(thread.process).map(Text::to_str),
            thread_name: names.thread(thread).map(Text::to_str),
        }
    }

    /// Where the names are not wanted.
    pub fn unnamed(thread: Thread) -> Self {
        Self { thread, process_name: None, thread_name: None }
    }

    /// The four columns.
    pub fn cells(&self) -> [Cell<'_>; 4] {
        [
            Cell::Unsigned(self.thread.process.0),
            Cell::Unsigned(self.thread.thread.0),
            text(&self.process_name),
            text(&self.thread_name),
        ]
    }
}
