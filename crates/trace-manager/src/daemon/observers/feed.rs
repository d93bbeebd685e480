//! One provider's buffer, read for one observer while the provider writes.
//!
//! Every observer has a reader of its own, so that it gets the definitions of what it sees, and so that none
//! depends on another. Nothing here writes.
//= docs/protocol.md#observers

use crate::daemon::providers::{ObservedBuffer, release};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trace_archive::framing;
use trace_archive::open_scopes::OpenScopes;
use trace_format::buffer::Layout;
use trace_format::units::{ProviderId, Ticks, TicksPerSecond};
use trace_protocol::controller::observer::FRAME_HEADER_BYTES;
use trace_protocol::controller::{FrameKind, ObservedProvider, ProviderProgress};
use trace_reader::buffer::{Activity, BufferError, BufferPart, BufferReader, Period};
use zx_sim::Vmo;
use zx_sim::ticks;

/// The most that is read of one provider at a time, in bytes.
pub(super) const MAX_PASS_BYTES: u64 = 2 << 20;
/// A provider that writes faster is read again before the next update.
const FAST_BYTES: u64 = MAX_PASS_BYTES / 4;
/// How long it is left alone at least.
const MIN_REST: Duration = Duration::from_millis(20);

const LIVE: BufferPart = BufferPart::Rest(Activity::Live);

/// A buffer that several observers read; its memory is released apart from the daemon's loop.
pub(super) struct SharedVmo(Option<Arc<Vmo>>);

impl SharedVmo {
    pub fn new(vmo: Arc<Vmo>) -> Rc<Self> {
        Rc::new(Self(Some(vmo)))
    }
}

impl Drop for SharedVmo {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(release);
    }
}

impl trace_reader::buffer::Source for SharedVmo {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> std::io::Result<usize> {
        self.0.as_ref().map_or(Ok(0), |vmo| vmo.read_at(offset, bytes).map_err(std::io::Error::other))
    }
}

/// The state of reading one provider for one observer.
pub(super) struct Feed {
    id: ProviderId,
    buffer: ObservedBuffer,
    pub vmo: Rc<SharedVmo>,
    reader: Option<BufferReader<Rc<SharedVmo>>>,
    /// A part is being read.
    is_reading: bool,
    /// The observer has the provider's name.
    is_announced: bool,
    /// The next start clears definitions, too.
    will_be_cleared: bool,
    /// Records that were read before that happened.
    seen_before: u64,
    /// When the provider stopped to take part, in ticks.
    ended: Option<u64>,
    /// The bytes of rolling regions that had been read when this part began.
    read_then: u64,
    /// The records that had been written by then.
    written_then: u64,
    /// Those of them that were not read.
    missed: u64,
    /// When it has to be read again though no update is due.
    again: Option<Instant>,
}

impl Feed {
    pub fn new(id: ProviderId, buffer: ObservedBuffer, vmo: Rc<SharedVmo>) -> Self {
        Self {
            id,
            buffer,
            vmo,
            reader: None,
            is_reading: false,
            is_announced: false,
            will_be_cleared: false,
            seen_before: 0,
            ended: None,
            read_then: 0,
            written_then: 0,
            missed: 0,
            again: None,
        }
    }

    /// The provider takes no more part.
    pub fn end(&mut self) {
        self.ended = self.ended.or_else(|| Some(ticks::now()));
    }

    pub fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// The provider is started; its buffer is cleared with its definitions before it writes anything.
    pub fn will_be_cleared(&mut self) {
        self.will_be_cleared = self.reader.is_some();
    }

    /// When the provider has to be read before the next update, because it writes fast.
    pub fn again(&self) -> Option<Instant> {
        self.again
    }

    /// Appends a frame with the next batch of records, if there are any. True if there are more.
    pub fn read(&mut self, rate: TicksPerSecond, now: Instant, out: &mut Vec<u8>) -> bool {
        if !self.is_reading {
            if self.begin(rate).is_err() {
                // Nothing is in it yet, or the provider has damaged it: the counts show the latter.
                self.again = None;
                return false;
            }
            self.is_reading = true;
            self.read_then = self.rolling_bytes();
            let written = self.reader.as_ref().and_then(|reader| reader.written().ok());
            self.written_then = written.map_or(0, |written| written.records);
        }
        let start = out.len();
        out.extend_from_slice(&[0; FRAME_HEADER_BYTES]);
        match self.is_announced {
            false => framing::provider_info(self.id, &self.buffer.name, out),
            true => framing::provider_section(self.id, out),
        }
        let records = out.len();
        let goes_on = self.reader.as_mut().is_some_and(|reader| reader.read_batch(out).unwrap_or(false));
        let contents = start + FRAME_HEADER_BYTES;
        let header = FrameKind::Records.header(out.len() - contents).ok().filter(|_| out.len() > records);
        match (header, out.get_mut(start..contents)) {
            (Some(header), Some(place)) => {
                place.copy_from_slice(&header);
                self.is_announced = true;
            }
            _ => out.truncate(start),
        }
        if !goes_on {
            self.is_reading = false;
            let bytes = self.rolling_bytes().saturating_sub(self.read_then);
            self.again = (bytes > FAST_BYTES).then(|| now + MIN_REST);
            let seen = self.seen_before + self.reader.as_ref().map_or(0, seen);
            // What was written meanwhile, and was read, hides some of them until the next part.
            self.missed = self.missed.max(self.written_then.saturating_sub(seen));
        }
        goes_on
    }

