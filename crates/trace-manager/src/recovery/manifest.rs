//! The manifest of a session: what its buffers are and how far they were written into the archive, in a file
//! beside them that is only ever appended to.
//!
//! A line is one JSON object, written with one call, so that whoever is killed leaves at most one line
//! unfinished. Readers skip lines and fields they do not know.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use trace_format::buffer::BufferMode;

/// The manifest's file in the session's directory.
const FILE: &str = "manifest.jsonl";
/// The version of the lines that this release writes and reads.
const VERSION: u32 = 1;
/// A manifest is read up to here: a session has thousands of lines, not millions.
const MAX_BYTES: u64 = 64 << 20;

/// What the buffers of a session have in common.
//= docs/recovery.md#manifest
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionFacts {
    version: u32,
    /// Process that ran the session.
    pub manager_pid: u32,
    /// When it began, in nanoseconds since 1970.
    pub wall_clock_ns: u64,
    /// How its buffers are used: 0 oneshot, 1 circular, 2 streaming.
    mode: u8,
    /// Rate of its timestamps.
    pub ticks_per_second: u64,
    /// The client's.
    #[serde(default)]
    pub command_line: Vec<String>,
}

impl SessionFacts {
    /// The facts of a session that begins.
    #[must_use]
    pub fn new(
        mode: BufferMode,
        ticks_per_second: u64,
        wall_clock_ns: u64,
        command_line: Vec<String>,
    ) -> Self {
        let mode = mode as u8;
        let manager_pid = std::process::id();
        Self { version: VERSION, manager_pid, wall_clock_ns, mode, ticks_per_second, command_line }
    }

    /// How its buffers are used.
    #[must_use]
    pub fn mode(&self) -> Option<BufferMode> {
        BufferMode::from_bits(self.mode)
    }
}

/// One provider's buffer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderFacts {
    /// Its number in the archive.
    pub id: u32,
    /// What it is called.
    pub name: String,
    /// Its process.
    pub pid: u64,
    /// Size of its buffer.
    pub bytes: u64,
}

impl ProviderFacts {
    /// The buffer's file in the session's directory.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("provider-{}", self.id)
    }
}

/// A line of the manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// The first line.
    Session(SessionFacts),
    /// A buffer was made.
    Provider(ProviderFacts),
    /// A provider was told to start: what its buffer holds from here on is in no archive.
    Started {
        /// Its number.
        provider: u32,
    },
    /// A half is about to be given to the client.
    Saving {
        /// Of this provider.
        provider: u32,
        /// Its number, counted since the buffer was cleared.
        half: u32,
    },
    /// The client has it.
    Saved {
        /// Of this provider.
        provider: u32,
        /// Its number.
        half: u32,
    },
    /// All that the buffer holds is in the client's hands.
    Archived {
        /// Of this provider.
        provider: u32,
    },
    /// The manager is done with the session, and not all of it is in the client's archive.
    Ended,
    /// Somebody made an archive of what the session left.
    Recovered {
        /// Where it was written.
        file: String,
    },
}

/// Appends to a manifest.
#[derive(Debug)]
pub struct Writer(File);

impl Writer {
    /// Begins the manifest of a session, or goes on with it.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn open(directory: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600).custom_flags(no_follow());
        let mut file = options.open(directory.join(FILE))?;
        if file.metadata()?.len() > 0 {
            // Behind a line that somebody may have left unfinished.
            file.write_all(b"\n")?;
        }
        Ok(Self(file))
    }

    /// Adds a line.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn append(&mut self, entry: &Entry) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        self.0.write_all(&line)
    }
}

fn no_follow() -> i32 {
    rustix::fs::OFlags::NOFOLLOW.bits().cast_signed()
}

/// What is known of one buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Whose it is.
    pub provider: ProviderFacts,
    /// Nothing of it is missing in the client's archive.
    pub is_archived: bool,
    /// Its provider was told to start.
    pub is_started: bool,
    /// The last half that the client has for certain, in streaming mode.
    pub saved: Option<u32>,
    /// The last half that the client may have.
    pub saving: Option<u32>,
}

/// A manifest as far as it can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// What all buffers have in common.
    pub session: SessionFacts,
    /// The buffers, by number.
    pub buffers: BTreeMap<u32, Buffer>,
    /// The session is over.
    pub is_ended: bool,
    /// Archives that were made of them.
    pub recovered: Vec<String>,
}

