//! The directory of a running session: its buffers, and a manifest from which an archive can be recovered if
//! this process dies.

use super::log::log;
use std::path::{Path, PathBuf};
use trace_archive::manifest::{Entry, OutputFile, SessionInfo, Writer};
use trace_archive::recovery::{HEAD_FILE, LOCK_FILE, SESSION_PREFIX, delete_expired};
use zx_sim::runtime_dir::finish_dir;
use zx_sim::{Error, Lock, Result, RuntimeDir};

/// The contents of a session's directory at its beginning.
pub(super) struct Beginning {
    pub info: SessionInfo,
    /// The file of the archive, if it goes into one.
    pub output: Option<OutputFile>,
    /// The head of the archive.
    pub head: Vec<u8>,
}

/// Held by this process until the session is over.
#[derive(Debug)]
pub(super) struct SessionDir {
    path: PathBuf,
    /// None when it cannot be written any more.
    manifest: Option<Writer>,
    /// A buffer in it holds data that is in no archive.
    pub has_left: bool,
    /// The archive knows of a program, or is about to.
    has_parts: bool,
    /// The archive becomes a file, which the manifest names.
    has_output: bool,
    _lock: Option<Lock>,
}

impl SessionDir {
    /// Makes the directory of a session.
    pub fn create(runtime: &RuntimeDir, beginning: &Beginning) -> Result<Self> {
        let path = runtime.create_unfinished_dir(SESSION_PREFIX)?;
        let made = Self::fill(path.clone(), beginning).and_then(|mut made| {
            made.path = finish_dir(&path)?;
            Ok(made)
        });
        if made.is_err() {
            let _ = std::fs::remove_dir_all(&path);
        }
        bound_leftovers(runtime.path().to_owned());
        made
    }

    fn fill(path: PathBuf, beginning: &Beginning) -> Result<Self> {
        let Beginning { info, output, head } = beginning;
        let failed = |source| Error::io(format!("cannot write into {}", path.display()), source);
        let lock = RuntimeDir::open_or_create(&path)?.lock(LOCK_FILE)?;
        let is_marked = lock.as_ref().map(Lock::mark).transpose()?.is_some();
        let mut manifest = Writer::open(&path).map_err(failed)?;
        let mut info = info.clone();
        info.is_marked = is_marked;
        manifest.append(&Entry::Session(info)).map_err(failed)?;
        let has_output = output.is_some();
        if let Some(output) = output {
            manifest.append(&Entry::Output(output.clone())).map_err(failed)?;
        }
        std::fs::write(path.join(HEAD_FILE), head).map_err(failed)?;
        let manifest = Some(manifest);
        Ok(Self { path, manifest, has_left: false, has_parts: false, has_output, _lock: lock })
    }

    pub fn is_there(&self) -> bool {
        self.path.is_dir()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line to the manifest. If that fails, the recording goes on.
    pub fn note(&mut self, entry: &Entry) {
        self.has_parts |= matches!(entry, Entry::Part { .. } | Entry::Missing(_));
        let Some(manifest) = &mut self.manifest else { return };
        if let Err(error) = manifest.append(entry).and_then(|()| manifest.shorten(&self.path)) {
            let path = self.path.display();
            log(&format!("{path}: {error}; this session could not be recovered completely"));
            self.manifest = None;
        }
    }

    /// Deletes the directory, unless a buffer in it holds data that is in no archive, or the archive may be
    /// incomplete.
    pub fn end(mut self, is_written: bool) {
        if self.has_left || (self.has_output && self.has_parts && !is_written) {
            self.note(&Entry::Ended);
            log(&format!(
                "{}: not all of it is in an archive; trace recover can write one",
                self.path.display()
            ));
        } else if let Err(error) = std::fs::remove_dir_all(&self.path) {
            log(&format!("cannot delete {}: {error}", self.path.display()));
        }
    }
}

/// Deletes expired leftovers, on a thread of its own: releasing their pages takes a while.
fn bound_leftovers(runtime: PathBuf) {
    let thread = std::thread::Builder::new().name("trace-leftovers".to_owned());
    if let Err(error) = thread.spawn(move || delete_expired(&runtime, log)) {
        log(&format!("cannot look for leftover recordings: {error}"));
    }
}
