//! Names of the arguments with which the manager describes providers, in kernel objects of channels.
//= docs/protocol.md#provider-descriptions

/// The provider's number in the archive, 32 bits without a sign.
pub const PROVIDER_ARGUMENT: &str = "provider";
/// The process that its process was forked from, a koid.
pub const PARENT_ARGUMENT: &str = "parent";
/// The arguments of its program, text.
pub const COMMAND_LINE_ARGUMENT: &str = "command_line";
/// The tick at which it registered, 64 bits without a sign.
pub const REGISTERED_ARGUMENT: &str = "registered";
/// The tick at which it ended, 64 bits without a sign.
pub const ENDED_ARGUMENT: &str = "ended";
/// How it ended, text.
pub const END_ARGUMENT: &str = "end";
/// Why its spans have no end that had not ended, text: see [`Ending`](crate::scopes::Ending).
pub const OPEN_ARGUMENT: &str = "open";
/// The tick at which it was looked at for that, 64 bits without a sign.
pub const AT_ARGUMENT: &str = "at";
