//! Limits the size of an archive: cuts it at the first record that would exceed the limit, and reports what
//! is missing.

use std::collections::BTreeMap;
use std::time::Duration;
use trace_archive::session_info::{self, is_end};
use trace_format::blob::Blob;
use trace_format::event::Event;
use trace_format::loss::{LEDGER_BLOB_NAME, LOSS_BLOB_NAME, LossCode, LossRecord};
use trace_format::metadata::{MAGIC_WORD, Metadata};
use trace_format::record::{Record, RecordHeader, RecordType};
use trace_format::refs::StringRef;
use trace_format::scopes::ending_of;
use trace_format::sink::Sink;
use trace_format::units::{ProviderId, Ticks};
use trace_protocol::controller::{Lost, ProviderStats};
use trace_reader::MANAGER;

/// Records consist of words, and begin at multiples of their size.
const WORD: usize = 8;
/// How much of the archive is reserved for its loss records.
const MAX_ACCOUNT_BYTES: u64 = 16 << 10;

const MANAGER_SECTION: Metadata<'_> = Metadata::ProviderSection { id: MANAGER };

/// How often the size of a limited recording is looked at.
pub const INTERVAL: Duration = Duration::from_millis(20);
/// How long programs go on recording when the archive has reached its limit: the size is seen at the next
/// look, and stopping takes its time.
const STOP_SPAN: Duration = Duration::from_millis(60);

/// Whether an archive is as large as it may be when its programs have stopped: what they record until then,
/// at the pace so far, needs room too, but no more than a quarter of it.
#[must_use]
pub fn is_near(limit: u64, bytes: u64, elapsed: Duration) -> bool {
    let pace = u128::from(bytes) * STOP_SPAN.as_nanos() / elapsed.as_nanos().max(1);
    let reserve = u64::try_from(pace).unwrap_or(u64::MAX).min(limit / 4);
    bytes.saturating_add(reserve) >= room(limit)
}

/// Passes as many whole records as fit into an archive of a limited size, and counts the rest.
#[derive(Debug)]
pub(crate) struct Limited {
    limit: u64,
    /// Bytes that were passed on.
    written: u64,
    /// The beginning of a record whose end has not arrived.
    rest: Vec<u8>,
    /// Bytes of a large record that are still to come, and whether they are passed on.
    large: (u64, bool),
    is_cut: bool,
    /// The provider of the current records.
    provider: ProviderId,
    providers: BTreeMap<ProviderId, Missing>,
    left_out: LeftOut,
    /// What the manager says about programs behind the limit.
    programs: Vec<u8>,
    /// What the manager says at the end of the recording, if it came behind the limit.
    end: Vec<u8>,
    /// The last records, if they are magic numbers: two are the end of an archive that says nothing else.
    magics: u32,
}

/// What was dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Records.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What was dropped of one provider.
#[derive(Debug, Default)]
struct Missing {
    name: Vec<u8>,
    /// The archive has its name.
    is_introduced: bool,
    records: u64,
    bytes: u64,
    events: u64,
    /// Times of the first and the last of these events.
    times: Option<(Ticks, Ticks)>,
    /// Loss records for the end of the archive.
    losses: Vec<u8>,
    /// What was open at the end, as far as it fits.
    open: Vec<u8>,
}

struct Bytes<'a>(&'a mut Vec<u8>);

impl Sink for Bytes<'_> {
    fn word(&mut self, word: u64) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(WORD), 0);
    }
}

/// Bytes of an archive of a limited size beside the loss records.
fn room(limit: u64) -> u64 {
    limit - MAX_ACCOUNT_BYTES.min(limit / 8)
}

impl Limited {
    /// An archive of at most the given number of bytes.
    pub fn new(limit: u64) -> Self {
        Self {
            limit,
            written: 0,
            rest: Vec::new(),
            large: (0, false),
            is_cut: false,
            provider: ProviderId(0),
            providers: BTreeMap::new(),
            left_out: LeftOut::default(),
            programs: Vec::new(),
            end: Vec::new(),
            magics: 0,
        }
    }

