//! The directory of a recording that no manager runs: of the form that a manager's recordings have, so that
//! `trace recover` finds it.

use crate::linux::startup::room;
use crate::linux::unrecorded::Unrecorded;
use crate::linux::{buffer, manager};
use rustix::fs::{CWD, OFlags};
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use trace_engine::{BufferMode, engine};
use trace_format::buffer::Layout;
use trace_format::scopes::{self, SCOPES_BYTES};
use zx_sim::guest::Quiet;
use zx_sim::runtime_dir::{finish_dir, open_private};
use zx_sim::ticks::{self, Clock};
use zx_sim::{Backing, Mark, RuntimeDir, Vmo, pid_namespace};

/// Begins the names of such directories: what begins with `session-` is one of a session.
//= docs/recovery.md#a-sessions-directory
pub(super) const PREFIX: &str = "session-startup";
/// The only buffer in it.
pub(crate) const BUFFER: &str = "provider-1";
/// Another name of it.
pub(crate) const KEPT: &str = "kept";
/// Names the process that holds the directory.
pub(super) const LOCK: &str = "lock";
/// Describes the rest.
const MANIFEST: &str = "manifest.jsonl";
/// Says that users were asked to save it.
pub(super) const ANNOUNCED: &str = "announced";

/// A directory with one buffer, which is marked as in use as long as this lives.
#[derive(Clone, Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    ticks_per_second: u64,
    mark: Option<Arc<Mark>>,
}

impl Directory {
    /// Makes one, in a runtime directory of this user's.
    pub fn create(name: &str, mode: BufferMode, bytes: u64) -> Result<(Self, Vmo), Unrecorded> {
        // Before any file is written: a limit ends the program.
        Vmo::check_file_size(bytes + SCOPES_BYTES)?;
        buffer::check_room(bytes + SCOPES_BYTES)?;
        let runtime = runtime_directory()?;
        let clock = Clock::agreed(runtime.path(), &manager::directories())?;
        room::make(&runtime);
        let path = runtime.create_unfinished_dir(PREFIX)?;
        let mut directory = Self { path, ticks_per_second: clock.ticks_per_second, mark: None };
        let filled = directory.fill(name, mode, bytes).and_then(|vmo| {
            directory.path = finish_dir(&directory.path)?;
            Ok(vmo)
        });
        match filled {
            Ok(vmo) => Ok((directory, vmo)),
            Err(reason) => {
                directory.delete();
                Err(reason)
            }
        }
    }

    /// Makes the files in it.
    fn fill(&mut self, name: &str, mode: BufferMode, bytes: u64) -> Result<Vmo, Unrecorded> {
        // A descriptor could be closed by the program, and a forked child would have it, too.
        let mark = RuntimeDir::open_or_create(&self.path).and_then(|own| own.hold(LOCK))?;
        // Another process has nothing to do there.
        self.mark = Some(Arc::new(mark.ok_or(Unrecorded::NoDirectory)?));
        let layout = Layout::new(bytes, mode)?;
        let size = bytes + SCOPES_BYTES;
        let mut backing = match engine::can_populate() {
            true => Backing::begin_sparse(&self.path, BUFFER, size, &layout.first_parts(), 0),
            false => Backing::begin(&self.path, BUFFER, size),
        }?;
        let vmo = loop {
            if let Some(vmo) = backing.step(u64::MAX)? {
                break vmo;
            }
        };
        let manifest = self.path.join(MANIFEST);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let created = open_private(CWD, &manifest, flags).map_err(std::io::Error::from);
        let written =
            created.and_then(|mut file| file.write_all(self.manifest(name, mode, bytes).as_bytes()));
        written.map_err(|error| Unrecorded::File { path: manifest, error })?;
        Ok(vmo)
    }

