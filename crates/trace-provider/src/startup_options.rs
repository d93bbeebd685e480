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
    /// Whether events have the processor time of their thread as an argument.
    pub thread_time: bool,
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
            thread_time: false,
        }
    }

    /// What is wrong with the categories, behind "has".
    #[cfg(not(any(feature = "off", elsewhere, not(target_os = "linux"))))]
    pub(crate) fn problem(&self) -> Option<String> {
        self.categories.iter().find_map(|entry| {
            let wanted = entry.strip_prefix('-').unwrap_or(entry);
            let name = wanted.strip_suffix('*').unwrap_or(wanted);
            let why = if wanted.contains('#') {
                "groups are known to trace record alone"
            } else if wanted.contains('/') && !wanted.starts_with("kernel:") {
                "single programs are named to trace record alone"
            } else if wanted.is_empty()
                || name.contains(|letter: char| letter == '*' || letter == '"' || letter.is_whitespace())
            {
                "no blanks or quotes, and * only at the end"
            } else {
                return None;
            };
            Some(format!("{entry:?}: {why}"))
        })
    }
}
