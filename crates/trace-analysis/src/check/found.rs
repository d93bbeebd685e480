//! What is found, and where.

use trace_format::units::{Offset, ProviderId};
use trace_reader::Thread;

/// The position of a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventPosition {
    pub offset: Offset,
    pub provider: ProviderId,
}

/// A kind of problem, and its description.
pub(super) type Found = (&'static str, String);

/// A span without begin or end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unmatched {
    pub kind: &'static str,
    /// How many have the same identity.
    pub count: u64,
    /// The first of them.
    pub place: EventPosition,
    pub what: What,
}

/// The identity of a span: what distinguishes it from others.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Thread(Thread),
    Id(u64),
}

impl Unmatched {
    pub fn text(&self) -> String {
        let Self { kind, what, .. } = self;
        match what {
            What::Thread(Thread { process, thread }) => {
                format!("a begin on thread {process}/{thread} that has no end")
            }
            What::Id(id) if kind.ends_with("begin") => format!("id {id:#x} has no end"),
            What::Id(id) => format!("id {id:#x} was not begun"),
        }
    }
}
