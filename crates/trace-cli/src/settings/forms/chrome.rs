//! Chrome's `TraceConfig` as options of a recording.

use super::{Selection, Translation, entries, sizes};
use crate::args::record::Recording;
use crate::args::values::Mode;
use trace_config::chrome::{self, Chrome, not_recorded};
use trace_config::tree::Wrong;

/// What a recording has instead of the events that Chrome asks other tools for.
pub const SYSTRACE: &str = "kernel:sched";

/// Translates a text.
pub fn translate(text: &str) -> Result<Translation, Wrong> {
    let mut found = Chrome::read(text)?;
    let mut selection = Selection::default();
    selection.programs.push((None, found.rules.filter(entries::check)?));
    if found.has_kernel {
        selection.kernel.insert(SYSTRACE.to_owned());
    }
    if let Some(at) = found.to_console {
        found.notes.push(not_recorded(at, chrome::TO_CONSOLE));
    }
    let nothing = "nothing would be recorded: all categories are excluded".to_owned();
    let nothing = selection.is_nothing().then_some(nothing);
    let mode = |mode| match mode {
        chrome::Mode::UntilFull => Mode::Oneshot,
        chrome::Mode::Continuously => Mode::Circular,
        chrome::Mode::AsMuchAsPossible => Mode::Streaming,
    };
    let buffer_size = found.buffer.map(|(at, kibibytes)| sizes::buffer(at, kibibytes, &mut found.notes));
    let recording = Recording {
        categories: selection.categories(),
        buffering_mode: found.mode.map(mode),
        buffer_size,
        duration: found.startup_seconds.map(|seconds| sizes::span(seconds * 1000)),
        output: found.result_file.take().map(Into::into),
        ..memory_dumps(&found)
    };
    Ok(Translation { recording, notes: found.notes, nothing })
}

/// The options for reports of memory.
pub fn memory_dumps(found: &Chrome) -> Recording {
    Recording {
        memory_dump_interval: found.memory_dumps.map(|dumps| sizes::span(dumps.interval)),
        detailed_memory_dumps: found.memory_dumps.map(|dumps| dumps.is_detailed),
        ..Recording::default()
    }
}