    /// What `trace recover` needs to know.
    //= docs/recovery.md#manifest
    fn manifest(&self, name: &str, mode: BufferMode, bytes: u64) -> String {
        let wall_clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let (pid, rate, mode) = (std::process::id(), self.ticks_per_second, mode as u8);
        let name = quoted(name);
        let line = manager::command_line().unwrap_or_default();
        let arguments: Vec<String> = line.split(' ').map(quoted).collect();
        let arguments = arguments.join(",");
        let line = quoted(&line);
        let (boot_id, boot_clock) = (quoted(&ticks::boot_id()), ticks::since_boot_ns());
        let is_marked = self.mark.as_ref().is_some_and(|mark| mark.is_lasting());
        let namespace = pid_namespace::own_number();
        let registered = ticks::now();
        format!(
            "{{\"session\":{{\"version\":1,\"manager_pid\":{pid},\"wall_clock_ns\":{wall_clock},\"mode\":{mode},\
             \"ticks_per_second\":{rate},\"command_line\":[{arguments}],\"is_startup\":true,\
             \"is_marked\":{is_marked},\"boot_id\":{boot_id},\"boot_clock_ns\":{boot_clock},\"pid_namespace\":{namespace}}}}}\n\
             {{\"provider\":{{\"id\":1,\"name\":{name},\"pid\":{pid},\"bytes\":{bytes},\"command_line\":{line},\
             \"registered\":{registered}}}}}\n\
             {{\"started\":{{\"provider\":1}}}}\n"
        )
    }

    /// The file of its buffer.
    pub fn buffer(&self) -> PathBuf {
        self.path.join(BUFFER)
    }

    /// Notes the name of the program's provider, which was not known when it began.
    pub fn name_provider(&self, name: &str) {
        let _quiet = Quiet::new();
        let line = format!("{{\"named\":{{\"provider\":1,\"name\":{}}}}}\n", quoted(name));
        let manifest = OpenOptions::new().append(true).open(self.path.join(MANIFEST));
        // If that fails, the recording keeps the name of the process.
        let _ = manifest.and_then(|mut manifest| manifest.write_all(line.as_bytes()));
    }

    /// Whether nothing was recorded into its buffer.
    pub fn is_blank(&self, mode: BufferMode) -> bool {
        let vmo = Vmo::open(&self.buffer());
        let bytes = |vmo: &Vmo| vmo.size().unwrap_or(0).saturating_sub(SCOPES_BYTES);
        let layout = vmo.as_ref().map(|vmo| Layout::new(bytes(vmo), mode));
        let (Ok(vmo), Ok(Ok(layout))) = (&vmo, layout) else { return false };
        let mut owner = [0; 8];
        let first = layout.total_bytes + scopes::HEADER_BYTES;
        vmo.read_at(first, &mut owner).is_ok_and(|_| owner == [0; 8])
            && vmo.to_bytes(layout.tallies as usize).is_ok_and(|beginning| layout.is_blank(&beginning))
    }

    /// Rate of the timestamps in it.
    pub fn ticks_per_second(&self) -> u64 {
        self.ticks_per_second
    }

    /// Deletes it.
    pub fn delete(&self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }

    /// Deletes it, if its buffer has been taken out and no other name of it is left.
    pub fn delete_if_empty(&self) {
        if self.buffer().symlink_metadata().is_err() && self.path.join(KEPT).symlink_metadata().is_err() {
            self.delete();
        }
    }

    /// Gives the buffer another name, by which this program finds it when a manager has taken it out.
    #[cfg(feature = "local")]
    pub fn keep(&self) -> std::io::Result<()> {
        std::fs::hard_link(self.buffer(), self.path.join(KEPT))
    }

    /// Where it is.
    #[cfg(feature = "local")]
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }
}

/// The first directory that is this user's, or can be.
fn runtime_directory() -> Result<RuntimeDir, Unrecorded> {
    let mut reason = Unrecorded::NoDirectory;
    for directory in manager::directories() {
        match RuntimeDir::open_or_create(&directory) {
            Ok(directory) => return Ok(directory),
            Err(error) => reason = error.into(),
        }
    }
    Err(reason)
}

/// A text in JSON.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(character);
            }
            '\0'..='\x1f' => drop(write!(quoted, "\\u{:04x}", u32::from(character))),
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted() {
        assert_eq!(quoted("a \"b\\\n\u{1}ü"), "\"a \\\"b\\\\\\u000a\\u0001ü\"");
    }
}
