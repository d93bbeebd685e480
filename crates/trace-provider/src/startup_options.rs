//! What a program asks for that records itself.

use trace_engine::BufferMode;

/// The size of a buffer that is not asked for in another one.
const DEFAULT_MEBIBYTES: u64 = 4;

/// What to record, and into which buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The categories, as those of `trace record`: names, or beginnings followed by `*`, each with a `-` in
    /// front if it is not to be recorded. None means all.
    pub categories: Vec<String>,
    /// What happens when the buffer is full: the end of the recording, or the loss of the oldest events. A
    /// streaming buffer has no reader.
    pub mode: BufferMode,
    /// Size of the buffer in MiB, from 1 to 64.
    pub buffer_mebibytes: u64,
}

impl Options {
    /// Of a list that is separated by commas, in a buffer of 4 MiB that keeps the first events.
    #[must_use]
    pub fn of(categories: &str) -> Self {
        let categories = categories.split(',').map(str::trim).filter(|category| !category.is_empty());
        Self {
            categories: categories.map(str::to_owned).collect(),
            mode: BufferMode::Oneshot,
            buffer_mebibytes: DEFAULT_MEBIBYTES,
        }
    }
}
