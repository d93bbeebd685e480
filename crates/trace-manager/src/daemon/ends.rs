//! How programs ended: what the system reports of a process that its parent has reaped.
//!
//! From Linux 6.15 on, a descriptor of a process reports that, some time after the process died: whenever its
//! parent reaps it. Only the answer to a Stop waits for it, for at most a second after the program was gone.
//= docs/protocol.md#how-a-program-ended

use crate::core::ClientId;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};
use trace_archive::program_info::ProviderEnd;
use trace_format::units::{Koid, ProviderId, Ticks};
use trace_protocol::controller::{ProviderDisposition, ProviderStats, StopResult};
use zx_sim::ProcessFd;
use zx_sim::process::end_in_words;
use zx_sim::ticks;

/// How long a program's parent gets to reap it.
const REAP_WAIT: Duration = Duration::from_secs(1);
/// How often to check while an answer waits.
const INTERVAL: Duration = Duration::from_millis(10);
/// Maximum number of programs whose end is remembered.
const MOST: usize = 4096;

/// The words that stand for "something was closed" until more is known.
const CLOSED: [ProviderDisposition; 2] = [ProviderDisposition::Ended, ProviderDisposition::Left];

/// A program's end.
struct End {
    process: u64,
    /// When it was noticed, in ticks.
    at: u64,
    leaving: Leaving,
    how: How,
}

/// Why a provider closed its FIFO or its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaving {
    /// The manager has asked it to, because the recording ends.
    Asked,
    /// Its program has ended, or does not provide any more.
    Unasked,
}

enum How {
    Unknown { process: Rc<ProcessFd>, until: Instant },
    Known(String),
}

/// How the programs of a session ended.
#[derive(Default)]
pub(super) struct Ends {
    ends: BTreeMap<ProviderId, End>,
    /// The answer to a Stop, and its client.
    held: Option<(ClientId, StopResult)>,
}

fn is_closed(stats: &ProviderStats) -> bool {
    CLOSED.iter().any(|disposition| stats.disposition == *disposition)
}

impl How {
    /// Checks what the system reports; "left" for a program that is alive when its time is up.
    fn look(&mut self, now: Instant) {
        let Self::Unknown { process, until } = self else {
            return;
        };
        if let Some(status) = process.exit_status() {
            *self = Self::Known(end_in_words(status));
        } else if *until <= now {
            let disposition = match process.is_dead() {
                true => ProviderDisposition::Ended,
                false => ProviderDisposition::Left,
            };
            *self = Self::Known(disposition.into());
        }
    }

    fn in_words(&self) -> String {
        match self {
            Self::Known(words) => words.clone(),
            Self::Unknown { process, .. } if process.is_dead() => ProviderDisposition::Ended.into(),
            Self::Unknown { .. } => ProviderDisposition::Left.into(),
        }
    }
}

impl Ends {
    /// A program has just ended, or only its provider.
    pub fn add(&mut self, id: ProviderId, pid: u64, process: Option<Rc<ProcessFd>>, leaving: Leaving) {
        let Some(process) = process else {
            return;
        };
        if self.ends.len() == MOST {
            self.ends.pop_first();
        }
        let until = Instant::now() + REAP_WAIT;
        let how = How::Unknown { process, until };
        self.ends.entry(id).or_insert_with(|| End { process: pid, at: ticks::now(), leaving, how });
    }

    fn look_at_all(&mut self, now: Instant) {
        self.ends.values_mut().for_each(|end| end.how.look(now));
    }

    /// The ends of programs that have left the recording before it ended, as far as they are known now.
    //= docs/protocol.md#provider-descriptions
    pub fn of_programs(&mut self, now: Instant) -> Vec<ProviderEnd> {
        self.look_at_all(now);
        let unasked = self.ends.iter().filter(|(_, end)| end.leaving == Leaving::Unasked);
        let end_of = |(id, end): (&ProviderId, &End)| ProviderEnd {
            id: *id,
            process: Koid(end.process),
            at: Some(Ticks(end.at)),
            how: end.how.in_words(),
        };
        unasked.map(end_of).collect()
    }

    /// Keeps the answer to a Stop until it is known how all programs in it have ended.
    pub fn hold(&mut self, client: ClientId, result: StopResult) {
        self.held = Some((client, result));
    }

