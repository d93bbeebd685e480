//! The kernel's tracing files: their location, this user's access, and their contents.
//= docs/kernel.md#access

use crate::format::Format;
use crate::page::PageLayout;
use rustix::fs::{Access, FlockOperation, access, flock};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Mount points of tracefs, the usual one first.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// Prefix of the names of this provider's instances and of its probes' groups; the pid follows.
const PREFIX: &str = "ktrace_provider_";

/// What is missing, as a sentence; with a command if one helps.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no tracefs.
    #[error("{}: {}", NOT_MOUNTED, MOUNT)]
    NotMounted,
    /// This user may not use it.
    #[error("{}: {help}", not_allowed(.path))]
    NotAllowed {
        /// The file that cannot be written.
        path: PathBuf,
        /// The command that helps.
        help: String,
    },
    /// The kernel has no clock that is the one of the programs.
    #[error("kernel events cannot be put on the timeline: the kernel's trace_clock has no {0}")]
    NoClock(&'static str),
    /// The programs have a clock that no kernel has.
    #[error("they need a clock that the kernel has too, and {0} is none")]
    OtherClock(&'static str),
    /// A file cannot be read or written.
    #[error("{}: {error}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// A file has unexpected contents.
    #[error("{}: cannot parse this file", .0.display())]
    NotUnderstood(PathBuf),
}

/// What is wrong where there is no tracefs, and the command that helps.
const NOT_MOUNTED: &str = "kernel events need tracefs, which is not mounted";
const MOUNT: &str = "sudo mount -t tracefs nodev /sys/kernel/tracing";

fn not_allowed(path: &Path) -> String {
    format!("kernel events need the privilege to write to {}, which this user does not have", path.display())
}

impl Error {
    /// What is wrong, and the command that helps, if there is one. The error's text has both.
    #[must_use]
    pub fn with_remedy(&self) -> (String, Option<String>) {
        match self {
            Self::NotMounted => (NOT_MOUNTED.to_owned(), Some(MOUNT.to_owned())),
            Self::NotAllowed { path, help } => (not_allowed(path), Some(help.clone())),
            error => (error.to_string(), None),
        }
    }
}

/// A mounted tracefs.
#[derive(Clone, Debug)]
pub struct Tracefs {
    root: PathBuf,
}

/// Keeps other processes out while instances are made and removed.
pub(crate) struct Lock(#[expect(dead_code, reason = "held")] Option<File>);

pub(crate) fn read(path: &Path) -> Result<String, Error> {
    // Some of these files return only their beginning to a reader with a small buffer.
    let mut bytes = vec![0; 1 << 18];
    let mut length = 0;
    let mut fill = || -> io::Result<()> {
        use std::io::Read;
        let mut file = File::open(path)?;
        while length < bytes.len() {
            match file.read(&mut bytes[length..])? {
                0 => break,
                more => length += more,
            }
        }
        Ok(())
    };
    fill().map_err(|error| Error::File { path: path.to_owned(), error })?;
    Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), Error> {
    // Never created: a setting that does not exist cannot be set.
    let written = File::options().write(true).open(path).and_then(|mut file| {
        use std::io::Write;
        file.write_all(text.as_bytes())
    });
    written.map_err(|error| Error::File { path: path.to_owned(), error })
}

fn append(path: &Path, text: &str) -> Result<(), Error> {
    let written = File::options().append(true).open(path).and_then(|mut file| {
        use std::io::Write;
        file.write_all(text.as_bytes())
    });
    written.map_err(|error| Error::File { path: path.to_owned(), error })
}

impl Tracefs {
    /// Finds it, and checks whether this user may make an instance. `help` is the command that grants it.
    ///
    /// # Errors
    /// It is not mounted, or this user may not.
    pub fn find(help: &str) -> Result<Self, Error> {
        let mounted = PLACES.iter().map(PathBuf::from).find(|place| {
            // If it exists, but may not be read, it is mounted.
            let found = fs::metadata(place.join("instances"));
            found.map_or_else(|error| error.kind() == io::ErrorKind::PermissionDenied, |_| true)
        });
        let root = mounted.ok_or(Error::NotMounted)?;
        let instances = root.join("instances");
        if access(&instances, Access::WRITE_OK | Access::EXEC_OK).is_err() {
            return Err(Error::NotAllowed { path: instances, help: help.to_owned() });
        }
        Ok(Self { root })
    }

    pub(crate) fn instances(&self) -> PathBuf {
        self.root.join("instances")
    }

    /// The directory of this process's instance.
    pub(crate) fn own_instance(&self) -> PathBuf {
        self.instances().join(own_name())
    }

    pub(crate) fn lock(&self) -> Lock {
        let file = File::open(self.instances()).ok();
        // If it cannot be locked, instances that are in use still cannot be removed.
        Lock(file.filter(|file| flock(file, FlockOperation::LockExclusive).is_ok()))
    }

    /// Removes the leftovers of providers that were killed: their instances, and then their probes. Those in
    /// use stay.
    pub fn remove_stale(&self) {
        let _lock = self.lock();
        for entry in fs::read_dir(self.instances()).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if let Some(name) = name.to_str().filter(|name| is_ours(name)) {
                // The kernel refuses while a process has a file in it open.
                let _ = fs::remove_dir(entry.path());
                if !entry.path().exists() {
                    self.remove_probes(name);
                }
            }
        }
    }

    /// Makes a probe, in this provider's group.
    pub(crate) fn add_probe(&self, definition: &str) -> Result<(), Error> {
        append(&self.root.join("dynamic_events"), definition)
    }

    /// That the kernel was built without the kind of probe that a category stands for.
    pub(crate) fn missing_probes(&self, category: &str) -> Option<&'static str> {
        let (file, why) = match category.starts_with("kernel:u") {
            true => ("uprobe_events", "the kernel has no uprobe events"),
            false => ("kprobe_events", "the kernel has no kprobe events"),
        };
        (!self.root.join(file).exists()).then_some(why)
    }

    /// The kernel's complaint about the last command that was written to it.
    pub(crate) fn last_complaint(&self) -> Option<String> {
        let log = fs::read_to_string(self.root.join("error_log")).ok()?;
        let mut heads =
            log.lines().filter_map(|line| line.split_once("error: ").map(|(_, complaint)| complaint));
        Some(heads.next_back()?.trim().to_owned())
    }

    /// Removes a group's probes.
    pub(crate) fn remove_probes(&self, group: &str) {
        let path = self.root.join("dynamic_events");
        let defined = fs::read_to_string(&path).unwrap_or_default();
        for line in defined.lines() {
            let event = line.split_whitespace().next().and_then(|first| Some(first.split_once(':')?.1));
            if let Some(event) = event.filter(|event| event.split('/').next() == Some(group)) {
                let _ = append(&path, &format!("-:{event}\n"));
            }
        }
    }

    /// The layout of pages.
    ///
    /// # Errors
    /// The kernel does not report it, or it has an unknown form.
    pub fn page_layout(&self) -> Result<PageLayout, Error> {
        let path = self.root.join("events/header_page");
        PageLayout::parse(&read(&path)?).ok_or(Error::NotUnderstood(path))
    }

    /// The clocks that events can be stamped with.
    ///
    /// # Errors
    /// The kernel does not report them.
    pub fn clocks(&self) -> Result<Vec<String>, Error> {
        let text = read(&self.root.join("trace_clock"))?;
        Ok(text.split_whitespace().map(|clock| clock.trim_matches(['[', ']']).to_owned()).collect())
    }

    /// The format of an event, by `system/event`.
    ///
    /// # Errors
    /// There is no such event, or its format is unknown.
    pub fn format(&self, point: &str) -> Result<Format, Error> {
        let path = self.root.join("events").join(point).join("format");
        Format::parse(&read(&path)?).ok_or(Error::NotUnderstood(path))
    }

    /// The events that `system/event`, `system/*` or `system` stands for, in order.
    #[must_use]
    pub fn expand(&self, point: &str) -> Vec<String> {
        let (system, event) = point.split_once('/').unwrap_or((point, "*"));
        let directory = self.root.join("events").join(system);
        let prefix = match event.strip_suffix('*') {
            Some(prefix) => prefix,
            None => {
                return directory
                    .join(event)
                    .join("format")
                    .exists()
                    .then(|| point.to_owned())
                    .into_iter()
                    .collect();
            }
        };
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut found: Vec<_> = names
            .filter(|name| name.starts_with(prefix))
            .map(|name| format!("{system}/{name}"))
            .filter(|point| self.root.join("events").join(point).join("format").exists())
            .collect();
        found.sort();
        found
    }
}

/// The name of this process's instance and of its probes' group.
pub(crate) fn own_name() -> String {
    format!("{PREFIX}{}", std::process::id())
}

fn is_ours(name: &str) -> bool {
    name.strip_prefix(PREFIX)
        .is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit()))
}
