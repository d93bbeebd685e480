//! Threads of clients and recordings.
//!
//! The work is done by a thread with descriptors of its own: the program may close any number that it does
//! not know. What is the program's uses the program's descriptors, such as a writer or a waker, and runs on a
//! second thread, which has them.

use crate::error::Error;
use crate::pending::Completer;
use std::cell::RefCell;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use zx_sim::guest::thread::{spawn_apart, spawn_blocked};

/// How long a thread is waited for to begin.
const BEGIN_WAIT: Duration = Duration::from_secs(5);

/// Something of the program's.
type Task = Box<dyn FnOnce() + Send>;

std::thread_local! {
    /// The way to the thread that has the program's descriptors, on one that has not.
    static BESIDE: RefCell<Option<Sender<Task>>> = const { RefCell::new(None) };
}

/// Runs a function that answers on a thread that has these descriptors alone.
pub(crate) fn spawn_with<T: Send + 'static>(
    name: &'static str,
    kept: Vec<OwnedFd>,
    completer: Completer<T>,
    run: impl FnOnce(Completer<T>, Vec<OwnedFd>) + Send + 'static,
) {
    // What failed is known on this side only.
    let slot = Arc::new(Mutex::new(Some(completer)));
    let take =
        |slot: &Mutex<Option<Completer<T>>>| slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    let fail = move |slot: &Mutex<Option<Completer<T>>>, error| {
        if let Some(completer) = take(slot) {
            completer.complete(Err(Error::Thread(Some(error))));
        }
    };
    let theirs = slot.clone();
    let (begun, has_begun) = sync_channel(1);
    let beside = move || {
        let _ = begun.send(());
        let (tasks, to_do) = channel::<Task>();
        let ours = theirs.clone();
        let work = move |kept| {
            BESIDE.set(Some(tasks));
            if let Some(completer) = take(&ours) {
                run(completer, kept);
            }
        };
        match spawn_apart(name, kept, Box::new(work)) {
            // One that panics ends alone.
            Ok(_) => to_do.into_iter().for_each(|task| drop(catch_unwind(AssertUnwindSafe(task)))),
            Err(error) => fail(&theirs, io::Error::other(error)),
        }
    };
    match spawn_blocked("trace-beside", Box::new(beside)) {
        // Else who waits for its answer might wait for itself.
        Ok(_) if has_begun.recv_timeout(BEGIN_WAIT) == Err(RecvTimeoutError::Timeout) => {
            let why =
                "its thread does not begin; in constructors of a library that is being loaded none does";
            fail(&slot, io::Error::new(io::ErrorKind::TimedOut, why));
        }
        Ok(_) => {}
        Err(error) => fail(&slot, io::Error::other(error)),
    }
}

/// Runs something of the program's where the program's descriptors are.
pub(crate) fn run_beside(task: impl FnOnce() + Send + 'static) {
    let task: Task = Box::new(task);
    let left = BESIDE.with_borrow(|beside| match beside {
        Some(beside) => beside.send(task).err().map(|unsent| unsent.0),
        None => Some(task),
    });
    if let Some(task) = left {
        task();
    }
}

/// A writer of the program's, for a thread that has not its descriptors.
pub(crate) fn writer_beside(writer: Box<dyn Write + Send>) -> Box<dyn Write + Send> {
    match BESIDE.with_borrow(Clone::clone) {
        Some(beside) => Box::new(WriterBeside { writer: Some(writer), beside }),
        None => writer,
    }
}

struct WriterBeside {
    /// None while it is with the other thread, which has lost it if it has panicked.
    writer: Option<Box<dyn Write + Send>>,
    beside: Sender<Task>,
}

impl WriterBeside {
    fn call<R: Send + 'static>(
        &mut self,
        call: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<R> + Send + 'static,
    ) -> io::Result<R> {
        let lost = || io::Error::other("the writer has panicked");
        let mut writer = self.writer.take().ok_or_else(lost)?;
        let (answer, answered) = channel();
        let task = move || {
            let result = call(&mut *writer);
            let _ = answer.send((writer, result));
        };
        let _ = self.beside.send(Box::new(task));
        let (writer, result) = answered.recv().map_err(|_| lost())?;
        self.writer = Some(writer);
        result
    }
}

impl Write for WriterBeside {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = bytes.to_vec();
        self.call(move |writer| writer.write(&bytes))
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let bytes = bytes.to_vec();
        self.call(move |writer| writer.write_all(&bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.call(|writer| writer.flush())
    }
}

impl Drop for WriterBeside {
    fn drop(&mut self) {
        let (done, is_done) = channel::<()>();
        let writer = self.writer.take();
        let _ = self.beside.send(Box::new(move || {
            drop(writer);
            drop(done);
        }));
        let _ = is_done.recv();
    }
}