    /// Checks how programs have ended. Returns an answer that is now complete.
    pub fn look(&mut self, now: Instant) -> Option<(ClientId, StopResult)> {
        self.look_at_all(now);
        let is_unknown = |stats: &ProviderStats| {
            is_closed(stats)
                && matches!(self.ends.get(&ProviderId(stats.id)), Some(End { how: How::Unknown { .. }, .. }))
        };
        let (_, result) = self.held.as_ref()?;
        if result.provider_stats.iter().any(is_unknown) {
            return None;
        }
        let (client, mut result) = self.held.take()?;
        result.provider_stats.iter_mut().for_each(|stats| self.name(stats));
        Some((client, result))
    }

    /// Sets how a program has ended, if that is known and its entry is less specific.
    pub fn name(&self, stats: &mut ProviderStats) {
        if let Some(End { how: How::Known(words), .. }) = self.ends.get(&ProviderId(stats.id))
            && is_closed(stats)
        {
            stats.disposition.clone_from(words);
        }
    }

    /// Sets the ends of all of these, as far as they are known now.
    pub fn name_now(&mut self, all: &mut [ProviderStats], now: Instant) {
        self.look_at_all(now);
        for stats in all {
            match self.ends.get(&ProviderId(stats.id)) {
                // Its provider was closed while the program was alive.
                Some(End { how: How::Unknown { process, .. }, .. })
                    if stats.disposition == ProviderDisposition::Left && process.is_dead() =>
                {
                    stats.disposition = ProviderDisposition::Ended.into();
                }
                _ => self.name(stats),
            }
        }
    }

    /// When to check again.
    pub fn next_deadline(&self) -> Option<Instant> {
        let untils = self.ends.values().filter_map(|end| match &end.how {
            How::Unknown { until, .. } => Some(*until),
            How::Known(_) => None,
        });
        let soon = self.held.as_ref().map(|_| Instant::now() + INTERVAL);
        untils.chain(soon).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    const CLIENT: ClientId = ClientId(1);
    const ID: ProviderId = ProviderId(7);

    fn result(disposition: &str) -> StopResult {
        let stats =
            ProviderStats { id: ID.0, disposition: disposition.to_owned(), ..ProviderStats::default() };
        StopResult { provider_stats: vec![stats] }
    }

    /// Until it is reaped nothing is known of it, and then all.
    //= docs/protocol.md#how-a-program-ended
    //= docs/protocol.md#provider-descriptions
    #[test]
    fn an_answer_waits_until_a_program_is_reaped_and_no_longer() {
        let mut shell = Command::new("sh");
        let mut child = shell.args(["-c", "read line; exit 3"]).stdin(Stdio::piped()).spawn().unwrap();
        let process = Rc::new(ProcessFd::open(child.id()).unwrap());
        let mut ends = Ends::default();
        ends.add(ID, 7, Some(process.clone()), Leaving::Unasked);
        ends.hold(CLIENT, result("left"));
        let now = Instant::now();
        assert_eq!(ends.look(now), None, "it lives");
        let named = |ends: &mut Ends| {
            let mut stats = result("left").provider_stats;
            ends.name_now(&mut stats, now);
            stats.remove(0).disposition
        };
        assert_eq!(named(&mut ends), "left");
        drop(child.stdin.take());
        let begin = Instant::now();
        while !process.is_dead() {
            assert!(begin.elapsed() < Duration::from_secs(60));
        }
        assert_eq!(ends.look(now), None, "it is not reaped");
        assert_eq!(named(&mut ends), "ended");
        child.wait().unwrap();
        if process.exit_status().is_none() {
            // An older kernel.
            assert_eq!(ends.look(now + REAP_WAIT * 2), Some((CLIENT, result("ended"))));
            return;
        }
        assert_eq!(ends.look(now), Some((CLIENT, result("exit status 3"))));
        assert_eq!(named(&mut ends), "exit status 3");
        let ends_of_programs = ends.of_programs(now);
        let [ProviderEnd { id: ID, process: Koid(7), at: Some(_), how }] = &ends_of_programs[..] else {
            panic!("{ends_of_programs:?}");
        };
        assert_eq!(how, "exit status 3");
        // What is known already is not less.
        ends.hold(CLIENT, result("stopped"));
        assert_eq!(ends.look(now), Some((CLIENT, result("stopped"))));
    }

    //= docs/protocol.md#how-a-program-ended
    #[test]
    fn a_program_that_lives_on_has_left() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let mut ends = Ends::default();
        ends.add(ID, 7, ProcessFd::open(child.id()).ok().map(Rc::new), Leaving::Asked);
        ends.hold(CLIENT, result("ended"));
        let now = Instant::now();
        assert_eq!(ends.look(now), None);
        assert_eq!(ends.look(now + REAP_WAIT * 2), Some((CLIENT, result("left"))));
        assert_eq!(ends.of_programs(now), [], "the recording ended before it");
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
