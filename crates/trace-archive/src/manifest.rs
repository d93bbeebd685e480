//! The manifest of a session: its buffers and how far they were written into the archive, in a file beside
//! them that is only ever appended to.
//!
//! A line is one JSON object, written with one call, so that a manager that is killed leaves at most one
//! line unfinished. Readers skip lines and fields they do not know.

mod writer;

use crate::files;
use crate::missing::Missing;
use crate::program_info::ProgramInfo;
use crate::transfer::SoFar;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;
use trace_format::buffer::BufferMode;
use trace_format::units::{Koid, Ticks};
pub use writer::Writer;
use zx_sim::{pid_namespace, ticks};

/// The manifest's file in the session's directory.
pub(crate) const FILE: &str = "manifest.jsonl";
/// The version of the lines that this release writes and reads.
const VERSION: u32 = 1;
/// Maximum number of bytes that are read of a manifest.
const MAX_BYTES: u64 = 64 << 20;

/// What the buffers of a session have in common.
//= docs/recovery.md#manifest
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionInfo {
    version: u32,
    /// Process that ran the session.
    pub manager_pid: u32,
    /// When it began, in nanoseconds since 1970.
    pub wall_clock_ns: u64,
    /// How its buffers are used: 0 oneshot, 1 circular, 2 streaming.
    mode: u8,
    /// Rate of its timestamps.
    pub ticks_per_second: u64,
    /// The client's command line.
    #[serde(default)]
    pub command_line: Vec<String>,
    /// A program recorded itself, without a manager: the process is its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_startup: bool,
    /// As long as a process holds the session, its `lock` is [marked](zx_sim::liveness). False in manifests
    /// of earlier releases, whose `lock` has only the number of a process.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_marked: bool,
    /// The boot of the machine in which it began, and the nanoseconds since then; none if an earlier release
    /// has written it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub boot_id: String,
    /// See `boot_id`.
    #[serde(default)]
    pub boot_clock_ns: u64,
    /// The pid namespace whose numbers the processes have; 0 if that is not known.
    #[serde(default)]
    pub pid_namespace: u64,
    /// The user who records; none if an earlier release has written it, or a program that records itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// The process that records, and when it was started, in clock ticks since the machine was; none if the
    /// manager itself holds the recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorder: Option<(u64, u64)>,
    /// The directory in which its manager can be found, if that is not the one with the sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// The programs that it asks for by name; none means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<String>,
}

impl SessionInfo {
    /// Describes a session that begins.
    #[must_use]
    pub fn new(
        mode: BufferMode,
        ticks_per_second: u64,
        wall_clock_ns: u64,
        command_line: Vec<String>,
    ) -> Self {
        let mode = mode as u8;
        let manager_pid = std::process::id();
        let is_startup = false;
        Self {
            version: VERSION,
            manager_pid,
            wall_clock_ns,
            mode,
            ticks_per_second,
            command_line,
            is_startup,
            is_marked: false,
            boot_id: ticks::boot_id(),
            boot_clock_ns: ticks::since_boot_ns(),
            pid_namespace: pid_namespace::own_number(),
            uid: None,
            recorder: None,
            runtime: None,
            programs: Vec::new(),
        }
    }

    /// The same of a user's session.
    #[must_use]
    pub fn of_user(self, uid: u32) -> Self {
        Self { uid: Some(uid), ..self }
    }

    /// How its buffers are used.
    #[must_use]
    pub fn mode(&self) -> Option<BufferMode> {
        BufferMode::from_bits(self.mode)
    }
}

/// One provider's buffer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BufferInfo {
    /// Its number in the archive.
    pub id: u32,
    /// The provider's name.
    pub name: String,
    /// Its process.
    pub pid: u64,
    /// Size of its buffer.
    pub bytes: u64,
    /// The process that it was forked from, if the archive is to report that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u64>,
    /// The arguments of its program, in the same case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_line: Option<String>,
    /// When it registered, in ticks, in the same case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registered: Option<u64>,
    /// Device and inode of the program's own buffer that it was made from: that has nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<(u64, u64)>,
    /// How it is used, if that is not as all buffers of the session are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u8>,
}

