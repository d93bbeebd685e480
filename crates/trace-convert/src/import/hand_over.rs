//! Work that one thread prepares and another one does, in the order in which it was prepared.
//!
//! Two threads share an import this way: one finds events in the input, the other one writes their records.
//! The first batch is worked off where it was prepared, because most small inputs have no second one.

use super::ImportError;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, Scope, ScopedJoinHandle, available_parallelism};

/// How many prepared batches may wait.
const MAX_WAITING: usize = 2;

/// What works off batches.
pub(super) trait Worker<B> {
    /// Works off a batch, and empties it, so that its memory can be used again.
    ///
    /// # Errors
    /// The archive cannot be written, or the input is no such trace; nothing more has to be prepared.
    fn work(&mut self, batch: &mut B) -> Result<(), ImportError>;
}

/// A thread that works.
struct Thread<'scope, B> {
    batches: SyncSender<B>,
    /// Those that were worked off.
    used: Receiver<B>,
    handle: ScopedJoinHandle<'scope, Result<(), ImportError>>,
}

impl<B> Thread<'_, B> {
    /// Waits until it has worked off everything.
    fn end(self) -> Result<(), ImportError> {
        drop(self.batches);
        self.handle.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}

/// Hands batches over to a worker.
pub(super) struct HandOver<'scope, 'env, B, W> {
    scope: &'scope Scope<'scope, 'env>,
    worker: &'env Mutex<W>,
    thread: Option<Thread<'scope, B>>,
    /// There may be a thread for it.
    may_have_thread: bool,
    is_first: bool,
}

impl<'scope, 'env, B: Default + Send + 'scope, W: Worker<B> + Send> HandOver<'scope, 'env, B, W> {
    pub fn new(scope: &'scope Scope<'scope, 'env>, worker: &'env Mutex<W>) -> Self {
        let may_have_thread = available_parallelism().is_ok_and(|processors| processors.get() > 1);
        Self { scope, worker, thread: None, may_have_thread, is_first: true }
    }

    /// Hands a batch over, and puts an empty one in its place.
    ///
    /// # Errors
    /// The worker failed, at this batch or an earlier one.
    pub fn hand(&mut self, batch: &mut B) -> Result<(), ImportError> {
        if !std::mem::take(&mut self.is_first) && std::mem::take(&mut self.may_have_thread) {
            self.begin_thread();
        }
        let Some(thread) = &self.thread else { return work(self.worker, batch) };
        let next = thread.used.try_recv().unwrap_or_default();
        match thread.batches.send(std::mem::replace(batch, next)) {
            Ok(()) => Ok(()),
            // It has failed.
            Err(_) => self.thread.take().map_or(Ok(()), Thread::end),
        }
    }

    /// Waits until all batches are worked off.
    ///
    /// # Errors
    /// The worker failed, and no batch was handed over since.
    pub fn end(self) -> Result<(), ImportError> {
        self.thread.map_or(Ok(()), Thread::end)
    }

    /// Begins a thread, if the system has one more.
    fn begin_thread(&mut self) {
        let (batches, prepared) = sync_channel::<B>(MAX_WAITING);
        let (give_back, used) = sync_channel(MAX_WAITING + 1);
        let worker = self.worker;
        let work_off = move || {
            for mut batch in prepared {
                work(worker, &mut batch)?;
                // If there are enough, this one is dropped.
                let _ = give_back.try_send(batch);
            }
            Ok(())
        };
        let handle = Builder::new().name("records".to_owned()).spawn_scoped(self.scope, work_off);
        self.thread = handle.ok().map(|handle| Thread { batches, used, handle });
    }
}

fn work<B, W: Worker<B>>(worker: &Mutex<W>, batch: &mut B) -> Result<(), ImportError> {
    worker.lock().unwrap_or_else(PoisonError::into_inner).work(batch)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Remembers numbers, and the threads that it was on; fails at 7.
    #[derive(Default)]
    struct Numbers {
        numbers: Vec<u32>,
        threads: Vec<std::thread::ThreadId>,
    }

    impl Worker<Vec<u32>> for Numbers {
        fn work(&mut self, batch: &mut Vec<u32>) -> Result<(), ImportError> {
            self.threads.push(std::thread::current().id());
            for number in batch.drain(..) {
                if number == 7 {
                    return Err(ImportError::NoTrace { found: "seven".to_owned() });
                }
                self.numbers.push(number);
            }
            Ok(())
        }
    }

    /// What a worker has got of numbers up to a limit, one in each batch, and the batch that failed.
    fn handed(limit: u32) -> (Numbers, Option<u32>, Result<(), ImportError>) {
        let worker = Mutex::new(Numbers::default());
        let (failed, result) = std::thread::scope(|scope| {
            let mut over = HandOver::new(scope, &worker);
            let mut batch = Vec::new();
            let failed = (0..limit).find(|number| {
                batch.push(*number);
                over.hand(&mut batch).is_err()
            });
            (failed, over.end())
        });
        (worker.into_inner().unwrap(), failed, result)
    }

    #[test]
    fn batches_are_worked_off_in_their_order_and_the_first_one_here() {
        let (worker, failed, result) = handed(7);
        assert_eq!(worker.numbers, [0, 1, 2, 3, 4, 5, 6]);
        assert!(failed.is_none() && result.is_ok());
        let here = std::thread::current().id();
        assert_eq!(worker.threads[0], here);
        if available_parallelism().unwrap().get() > 1 {
            assert!(worker.threads[1..].iter().all(|thread| *thread != here));
        }
    }

    #[test]
    fn an_error_ends_the_work_and_is_told_once() {
        // The last batch fails when nothing comes after it.
        let (worker, failed, result) = handed(8);
        assert_eq!(worker.numbers, [0, 1, 2, 3, 4, 5, 6]);
        assert!(failed.is_some() != result.is_err());
        // Or while others wait, which are not worked off.
        let (worker, failed, result) = handed(1000);
        assert_eq!(worker.numbers, [0, 1, 2, 3, 4, 5, 6]);
        assert!((7..=7 + MAX_WAITING as u32 + 1).contains(&failed.unwrap()));
        assert!(result.is_ok());
    }
}
