//! The output of `--version`.

use std::sync::OnceLock;

/// Version of the tool, with its commit between releases, and the revisions of the protocols and formats
/// that it supports.
pub fn text() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        format!(
            "{}{}\nprotocol {}\nbuffer header {}\nformat FXT {}",
            env!("CARGO_PKG_VERSION"),
            env!("TRACE_COMMIT"),
            trace_protocol::PROTOCOL_VERSION,
            trace_reader::BUFFER_VERSION,
            trace_reader::FORMAT_REVISION,
        )
    })
}
