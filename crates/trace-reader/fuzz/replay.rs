//! Replays a fuzz target over directories.

use std::fs;
use std::path::{Path, PathBuf};

fn inputs(directory: &Path) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
    paths.sort();
    let inputs: Vec<_> =
        paths.iter().filter(|path| path.is_file()).map(|path| fs::read(path).expect("a file")).collect();
    assert!(!inputs.is_empty(), "nothing in {}", directory.display());
    inputs
}

/// Feeds all files of directories to a target.
pub fn replay(directories: &[PathBuf], target: fn(&[u8])) {
    directories.iter().flat_map(|directory| inputs(directory)).for_each(|input| target(&input));
}
