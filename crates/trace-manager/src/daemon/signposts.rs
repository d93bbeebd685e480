//! Where programs and clients of earlier releases look: directories of login sessions, in which links lead to
//! the manager's sockets. The manager holds the lock there, too, so that no other one begins beside it.
//= docs/protocol.md#where-processes-meet

use super::LOCK;
use super::log::log;
use rustix::fs::Mode;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use trace_protocol::names::{PROVISIONER, REGISTRY, RUNTIME_NAME};
use zx_sim::ticks::Clock;
use zx_sim::{Lock, RuntimeDir};

/// The kernel's list of sockets in files.
const SOCKETS: &str = "/proc/net/unix";
/// The flags in it of a socket that accepts connections.
const LISTENING: &str = " 00010000 ";

/// The links, as long as it lives.
#[derive(Debug)]
pub(super) struct Signposts {
    /// To what they lead.
    target: PathBuf,
    /// The manager's directory is the usual one.
    is_usual: bool,
    made: Vec<(RuntimeDir, Lock)>,
    /// Places of which the log says why there are none.
    logged: BTreeSet<PathBuf>,
}

impl Signposts {
    /// For the manager of a directory: none if that is not the usual one.
    pub fn new(target: &Path) -> Self {
        let is_usual = target == RuntimeDir::usual(RUNTIME_NAME);
        Self { target: target.to_owned(), is_usual, made: Vec::new(), logged: BTreeSet::new() }
    }

    /// The places, whether there are links in them or not: directories of sessions, and what was the usual
    /// one while another user had this one's name.
    pub fn places(&self) -> Vec<PathBuf> {
        let mut places = if self.is_usual { RuntimeDir::candidates("", RUNTIME_NAME) } else { Vec::new() };
        // That of root's manager comes last.
        places.pop();
        places.retain(|place| *place != self.target);
        places
    }

    /// The directories with links.
    pub fn directories(&self) -> impl Iterator<Item = &RuntimeDir> {
        self.made.iter().map(|(directory, _)| directory)
    }

    /// Makes links where a directory of a session has appeared. Whether something has changed.
    pub fn look(&mut self, clock: Clock) -> bool {
        let before = self.made.len();
        let target = &self.target;
        // Systemd may have begun to listen there: then the place is its manager's.
        let is_intact = |directory: &RuntimeDir| {
            let leads = |name: &&str| leads_to(directory, name, target);
            !directory.is_displaced() && [PROVISIONER, REGISTRY].iter().all(leads)
        };
        let (intact, others) =
            std::mem::take(&mut self.made).into_iter().partition(|(directory, _)| is_intact(directory));
        self.made = intact;
        // Not taken again at once: the other one is to have its turn.
        let left: Vec<PathBuf> =
            others.iter().map(|(directory, _): &(RuntimeDir, Lock)| directory.path().to_owned()).collect();
        self.remove(others);
        let mut has_changed = self.made.len() != before;
        for place in self.places() {
            let is_made = self.directories().any(|directory| directory.path() == place);
            if is_made || left.contains(&place) || !(is_own(&place) || place.parent().is_some_and(is_own)) {
                continue;
            }
            match self.make(&place, clock) {
                Ok(made) => {
                    self.made.push(made);
                    has_changed = true;
                }
                Err(reason) if self.logged.insert(place.clone()) => {
                    log(&format!("programs of earlier releases may look in {}: {reason}", place.display()));
                }
                Err(_) => {}
            }
        }
        has_changed
    }

    fn make(&self, place: &Path, clock: Clock) -> Result<(RuntimeDir, Lock), Obstacle> {
        let directory = RuntimeDir::open_or_create(place)?;
        let Some(lock) = directory.lock(LOCK)? else {
            return Err(Obstacle::Manager(directory.lock_holder(LOCK)));
        };
        // Systemd's socket has no manager yet.
        if is_listening(&place.join(PROVISIONER)) {
            return Err(Obstacle::Socket);
        }
        clock.impose(place)?;
        for name in [PROVISIONER, REGISTRY] {
            // What a manager that was killed has left.
            let _ = directory.remove_file(name);
            symlink(self.target.join(name), place.join(name))?;
        }
        Ok((directory, lock))
    }

    /// Removes the links, not what others have put in their places.
    fn remove(&self, made: Vec<(RuntimeDir, Lock)>) {
        for (directory, _lock) in made {
            for name in [PROVISIONER, REGISTRY] {
                if leads_to(&directory, name, &self.target) {
                    let _ = directory.remove_file(name);
                }
            }
        }
    }
}

impl Drop for Signposts {
    fn drop(&mut self) {
        let made = std::mem::take(&mut self.made);
        self.remove(made);
    }
}

/// Whether a name in a directory is a link to the manager's socket of that name.
fn leads_to(directory: &RuntimeDir, name: &str, target: &Path) -> bool {
    fs::read_link(directory.path().join(name)).is_ok_and(|found| found == target.join(name))
}

/// Why there is no signpost.
#[derive(Debug, thiserror::Error)]
enum Obstacle {
    #[error("another manager is there (pid {})", .0.map_or_else(|| "unknown".to_owned(), |pid| pid.to_string()))]
    Manager(Option<u32>),
    #[error("another process listens there")]
    Socket,
    #[error(transparent)]
    Directory(#[from] zx_sim::Error),
    #[error(transparent)]
    Link(#[from] std::io::Error),
}

/// Whether a directory is this user's, so that no other one finds anything in it.
fn is_own(directory: &Path) -> bool {
    let others = (Mode::RWXG | Mode::RWXO).bits();
    fs::symlink_metadata(directory).is_ok_and(|found| {
        found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() && found.mode() & others == 0
    })
}

/// Whether a process listens at a path: connecting would start what systemd starts by it.
fn is_listening(path: &Path) -> bool {
    let path_text = path.to_string_lossy();
    let is_it = |line: &str| {
        let before = line.strip_suffix(&*path_text);
        before.is_some_and(|before| before.ends_with(' ') && before.contains(LISTENING))
    };
    let has_link = fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    !has_link && fs::read_to_string(SOCKETS).unwrap_or_default().lines().any(is_it)
}
