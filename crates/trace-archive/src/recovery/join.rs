//! Joins the leftovers of a recording into one archive: the file that its client was writing, followed by the
//! data that is in the buffers alone.

use super::{Error, HEAD_FILE, Leftover, Recovered};
use crate::manifest::{Buffer, OutputFile};
use crate::program_info::{self, ProviderEnd};
use crate::transfer::Part;
use crate::transfer::{Progress, ProviderBuffer, Transfer};
use crate::{files, framing, session_info};
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use trace_format::buffer::BufferMode;
use trace_format::scopes::Ending;
use trace_format::units::{Koid, ProviderId, Ticks, TicksPerSecond};
use trace_protocol::BufferingMode;
use trace_protocol::controller::{ProviderDisposition, ProviderStats};
use trace_reader::buffer::Period;
use trace_reader::{FileKind, Plain, complete_records, complete_records_end};
use zx_sim::{ProcessFd, Vmo, ticks};

/// The last bytes of a file in zstd's seekable format.
const SEEKABLE_MAGIC: [u8; 4] = 0x8F92_EAB1_u32.to_le_bytes();
/// The beginning of an archive is small.
const MAX_HEAD_BYTES: u64 = 1 << 20;

/// The state of the file that the client was writing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientFile {
    /// None is known: the archive went to a pipe, or an earlier release recorded it.
    Unknown,
    /// It was found; this many bytes of it are whole, and come first.
    Found {
        /// Its name.
        path: PathBuf,
        /// Bytes of the archive in it.
        bytes: u64,
        /// It is compressed, and this was cut off.
        is_cut_off: bool,
    },
    /// It is missing, was replaced, or cannot be read, and it held this many bytes that the buffers may not
    /// have.
    Missing {
        /// The name that it had.
        path: PathBuf,
        /// Bytes that the buffers may not have; 0 if nothing is missing.
        bytes: u64,
        /// The operating system's error.
        why: String,
    },
}

impl Leftover {
    /// Writes an archive of everything that was recorded: the client's file, then the data that is in the
    /// buffers alone. Each provider is reported when it is done. The leftovers are not changed.
    ///
    /// # Errors
    /// The archive cannot be written. A buffer that cannot be read is reported in its statistics.
    //= docs/recovery.md#what-is-recovered
    pub fn recover(
        &self,
        out: &mut impl Write,
        mut report: impl FnMut(&Recovered),
    ) -> Result<ClientFile, Error> {
        let failed = |error| Error::Io { what: "cannot write the archive".to_owned(), error };
        let (client, file) = self.client_file();
        let head = self.head();
        // A recording without metadata stays without it.
        let has_metadata = head.len() > 8;
        let mut joined = 0;
        match (&client, file) {
            (ClientFile::Found { bytes, .. }, Some(mut file)) if *bytes > 0 => {
                joined = copy_records(&mut file, *bytes, out).map_err(failed)?;
            }
            _ => out.write_all(&head).map_err(failed)?,
        }
        let mut ends = Vec::new();
        for buffer in self.session.manifest.buffers.values().filter(|buffer| buffer.is_started) {
            let (stats, mut unread) = self
                .recover_buffer(buffer, buffer.provider.id, joined, has_metadata || joined > 0, out)
                .map_err(failed)?;
            let certain = buffer.certain_bytes();
            if client != ClientFile::Unknown && joined < certain && unread.is_none() {
                let mut lost = Vec::new();
                let info = &buffer.provider;
                framing::rest_missing(ProviderId(info.id), &info.name, &mut lost);
                out.write_all(&lost).map_err(failed)?;
                // Of a file that cannot be read at all the caller knows why.
                unread = matches!(client, ClientFile::Found { .. }).then(|| {
                    format!("only {joined} bytes of the recording's own file can be read, which had {certain} of them")
                });
            }
            let halves_before =
                if joined > 0 { (None, None) } else { (buffer.saved, buffer.saving.or(buffer.saved)) };
            ends.extend(end_of(&stats));
            report(&Recovered { stats, halves_before, unread });
        }
        let mut bytes = Vec::new();
        let gave_up = self.session.gave_up();
        for missing in self.session.manifest.missing_after(joined).iter().chain(&gave_up) {
            missing.write(has_metadata || joined > 0, &mut bytes);
        }
        for missing in self.session.manifest.missing.iter().chain(&gave_up) {
            if !self.session.manifest.buffers.contains_key(&missing.id) {
                report(&Recovered { stats: missing.stats(), halves_before: (None, None), unread: None });
            }
        }
        if has_metadata {
            program_info::ended(&ends, &mut bytes);
            session_info::recovered(&mut bytes);
        }
        out.write_all(&bytes).map_err(failed)?;
        Ok(client)
    }