impl BufferInfo {
    /// What is known of its program, if the archive is to report it.
    #[must_use]
    pub fn program_info(&self) -> Option<ProgramInfo> {
        let is_known = self.parent.is_some() || self.registered.is_some();
        is_known.then(|| ProgramInfo {
            process: Koid(self.pid),
            parent: self.parent.map(Koid),
            command_line: self.command_line.clone(),
            registered: self.registered.map(Ticks),
        })
    }

    /// The buffer's file in the session's directory.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("provider-{}", self.id)
    }
}

/// The file that the client writes the archive into.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputFile {
    /// Its absolute path, as sent by the client.
    pub path: String,
    /// The device it is on.
    pub device: u64,
    /// Its inode there.
    pub inode: u64,
    /// The user that owns it.
    pub uid: u32,
}

/// A part of a provider's buffer in the archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartInfo {
    /// The half's number; none if the part is all that was left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half: Option<u32>,
    /// Where it begins in the archive, in bytes.
    pub begin: u64,
    /// Claims of slabs that it leaves for a later part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<u64>,
}

/// A line of the manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// The first line.
    Session(SessionInfo),
    /// The file of the archive, if it goes into one.
    Output(OutputFile),
    /// A buffer was made.
    Provider(BufferInfo),
    /// A program that records itself has made its provider.
    Named {
        /// Its number.
        provider: u32,
        /// The provider's name.
        name: String,
    },
    /// A provider was sent Start: data in its buffer from here on is in no archive.
    Started {
        /// Its number.
        provider: u32,
        /// Its data follows that of the previous run.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        retains: bool,
    },
    /// A part is about to be given to the client.
    Part {
        /// Its provider.
        provider: u32,
        /// The part and its position.
        part: PartInfo,
    },
    /// The last bytes of a part are about to be given to the client.
    End {
        /// Its provider.
        provider: u32,
        /// Where it ends in the archive, in bytes.
        end: u64,
        /// The archive's contents of the provider, including this part.
        so_far: SoFar,
    },
    /// Written by an earlier release before it gave a half to the client.
    Saving {
        /// Its provider.
        provider: u32,
        /// Its number, counted since the buffer was cleared.
        half: u32,
    },
    /// A half is written.
    Saved {
        /// Its provider.
        provider: u32,
        /// Its number.
        half: u32,
    },
    /// All data of a buffer is written.
    Archived {
        /// Its provider.
        provider: u32,
    },
    /// An unknown number of a program's records is missing.
    Missing(Missing),
    /// The archive has the first ones of these.
    MissingWritten {
        /// How many.
        programs: usize,
        /// Where the last of them ends in the archive, in bytes.
        end: u64,
    },
    /// The manager has finished the session, and not all of it is in the client's archive.
    Ended,
    /// An archive was recovered from the session.
    Recovered {
        /// The file that it was written into.
        file: String,
    },
}

/// What is known of one buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Its provider.
    pub provider: BufferInfo,
    /// All of its data is written into the client's archive.
    pub is_archived: bool,
    /// Its provider was sent Start.
    pub is_started: bool,
    /// The last half that is written, in streaming mode.
    pub saved: Option<u32>,
    /// The last half that may be written, if an earlier release recorded no more.
    pub saving: Option<u32>,
    /// The last part that is written, and the following ones, since the last start.
    pub parts: Vec<Part>,
    /// The archive's contents of it at the last start.
    pub before: Option<SoFar>,
}

/// A part of a buffer in the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its number, and where it begins.
    pub info: PartInfo,
    /// Where it ends and the archive's contents with it; none while more of it was to come.
    pub end: Option<(u64, SoFar)>,
}

impl Buffer {
    fn new(provider: BufferInfo) -> Self {
        Self {
            provider,
            is_archived: false,
            is_started: false,
            saved: None,
            saving: None,
            parts: Vec::new(),
            before: None,
        }
    }

    /// The last part of which an archive of this size holds the end.
    pub fn last_part(&self, archive_bytes: u64) -> Option<(&PartInfo, &SoFar)> {
        let ended = self.parts.iter().filter_map(|part| part.end.as_ref().map(|end| (&part.info, end)));
        ended
            .filter(|(_, (end, _))| *end <= archive_bytes)
            .map(|(info, (_, so_far))| (info, so_far))
            .next_back()
    }

