//! Puts entries in the order of their times, on a thread of its own: it sorts while others are collected, and
//! joins what is sorted while blocks are made of it.
//!
//! Entries go to the thread and come back in chunks, each entry behind its length.

use crate::entry::Entry;
use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;
use trace_reader::sorter::Sorter;

/// So many bytes wait in memory to be sorted: few, as joining begins when the last ones are sorted.
const RUN_BYTES: usize = 4 << 20;
/// About so many bytes go at once.
const CHUNK_BYTES: usize = 256 << 10;
/// Chunks that wait, in each direction.
const CHUNKS: usize = 4;
const LENGTH_BYTES: usize = size_of::<u32>();

/// Entries on their way into the order of their times.
#[derive(Debug)]
pub struct Sorting {
    chunk: Vec<u8>,
    run_bytes: usize,
    /// From the first chunk on.
    thread: Option<Thread>,
}

/// The ends of the thread's channels.
#[derive(Debug)]
struct Thread {
    /// An empty chunk is the end of all.
    chunks: SyncSender<Vec<u8>>,
    /// Chunks that can be filled again.
    spare: Receiver<Vec<u8>>,
    /// An empty chunk is the end of all.
    sorted: Receiver<io::Result<Vec<u8>>>,
}

impl Default for Sorting {
    fn default() -> Self {
        Self { chunk: Vec::new(), run_bytes: RUN_BYTES, thread: None }
    }
}

impl Thread {
    fn begin(run_bytes: usize) -> Self {
        let (chunks, inbox) = sync_channel(CHUNKS);
        let (returns, spare) = channel();
        let (results, sorted) = sync_channel(CHUNKS);
        thread::spawn(move || sort(Sorter::with_runs_of(run_bytes), &inbox, &returns, &results));
        Self { chunks, spare, sorted }
    }
}

impl Sorting {
    /// Takes an entry and its arguments; the order of those of one time stays.
    pub fn push(&mut self, entry: Entry, args: &str) {
        let bytes = Entry::BYTES + args.len();
        if self.chunk.len() + LENGTH_BYTES + bytes > CHUNK_BYTES && !self.chunk.is_empty() {
            self.send();
        }
        // Longer arguments than that are in no record.
        self.chunk.extend_from_slice(&u32::try_from(bytes).unwrap_or(u32::MAX).to_le_bytes());
        self.chunk.extend_from_slice(&entry.encode());
        self.chunk.extend_from_slice(args.as_bytes());
    }

    /// Where the thread has ended, [`Sorting::finish`] has the error.
    fn send(&mut self) -> &Thread {
        let thread = self.thread.get_or_insert_with(|| Thread::begin(self.run_bytes));
        let mut next = thread.spare.try_recv().unwrap_or_else(|_| Vec::with_capacity(CHUNK_BYTES));
        next.clear();
        let _ = thread.chunks.send(std::mem::replace(&mut self.chunk, next));
        thread
    }

    /// Gives all entries in order.
    ///
    /// # Errors
    /// They cannot be written to the temporary file or read from it, or what the caller says.
    pub fn finish(mut self, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        if !self.chunk.is_empty() {
            self.send();
        }
        self.chunk = Vec::new();
        let thread = self.send();
        let ended = |_| io::Error::other("the thread that sorts has ended");
        loop {
            let chunk = thread.sorted.recv().map_err(ended)??;
            if chunk.is_empty() {
                return Ok(());
            }
            for_each(&chunk, &mut take)?;
        }
    }
}

/// Gives each entry of a chunk.
fn for_each(mut chunk: &[u8], mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    while let Some((length, rest)) = chunk.split_first_chunk() {
        let length = u32::from_le_bytes(*length) as usize;
        let Some((entry, rest)) = rest.split_at_checked(length) else {
            return Err(io::Error::other("a chunk of entries is cut off"));
        };
        take(entry)?;
        chunk = rest;
    }
    Ok(())
}

/// Sorts all chunks. Nothing is done for a caller who wants no result.
fn sort(
    mut sorter: Sorter,
    inbox: &Receiver<Vec<u8>>,
    returns: &Sender<Vec<u8>>,
    results: &SyncSender<io::Result<Vec<u8>>>,
) {
    loop {
        let Ok(chunk) = inbox.recv() else { return };
        if chunk.is_empty() {
            break;
        }
        let pushed = for_each(&chunk, |entry| {
            sorter.push(Entry::decode(entry)?.0.at, entry);
            Ok(())
        });
        if let Err(error) = pushed {
            let _ = results.send(Err(error));
            return;
        }
        let _ = returns.send(chunk);
    }
    if let Err(error) = give(sorter, results) {
        let _ = results.send(Err(error));
    }
}

/// Sends everything in chunks.
fn give(sorter: Sorter, results: &SyncSender<io::Result<Vec<u8>>>) -> io::Result<()> {
    let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
    let mut chunk = Vec::with_capacity(CHUNK_BYTES);
    sorter.finish(|entry| {
        if chunk.len() + LENGTH_BYTES + entry.len() > CHUNK_BYTES && !chunk.is_empty() {
            let full = std::mem::replace(&mut chunk, Vec::with_capacity(CHUNK_BYTES));
            results.send(Ok(full)).map_err(gone)?;
        }
        chunk.extend_from_slice(&u32::try_from(entry.len()).unwrap_or(u32::MAX).to_le_bytes());
        chunk.extend_from_slice(entry);
        Ok(())
    })?;
    if !chunk.is_empty() {
        results.send(Ok(chunk)).map_err(gone)?;
    }
    results.send(Ok(Vec::new())).map_err(gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_in_order_from_any_number_of_runs() {
        let times: Vec<u64> = (0..50_000_u64).map(|number| number * 7919 % 1000).collect();
        let mut expected: Vec<(u64, u64)> = times.iter().copied().zip(0..).collect();
        expected.sort();
        // The last one is more than a chunk alone.
        let long = "x".repeat(2 * CHUNK_BYTES);
        for run_bytes in [RUN_BYTES, 100_000] {
            let mut sorting = Sorting { run_bytes, ..Sorting::default() };
            for (number, at) in (0..).zip(&times) {
                let args =
                    if number == 49_999 { long.as_str() } else { &"{\"number\":1}"[..number as usize % 12] };
                sorting.push(Entry::new(*at, number, 3, 4), args);
            }
            let mut found = Vec::new();
            sorting
                .finish(|bytes| {
                    let (entry, args) = Entry::decode(bytes).unwrap();
                    let length = if entry.length == 49_999 { long.len() } else { entry.length as usize % 12 };
                    assert_eq!((entry.track, entry.what, args.len()), (3, 4, length));
                    found.push((entry.at, entry.length));
                    Ok(())
                })
                .unwrap();
            assert_eq!(found, expected, "{run_bytes}");
        }
        let mut none = 0;
        let count = |_: &[u8]| {
            none += 1;
            Ok(())
        };
        Sorting::default().finish(count).unwrap();
        assert_eq!(none, 0);
    }

    #[test]
    fn an_error_of_the_caller_ends_it() {
        let mut sorting = Sorting { run_bytes: 1000, ..Sorting::default() };
        (0..100_000).for_each(|at| sorting.push(Entry::new(at, 0, 0, 0), ""));
        let error = sorting.finish(|_| Err(io::ErrorKind::StorageFull.into())).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
