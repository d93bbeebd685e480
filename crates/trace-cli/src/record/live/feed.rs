//! The thread that reads what an observer gets and sums it up, and the picture that it leaves.
//!
//! Only the last picture is kept. While it is not taken, nothing is delayed but the screen.

use super::frames::{FollowError, Frames, Pending, Waiting};
use crate::shell::exit::Failure;
use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use trace_analysis::live::{Live, Snapshot};
use trace_archive::problem;
use trace_format::units::{ProviderId, Ticks, TicksPerSecond};
use trace_protocol::controller::{Counts, ObservedProvider};
use trace_reader::Reader;
use zx_sim::{Error, Socket};

/// Names of durations in a picture.
const MAX_SPANS: usize = 100;
/// Programs that have ended and are still in the picture; the first to end leave it.
const MAX_ENDED: usize = 200;

/// What is known at one moment.
#[derive(Clone, Debug)]
pub struct Picture {
    pub counts: Counts,
    pub snapshot: Snapshot,
}

/// Pictures of a recording.
pub struct Feed {
    shared: Arc<Shared>,
    wake: Socket,
}

#[derive(Default)]
struct Shared {
    picture: Mutex<Option<Picture>>,
    problem: Mutex<Option<FollowError>>,
    is_over: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Feed {
    /// Begins to read.
    pub fn begin(socket: Socket) -> Result<Self, Failure> {
        let (wake, waker) = Socket::pair().map_err(|error| Failure::new(error.to_string()))?;
        let shared = Arc::new(Shared::default());
        let reading = shared.clone();
        let thread = std::thread::Builder::new().name("trace-live".to_owned());
        let spawned = thread.spawn(move || {
            let mut ended = Ended::default();
            let followed = follow(socket, |live, counts| {
                let picture = picture(live, &mut ended, counts);
                *lock(&reading.picture) = Some(picture);
                // When it is full, the other side has enough to read.
                let _ = waker.write(&[0]);
            });
            if let Err(error) = followed {
                *lock(&reading.problem) = Some(error);
            }
            reading.is_over.store(true, Ordering::Release);
            let _ = waker.write(&[0]);
        });
        spawned.map_err(|error| Failure::new(format!("cannot start a thread: {error}")))?;
        Ok(Self { shared, wake })
    }

    /// The picture that has come since the last one was taken.
    pub fn take(&self) -> Option<Picture> {
        let mut bytes = [0; 64];
        while !matches!(self.wake.read(&mut bytes), Err(Error::ShouldWait | Error::PeerClosed) | Ok(0)) {}
        lock(&self.shared.picture).take()
    }

    /// Nothing more will come.
    pub fn is_over(&self) -> bool {
        self.shared.is_over.load(Ordering::Acquire) && lock(&self.shared.picture).is_none()
    }

    /// Why it has come to an end before the recording did.
    pub fn problem(&self) -> Option<String> {
        lock(&self.shared.problem).as_ref().map(|error| problem(error))
    }

    /// Readable when there is a picture, or the end.
    pub fn wake(&self) -> &Socket {
        &self.wake
    }
}

/// Reads what an observer gets to its end, and calls at each update.
pub fn follow(socket: Socket, mut update: impl FnMut(&mut Live, Counts)) -> Result<(), FollowError> {
    let pending = Pending::default();
    let mut reader = Reader::new(Frames::new(Waiting(socket), pending.clone()))?;
    let mut live = Live::default();
    while let Some(record) = reader.next_item()? {
        live.record(&record);
        while let Some(counts) = pending.take(reader.position().0) {
            update(&mut live, counts);
        }
    }
    pending.finish()
}

/// Programs that have ended: the manager names each once more, and it stays in the picture.
#[derive(Default)]
pub struct Ended(VecDeque<ObservedProvider>);

impl Ended {
    /// Adds those of earlier updates to the providers of this one. Returns those that are too many for the
    /// next one.
    //= docs/live.md#what-is-shown
    pub fn add_to(&mut self, providers: &mut Vec<ObservedProvider>) -> Vec<ObservedProvider> {
        let ids: HashSet<u32> = providers.iter().map(|provider| provider.progress.id).collect();
        self.0.retain(|ended| !ids.contains(&ended.progress.id));
        let earlier = self.0.clone();
        self.0.extend(providers.iter().filter(|provider| provider.has_ended).cloned());
        providers.extend(earlier);
        let surplus = self.0.len().saturating_sub(MAX_ENDED);
        self.0.drain(..surplus).collect()
    }
}

/// The time of an update, in nanoseconds.
pub fn time_of(counts: &Counts) -> u64 {
    let rate =
        TicksPerSecond::new(counts.ticks_per_second).unwrap_or(TicksPerSecond(std::num::NonZeroU64::MIN));
    Ticks(counts.ticks).to_nanos(rate).0
}

/// The picture at the time of some counts.
fn picture(live: &mut Live, ended: &mut Ended, mut counts: Counts) -> Picture {
    let snapshot = live.snapshot(time_of(&counts), MAX_SPANS);
    for ended in counts.providers.iter().filter(|provider| provider.has_ended) {
        live.forget_counters(ProviderId(ended.progress.id));
    }
    for gone in ended.add_to(&mut counts.providers) {
        live.forget(ProviderId(gone.progress.id));
    }
    Picture { counts, snapshot }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(id: u32, has_ended: bool) -> ObservedProvider {
        let mut provider = ObservedProvider { has_ended, ..ObservedProvider::default() };
        provider.progress.id = id;
        provider
    }

    /// The ids of the picture's programs after an update with some.
    fn update(ended: &mut Ended, programs: &[(u32, bool)]) -> Vec<u32> {
        let mut providers = programs.iter().map(|(id, has_ended)| provider(*id, *has_ended)).collect();
        let gone = ended.add_to(&mut providers);
        assert!(gone.len() <= 1, "{gone:?}");
        providers.iter().map(|provider| provider.progress.id).collect()
    }

    //= docs/live.md#what-is-shown
    #[test]
    fn what_has_ended_stays_in_the_picture() {
        let mut ended = Ended::default();
        assert_eq!(update(&mut ended, &[(1, false), (2, true)]), [1, 2]);
        assert_eq!(update(&mut ended, &[(1, true)]), [1, 2]);
        assert_eq!(update(&mut ended, &[]), [2, 1]);
        // One that is named again is there once.
        assert_eq!(update(&mut ended, &[(1, true)]), [1, 2]);
        // However many end, the last of them stay.
        for id in 3..=1000 {
            update(&mut ended, &[(id, true)]);
        }
        let last = (1001 - MAX_ENDED as u32)..=1000;
        assert_eq!(update(&mut ended, &[]), last.collect::<Vec<_>>());
    }
}
