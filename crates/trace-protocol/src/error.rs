//! Why a message is refused.

use thiserror::Error;

/// A message cannot be encoded or decoded. The receiver of such a message closes the channel it came on.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The bytes end inside the message header.
    #[error("message of {found} bytes: the header alone has {expected}")]
    TooShort {
        /// Bytes of a message header.
        expected: usize,
        /// Bytes received.
        found: usize,
    },
    /// The message exceeds what may travel.
    #[error("message of {found} bytes: at most {limit} are allowed")]
    TooLong {
        /// Most bytes allowed.
        limit: usize,
        /// Bytes found or produced.
        found: usize,
    },
    /// The peer speaks a version that is not served here.
    #[error("protocol version {found}: expected {oldest} to {newest}")]
    Version {
        /// Oldest version served.
        oldest: u16,
        /// Newest version served.
        newest: u16,
        /// Version in the message.
        found: u16,
    },
    /// A version range is empty or starts at zero.
    #[error("version range {min} to {max}: expected 1 or more, ascending")]
    VersionRange {
        /// Lower end.
        min: u16,
        /// Upper end.
        max: u16,
    },
    /// No method or event of this protocol has that ordinal.
    #[error("{protocol}: no message has the ordinal {ordinal:#06x}")]
    UnknownMethod {
        /// Name of the protocol and direction.
        protocol: &'static str,
        /// Ordinal in the message.
        ordinal: u16,
    },
    /// A one-way message carries a transaction id, or a two-way message has none.
    #[error("{method}: expected {}, found transaction id {found}", if *.two_way { "a transaction id" } else { "no transaction id" })]
    Transaction {
        /// Name of the message.
        method: &'static str,
        /// Whether the message belongs to a request with an answer.
        two_way: bool,
        /// Transaction id found.
        found: u32,
    },
    /// Another number of handles came with the message than it needs.
    #[error("{method}: expected {expected} handles, found {found}")]
    HandleCount {
        /// Name of the message.
        method: &'static str,
        /// Handles the message carries.
        expected: usize,
        /// Handles that came.
        found: usize,
    },
    /// The bytes are not a table, or something follows it.
    #[error("{table}: not a table of ascending fields")]
    NotATable {
        /// Name of the table.
        table: &'static str,
    },
    /// A field without default is missing.
    #[error("{table}: field {field} is missing")]
    MissingField {
        /// Name of the table.
        table: &'static str,
        /// Name of the field.
        field: &'static str,
    },
    /// A field's bytes are not a value of its type.
    #[error("{table}: field {field} is malformed")]
    MalformedField {
        /// Name of the table.
        table: &'static str,
        /// Name of the field.
        field: &'static str,
    },
    /// A string or list exceeds its limit.
    #[error("{field}: expected at most {limit}, found {found}")]
    Limit {
        /// Name of the field, with its unit.
        field: &'static str,
        /// Most bytes or entries allowed.
        limit: usize,
        /// Bytes or entries found.
        found: usize,
    },
    /// A value outside a strict enum or a field's range.
    #[error("{field}: expected {expected}, found {found}")]
    InvalidValue {
        /// Name of the enum or field.
        field: &'static str,
        /// What is allowed.
        expected: &'static str,
        /// What was found.
        found: u64,
    },
    /// A message announced in a VMO cannot be read from it.
    #[error("message in a vmo: {reason}")]
    Unloadable {
        /// What the VMO says.
        reason: String,
    },
    /// A message announced in a VMO is not the one the VMO holds.
    #[error("message in a vmo: expected {expected} bytes and the announced header, found {found} bytes")]
    SpilledMismatch {
        /// Bytes announced.
        expected: usize,
        /// Bytes found.
        found: usize,
    },
}

/// Checks a string's bytes or a list's entries against its limit.
pub(crate) fn check_limit(field: &'static str, limit: usize, found: usize) -> Result<(), ProtocolError> {
    if found > limit {
        return Err(ProtocolError::Limit { field, limit, found });
    }
    Ok(())
}
