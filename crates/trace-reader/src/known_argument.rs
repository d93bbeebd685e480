//! Arguments by which readers know what an event is.

use trace_format::operation::{FIRST_POLL, PARENT_OPERATION, POLL_OF};
use trace_format::scopes::END_ARGUMENT;

/// An argument that says what an event is. Few events have one, and all are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownArgument {
    /// The operation that a duration works on.
    PollOf,
    /// A later record says that the duration which began there was a poll.
    FirstPoll,
    /// The operation in which one began.
    ParentOperation,
    /// Why a begin has no end.
    End,
}

impl KnownArgument {
    pub(crate) const ALL: [Self; 4] = [Self::PollOf, Self::FirstPoll, Self::ParentOperation, Self::End];

    /// The name that the argument has in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PollOf => POLL_OF,
            Self::FirstPoll => FIRST_POLL,
            Self::ParentOperation => PARENT_OPERATION,
            Self::End => END_ARGUMENT,
        }
    }
}
