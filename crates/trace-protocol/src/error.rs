//! Why a message is refused.

use std::fmt;

/// A message cannot be encoded or decoded. The receiver of such a message closes the channel it came on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The bytes end inside the message header.
    TooShort {
        /// Bytes of a message header.
        expected: usize,
        /// Bytes received.
        found: usize,
    },
    /// The message exceeds what may travel.
    TooLong {
        /// Most bytes allowed.
        limit: usize,
        /// Bytes found or produced.
        found: usize,
    },
    /// The peer speaks a version that is not served here.
    Version {
        /// Oldest version served.
        oldest: u16,
        /// Newest version served.
        newest: u16,
        /// Version in the message.
        found: u16,
    },
    /// A version range is empty or starts at zero.
    VersionRange {
        /// Lower end.
        min: u16,
        /// Upper end.
        max: u16,
    },
    /// No method or event of this protocol has that ordinal.
    UnknownMethod {
        /// Name of the protocol and direction.
        protocol: &'static str,
        /// Ordinal in the message.
        ordinal: u16,
    },
    /// A one-way message carries a transaction id, or a two-way message has none.
    Transaction {
        /// Name of the message.
        method: &'static str,
        /// Whether the message belongs to a request with an answer.
        two_way: bool,
        /// Transaction id found.
        found: u32,
    },
    /// Another number of handles came with the message than it needs.
    HandleCount {
        /// Name of the message.
        method: &'static str,
        /// Handles the message carries.
        expected: usize,
        /// Handles that came.
        found: usize,
    },
    /// The bytes are not a table, or something follows it.
    NotATable {
        /// Name of the table.
        table: &'static str,
    },
    /// A field without default is missing.
    MissingField {
        /// Name of the table.
        table: &'static str,
        /// Name of the field.
        field: &'static str,
    },
    /// A field's bytes are not a value of its type.
    MalformedField {
        /// Name of the table.
        table: &'static str,
        /// Name of the field.
        field: &'static str,
    },
    /// A string or list exceeds its limit.
    Limit {
        /// Name of the field, with its unit.
        field: &'static str,
        /// Most bytes or entries allowed.
        limit: usize,
        /// Bytes or entries found.
        found: usize,
    },
    /// A value outside a strict enum or a field's range.
    InvalidValue {
        /// Name of the enum or field.
        field: &'static str,
        /// What is allowed.
        expected: &'static str,
        /// What was found.
        found: u64,
    },
    /// A message announced in a VMO cannot be read from it.
    Unloadable {
        /// What the VMO says.
        reason: String,
    },
    /// A message announced in a VMO is not the one the VMO holds.
    SpilledMismatch {
        /// Bytes announced.
        expected: usize,
        /// Bytes found.
        found: usize,
    },
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort { expected, found } => {
                write!(f, "message of {found} bytes: the header alone has {expected}")
            }
            Self::TooLong { limit, found } => {
                write!(f, "message of {found} bytes: at most {limit} are allowed")
            }
            Self::Version { oldest, newest, found } => {
                write!(f, "protocol version {found}: expected {oldest} to {newest}")
            }
            Self::VersionRange { min, max } => {
                write!(f, "version range {min} to {max}: expected 1 or more, ascending")
            }
            Self::UnknownMethod { protocol, ordinal } => {
                write!(f, "{protocol}: no message has the ordinal {ordinal:#06x}")
            }
            Self::Transaction { method, two_way, found } => {
                let expected = if *two_way { "a transaction id" } else { "no transaction id" };
                write!(f, "{method}: expected {expected}, found transaction id {found}")
            }
            Self::HandleCount { method, expected, found } => {
                write!(f, "{method}: expected {expected} handles, found {found}")
            }
            Self::NotATable { table } => write!(f, "{table}: not a table of ascending fields"),
            Self::MissingField { table, field } => write!(f, "{table}: field {field} is missing"),
            Self::MalformedField { table, field } => write!(f, "{table}: field {field} is malformed"),
            Self::Limit { field, limit, found } => {
                write!(f, "{field}: expected at most {limit}, found {found}")
            }
            Self::InvalidValue { field, expected, found } => {
                write!(f, "{field}: expected {expected}, found {found}")
            }
            Self::Unloadable { reason } => write!(f, "message in a vmo: {reason}"),
            Self::SpilledMismatch { expected, found } => write!(
                f,
                "message in a vmo: expected {expected} bytes and the announced header, found {found} bytes"
            ),
        }
    }
}

impl std::error::Error for ProtocolError {}

/// Checks a string's bytes or a list's entries against its limit.
pub(crate) fn check_limit(field: &'static str, limit: usize, found: usize) -> Result<(), ProtocolError> {
    if found > limit {
        return Err(ProtocolError::Limit { field, limit, found });
    }
    Ok(())
}
