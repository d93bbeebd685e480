//! A file that appears under its name only when it is complete.

use crate::exit::Failure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tempfile::NamedTempFile;

/// Files and directories under temporary names, or not complete.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Adds a file or directory to those that a signal removes; a directory before what is in it.
pub fn is_unfinished(path: &Path) {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
}

/// Takes it from them.
pub fn is_finished(path: &Path) {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).retain(|unfinished| unfinished != path);
}

/// From here on Ctrl-C and its like end the program, as without this, and leave nothing unfinished behind.
pub fn remove_on_signal() -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::new(format!("cannot wait for signals: {error}"));
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(failed)?;
    let thread = std::thread::Builder::new().name("trace-signals".to_owned());
    let waiting = thread.spawn(move || {
        let Some(signal) = signals.forever().next() else { return };
        for path in UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).drain(..).rev() {
            // A directory that somebody has put something into stays.
            let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir(&path));
        }
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    });
    waiting.map(drop).map_err(failed)
}

/// An output under a temporary name beside its place; removed unless it is finished.
#[derive(Debug)]
pub struct OutputFile {
    file: NamedTempFile,
    path: PathBuf,
}

impl OutputFile {
    /// Makes the temporary file, so that an unusable place is found out before any work is done.
    pub fn create(path: &Path) -> Result<Self, Failure> {
        let failed =
            |why: &dyn std::fmt::Display| Failure::new(format!("cannot write {}: {why}", path.display()));
        // A link is written through; what it points at is replaced.
        let path = match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => return Err(failed(&"it is a directory")),
            Ok(metadata) if !metadata.is_file() => return Err(failed(&"it is not a regular file")),
            Ok(_) => path.canonicalize().map_err(|error| failed(&error))?,
            Err(_) => path.to_owned(),
        };
        if path.file_name().is_none() {
            return Err(failed(&"it has no file name"));
        }
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        let file = tempfile::Builder::new()
            .prefix(".trace-")
            .suffix(".partial")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(directory)
            .map_err(|error| {
                let why = error.raw_os_error().map_or_else(|| error.to_string(), describe);
                Failure::new(format!(
                    "cannot write {}: directory {}: {why}",
                    path.display(),
                    directory.display()
                ))
            })?;
        is_unfinished(file.path());
        Ok(Self { file, path })
    }

    /// The open file.
    pub fn file(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Gives the file its name, once its contents are on disk. What had the name before is replaced.
    pub fn finish(self) -> Result<PathBuf, Failure> {
        let failed = |path: &Path, error: &std::io::Error| {
            Failure::new(format!("cannot write {}: {error}", path.display()))
        };
        self.file.as_file().sync_all().map_err(|error| failed(&self.path, &error))?;
        is_finished(self.file.path());
        self.file.persist(&self.path).map_err(|error| failed(&self.path, &error.error))?;
        Ok(self.path)
    }
}

fn describe(code: i32) -> String {
    std::io::Error::from_raw_os_error(code).to_string()
}