    /// Appends a frame with the scopes of threads of which one has been open for so long, if there are any.
    pub fn open_scopes(&self, rate: TicksPerSecond, open_for_ns: u64, out: &mut Vec<u8>) {
        let Ok(layout) = Layout::new(self.buffer.size, self.buffer.mode.into()) else { return };
        // Before they are read: none is longer open than is said.
        let at = Ticks(ticks::now());
        let limit = u128::from(open_for_ns) * u128::from(rate.0.get()) / 1_000_000_000;
        let before = at.0.saturating_sub(u64::try_from(limit).unwrap_or(u64::MAX));
        let open = OpenScopes::read_since(&*self.vmo, &layout, Ticks(before));
        if open.is_empty() {
            return;
        }
        let mut archive = Vec::new();
        open.write_archive(self.id, &self.buffer.name, at, rate, &mut archive);
        if let Ok(header) = FrameKind::OpenScopes.header(archive.len()) {
            out.extend_from_slice(&header);
            out.append(&mut archive);
        }
    }

    /// Finds what there is to read.
    fn begin(&mut self, rate: TicksPerSecond) -> Result<(), BufferError> {
        let period = Period { made: self.buffer.made, read: self.ended.unwrap_or_else(ticks::now) };
        let floor = self.reader.as_ref().map(|reader| reader.header().floor_sequence);
        if let Some(reader) = &mut self.reader {
            reader.begin(LIVE)?;
            if self.will_be_cleared && floor != Some(reader.header().floor_sequence) {
                self.seen_before += seen(reader);
                self.will_be_cleared = false;
                self.reader = None;
            }
        }
        let reader = match &mut self.reader {
            Some(reader) => reader,
            none => {
                let (size, mode) = (self.buffer.size, self.buffer.mode.into());
                none.insert(BufferReader::open(self.vmo.clone(), size, mode, rate, LIVE)?)
            }
        };
        reader.set_period(period);
        reader.skip_to_newest(MAX_PASS_BYTES);
        Ok(())
    }

    fn rolling_bytes(&self) -> u64 {
        self.reader.as_ref().map_or(0, |reader| reader.findings().rolling_bytes)
    }

    /// What an update says of the provider.
    pub fn counts(&self, rate: TicksPerSecond, saved_halves: u64, wants_records: bool) -> ObservedProvider {
        let mut progress = ProviderProgress {
            id: self.id.0,
            name: self.buffer.name.clone(),
            pid: self.buffer.pid,
            ..ProviderProgress::default()
        };
        let opened = || {
            let (size, mode) = (self.buffer.size, self.buffer.mode.into());
            let mut reader = BufferReader::open(self.vmo.clone(), size, mode, rate, LIVE).ok()?;
            reader.set_period(Period { made: self.buffer.made, read: self.ended.unwrap_or_else(ticks::now) });
            Some(reader)
        };
        let fresh = if self.reader.is_none() { opened() } else { None };
        let Some(reader) = self.reader.as_ref().or(fresh.as_ref()) else {
            return ObservedProvider { progress, missed: 0, has_ended: self.has_ended() };
        };
        let usage = reader.usage(saved_halves).unwrap_or_default();
        progress.records = usage.records;
        progress.bytes = usage.claimed_bytes;
        progress.dropped = usage.refused;
        progress.is_damaged = usage.is_damaged;
        if !self.has_ended() {
            progress.fill = usage.rolling_percent;
            progress.held = usage.held_bytes;
        }
        // What is on its way is not missed.
        let mut missed = self.missed;
        if wants_records && let Ok(written) = reader.written() {
            progress.records = written.records;
            progress.is_damaged |= written.is_damaged;
            if self.has_ended() {
                missed = written.records.saturating_sub(self.seen_before + seen(reader));
            }
        }
        ObservedProvider { progress, missed, has_ended: self.has_ended() }
    }
}

/// Records of the rolling regions that were read, sound or not.
fn seen(reader: &BufferReader<Rc<SharedVmo>>) -> u64 {
    let findings = reader.findings();
    findings.rolling_records + findings.late_events + findings.bad_rolling_records
}
