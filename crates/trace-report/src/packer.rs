//! Compresses blocks on threads of its own. What is written does not depend on their number: blocks keep
//! their order.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{Scope, available_parallelism};

/// Threads at most.
const MAX_THREADS: usize = 4;
/// Blocks under way or before their turn, besides one for each thread.
const WAITING: usize = 2;
/// For blocks: columns of numbers hardly repeat themselves, and are two hundredths smaller at level 5.
const FAST: u32 = 1;
/// For everything else.
const SMALL: u32 = 6;

/// Compressed bytes as text.
pub fn compressed(bytes: &[u8]) -> io::Result<String> {
    deflated(bytes, SMALL)
}

fn deflated(bytes: &[u8], level: u32) -> io::Result<String> {
    let mut encoder = DeflateEncoder::new(Vec::with_capacity(bytes.len() / 2), Compression::new(level));
    encoder.write_all(bytes)?;
    Ok(STANDARD.encode(encoder.finish()?))
}

/// A block with its number.
type Block = (usize, Vec<u8>);
/// What became of it.
type Packed = (usize, io::Result<String>);

/// Blocks on their way to the page.
pub struct Packer<T> {
    blocks: Sender<Block>,
    packed: Receiver<Packed>,
    /// Those that were ready before their turn.
    early: BTreeMap<usize, String>,
    pushed: usize,
    written: usize,
    threads: usize,
    take: T,
}

impl<T: FnMut(usize, &str) -> io::Result<()>> Packer<T> {
    /// One that gives each block with its number to a function, in order. `inbox` is where the threads take
    /// them from.
    pub fn new<'scope>(
        scope: &'scope Scope<'scope, '_>,
        inbox: &'scope Mutex<Option<Receiver<Block>>>,
        take: T,
    ) -> Self {
        let (blocks, receiver) = channel::<Block>();
        *inbox.lock().unwrap_or_else(PoisonError::into_inner) = Some(receiver);
        let (sender, packed) = channel::<Packed>();
        let threads = available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        for _ in 0..threads {
            let sender = sender.clone();
            scope.spawn(move || {
                while let Some((number, bytes)) = next(inbox) {
                    if sender.send((number, deflated(&bytes, FAST))).is_err() {
                        break;
                    }
                }
            });
        }
        Self { blocks, packed, early: BTreeMap::new(), pushed: 0, written: 0, threads, take }
    }

    /// Takes the next block.
    ///
    /// # Errors
    /// An earlier one cannot be written.
    pub fn push(&mut self, block: Vec<u8>) -> io::Result<()> {
        while self.pushed - self.written >= self.threads + WAITING {
            let packed = self.packed.recv().map_err(io::Error::other)?;
            self.received(packed)?;
        }
        while let Ok(packed) = self.packed.try_recv() {
            self.received(packed)?;
        }
        self.pushed += 1;
        self.blocks
            .send((self.pushed - 1, block))
            .map_err(|_| io::Error::other("no thread compresses blocks"))
    }

    fn received(&mut self, (number, packed): Packed) -> io::Result<()> {
        self.early.insert(number, packed?);
        while let Some(text) = self.early.remove(&self.written) {
            (self.take)(self.written, &text)?;
            self.written += 1;
        }
        Ok(())
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(mut self) -> io::Result<()> {
        while self.written < self.pushed {
            let packed = self.packed.recv().map_err(io::Error::other)?;
            self.received(packed)?;
        }
        Ok(())
    }
}

fn next(inbox: &Mutex<Option<Receiver<Block>>>) -> Option<Block> {
    inbox.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.recv().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn blocks_keep_their_order() {
        let inbox = Mutex::new(None);
        let mut written = Vec::new();
        // Later blocks are faster to compress.
        let blocks: Vec<Vec<u8>> =
            (0..40_u8).map(|number| vec![number; 400_000 / (1 + usize::from(number))]).collect();
        thread::scope(|scope| {
            let mut packer = Packer::new(scope, &inbox, |number, text: &str| {
                written.push((number, text.to_owned()));
                Ok(())
            });
            blocks.iter().for_each(|block| packer.push(block.clone()).unwrap());
            packer.finish().unwrap();
        });
        let expected: Vec<_> =
            blocks.iter().map(|block| deflated(block, FAST).unwrap()).enumerate().collect();
        assert_eq!(written, expected);
    }

    #[test]
    fn an_error_ends_all_threads() {
        let inbox = Mutex::new(None);
        thread::scope(|scope| {
            let mut packer = Packer::new(scope, &inbox, |_, _: &str| Err(io::ErrorKind::StorageFull.into()));
            let mut pushed = (0..100).map(|_| packer.push(vec![0; 1000]));
            let error = pushed.find_map(Result::err).expect("an error");
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        });
    }
}
