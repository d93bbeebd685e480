//! Private recordings: of texts they have only those that call sites mark as literals.
//!
//! Such a recording publishes no site, so that every event takes the slow path, which replaces the others.
//! What decides is the configuration of the trace that the record is written into.
//= docs/recording.md#private-recordings

use trace_format::argument::{ArgumentType, ArgumentValue};
use trace_format::kernel_object;
use trace_format::refs::StringRef;

/// What stands in the place of a text.
pub const REDACTED: &str = "(redacted)";

/// Numbers of the system's processes and threads are smaller than this, on every machine (`PID_MAX_LIMIT`).
const SYSTEM_KOIDS: u64 = 1 << 22;

/// Whether an object is a process or a thread of the system: their names are in all recordings.
pub(crate) fn is_of_system(object_type: u8, koid: u64) -> bool {
    matches!(object_type, kernel_object::TYPE_PROCESS | kernel_object::TYPE_THREAD) && koid < SYSTEM_KOIDS
}

/// What stands in the place of a private value of this type.
pub(crate) fn replacement(argument_type: ArgumentType) -> ArgumentValue<'static> {
    match argument_type {
        ArgumentType::Blob => ArgumentValue::Blob(b""),
        _ => ArgumentValue::String(StringRef::inline(REDACTED)),
    }
}

/// Words of that behind header and name.
pub(crate) fn replacement_words(argument_type: ArgumentType) -> usize {
    match argument_type {
        ArgumentType::Blob => 0,
        _ => REDACTED.len().div_ceil(8),
    }
}

/// A value that comes without its site, or what stands in its place. Of texts, those are literals that have
/// an index.
pub(crate) fn redacted(value: ArgumentValue<'_>) -> ArgumentValue<'_> {
    match value {
        ArgumentValue::String(StringRef::Inline(_)) => replacement(ArgumentType::String),
        ArgumentValue::Blob(_) => replacement(ArgumentType::Blob),
        value => value,
    }
}

/// Whether a value is written as a literal text, and nothing else: `"a"`, `r#"a"#`.
#[doc(hidden)]
#[must_use]
pub const fn is_literal(value: &str) -> bool {
    let bytes = value.as_bytes();
    let is_raw = matches!(bytes, [b'r', ..]);
    let mut at = if is_raw { 1 } else { 0 };
    let mut hashes = 0;
    while is_raw && at < bytes.len() && bytes[at] == b'#' {
        hashes += 1;
        at += 1;
    }
    if at >= bytes.len() || bytes[at] != b'"' {
        return false;
    }
    at += 1;
    // The end of the text has to be that of all.
    while at < bytes.len() {
        if bytes[at] == b'\\' && !is_raw {
            at += 2;
            continue;
        }
        if bytes[at] == b'"' {
            let mut end = at + 1;
            while end < bytes.len() && end - at - 1 < hashes && bytes[end] == b'#' {
                end += 1;
            }
            if end - at - 1 == hashes {
                return end == bytes.len();
            }
        }
        at += 1;
    }
    false
}

#[cfg(all(test, not(modelled)))]
mod tests {
    use super::is_literal;

    #[test]
    fn only_a_whole_literal_is_one() {
        for literal in ["\"\"", "\"a\"", r#""a \" b""#, r##"r"a""##, r###"r#"a " b"#"###, "\"ä\""] {
            assert!(is_literal(literal), "{literal}");
        }
        for other in [
            "",
            "a",
            "NAME",
            "7",
            "\"a\".to_owned()",
            "\"a\".to_owned() + \"b\"",
            "\"a",
            r#""a\""#,
            r###"r#"a"###,
            "raw",
            "r",
            "b\"a\"",
            "concat!(\"a\")",
            "&*\"a\"",
        ] {
            assert!(!is_literal(other), "{other}");
        }
    }
}