    /// The part of the next bytes that is to be written.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut all = std::mem::take(&mut self.rest);
        all.extend_from_slice(bytes);
        let mut out = Vec::with_capacity(all.len());
        let mut left = &all[..];
        loop {
            let (missing, is_let_through) = self.large;
            if missing > 0 {
                let part = left.len().min(usize::try_from(missing).unwrap_or(usize::MAX));
                let (part, behind) = left.split_at(part);
                self.large.0 -= part.len() as u64;
                if is_let_through {
                    out.extend_from_slice(part);
                } else {
                    self.left_out.bytes += part.len() as u64;
                }
                left = behind;
            }
            let Some(word) = left.first_chunk().filter(|_| self.large.0 == 0) else { break };
            let header = RecordHeader(u64::from_le_bytes(*word));
            let size = header.size().bytes().max(WORD);
            if header.record_type() == Some(RecordType::Large) {
                self.large = (size as u64, self.has_room(size as u64));
                self.left_out.records += u64::from(self.is_cut);
                continue;
            }
            let Some((record, behind)) = left.split_at_checked(size) else { break };
            self.record(record, &mut out);
            left = behind;
        }
        self.rest = left.to_vec();
        out
    }

    /// Notes a record; true if there is room for it.
    fn has_room(&mut self, size: u64) -> bool {
        self.is_cut = self.is_cut || self.written + size > room(self.limit);
        self.written += if self.is_cut { 0 } else { size };
        !self.is_cut
    }

    fn record(&mut self, record: &[u8], out: &mut Vec<u8>) {
        let is_kept = self.has_room(record.len() as u64);
        self.magics = if *record == MAGIC_WORD.to_le_bytes() { self.magics + 1 } else { 0 };
        let is_metadata = RecordHeader(u64::from_le_bytes(*record.first_chunk().unwrap_or(&[0; WORD])))
            .record_type_bits()
            == RecordType::Metadata as u8;
        if is_kept {
            out.extend_from_slice(record);
        }
        if is_kept && !is_metadata {
            return;
        }
        if self.provider == MANAGER && is_end(record) {
            self.end = record.to_vec();
            return;
        }
        let is_account = (self.programs.len() + record.len()) as u64 <= MAX_ACCOUNT_BYTES;
        if self.provider == MANAGER
            && is_account
            && matches!(Record::decode(record), Ok(Record::KernelObject(_)))
        {
            self.programs.extend_from_slice(record);
            return;
        }
        let open = &mut self.providers.entry(self.provider).or_default().open;
        if (open.len() + record.len()) as u64 <= MAX_ACCOUNT_BYTES
            && matches!(Record::decode(record), Ok(Record::Event(event)) if ending_of(&event).is_some())
        {
            open.extend_from_slice(record);
            return;
        }
        self.left_out.bytes += if is_kept { 0 } else { record.len() as u64 };
        match Record::decode(record) {
            Ok(Record::Metadata(metadata)) => self.metadata(&metadata, is_kept),
            Ok(Record::Blob(blob)) if is_named(&blob, LEDGER_BLOB_NAME) => {}
            Ok(Record::Blob(blob)) if is_named(&blob, LOSS_BLOB_NAME) => {
                if let Ok(Some(loss)) = LossRecord::decode(blob.payload) {
                    let missing = self.providers.entry(loss.provider).or_default();
                    if missing.losses.len() as u64 <= MAX_ACCOUNT_BYTES {
                        missing.losses.extend_from_slice(record);
                    }
                }
            }
            // Of the manager's: it is counted nowhere.
            Ok(Record::Event(event)) if ending_of(&event).is_some() => {}
            decoded => {
                self.left_out.records += 1;
                let missing = self.providers.entry(self.provider).or_default();
                missing.records += 1;
                missing.bytes += if is_kept { 0 } else { record.len() as u64 };
                if let Ok(Record::Event(Event { timestamp, .. })) = decoded {
                    missing.events += 1;
                    let (first, last) = missing.times.unwrap_or((timestamp, timestamp));
                    missing.times = Some((first.min(timestamp), last.max(timestamp)));
                }
            }
        }
    }

    fn metadata(&mut self, metadata: &Metadata<'_>, is_kept: bool) {
        match metadata {
            Metadata::ProviderInfo { id, name } => {
                self.provider = *id;
                let missing = self.providers.entry(*id).or_default();
                missing.name = name.to_vec();
                missing.is_introduced |= is_kept;
            }
            Metadata::ProviderSection { id } => self.provider = *id,
            _ => {}
        }
    }

    /// The end of the archive: what each provider lost, and what was dropped from the archive.
    //= docs/format.md#loss-blob
    pub fn accounts(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        for (&provider, missing) in &self.providers {
            let is_known = missing.is_introduced || missing.name.is_empty();
            if missing.records == 0 && missing.losses.is_empty() && missing.open.is_empty() && is_known {
                continue;
            }
            let mut account = MAGIC_WORD.to_le_bytes().to_vec();
            let metadata = match missing.is_introduced {
                true => Metadata::ProviderSection { id: provider },
                false => Metadata::ProviderInfo { id: provider, name: &missing.name },
            };
            // The name was in a record of the same kind.
            let _ = metadata.encode(&mut Bytes(&mut account));
            if missing.records > 0 {
                let (first, last) = missing.times.unwrap_or_default();
                let (reason, count) = (LossCode::LEFT_OUT, missing.records);
                let payload = LossRecord { provider, reason, count, first, last }.to_bytes();
                let _ = LossRecord::blob(&payload).encode(&mut Bytes(&mut account));
            }
            account.extend_from_slice(&missing.losses);
            let open = &missing.open[..];
            // The outermost stand first, and more of them fit.
            let ends = std::iter::successors(Some(0), |end: &usize| {
                let header = RecordHeader(u64::from_le_bytes(*open.get(*end..)?.first_chunk()?));
                Some(end + header.size().bytes())
            });
            let room = self.limit.saturating_sub(self.written + account.len() as u64);
            let end = ends.take_while(|end| *end as u64 <= room).last().unwrap_or(0);
            account.extend_from_slice(&open[..end]);
            if self.written + account.len() as u64 <= self.limit {
                self.written += account.len() as u64;
                out.extend(account);
            }
        }
        let (programs, mut end) = (std::mem::take(&mut self.programs), std::mem::take(&mut self.end));
        let is_silent = self.is_cut && self.magics >= 2;
        if is_silent {
            session_info::end_silently(&mut end);
        }
        let of_manager = [&programs[..], &end].concat();
        // Without the end, the archive would look cut off. There is room for it.
        for records in [of_manager, end] {
            let mut account = MAGIC_WORD.to_le_bytes().to_vec();
            let _ = MANAGER_SECTION.encode(&mut Bytes(&mut account));
            account.extend(&records);
            if !records.is_empty() && self.written + account.len() as u64 <= self.limit {
                self.written += account.len() as u64;
                out.extend(account);
                break;
            }
        }
        out
    }

    /// What has been dropped so far.
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// Corrects the statistics of the received data to those of the archive.
    pub fn correct(&self, stats: &mut [ProviderStats]) {
        for stats in stats {
            let Some(missing) =
                self.providers.get(&ProviderId(stats.id)).filter(|missing| missing.records > 0)
            else {
                continue;
            };
            let less = |count: u64| count.saturating_sub(missing.events);
            stats.bytes_archived = stats.bytes_archived.map(|bytes| bytes.saturating_sub(missing.bytes));
            stats.events_archived = stats.events_archived.map(less);
            stats.records_dropped = Some(stats.records_dropped.unwrap_or(0).saturating_add(missing.records));
            stats.losses.push(Lost { reason: LossCode::LEFT_OUT.0, records: missing.records });
        }
    }
}