    /// The head of the archive, if the file has one.
    fn head(&self) -> Vec<u8> {
        let mut head = Vec::new();
        // Missing where the manager was killed before it could write it.
        let read = files::open(&self.session.directory.join(HEAD_FILE))
            .and_then(|file| file.take(MAX_HEAD_BYTES).read_to_end(&mut head));
        let mut magic = Vec::new();
        framing::magic(&mut magic);
        let is_whole =
            || complete_records_end(&mut io::Cursor::new(&head)).is_ok_and(|end| end == head.len() as u64);
        if read.is_ok() && head.starts_with(&magic) && is_whole() { head } else { magic }
    }

    /// The client's file, cut to the part that can be joined.
    fn client_file(&self) -> (ClientFile, Option<File>) {
        let manifest = &self.session.manifest;
        let Some(output) = &manifest.output else {
            return (ClientFile::Unknown, None);
        };
        let path = PathBuf::from(&output.path);
        match open_output(output).and_then(|mut file| Ok((whole_records(&mut file)?, file))) {
            Ok(((whole, is_cut_off), file)) => {
                let bytes = manifest.whole_parts(whole);
                (ClientFile::Found { path, bytes, is_cut_off }, Some(file))
            }
            Err(error) => {
                let (bytes, why) = (manifest.needed_bytes(), error.to_string());
                (ClientFile::Missing { path, bytes, why }, None)
            }
        }
    }

    /// Appends the data that is in a buffer and not in the archive, where its provider has this number, and
    /// which has this many bytes of the client's file. Returns the reason if the buffer could not be read.
    pub(super) fn recover_buffer(
        &self,
        buffer: &Buffer,
        id: u32,
        joined: u64,
        has_head: bool,
        out: &mut impl Write,
    ) -> io::Result<(ProviderStats, Option<String>)> {
        let info = &buffer.provider;
        let who = |disposition: ProviderDisposition, stats: ProviderStats| ProviderStats {
            id,
            name: info.name.clone(),
            pid: info.pid,
            disposition: disposition.into(),
            ..stats
        };
        let last = buffer.last_part(joined).filter(|_| joined > 0);
        if let Some((_, so_far)) = last.filter(|(part, _)| part.half.is_none()) {
            return Ok((who(ProviderDisposition::Archived, so_far.plus(ProviderStats::default())), None));
        }
        let so_far = last.map(|(_, so_far)| so_far).or(buffer.before.as_ref()).filter(|_| joined > 0);
        let all = |stats: ProviderStats| so_far.map_or(stats.clone(), |so_far| so_far.plus(stats));
        let vmo = match Vmo::open(&self.session.directory.join(info.file_name())) {
            Ok(vmo) => vmo,
            Err(_) if buffer.is_archived => {
                return Ok((who(ProviderDisposition::Archived, ProviderStats::default()), None));
            }
            Err(error) => {
                let problem = crate::problem(&error);
                let mut unknown = Vec::new();
                framing::rest_missing(ProviderId(id), &info.name, &mut unknown);
                out.write_all(&unknown)?;
                let stats = ProviderStats { problem: problem.clone(), ..ProviderStats::default() };
                return Ok((who(ProviderDisposition::Missing, all(stats)), Some(problem)));
            }
        };
        let is_live = vmo.is_live().unwrap_or(true);
        // The program has moved to another buffer.
        let is_left = info.origin.is_some();
        let (disposition, ending) = match is_live {
            true => (ProviderDisposition::StillRunning, Ending::Snapshot),
            false if !self.session.is_elsewhere() && has_process(info.pid) => {
                (ProviderDisposition::Left, Ending::Stop)
            }
            false => (ProviderDisposition::Ended, Ending::Death),
        };
        let session = &self.session.manifest.session;
        let own_mode = info.mode.and_then(BufferMode::from_bits);
        let mode = own_mode.or(session.mode()).map_or(BufferingMode::Oneshot, BufferingMode::from);
        let rate = TicksPerSecond(NonZeroU64::new(session.ticks_per_second).unwrap_or(NonZeroU64::MIN));
        let of = ProviderBuffer {
            id: ProviderId(id),
            name: info.name.clone(),
            size: info.bytes,
            mode,
            rate,
            // Without the client's file, earlier halves are missing.
            is_accounted: mode != BufferingMode::Streaming || so_far.is_some() || buffer.saved.is_none(),
            period: period_since(session.wall_clock_ns),
            may_be_blank: true,
            // Without its head, the archive has no provider that could report them.
            program: info.program_info().filter(|_| has_head),
            // When a program died that no manager has watched is not known.
            open_until: is_live.then(|| Ticks(ticks::now())),
            ending: (!is_left).then_some(ending),
        };
        let progress = match so_far {
            Some(so_far) => Progress::resume(vmo, so_far),
            None => Progress::of(vmo),
        };
        let mut transfer = Transfer::new(of, progress, Part::Rest { is_quiet: !is_live });
        if let Some((part, so_far)) = last {
            let halves = part.half.map_or(0, |half| u64::from(half) + 1);
            transfer.skip(so_far, halves, &part.left);
        }
        let mut batch = Vec::new();
        loop {
            let is_finished = transfer.poll(&mut batch);
            out.write_all(&batch)?;
            batch.clear();
            if is_finished {
                let is_complete = transfer.is_complete();
                let stats = transfer.into_stats().0;
                let unread = (!is_complete).then(|| stats.problem.clone()).or_else(|| senseless(&stats));
                return Ok((who(disposition, all(stats)), unread));
            }
        }
    }
}

