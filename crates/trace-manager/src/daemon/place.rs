//! The directory in which the manager is found. It is made anew if it is deleted, as when its user logs out.
//= docs/protocol.md#where-processes-meet

use super::entrances::Entrances;
use super::log::log;
use super::signposts::Signposts;
use super::{Daemon, Error, LOCK, Options};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use trace_protocol::names::{PROVISIONER, REGISTRY};
use zx_sim::ticks::Clock;
use zx_sim::{Listener, Lock, RuntimeDir};

/// How often the manager looks whether it can still be found. It does not watch: the kernel takes its time to
/// close an inotify instance, in which a manager that was killed would keep its sockets.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The directory, its lock and sockets, and what leads there.
pub(super) struct Place {
    runtime_dir: PathBuf,
    /// Where buffers go, if that is another directory.
    buffers_dir: Option<PathBuf>,
    open: fn(&Path) -> zx_sim::Result<RuntimeDir>,
    runtime: RuntimeDir,
    lock: Lock,
    entrances: Entrances,
    signposts: Signposts,
    pub clock: Clock,
    next_look: Instant,
    has_failed: bool,
    /// Another manager has the directory.
    is_taken: bool,
}

/// Names the path with which something has failed.
fn of(path: &Path) -> impl FnOnce(zx_sim::Error) -> Error {
    let path = path.to_owned();
    move |error| Error::Path { path, error }
}

fn take(runtime: &RuntimeDir) -> Result<Lock, Error> {
    let lock = runtime.lock(LOCK).map_err(of(&runtime.path().join(LOCK)))?;
    lock.ok_or_else(|| Error::AlreadyRunning {
        pid: runtime.lock_holder(LOCK),
        directory: runtime.path().to_owned(),
    })
}

impl Place {
    /// Takes the directory that the options name, as the only manager there, and listens for programs and for
    /// clients.
    pub fn take(options: &Options) -> Result<(Self, Listener, Listener), Error> {
        let open: fn(&Path) -> zx_sim::Result<RuntimeDir> = match options.is_for_all_users {
            true => RuntimeDir::open_or_create_for_all,
            false => RuntimeDir::open_or_create,
        };
        let runtime = open(&options.runtime_dir).map_err(of(&options.runtime_dir))?;
        let lock = take(&runtime)?;
        let mut signposts = Signposts::new(&options.runtime_dir);
        let others: Vec<PathBuf> = options.buffers_dir.iter().cloned().chain(signposts.places()).collect();
        let clock = Clock::agreed(&options.runtime_dir, &others).map_err(of(&options.runtime_dir))?;
        let (entrances, registry, provisioner) = Entrances::open(options)?;
        signposts.look(clock);
        let place = Self {
            runtime_dir: options.runtime_dir.clone(),
            buffers_dir: options.buffers_dir.clone(),
            open,
            runtime,
            lock,
            entrances,
            signposts,
            clock,
            next_look: Instant::now() + LOOK_INTERVAL,
            has_failed: false,
            is_taken: false,
        };
        Ok((place, registry, provisioner))
    }

    /// Listens again; not for clients if that socket has stayed.
    pub fn listen_again(&self) -> Result<(Listener, Option<Listener>), Error> {
        self.entrances.open_again()
    }

    /// The socket for clients is another process's, and stays.
    pub fn is_provisioner_inherited(&self) -> bool {
        self.entrances.is_provisioner_inherited()
    }

    /// Removes the sockets.
    pub fn leave(&self) {
        self.entrances.remove(&self.runtime);
    }

    /// Where directories of sessions are made.
    pub fn buffers(&self) -> Result<RuntimeDir, Error> {
        match &self.buffers_dir {
            Some(directory) => RuntimeDir::open_or_create(directory).map_err(of(directory)),
            None => self.runtime.duplicate().map_err(of(&self.runtime_dir)),
        }
    }

    /// The directories in which recordings are announced, the manager's own first.
    pub fn announced(&self) -> Result<Vec<RuntimeDir>, Error> {
        let all = [&self.runtime].into_iter().chain(self.signposts.directories());
        all.map(|directory| directory.duplicate().map_err(of(directory.path()))).collect()
    }

    pub fn next_look(&self) -> Instant {
        self.next_look
    }

    /// Another manager has the directory: programs are to find that.
    pub fn is_taken(&self) -> bool {
        self.is_taken
    }

    fn is_found(&self) -> bool {
        let is_there = |name: &str| self.runtime_dir.join(name).symlink_metadata().is_ok();
        // One that another process has made, and holds, cannot be made again.
        let has_provisioner = self.entrances.is_provisioner_inherited() || is_there(PROVISIONER);
        !self.runtime.is_displaced() && is_there(REGISTRY) && has_provisioner
    }

    /// Takes the directory again.
    fn retake(&mut self) -> Result<(), Error> {
        let runtime = (self.open)(&self.runtime_dir).map_err(of(&self.runtime_dir))?;
        let is_locked = !self.runtime.is_displaced() && self.runtime_dir.join(LOCK).exists();
        if !is_locked {
            self.lock = take(&runtime)?;
        }
        self.runtime = runtime;
        self.clock.impose(&self.runtime_dir).map_err(of(&self.runtime_dir))
    }
}

impl Daemon {
    /// Has it found where processes look now, once a second.
    pub(super) fn look_around(&mut self, now: Instant) {
        if now < self.place.next_look {
            return;
        }
        self.place.next_look = now + LOOK_INTERVAL;
        let is_found = self.place.is_found();
        let settled = if is_found { Ok(()) } else { self.settle_again() };
        let has_changed = self.place.signposts.look(self.place.clock) || !is_found;
        if has_changed
            && settled.is_ok()
            && let Ok(directories) = self.place.announced()
        {
            self.announcement.move_to(directories);
        }
        match settled {
            Ok(()) => (self.place.has_failed, self.place.is_taken) = (false, false),
            Err(Error::AlreadyRunning { .. }) if !self.place.is_taken => {
                self.place.is_taken = true;
                log("another manager has its directory: it ends when its recordings do");
            }
            // It was logged a second ago.
            Err(_) if self.place.has_failed || self.place.is_taken => {}
            Err(error) => {
                self.place.has_failed = true;
                log(&format!("programs and clients do not find the manager any more: {error}"));
            }
        }
    }

    /// The directory was deleted, or the sockets in it were. Sessions go on, with the buffers that they have.
    fn settle_again(&mut self) -> Result<(), Error> {
        self.place.retake()?;
        self.providers.move_to(self.place.buffers()?);
        let (registry, provisioner) = self.place.listen_again()?;
        self.listen(registry, provisioner)
    }
}