    /// Bytes of the archive up to the end of the last part that its file has for certain, so that the buffer
    /// need not have it any more.
    pub fn certain_bytes(&self) -> u64 {
        let is_certain = |part: &&Part| {
            let is_saved =
                || part.info.half.is_some_and(|half| self.saved.is_some_and(|saved| half <= saved));
            self.is_archived || is_saved()
        };
        let ends = self.parts.iter().filter(is_certain).filter_map(|part| part.end.as_ref());
        ends.map(|(end, _)| *end).max().unwrap_or(0)
    }

    /// A half or the rest is written: earlier parts are no longer needed.
    fn forget_before(&mut self, half: Option<u32>) {
        let is_it = |part: &Part| part.info.half == half && part.end.is_some();
        if let Some(place) = self.parts.iter().rposition(is_it) {
            self.parts.drain(..place);
        }
    }

    /// The lines that describe the buffer's state.
    fn entries(&self) -> Vec<Entry> {
        let provider = self.provider.id;
        let mut entries = vec![Entry::Provider(self.provider.clone())];
        if let Some(so_far) = &self.before {
            // In the order in which it was written.
            entries.push(Entry::Part { provider, part: PartInfo { half: None, begin: 0, left: Vec::new() } });
            entries.push(Entry::End { provider, end: 0, so_far: so_far.clone() });
        }
        if self.is_started {
            entries.push(Entry::Started { provider, retains: false });
        }
        for part in &self.parts {
            entries.push(Entry::Part { provider, part: part.info.clone() });
            if let Some((end, so_far)) = &part.end {
                entries.push(Entry::End { provider, end: *end, so_far: so_far.clone() });
            }
        }
        entries.extend(self.saving.map(|half| Entry::Saving { provider, half }));
        entries.extend(self.saved.map(|half| Entry::Saved { provider, half }));
        entries.extend(self.is_archived.then_some(Entry::Archived { provider }));
        entries
    }
}

/// A manifest, as far as it can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Facts that all buffers have in common.
    pub session: SessionInfo,
    /// The file of the archive, if it goes into one.
    pub output: Option<OutputFile>,
    /// The buffers, by number.
    pub buffers: BTreeMap<u32, Buffer>,
    /// Programs of which something is missing.
    pub missing: Vec<Missing>,
    /// How many of them the archive has when it has this many bytes.
    missing_written: Vec<(usize, u64)>,
    /// The session is over.
    pub is_ended: bool,
    /// Archives that were recovered from them.
    pub recovered: Vec<String>,
}

/// Why a manifest cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// It cannot be read.
    #[error("cannot read its manifest: {0}")]
    Io(io::Error),
    /// The first line is missing or something else.
    #[error("its manifest is empty or damaged")]
    Empty,
    /// A later release wrote it.
    #[error(
        "its manifest has version {found}, this release reads {VERSION}: use the release that recorded it"
    )]
    Version {
        /// Its version.
        found: u32,
    },
}

