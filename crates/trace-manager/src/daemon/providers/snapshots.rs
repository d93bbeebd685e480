//! Sources of snapshots: the buffers of programs that record, and of those that have ended meanwhile.

use super::{Provider, Providers, Tracee, release};
use crate::core::{ClientId, Part, ProcessState};
use std::collections::VecDeque;
use std::sync::Arc;
use trace_archive::program_info::ProgramInfo;
use trace_archive::transfer::{Progress, ProviderBuffer, Transfer, VmoSource};
use trace_format::scopes::Ending;
use trace_format::units::{ProviderId, Ticks, TicksPerSecond};
use trace_protocol::BufferingMode;
use trace_protocol::controller::{ProviderDisposition, ProviderStats};
use trace_reader::buffer::{Activity, BufferPart, BufferReader, Period};
use zx_sim::Vmo;

/// Maximum number of ended programs whose data is kept: each has a descriptor.
const MAX_KEPT: usize = 256;
/// Maximum number of ended programs that are listed without data.
const MAX_GIVEN_UP: usize = 100;
/// Above this size, a buffer's unused memory is released on a thread of its own.
const QUICKLY_DISCARDED: u64 = 64 << 20;

/// A transfer out of a buffer, with its provider.
pub(in crate::daemon) type Reading = (Transfer, ProviderStats);

/// Buffers of ended programs, the newest first, up to a size together.
#[derive(Default)]
pub(super) struct Kept {
    most_bytes: u64,
    ended: VecDeque<Ended>,
    /// Programs whose data is no longer kept, the newest first.
    given_up: VecDeque<ProviderStats>,
}

/// The data of an ended program.
struct Ended {
    who: ProviderStats,
    vmo: Arc<Vmo>,
    buffer: Buffer,
    used_bytes: u64,
}

/// How to read a buffer.
#[derive(Clone)]
struct Buffer {
    size: u64,
    mode: BufferingMode,
    period: Period,
    has_started: bool,
    /// The provider no longer writes into it.
    is_quiet: bool,
    program: Option<ProgramInfo>,
}

impl Buffer {
    fn of(provider: &Provider, tracee: &Tracee, has_metadata: bool) -> Self {
        Self {
            size: tracee.size,
            mode: tracee.mode,
            period: tracee.period(),
            has_started: tracee.has_started,
            is_quiet: provider.process() == ProcessState::Dead,
            program: provider.program_info(has_metadata),
        }
    }

    fn reading(&self, who: &ProviderStats, vmo: Arc<Vmo>, rate: TicksPerSecond) -> Reading {
        let buffer = ProviderBuffer {
            id: ProviderId(who.id),
            name: who.name.clone(),
            size: self.size,
            mode: self.mode,
            rate,
            // The client has the previous halves.
            is_accounted: self.mode != BufferingMode::Streaming,
            period: Some(self.period),
            may_be_blank: !self.has_started,
            program: self.program.clone(),
            open_until: Some(Ticks(self.period.read)),
            ending: Some(if self.is_quiet { Ending::Death } else { Ending::Snapshot }),
        };
        let part = Part::Rest { is_quiet: self.is_quiet };
        (Transfer::new(buffer, Progress::of(vmo), part), who.clone())
    }
}

fn who(id: ProviderId, provider: &Provider, disposition: ProviderDisposition) -> ProviderStats {
    ProviderStats {
        id: id.0,
        name: provider.name.clone(),
        pid: provider.pid,
        disposition: disposition.into(),
        ..ProviderStats::default()
    }
}

impl Ended {
    /// Releases the unused memory.
    fn new(id: ProviderId, provider: &Provider, tracee: Tracee, has_metadata: bool) -> Self {
        let buffer = Buffer::of(provider, &tracee, has_metadata);
        let ended_ticks = Some(buffer.period.read);
        let who = ProviderStats { ended_ticks, ..who(id, provider, ProviderDisposition::Ended) };
        // Definitions that were counted when the buffer was read for the archive: a killed program has not
        // reported how many there are.
        let definitions = tracee.progress.as_ref().map_or(u64::MAX, Progress::durable_bytes);
        let unused = || {
            let part = BufferPart::Rest(Activity::Quiet);
            let rate = TicksPerSecond(core::num::NonZeroU64::MIN);
            let mode = buffer.mode.into();
            let source = VmoSource::from(tracee.vmo.clone());
            BufferReader::open(source, buffer.size, mode, rate, part).ok()?.unused(definitions).ok()
        };
        let unused = unused().unwrap_or_default();
        let unused_bytes: u64 = unused.iter().map(|part| part.end - part.start).sum();
        let vmo = tracee.vmo.clone();
        let discard = move || {
            let is_discarded = unused.into_iter().all(|part| vmo.discard(part).is_ok());
            release(vmo);
            is_discarded
        };
        let is_discarded = if buffer.size <= QUICKLY_DISCARDED {
            discard()
        } else {
            std::thread::Builder::new().name("trace-discard".to_owned()).spawn(discard).is_ok()
        };
        let used_bytes = if is_discarded { buffer.size.saturating_sub(unused_bytes) } else { buffer.size };
        Self { who, vmo: tracee.vmo, buffer, used_bytes }
    }
}

impl Kept {
    /// Keeps at most this many bytes of memory together.
    pub fn up_to(most_bytes: u64) -> Self {
        Self { most_bytes, ..Self::default() }
    }

