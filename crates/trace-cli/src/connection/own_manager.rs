//! A manager of a recording's own, beside one that is in use.
//!
//! Its runtime directory is one in the usual directory, named after the process that records and a number:
//! processes of two pid namespaces may have the same. Buffers are below the usual directory, so that `trace
//! recover` finds them.
//= docs/recording.md#a-manager-of-a-recordings-own

use crate::connection::{self, Connection, system};
use crate::shell::exit::{Failure, INTERRUPTED};
use crate::shell::stdio::say;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use trace_protocol::names::RUNTIME_VARIABLE;
use zx_sim::RuntimeDir;

/// What its runtime directory begins with; the number of the process follows, and another one.
const PREFIX: &str = "own-";

/// The usual directory, if a runtime directory is that of a recording's own manager.
pub fn usual_directory(runtime: &Path) -> Option<&Path> {
    process_of(runtime).and_then(|_| runtime.parent())
}

/// The process that a directory is named after.
fn process_of(directory: &Path) -> Option<u32> {
    directory.file_name()?.to_str()?.strip_prefix(PREFIX)?.split_once('-')?.0.parse().ok()
}

/// Connections with the managers of recordings' own that run, each with the process that records.
pub fn running() -> Vec<(u32, Connection)> {
    let entries = connection::directories().into_iter().filter_map(|usual| std::fs::read_dir(usual).ok());
    let directories = entries.flatten().flatten().map(|entry| entry.path());
    let connections = directories.filter_map(|directory| {
        let process = process_of(&directory)?;
        Some((process, Connection::find_in(&directory).ok()??))
    });
    connections.collect()
}

/// Executes this command again with a manager of its own. Returns only if that is not possible, or the user
/// has asked for the end meanwhile.
pub fn record_with_one(reason: &str, was_interrupted: &AtomicBool) -> Failure {
    let failed = |failure: Failure| Failure { text: format!("{reason}; {}", failure.text), ..failure };
    let directory = match make_directory() {
        Ok(directory) => directory,
        Err(failure) => return failed(failure),
    };
    say!(
        "trace: {reason}: this recording has a manager of its own, for the programs that its command starts"
    );
    // The next process would not get a signal that this one has got.
    if was_interrupted.load(Ordering::Relaxed) {
        remove(&directory);
        return Failure::with_code(INTERRUPTED, "interrupted before the recording started");
    }
    let mut arguments = std::env::args_os();
    let tool = std::env::current_exe();
    let error = tool.and_then(|tool| {
        let mut command = Command::new(tool);
        if let Some(name) = arguments.next() {
            command.arg0(name);
        }
        Err(command.args(arguments).env(RUNTIME_VARIABLE, &directory).exec())
    });
    let why = error.map_or_else(|error| error.to_string(), |never: std::convert::Infallible| match never {});
    failed(Failure::new(format!("cannot execute the trace tool again: {why}")))
}

/// Makes the runtime directory of this process, and removes those that killed managers have left.
fn make_directory() -> Result<PathBuf, Failure> {
    let directories = connection::directories();
    let Some(first) = directories.first() else {
        return Err(Failure::new("no directory is suitable as runtime directory"));
    };
    let usual = usual_directory(first).unwrap_or(first);
    let failed = |error| system(&error);
    let runtime = RuntimeDir::open_or_create(usual).map_err(failed)?;
    remove_left(usual);
    runtime.create_unique_dir(&format!("{PREFIX}{}", std::process::id())).map_err(failed)
}

fn remove_left(usual: &Path) {
    for entry in std::fs::read_dir(usual).into_iter().flatten().flatten() {
        let directory = entry.path();
        let is_left = |process: u32| {
            !Path::new("/proc").join(process.to_string()).exists() && !connection::answers(&directory)
        };
        if process_of(&directory).is_some_and(is_left) {
            remove(&directory);
        }
    }
}

/// Removes the runtime directory of such a manager, which only this user may use.
pub fn remove(directory: &Path) {
    // Another process may do so at the same time.
    let _ = std::fs::remove_dir_all(directory);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_own_managers_are_known_by_their_names() {
        let usual = |path| usual_directory(Path::new(path));
        assert_eq!(usual("/dev/shm/trace-1/own-77-4d00000"), Some(Path::new("/dev/shm/trace-1")));
        assert_eq!(
            (usual("/dev/shm/trace-1"), usual("/dev/shm/own-x-1"), usual("/own-7")),
            (None, None, None)
        );
    }
}