fn is_named(blob: &Blob<'_>, name: &str) -> bool {
    blob.name == StringRef::inline(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace_format::argument::{Argument, ArgumentValue, Arguments};
    use trace_format::event::{EventKind, Scope};
    use trace_format::refs::ThreadRef;
    use trace_format::scopes::{END_ARGUMENT, Ending};
    use trace_format::units::{Koid, ProcessKoid, ThreadKoid};

    /// A provider and its events, each of so many bytes.
    fn archive(events: u64) -> (Vec<u8>, usize) {
        let mut bytes = MAGIC_WORD.to_le_bytes().to_vec();
        Metadata::ProviderInfo { id: ProviderId(7), name: b"app" }.encode(&mut Bytes(&mut bytes)).unwrap();
        let begin = bytes.len();
        for at in 0..events {
            let thread = ThreadRef::Inline { process: ProcessKoid(Koid(1)), thread: ThreadKoid(Koid(2)) };
            let (category, name) = (StringRef::inline("cat"), StringRef::inline("name"));
            let (kind, arguments) = (EventKind::Instant { scope: Scope::Thread }, Arguments::from_slice(&[]));
            let event = Event { timestamp: Ticks(at), thread, category, name, kind, arguments };
            Record::Event(event).encode(&mut Bytes(&mut bytes)).unwrap();
        }
        let size = (bytes.len() - begin) / events as usize;
        (bytes, size)
    }

    /// What was open is not left out: there is room for it beside the losses.
    #[test]
    fn what_was_open_is_kept_behind_the_limit() {
        let (mut bytes, _) = archive(100);
        let before = bytes.len();
        let thread = ThreadRef::Inline { process: ProcessKoid(Koid(1)), thread: ThreadKoid(Koid(2)) };
        let (category, name) = (StringRef::inline("cat"), StringRef::inline("open"));
        let why = ArgumentValue::String(StringRef::inline(Ending::Stop.text()));
        let why = [Argument { name: StringRef::inline(END_ARGUMENT), value: why }];
        let (kind, arguments) = (EventKind::DurationBegin, Arguments::from_slice(&why));
        let event = Event { timestamp: Ticks(7), thread, category, name, kind, arguments };
        Record::Event(event).encode(&mut Bytes(&mut bytes)).unwrap();
        let open = bytes[before..].to_vec();
        for is_cut in [true, false] {
            let mut limited = Limited::new(if is_cut { 2000 } else { 1 << 20 });
            let written = limited.take(&bytes);
            let accounts = limited.accounts();
            assert_eq!(written.ends_with(&open), !is_cut);
            assert_eq!(
                accounts.windows(open.len()).filter(|part| *part == open).count(),
                usize::from(is_cut)
            );
        }
    }

    /// An archive that is not cut off has the end of its recording.
    //= docs/check.md#problems
    #[test]
    fn the_end_of_the_recording_is_kept_behind_the_limit() {
        let (mut bytes, size) = archive(100);
        let begin = bytes.len() - 100 * size;
        MANAGER_SECTION.encode(&mut Bytes(&mut bytes)).unwrap();
        let before = bytes.len();
        let thread = ThreadRef::Inline { process: ProcessKoid(Koid(1)), thread: ThreadKoid(Koid(2)) };
        let (category, name) = (StringRef::inline("trace"), StringRef::inline("recording_end"));
        let (kind, arguments) = (EventKind::Instant { scope: Scope::Global }, Arguments::from_slice(&[]));
        let event = Event { timestamp: Ticks(7), thread, category, name, kind, arguments };
        Record::Event(event).encode(&mut Bytes(&mut bytes)).unwrap();
        let end = bytes[before..].to_vec();
        let mut limited = Limited::new(2000);
        let written = limited.take(&bytes);
        let kept = (2000 - 250 - begin) / size;
        assert_eq!(written, bytes[..begin + kept * size]);
        assert_eq!(limited.left_out().records, (100 - kept) as u64);
        let accounts = limited.accounts();
        assert!(accounts.ends_with(&end) && written.len() + accounts.len() <= 2000, "{accounts:?}");
        // Where it is within the limit, it stands there and not again.
        let mut limited = Limited::new(20_000);
        assert_eq!(limited.take(&bytes), bytes);
        assert!(limited.accounts().is_empty());
    }

    /// One that says nothing of its session has its end, too.
    //= docs/protocol.md#end-of-the-archive
    #[test]
    fn the_end_of_a_silent_archive_is_kept_behind_the_limit() {
        let (mut bytes, _) = archive(100);
        session_info::end_silently(&mut bytes);
        for limit in [2000, 20_000] {
            let mut limited = Limited::new(limit);
            let mut written = limited.take(&bytes);
            written.extend(limited.accounts());
            assert!(written.len() as u64 <= limit);
            assert!(session_info::is_ended(&written), "{limit}");
        }
    }

    /// Programs that were not recorded are in the archive, however small it is to be.
    //= docs/protocol.md#programs-of-which-something-is-missing
    #[test]
    fn entries_of_programs_are_kept_behind_the_limit() {
        let (mut bytes, _) = archive(100);
        let mut entries = Vec::new();
        let missing = |id, reason: Option<LossCode>| trace_archive::missing::Missing {
            id,
            name: format!("app {id}"),
            pid: 7,
            reason: reason.map(|reason| reason.0),
            at: 5,
            disposition: "refused".to_owned(),
            problem: "it is too old".to_owned(),
        };
        let all = [missing(8, Some(LossCode::NOT_RECORDED)), missing(9, None)];
        all.iter().for_each(|missing| missing.write(true, &mut entries));
        bytes.extend(&entries);
        let mut limited = Limited::new(4000);
        let mut out = limited.take(&bytes);
        let before = limited.left_out();
        out.extend(limited.accounts());
        assert!(out.len() <= 4000);
        let mut reader = trace_reader::Reader::of_slice(&out).unwrap();
        let (mut names, mut lost, mut described) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(found) = reader.next_item().unwrap() {
            match found.item {
                trace_reader::Item::ProviderInfo { name } => names.push(name.to_str().into_owned()),
                trace_reader::Item::Loss(loss) => lost.push((loss.provider.0, loss.reason)),
                trace_reader::Item::KernelObject { arguments, .. } => {
                    described.push(format!("{arguments:?}"))
                }
                _ => {}
            }
        }
        assert_eq!(lost, [(7, LossCode::LEFT_OUT), (8, LossCode::NOT_RECORDED)]);
        assert_eq!(described.len(), 2, "{described:?}");
        assert_eq!(before.records, limited.left_out().records);
        assert_eq!(names, ["app", "app 8", "app 9"]);
    }

    //= docs/recording.md#how-a-recording-ends
    #[test]
    fn it_is_cut_at_a_whole_record_however_it_comes() {
        let (bytes, size) = archive(100);
        let begin = bytes.len() - 100 * size;
        for limit in [2000, 2000 + WORD as u64, 3000] {
            let kept = (limit as usize - limit as usize / 8 - begin) / size;
            for piece in [1, 3, 8, 24, 120, 10_000] {
                let mut limited = Limited::new(limit);
                let written: Vec<u8> = bytes.chunks(piece).flat_map(|piece| limited.take(piece)).collect();
                assert_eq!(written, bytes[..begin + kept * size], "{limit} bytes, {piece} at a time");
                let records = (100 - kept) as u64;
                assert_eq!(limited.left_out(), LeftOut { records, bytes: records * size as u64 });
                let accounts = limited.accounts();
                assert!((written.len() + accounts.len()) as u64 <= limit);
                let payload = LossRecord {
                    provider: ProviderId(7),
                    reason: LossCode::LEFT_OUT,
                    count: records,
                    first: Ticks(kept as u64),
                    last: Ticks(99),
                }
                .to_bytes();
                assert!(accounts.ends_with(&payload), "{accounts:?}");
                let mut stats = [ProviderStats { id: 7, events_archived: Some(100), ..Default::default() }];
                limited.correct(&mut stats);
                let [stats] = stats;
                assert_eq!(
                    (stats.events_archived, stats.records_dropped),
                    (Some(kept as u64), Some(records))
                );
            }
        }
        let mut limited = Limited::new(1 << 20);
        assert_eq!(limited.take(&bytes), bytes);
        assert!(limited.accounts().is_empty());
    }
}
