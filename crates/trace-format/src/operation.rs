//! Names of the arguments by which records of asynchronous operations, and of the threads that work on them,
//! refer to each other. The format does not define them: a reader that does not know them shows them.
//= docs/meaning.md#polls

/// Of the begin of a poll: the id of its operation, a whole number.
pub const POLL_OF: &str = "poll-of";

/// Of the begin of an operation: true if the duration with the operation's category and name that begins in
/// its process at the same time is its first poll.
pub const FIRST_POLL: &str = "first-poll";

/// Of the begin of an operation: the id of the operation in which it began, a whole number.
pub const PARENT_OPERATION: &str = "parent-operation";
