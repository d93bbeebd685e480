//! Remembers what compilers of C and C++ have made of the same text before: that takes most of the time of
//! tests that compile.
//!
//! What is remembered depends on the compiler and its version, the flags, the text, all headers and all
//! sources of tests; it is forgotten when one of the last two changes.

use crate::build::{target_dir, workspace};
use crate::native::{compiler, include_dir};
use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output};
use std::sync::{Mutex, OnceLock};

/// Compiles a source file, and nothing more is done with it; an output is made only where there is a path for
/// it. Only what went well is remembered.
///
/// # Panics
/// If the compiler does not run, or files cannot be read or written.
pub fn compile(name: &str, flags: &[&str], source: &Path, object: Option<&Path>) -> Output {
    let known = directory().join(format!("{:016x}", key(name, flags, source, object.is_some())));
    if known.exists() {
        if let Some(object) = object {
            fs::copy(&known, object).expect("an object file");
        }
        return Output { status: ExitStatus::from_raw(0), stdout: Vec::new(), stderr: Vec::new() };
    }
    let new = known.with_extension(format!("{}-{:?}", std::process::id(), std::thread::current().id()));
    let mut arguments = flags.to_vec();
    arguments.push(source.to_str().expect("a path in UTF-8"));
    match object {
        Some(_) => arguments.extend(["-c", "-o", new.to_str().expect("a path in UTF-8")]),
        None => arguments.push("-fsyntax-only"),
    }
    let output = compiler(name, &arguments);
    if output.status.success() {
        match object {
            Some(object) => drop(fs::copy(&new, object).expect("an object file")),
            None => fs::write(&new, "").expect("a file"),
        }
        fs::rename(&new, &known).expect("a file");
    }
    output
}

fn key(name: &str, flags: &[&str], source: &Path, has_object: bool) -> u64 {
    let mut hasher = DefaultHasher::new();
    (name, version(name), flags, has_object).hash(&mut hasher);
    // The ending says which language it is.
    (source.extension(), fs::read(source).expect("a source file")).hash(&mut hasher);
    hasher.finish()
}

fn version(name: &str) -> String {
    static VERSIONS: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());
    let mut versions = VERSIONS.lock().expect("no panic");
    let ask = || {
        let output = Command::new(name).arg("--version").output().expect("a compiler");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    versions.entry(name.to_owned()).or_insert_with(ask).clone()
}

/// Where things are remembered that all headers and sources of now were looked at for.
fn directory() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let mut hasher = DefaultHasher::new();
        for directory in [include_dir(), workspace().join("tests/native")] {
            hash_files(&directory, &mut hasher);
        }
        let all = target_dir().join("compiled");
        let directory = all.join(format!("{:016x}", hasher.finish()));
        fs::create_dir_all(&directory).expect("a directory");
        for other in fs::read_dir(&all).expect("a directory").flatten().map(|entry| entry.path()) {
            if other != directory {
                let _ = fs::remove_dir_all(other);
            }
        }
        directory
    })
}

fn hash_files(directory: &Path, hasher: &mut DefaultHasher) {
    let entries = fs::read_dir(directory).expect("a directory").flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        path.hash(hasher);
        if path.is_dir() {
            hash_files(&path, hasher);
        } else {
            fs::read(&path).expect("a file").hash(hasher);
        }
    }
}
