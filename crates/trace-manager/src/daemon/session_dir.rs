//! The directory of a running session: its buffers, and what is needed to make an archive of them if this
//! process dies.

use super::log::log;
use crate::recovery::manifest::{Entry, SessionFacts, Writer};
use crate::recovery::{HEAD_FILE, LOCK_FILE, SESSION_PREFIX};
use std::path::{Path, PathBuf};
use zx_sim::{Error, Lock, Result, RuntimeDir};

/// Held by this process until the session is over.
#[derive(Debug)]
pub(super) struct SessionDir {
    path: PathBuf,
    /// None when it cannot be written any more.
    manifest: Option<Writer>,
    /// A buffer in it holds what is in no archive.
    pub has_left: bool,
    _lock: Option<Lock>,
}

impl SessionDir {
    /// Makes the directory of a session whose archive begins with `head`.
    pub fn create(runtime: &RuntimeDir, facts: SessionFacts, head: &[u8]) -> Result<Self> {
        let path = runtime.create_unique_dir(SESSION_PREFIX)?;
        let failed = |source| Error::io(format!("cannot write into {}", path.display()), source);
        let lock = RuntimeDir::open_or_create(&path)?.lock(LOCK_FILE)?;
        let mut manifest = Writer::open(&path).map_err(failed)?;
        manifest.append(&Entry::Session(facts)).map_err(failed)?;
        std::fs::write(path.join(HEAD_FILE), head).map_err(failed)?;
        Ok(Self { path, manifest: Some(manifest), has_left: false, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line to the manifest. Recording goes on where that is not possible.
    pub fn note(&mut self, entry: &Entry) {
        if let Some(Err(error)) = self.manifest.as_mut().map(|manifest| manifest.append(entry)) {
            let path = self.path.display();
            log(&format!("{path}: {error}; what this session leaves cannot be recovered in full"));
            self.manifest = None;
        }
    }

    /// Deletes the directory, unless something in it is in no archive.
    pub fn end(mut self) {
        if self.has_left {
            self.note(&Entry::Ended);
            log(&format!("{}: not all of it is in an archive; trace recover makes one", self.path.display()));
        } else if let Err(error) = std::fs::remove_dir_all(&self.path) {
            log(&format!("cannot delete {}: {error}", self.path.display()));
        }
    }
}
