//! Files that commands write, and what a signal leaves of them.

use crate::shell::exit::Failure;
use crate::shell::signals;
use crate::shell::stdio::{self, say};
use signal_hook::iterator::{Handle, Signals};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use trace_archive::output;
pub use trace_archive::output::{Folder, OutputError, OutputFile, create_new};
use trace_archive::problem;

impl From<OutputError> for Failure {
    fn from(error: OutputError) -> Self {
        Self::new(problem(&error))
    }
}

/// How many names are tried if none is given.
const MAX_DEFAULT_NAMES: u32 = 1000;

/// Where a command writes a file.
//= docs/command-line.md#names
#[derive(Clone, Debug)]
pub struct Place {
    /// The name of the file; `-` is stdout.
    pub path: PathBuf,
    /// Names in the same directory to take if another process takes this one meanwhile; none if the file
    /// replaces another one.
    pub others: Option<Vec<PathBuf>>,
}

impl Place {
    /// A file that is named: it replaces another one.
    pub fn named(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), others: None }
    }

    /// A name that the command makes, of which there is nothing: `STEM.SUFFIX`, `STEM-1.SUFFIX` and so on.
    pub fn unused(stem: &Path, suffix: &str) -> Result<Self, Failure> {
        let named = |number: u32| {
            let mut name = stem.file_name().unwrap_or_default().to_owned();
            name.push(if number == 0 { format!(".{suffix}") } else { format!("-{number}.{suffix}") });
            PathBuf::from(name)
        };
        let place = |name: PathBuf| stem.with_file_name(name);
        let mut names = (0..MAX_DEFAULT_NAMES).map(named);
        let first = names.find(|name| place(name.clone()).symlink_metadata().is_err()).ok_or_else(|| {
            let last = place(named(MAX_DEFAULT_NAMES - 1));
            Failure::new(format!("there is everything up to {} already; name it with -o", last.display()))
        })?;
        Ok(Self { path: place(first), others: Some(names.collect()) })
    }

    /// All names in the order in which they are tried.
    pub fn names(self) -> impl Iterator<Item = PathBuf> {
        std::iter::once(self.path).chain(self.others.into_iter().flatten())
    }

    /// Whether it is stdout.
    pub fn is_stdout(&self) -> bool {
        self.path == Path::new("-")
    }

    /// Makes the file.
    pub fn create(&self) -> Result<OutputFile, Failure> {
        let mut file = OutputFile::create(&self.path)?;
        if let Some(others) = &self.others {
            file.replace_nothing(others.clone());
        }
        Ok(file)
    }
}

/// Refuses an output that would replace what is read.
pub fn refuse_input(input: &Path, output: &Path) -> Result<(), Failure> {
    match (input.canonicalize(), output.canonicalize()) {
        (Ok(a), Ok(b)) if a == b => {
            let name = output.display();
            Err(Failure::usage(format!("{name} is both input and output; name another output")))
        }
        _ => Ok(()),
    }
}

/// Why an output was not made.
pub enum Problem {
    /// Something else than writing it.
    Failure(Failure),
    /// It cannot be written.
    Write(io::Error),
}

impl Problem {
    /// The error of an output with this name.
    pub fn into_failure(self, output: &Path) -> Failure {
        match self {
            Self::Failure(failure) => failure,
            Self::Write(error) => Failure::new(format!("cannot write {}: {error}", output.display())),
        }
    }
}

/// While it exists, Ctrl-C and similar signals end the program as usual, and leave nothing unfinished behind.
/// It exists until it is closed.
#[derive(Debug)]
#[must_use]
pub struct Removing {
    handle: Handle,
    waiting: JoinHandle<()>,
}

impl Removing {
    /// From here on other code handles signals, and has begun to do so already. One that has come before is
    /// handled now.
    pub fn close(self) {
        self.handle.close();
        let _ = self.waiting.join();
    }
}

/// The next signal, or one that had come when the handle was closed.
fn next(signals: &mut Signals) -> Option<i32> {
    signals.forever().next().or_else(|| signals.pending().next())
}

/// Starts removing unfinished files on signals.
pub fn remove_on_signal() -> Result<Removing, Failure> {
    remove_on_signal_saying(None)
}

/// Starts removing unfinished files on signals, and prints a message when one comes.
pub fn remove_on_signal_saying(words: Option<String>) -> Result<Removing, Failure> {
    let failed = |error: io::Error| Failure::new(format!("cannot wait for signals: {error}"));
    let mut signals = Signals::new(signals::ending()).map_err(failed)?;
    let handle = signals.handle();
    let thread = std::thread::Builder::new().name("trace-signals".to_owned());
    let waiting = thread.spawn(move || {
        let Some(signal) = next(&mut signals) else { return };
        words.iter().for_each(|words| say!("trace: {words}"));
        output::remove_all();
        // Messages wait for a thread of their own, which would end with the program.
        stdio::finish();
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    });
    waiting.map(|waiting| Removing { handle, waiting }).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use signal_hook::consts::SIGUSR1;

    #[test]
    fn a_signal_before_the_end_of_waiting_is_not_lost() {
        let mut signals = Signals::new([SIGUSR1]).unwrap();
        signal_hook::low_level::raise(SIGUSR1).unwrap();
        // The waiting thread has not had its turn meanwhile.
        signals.handle().close();
        assert_eq!(next(&mut signals), Some(SIGUSR1));
        assert_eq!(next(&mut signals), None);
    }
}
