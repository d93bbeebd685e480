//! Messages, written by a thread of their own, because writing may block for ever.
//!
//! Not even a descriptor that `poll` has announced is safe to write to: the recorded command writes to the
//! same pipe or terminal, and may fill it in between. Making it non-blocking would do so for that command
//! too. So only this thread blocks. Other threads wait until it has written their message, which keeps the
//! order of messages and of the command's output, but for a bounded time; after that they do not wait again
//! until the thread has caught up, and messages that do not fit into the queue meanwhile are lost.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Capacity of the queue while its output accepts nothing.
const QUEUE_BYTES: usize = 64 << 10;
/// The longest wait for one message, in which a slow reader takes some of it.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// Bytes of one write: a pipe accepts this many atomically.
const CHUNK_BYTES: usize = 4096;

type Output = Arc<dyn AsFd + Send + Sync>;

/// A stream of messages.
pub struct Messages {
    output: Output,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<u8>,
    /// The thread has taken bytes from the queue that it has not written yet.
    is_writing: bool,
    /// A message took too long; until the thread has caught up no other thread waits for it.
    is_stalled: bool,
    has_thread: bool,
    /// Bytes that were written or dropped.
    done: u64,
}

impl Queue {
    fn is_busy(&self) -> bool {
        self.is_writing || !self.waiting.is_empty()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Messages {
    /// Messages for a descriptor.
    pub fn to(output: Output) -> Self {
        Self { output, shared: Arc::default() }
    }

    /// Writes a message, and waits for a limited time until it is written.
    pub fn write(&self, bytes: &[u8], patience: Duration) {
        self.add(bytes, patience, false);
    }

    /// As [`Messages::write`], for text that is soon out of date: lost if other text is still to be written.
    pub fn draw(&self, bytes: &[u8], patience: Duration) {
        self.add(bytes, patience, true);
    }

    fn add(&self, bytes: &[u8], patience: Duration, only_if_idle: bool) {
        let mut queue = self.shared.lock();
        let is_full = !queue.waiting.is_empty() && queue.waiting.len() + bytes.len() > QUEUE_BYTES;
        if is_full || (only_if_idle && queue.is_busy()) || !self.has_thread(&mut queue) {
            return;
        }
        queue.waiting.extend_from_slice(bytes);
        self.shared.changed.notify_all();
        if queue.is_stalled {
            return;
        }
        let mut queue = self.wait(queue, patience, LONGEST_WAIT);
        queue.is_stalled = queue.is_busy();
    }

    /// Waits until everything is written: for `patience` after the last byte that was, and at most for `most`
    /// altogether.
    pub fn finish(&self, patience: Duration, most: Duration) {
        drop(self.wait(self.shared.lock(), patience, most));
    }

    fn wait<'q>(
        &self,
        mut queue: MutexGuard<'q, Queue>,
        patience: Duration,
        most: Duration,
    ) -> MutexGuard<'q, Queue> {
        let began = Instant::now();
        while queue.is_busy() && began.elapsed() < most {
            let done = queue.done;
            let has_moved = |queue: &mut Queue| queue.is_busy() && queue.done == done;
            let wait = self.shared.changed.wait_timeout_while(queue, patience, has_moved);
            let result;
            (queue, result) = wait.unwrap_or_else(PoisonError::into_inner);
            // With room the thread is not blocked: a busy machine has not let it run yet.
            if result.timed_out() && !self.has_room() {
                break;
            }
        }
        queue
    }

    /// Whether a write would return at once, if only with an error.
    fn has_room(&self) -> bool {
        let output = self.output.as_fd();
        let mut waits = [PollFd::new(&output, PollFlags::OUT)];
        !matches!(poll(&mut waits, Some(&Timespec::default())), Ok(0))
    }

    /// Starts the thread with the first message. Without a thread messages are lost.
    fn has_thread(&self, queue: &mut Queue) -> bool {
        if !queue.has_thread {
            let (output, shared) = (self.output.clone(), self.shared.clone());
            let thread = std::thread::Builder::new().name("trace-messages".to_owned());
            queue.has_thread = thread.spawn(move || run(&output, &shared)).is_ok();
        }
        queue.has_thread
    }
}

/// The thread.
fn run(output: &Output, shared: &Shared) {
    loop {
        let mut queue = shared.lock();
        while queue.waiting.is_empty() {
            queue = shared.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        let bytes = std::mem::take(&mut queue.waiting);
        queue.is_writing = true;
        drop(queue);
        let mut left = bytes.as_slice();
        while !left.is_empty() {
            // The error cannot be reported anywhere: what is left of these messages is lost.
            let next = &left[..left.len().min(CHUNK_BYTES)];
            let length = super::write(output.as_fd(), next).unwrap_or(0);
            let taken = if length == 0 { left.len() } else { length };
            left = &left[taken..];
            let mut queue = shared.lock();
            queue.done += taken as u64;
            queue.is_writing = !left.is_empty();
            queue.is_stalled &= queue.is_busy();
            shared.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{PipeReader, Read};

    /// A pipe that is full.
    fn full_pipe() -> (PipeReader, Output, usize) {
        let (reader, writer) = std::io::pipe().unwrap();
        let size = rustix::pipe::fcntl_getpipe_size(&writer).unwrap();
        std::io::Write::write_all(&mut &writer, &vec![b'.'; size]).unwrap();
        (reader, Arc::new(writer), size)
    }

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(1);

    #[test]
    fn a_message_is_written_when_the_call_returns() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let messages = Messages::to(Arc::new(writer));
        for text in ["one\n", "two\n"] {
            messages.write(text.as_bytes(), LONG);
            let mut found = [0; 4];
            reader.read_exact(&mut found).unwrap();
            assert_eq!(found, text.as_bytes());
        }
    }

    #[test]
    fn messages_wait_in_a_bounded_queue_and_are_written_when_there_is_room() {
        let (mut reader, output, size) = full_pipe();
        let messages = Messages::to(output);
        messages.write(b"first\n", SHORT);
        assert!(messages.shared.lock().is_stalled && !messages.has_room());
        // Even with a long patience, no thread waits for a thread that is known to be blocked.
        messages.draw(b"drawn\n", LONG);
        messages.write(b"second\n", LONG);
        messages.write(&vec![b'x'; QUEUE_BYTES], LONG);
        messages.write(b"third\n", LONG);
        messages.finish(SHORT, LONG);
        let expected = "first\nsecond\nthird\n";
        let mut found = vec![0; size + expected.len()];
        reader.read_exact(&mut found).unwrap();
        assert_eq!(String::from_utf8_lossy(&found[size..]), expected);
        messages.finish(LONG, LONG);
        assert!(!messages.shared.lock().is_stalled);
        messages.write(b"fourth\n", LONG);
        let mut found = [0; 7];
        reader.read_exact(&mut found).unwrap();
        assert_eq!(&found, b"fourth\n");
    }

    #[test]
    fn what_cannot_be_written_is_lost() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let outputs: [Output; 2] = [Arc::new(writer), Arc::new(full)];
        for output in outputs {
            let messages = Messages::to(output);
            assert!(messages.has_room());
            messages.write(&[b'x'; 3 * CHUNK_BYTES], LONG);
            messages.write(b"more\n", LONG);
            messages.finish(LONG, LONG);
            assert_eq!(messages.shared.lock().done, 3 * CHUNK_BYTES as u64 + 5);
        }
    }
}