impl Manifest {
    /// Reads the manifest of a session's directory.
    ///
    /// # Errors
    /// There is none, or it does not begin with a valid line.
    pub fn read(directory: &Path) -> Result<Self, ManifestError> {
        let mut bytes = Vec::new();
        let file = files::open(&directory.join(FILE));
        let read = file.and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes));
        read.map_err(ManifestError::Io)?;
        Self::parse(&bytes)
    }

    fn parse(bytes: &[u8]) -> Result<Self, ManifestError> {
        let mut entries =
            bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        let Some(Entry::Session(session)) = entries.next() else {
            return Err(ManifestError::Empty);
        };
        if session.ticks_per_second == 0 {
            return Err(ManifestError::Empty);
        }
        if session.version != VERSION {
            return Err(ManifestError::Version { found: session.version });
        }
        let mut manifest = Self {
            session,
            output: None,
            buffers: BTreeMap::new(),
            missing: Vec::new(),
            missing_written: Vec::new(),
            is_ended: false,
            recovered: Vec::new(),
        };
        entries.for_each(|entry| manifest.apply(entry));
        Ok(manifest)
    }

    /// The fewest lines with the same meaning.
    fn entries(&self) -> Vec<Entry> {
        let mut entries = vec![Entry::Session(self.session.clone())];
        entries.extend(self.output.clone().map(Entry::Output));
        entries.extend(self.buffers.values().flat_map(Buffer::entries));
        entries.extend(self.missing.iter().cloned().map(Entry::Missing));
        let written = self.missing_written.iter();
        entries.extend(written.map(|&(programs, end)| Entry::MissingWritten { programs, end }));
        entries.extend(self.is_ended.then_some(Entry::Ended));
        entries.extend(self.recovered.iter().map(|file| Entry::Recovered { file: file.clone() }));
        entries
    }

    /// Programs of which something is missing that an archive of this size does not have.
    #[must_use]
    pub fn missing_after(&self, archive_bytes: u64) -> &[Missing] {
        let has = self.missing_written.iter().filter(|(_, end)| *end <= archive_bytes);
        let written = has.map(|(programs, _)| *programs).max().unwrap_or(0);
        self.missing.get(written..).unwrap_or_default()
    }

    /// Whether the archive holds data of a program.
    #[must_use]
    pub fn has_parts(&self) -> bool {
        self.buffers.values().any(|buffer| !buffer.parts.is_empty() || buffer.before.is_some())
    }

    /// Bytes of the archive up to the end of the last part whose end is known.
    fn written_bytes(&self) -> u64 {
        let parts = self.buffers.values().flat_map(|buffer| &buffer.parts);
        parts.map(|part| part.end.as_ref().map_or(part.info.begin, |(end, _)| *end)).max().unwrap_or(0)
    }

    /// Bytes of the archive that are needed because the buffers may not have them any more; 0 if the buffers
    /// have everything.
    #[must_use]
    pub fn needed_bytes(&self) -> u64 {
        // What was recorded before the last start is in the archive alone.
        if self.buffers.values().any(|buffer| buffer.before.is_some()) {
            return self.written_bytes();
        }
        self.buffers.values().map(Buffer::certain_bytes).max().unwrap_or(0)
    }

    /// Where the first part begins that an archive of this size does not hold to its end; else all bytes.
    #[must_use]
    pub fn whole_parts(&self, archive_bytes: u64) -> u64 {
        let parts = self.buffers.values().flat_map(|buffer| &buffer.parts);
        let is_whole = |part: &&Part| part.end.as_ref().is_some_and(|(end, _)| *end <= archive_bytes);
        // Where an archive had failed already, earlier releases noted parts that begin before its head.
        let is_in_archive = |part: &&Part| part.info.begin > 0;
        let begins = parts.filter(|part| !is_whole(part)).filter(is_in_archive).map(|part| part.info.begin);
        begins.min().unwrap_or(archive_bytes).min(archive_bytes)
    }

    fn apply(&mut self, entry: Entry) {
        let mut with = |provider: u32, change: &dyn Fn(&mut Buffer)| {
            self.buffers.get_mut(&provider).into_iter().for_each(change);
        };
        match entry {
            Entry::Session(_) => {}
            Entry::Output(output) => self.output = Some(output),
            Entry::Provider(provider) => {
                self.buffers.insert(provider.id, Buffer::new(provider));
            }
            Entry::Named { provider, name } => {
                with(provider, &|buffer| buffer.provider.name.clone_from(&name))
            }
            Entry::Started { provider, retains } => with(provider, &|buffer| {
                buffer.is_started = true;
                buffer.is_archived = false;
                if retains {
                    return;
                }
                buffer.saved = None;
                buffer.saving = None;
                // All of it is written: the next start waits for that.
                if let Some((_, mut so_far)) = buffer.parts.drain(..).filter_map(|part| part.end).next_back()
                {
                    so_far.clear();
                    buffer.before = Some(so_far);
                }
            }),
            Entry::Part { provider, part } => with(provider, &|buffer| {
                buffer.parts.push(Part { info: part.clone(), end: None });
            }),
            Entry::End { provider, end, so_far } => with(provider, &|buffer| {
                if let Some(part) = buffer.parts.last_mut() {
                    part.end = Some((end, so_far.clone()));
                }
            }),
            Entry::Saving { provider, half } => with(provider, &|buffer| buffer.saving = Some(half)),
            Entry::Saved { provider, half } => with(provider, &|buffer| {
                buffer.saved = Some(half);
                buffer.forget_before(Some(half));
            }),
            Entry::Archived { provider } => with(provider, &|buffer| {
                buffer.is_archived = true;
                buffer.forget_before(None);
            }),
            Entry::Missing(missing) => self.missing.push(missing),
            Entry::MissingWritten { programs, end } => self.missing_written.push((programs, end)),
            Entry::Ended => self.is_ended = true,
            Entry::Recovered { file } => self.recovered.push(file),
        }
    }
}

#[cfg(test)]
mod tests;
