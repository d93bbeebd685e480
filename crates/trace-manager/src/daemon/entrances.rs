//! The two sockets of the runtime directory, named after the protocol they speak.

use super::{Error, Options};
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
        };
        let provisioner = inherited.map_or_else(|| entrances.listen(PROVISIONER), Ok)?;
        let registry = entrances.listen(REGISTRY)?;
        Ok((entrances, registry, provisioner))
    }

    /// Listens again on removed sockets: always on that for programs, and on that for clients unless it has
    /// stayed.
    pub fn open_again(&self) -> Result<(Listener, Option<Listener>), Error> {
        let provisioner = if self.is_provisioner_inherited { None } else { Some(self.listen(PROVISIONER)?) };
        Ok((self.listen(REGISTRY)?, provisioner))
    }

    /// Removes the sockets that the manager has made; not those of another manager, if another directory has
    /// been put in place of this one.
    pub fn remove(&self, runtime: &RuntimeDir) {
        let _ = runtime.remove_file(REGISTRY);
        if !self.is_provisioner_inherited {
            let _ = runtime.remove_file(PROVISIONER);
        }
    }

    fn listen(&self, name: &str) -> Result<Listener, Error> {
        let bind: fn(&Path) -> _ =
            if self.is_for_all_users { Listener::bind_for_all } else { Listener::bind };
        let path = self.directory.join(name);
        bind(&path).map_err(|error| Error::Path { path, error })
    }
}