/// Why a buffer is kept of which no event was read, though it has records: what was read with it, as the rate
/// of the clock in the manifest, may be what is damaged.
fn senseless(stats: &ProviderStats) -> Option<String> {
    let malformed = stats.malformed_records.filter(|count| *count > 0)?;
    let is_nothing_read = stats.events_archived.unwrap_or(0) == 0;
    is_nothing_read.then(|| format!("no event of it is valid: {malformed} records are malformed"))
}

/// How a provider's program has ended meanwhile, as far as that is known.
pub(super) fn end_of(stats: &ProviderStats) -> Option<ProviderEnd> {
    let ended = [ProviderDisposition::Ended, ProviderDisposition::Left];
    let is_ended = ended.iter().any(|disposition| stats.disposition == *disposition);
    is_ended.then(|| ProviderEnd {
        id: ProviderId(stats.id),
        process: Koid(stats.pid),
        at: None,
        how: stats.disposition.clone(),
    })
}

/// Bytes of whole records in the client's file, decompressed; and whether that is compressed and cut off.
fn whole_records(file: &mut File) -> io::Result<(u64, bool)> {
    match Plain::open(&*file)? {
        (archive, FileKind::Zstd) => {
            let (whole, is_end) = complete_records(archive)?;
            Ok((whole, !is_end || !has_table(file)?))
        }
        // Of another kind there are no records in it.
        _ => complete_records_end(file).map(|whole| (whole, false)),
    }
}

/// Whether a compressed file has the table that is written last.
fn has_table(file: &File) -> io::Result<bool> {
    let mut end = [0; SEEKABLE_MAGIC.len()];
    match file.metadata()?.len().checked_sub(end.len() as u64) {
        None => Ok(false),
        Some(place) => file.read_exact_at(&mut end, place).map(|()| end == SEEKABLE_MAGIC),
    }
}

/// Copies so many of these bytes.
fn copy_records(file: &mut File, bytes: u64, out: &mut impl Write) -> io::Result<u64> {
    file.rewind()?;
    if let (archive, FileKind::Zstd) = Plain::open(&*file)? {
        return io::copy(&mut archive.take(bytes), out);
    }
    file.rewind()?;
    io::copy(&mut file.take(bytes), out)
}

/// Opens the client's file, if it is the one that was written.
pub(super) fn open_output(output: &OutputFile) -> io::Result<File> {
    let file = files::open(Path::new(&output.path))?;
    is_output(output, &file)?;
    Ok(file)
}

/// Whether an open file is the one that was written.
pub(super) fn is_output(output: &OutputFile, file: &File) -> io::Result<()> {
    let found = file.metadata()?;
    if (found.dev(), found.ino(), found.uid()) != (output.device, output.inode, output.uid) {
        return Err(io::Error::other("it is another file"));
    }
    Ok(())
}

/// The time since the machine was started, if a session began later: else its ticks were another clock's.
fn period_since(session_wall_clock_ns: u64) -> Option<Period> {
    let duration = |clock| {
        let now = clock_gettime(clock);
        Some(Duration::new(u64::try_from(now.tv_sec).ok()?, u32::try_from(now.tv_nsec).ok()?))
    };
    let started = duration(ClockId::Realtime)?.checked_sub(duration(ClockId::Boottime)?)?;
    (Duration::from_nanos(session_wall_clock_ns) > started).then(|| Period { made: 0, read: ticks::now() })
}

/// Whether there is a process of this number.
fn has_process(pid: u64) -> bool {
    u32::try_from(pid).is_ok_and(|pid| ProcessFd::open(pid).is_ok_and(|process| !process.is_dead()))
}
