//! Why a call has no result.

use super::jail::PathError;
use crate::shell::exit::Failure;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;
use trace_convert::tables::sqlite::AskError;

/// Why a call has no result. Its text is the answer, for people and models.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("no such tool")]
    NoTool,
    #[error("no such argument: {name}{}; there are {known}", .near.as_ref().map_or_else(String::new, |near| format!(", did you mean {near}?")))]
    NoArgument { name: String, near: Option<String>, known: String },
    #[error("{argument}: missing")]
    Missing { argument: String },
    #[error("{argument}: expected {expected}")]
    Expected { argument: String, expected: String },
    #[error("sql: a statement has at most {most} bytes")]
    LongStatement { most: usize },
    #[error("from_ns: the window ends before it begins: {from} > {to}")]
    Window { from: i64, to: i64 },
    #[error(
        "cursor: it belongs to another call, or the trace has changed since; repeat the call with the same arguments, or \
         begin without cursor"
    )]
    Cursor,
    #[error("the statement has {found} columns; expected at most {most}")]
    Columns { found: usize, most: usize },
    /// Of a statement, or of a trace while it was answered.
    #[error("{}", asked(.0))]
    Ask(AskError),
    #[error("{path}: {error}")]
    Path { path: String, error: PathError },
    #[error("output: {path}: {error}")]
    Output { path: String, error: PathError },
    #[error("{path}: {error}")]
    File { path: String, error: io::Error },
    /// A trace that cannot be read, or an output that cannot be written.
    #[error("{}", .0.text)]
    Failed(Failure),
    #[error("cannot record: {0}")]
    Record(io::Error),
    #[error("the recording took too long")]
    RecordingTooLong,
    #[error("the recording failed ({status}): {printed}")]
    RecordingFailed { status: ExitStatus, printed: String },
    #[error("the recording is empty: {printed}")]
    RecordingEmpty { printed: String },
    #[error("cannot start the process that reads traces: {0}")]
    Start(io::Error),
    #[error(
        "the process that reads traces ended ({why}); the call may need more than {gibibytes} GiB of memory"
    )]
    Ended { why: String, gibibytes: u64 },
    /// What the process that reads traces has answered: one of these, there.
    #[error("{0}")]
    There(String),
    #[error(
        "the call took longer than {limit:?} and was ended; ask for less, such as a shorter window, or start the server \
         with a longer --timeout"
    )]
    TooLong { limit: Duration },
    #[error("the client has closed the connection")]
    Closed,
}

impl CallError {
    pub fn expected(argument: &str, expected: impl Into<String>) -> Self {
        Self::Expected { argument: argument.to_owned(), expected: expected.into() }
    }
}

impl From<Failure> for CallError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

fn asked(error: &AskError) -> String {
    match error {
        AskError::Query(error) => crate::look::query::sql_problem(error),
        AskError::Read { trace, error } => format!("{trace}: {}", crate::files::input::problem(error)),
        error => error.to_string(),
    }
}
