//! The two sockets of the runtime directory, named after the protocol they speak.

use super::{Error, Options};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use trace_protocol::names::{PROVISIONER, REGISTRY};
use zx_sim::{Listener, RuntimeDir};

/// Makes the sockets and removes them.
///
/// The one for clients may belong to another process, such as a socket unit of systemd's: then it existed
/// before the manager, which a client's connection has started, and stays. Programs wait until there is a
/// registry: otherwise those that run would start the next manager whenever one has ended.
//= docs/install.md#managers-that-systemd-starts
pub(super) struct Entrances {
    directory: PathBuf,
    is_for_all_users: bool,
    is_provisioner_inherited: bool,
    /// The sockets that the manager has made.
    made: RefCell<BTreeMap<&'static str, (u64, u64)>>,
}

impl Entrances {
    /// Listens on both.
    pub fn open(options: &Options) -> Result<(Self, Listener, Listener), Error> {
        let path = options.runtime_dir.join(PROVISIONER);
        let inherited = Listener::inherited(&path).map_err(|error| Error::Path { path, error })?;
        let entrances = Self {
            directory: options.runtime_dir.clone(),
            is_for_all_users: options.is_for_all_users,
            is_provisioner_inherited: inherited.is_some(),
            made: RefCell::default(),
        };
        // In this order: what a client finds has a place for programs.
        let registry = entrances.listen(REGISTRY)?;
        let provisioner = inherited.map_or_else(|| entrances.listen(PROVISIONER), Ok)?;
        Ok((entrances, registry, provisioner))
    }

    /// Listens again on removed sockets: always on that for programs, and on that for clients unless it has
    /// stayed.
    pub fn open_again(&self) -> Result<(Listener, Option<Listener>), Error> {
        let registry = self.listen(REGISTRY)?;
        let provisioner = if self.is_provisioner_inherited { None } else { Some(self.listen(PROVISIONER)?) };
        Ok((registry, provisioner))
    }

    /// The socket for clients is another process's, and stays.
    pub fn is_provisioner_inherited(&self) -> bool {
        self.is_provisioner_inherited
    }

    /// Removes the sockets that the manager has made; not those of another manager, if another directory has
    /// been put in place of this one, or another manager's sockets in place of these.
    pub fn remove(&self, runtime: &RuntimeDir) {
        for name in [REGISTRY, PROVISIONER] {
            let made = self.made.borrow().get(name).copied();
            if made.is_some() && made == identity(&self.directory.join(name)) {
                let _ = runtime.remove_file(name);
            }
        }
    }

    fn listen(&self, name: &'static str) -> Result<Listener, Error> {
        let bind: fn(&Path) -> _ =
            if self.is_for_all_users { Listener::bind_for_all } else { Listener::bind };
        let path = self.directory.join(name);
        let listener = bind(&path).map_err(|error| Error::Path { path: path.clone(), error })?;
        if let Some(identity) = identity(&path) {
            self.made.borrow_mut().insert(name, identity);
        }
        Ok(listener)
    }
}

/// Device and inode of what is there.
fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}