/// Why a manifest says nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// It cannot be read.
    #[error("cannot read its manifest: {0}")]
    Io(io::Error),
    /// The first line is missing or something else.
    #[error("its manifest is empty or damaged")]
    Empty,
    /// A release that came later wrote it.
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
    /// There is none, or its beginning says nothing.
    pub fn read(directory: &Path) -> Result<Self, ManifestError> {
        let mut bytes = Vec::new();
        let file = OpenOptions::new().read(true).custom_flags(no_follow()).open(directory.join(FILE));
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
        if session.version != VERSION {
            return Err(ManifestError::Version { found: session.version });
        }
        let mut manifest = Self { session, buffers: BTreeMap::new(), is_ended: false, recovered: Vec::new() };
        entries.for_each(|entry| manifest.take_in(entry));
        Ok(manifest)
    }

    fn take_in(&mut self, entry: Entry) {
        let mut with = |provider: u32, change: &dyn Fn(&mut Buffer)| {
            self.buffers.get_mut(&provider).into_iter().for_each(change);
        };
        match entry {
            Entry::Session(_) => {}
            Entry::Provider(provider) => {
                let id = provider.id;
                let (is_archived, is_started) = (false, false);
                let buffer = Buffer { provider, is_archived, is_started, saved: None, saving: None };
                self.buffers.insert(id, buffer);
            }
            Entry::Started { provider } => with(provider, &|buffer| {
                buffer.is_started = true;
                buffer.is_archived = false;
                buffer.saved = None;
                buffer.saving = None;
            }),
            Entry::Saving { provider, half } => with(provider, &|buffer| buffer.saving = Some(half)),
            Entry::Saved { provider, half } => with(provider, &|buffer| buffer.saved = Some(half)),
            Entry::Archived { provider } => with(provider, &|buffer| buffer.is_archived = true),
            Entry::Ended => self.is_ended = true,
            Entry::Recovered { file } => self.recovered.push(file),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> SessionFacts {
        SessionFacts::new(BufferMode::Streaming, 1_000_000, 77, vec!["trace".into(), "record".into()])
    }

    fn provider(id: u32) -> ProviderFacts {
        ProviderFacts { id, name: format!("app {id}"), pid: 40 + u64::from(id), bytes: 1 << 20 }
    }

    fn lines(entries: &[Entry]) -> Vec<u8> {
        entries.iter().flat_map(|entry| [serde_json::to_vec(entry).unwrap(), vec![b'\n']].concat()).collect()
    }

    //= docs/recovery.md#manifest
    #[test]
    fn what_was_written_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(directory.path()).unwrap();
        let (first, second) = (Entry::Provider(provider(1)), Entry::Provider(provider(2)));
        for entry in [
            Entry::Session(facts()),
            first,
            Entry::Started { provider: 1 },
            Entry::Saving { provider: 1, half: 0 },
            Entry::Saved { provider: 1, half: 0 },
        ] {
            writer.append(&entry).unwrap();
        }
        drop(writer);
        let mut writer = Writer::open(directory.path()).unwrap();
        for entry in [
            Entry::Saving { provider: 1, half: 1 },
            second,
            Entry::Started { provider: 2 },
            Entry::Archived { provider: 2 },
            Entry::Ended,
        ] {
            writer.append(&entry).unwrap();
        }
        let manifest = Manifest::read(directory.path()).unwrap();
        assert_eq!(manifest.session, facts());
        assert!(manifest.is_ended && manifest.recovered.is_empty());
        assert_eq!(manifest.session.mode(), Some(BufferMode::Streaming));
        let one = Buffer {
            provider: provider(1),
            is_archived: false,
            is_started: true,
            saved: Some(0),
            saving: Some(1),
        };
        let two =
            Buffer { provider: provider(2), is_archived: true, is_started: true, saved: None, saving: None };
        assert_eq!(manifest.buffers, BTreeMap::from([(1, one), (2, two)]));
    }

    #[test]
    fn a_start_after_an_archive_counts_anew() {
        let bytes = lines(&[
            Entry::Session(facts()),
            Entry::Provider(provider(1)),
            Entry::Started { provider: 1 },
            Entry::Saving { provider: 1, half: 4 },
            Entry::Saved { provider: 1, half: 4 },
            Entry::Archived { provider: 1 },
            Entry::Started { provider: 1 },
        ]);
        let manifest = Manifest::parse(&bytes).unwrap();
        let buffer = &manifest.buffers[&1];
        assert_eq!((buffer.is_archived, buffer.saved, buffer.saving), (false, None, None));
    }

    #[test]
    fn an_unfinished_line_and_a_strange_one_are_skipped() {
        let entries = [Entry::Session(facts()), Entry::Provider(provider(1)), Entry::Started { provider: 1 }];
        let mut bytes = lines(&entries[..2]);
        bytes.extend_from_slice(b"{\"later\":{\"provider\":1}}\n\xff\xfe\n\n");
        bytes.extend(lines(&entries[2..]));
        bytes.extend_from_slice(b"{\"archived\":{\"provi");
        let manifest = Manifest::parse(&bytes).unwrap();
        assert_eq!(manifest.buffers.len(), 1);
        assert!(manifest.buffers[&1].is_started && !manifest.buffers[&1].is_archived);
        // Whoever recovers goes on behind the line that a kill left unfinished.
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(FILE), &bytes).unwrap();
        let mut writer = Writer::open(directory.path()).unwrap();
        writer.append(&Entry::Recovered { file: "a.fxt".into() }).unwrap();
        assert_eq!(Manifest::read(directory.path()).unwrap().recovered, ["a.fxt"]);
    }

    #[test]
    fn nothing_and_another_version_are_said() {
        assert!(matches!(Manifest::parse(b""), Err(ManifestError::Empty)));
        assert!(matches!(
            Manifest::parse(&lines(&[Entry::Started { provider: 1 }])),
            Err(ManifestError::Empty)
        ));
        let later = lines(&[Entry::Session(SessionFacts { version: 2, ..facts() })]);
        assert!(matches!(Manifest::parse(&later), Err(ManifestError::Version { found: 2 })));
    }
}
