//! The trace that a command reads.

use crate::exit::Failure;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

/// Whether a name stands for stdin.
pub fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// An input's name, for people.
pub fn name(path: &Path) -> String {
    if is_stdin(path) { "stdin".to_owned() } else { path.display().to_string() }
}

/// Opens an input.
pub fn open(path: &Path) -> Result<File, Failure> {
    let failed = |error: io::Error| Failure::new(format!("cannot read {}: {error}", name(path)));
    if is_stdin(path) {
        return io::stdin().as_fd().try_clone_to_owned().map(File::from).map_err(failed);
    }
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_dir() {
        return Err(Failure::new(format!("cannot read {}: it is a directory", path.display())));
    }
    Ok(file)
}