    /// Adds a program that has just ended. The oldest are given up for it.
    //= docs/protocol.md#snapshot
    pub fn add(&mut self, id: ProviderId, provider: &Provider, mut tracee: Tracee, has_metadata: bool) {
        if self.most_bytes == 0 {
            // It has a share of the buffer, and is not to have the last one.
            drop(tracee.progress.take());
            return self.give_up(who(id, provider, ProviderDisposition::Ended), tracee.vmo);
        }
        self.ended.push_front(Ended::new(id, provider, tracee, has_metadata));
        while self.has_too_much() {
            let Some(Ended { who, vmo, .. }) = self.ended.pop_back() else {
                return;
            };
            self.give_up(who, vmo);
        }
    }

    /// Stops keeping data.
    pub fn end(&mut self) {
        self.ended.drain(..).for_each(|ended| release(ended.vmo));
        *self = Self::default();
    }

    fn has_too_much(&self) -> bool {
        let used_bytes: u64 = self.ended.iter().map(|ended| ended.used_bytes).sum();
        used_bytes > self.most_bytes || self.ended.len() > MAX_KEPT
    }

    fn give_up(&mut self, who: ProviderStats, vmo: Arc<Vmo>) {
        release(vmo);
        let problem = match self.ended.len() < MAX_KEPT {
            true => "it is not kept, as --keep-ended has no room for it".to_owned(),
            false => format!("it is not kept, as {MAX_KEPT} newer ones are"),
        };
        self.given_up.truncate(MAX_GIVEN_UP - 1);
        self.given_up.push_front(ProviderStats { problem, ..who });
    }
}

impl Providers {
    /// A transfer out of a provider's buffer, independent of all others; the provider continues to write.
    pub fn snapshot(&self, id: ProviderId, rate: TicksPerSecond) -> Option<Reading> {
        let provider = self.providers.get(&id)?;
        let tracee = provider.tracee.as_ref()?;
        let disposition = match tracee.ended {
            Some(_) => ProviderDisposition::Ended,
            None => ProviderDisposition::Recording,
        };
        let who = ProviderStats { ended_ticks: tracee.ended, ..who(id, provider, disposition) };
        let vmo = tracee.vmo.clone();
        let has_metadata = self.sessions.get(&tracee.session).is_some_and(|session| session.has_metadata);
        Some(Buffer::of(provider, tracee, has_metadata).reading(&who, vmo, rate))
    }

    /// Transfers of the data of a session's ended programs, the newest first, and the programs whose data is
    /// no longer kept.
    pub fn snapshot_ended(
        &self,
        session: ClientId,
        rate: TicksPerSecond,
    ) -> (VecDeque<Reading>, Vec<ProviderStats>) {
        let Some(session) = self.sessions.get(&session) else {
            return (VecDeque::new(), Vec::new());
        };
        let named = |who: &ProviderStats| {
            let mut who = who.clone();
            session.ends.name(&mut who);
            who
        };
        let reading = |ended: &Ended| ended.buffer.reading(&named(&ended.who), ended.vmo.clone(), rate);
        let kept = &session.kept;
        (kept.ended.iter().map(reading).collect(), kept.given_up.iter().map(named).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::provider;
    use super::*;

    /// Adds a program that has a buffer of 64 KiB, of which nothing is known.
    fn add(kept: &mut Kept, id: u32) {
        let size = 64 << 10;
        let tracee = Tracee {
            session: ClientId(1),
            vmo: Arc::new(Vmo::of_bytes("buffer", &vec![0; size as usize]).unwrap()),
            size,
            mode: BufferingMode::Oneshot,
            fifo: None,
            progress: None,
            has_started: true,
            made: 1,
            ended: Some(2),
            has_stopped: false,
            is_terminated: false,
            is_left: false,
            copied: 0,
        };
        kept.add(ProviderId(id), &provider(), tracee, false);
    }

    fn ids<'a>(who: impl Iterator<Item = &'a ProviderStats>) -> Vec<u32> {
        who.map(|who| who.id).collect()
    }

    //= docs/protocol.md#snapshot
    #[test]
    fn so_many_bytes_and_so_many_programs_are_kept() {
        let mut kept = Kept::up_to(3 * (64 << 10));
        (1..=5).for_each(|id| add(&mut kept, id));
        assert_eq!(ids(kept.ended.iter().map(|ended| &ended.who)), [5, 4, 3]);
        assert_eq!(ids(kept.given_up.iter()), [2, 1]);
        assert_eq!(kept.given_up[0].problem, "it is not kept, as --keep-ended has no room for it");

        let mut kept = Kept::up_to(u64::MAX);
        (1..=256 + 150).for_each(|id| add(&mut kept, id));
        assert_eq!(ids(kept.ended.iter().map(|ended| &ended.who)), (151..=406).rev().collect::<Vec<_>>());
        assert_eq!(ids(kept.given_up.iter()), (51..=150).rev().collect::<Vec<_>>());
        assert_eq!(kept.given_up[0].problem, "it is not kept, as 256 newer ones are");

        let mut kept = Kept::default();
        add(&mut kept, 1);
        assert_eq!((kept.ended.len(), ids(kept.given_up.iter())), (0, vec![1]));
    }
}
