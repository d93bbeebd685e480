//! Packets for the thread that writes their records: usual ones decoded, others as they are.

use super::Importer;
use super::packets::{self, Contents};
use super::usual::UsualPackets;
use crate::import::ImportError;
use crate::import::hand_over::Worker;
use std::io::Write;
use std::ops::Range;

/// How many packets a batch has at most.
const MAX_PACKETS: usize = 2048;
/// A batch with so many bytes of packets gets no more; decoded, they may take twenty times as much.
const FULL_BYTES: usize = 128 << 10;

enum Step {
    /// The next one of the usual packets.
    Usual,
    Other(Range<usize>),
}

/// Packets in their order.
#[derive(Default)]
pub(super) struct Batch {
    /// With the offset of each in the file.
    steps: Vec<(u64, Step)>,
    usual: UsualPackets,
    usual_bytes: usize,
    /// The others.
    bytes: Vec<u8>,
}

impl Batch {
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.steps.len() >= MAX_PACKETS || self.usual_bytes + self.bytes.len() >= FULL_BYTES
    }

    /// Adds a packet.
    #[inline]
    pub fn push(&mut self, offset: u64, bytes: &[u8]) {
        if self.usual.push(bytes) {
            self.usual_bytes += bytes.len();
            self.steps.push((offset, Step::Usual));
        } else {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(bytes);
            self.steps.push((offset, Step::Other(start..self.bytes.len())));
        }
    }

    fn clear(&mut self) {
        self.steps.clear();
        self.usual.clear();
        self.usual_bytes = 0;
        self.bytes.clear();
        self.bytes.shrink_to(2 * FULL_BYTES);
    }
}

impl<W: Write> Worker<Batch> for Importer<W> {
    fn work(&mut self, batch: &mut Batch) -> Result<(), ImportError> {
        self.packets(batch)?;
        batch.clear();
        Ok(())
    }
}

impl<W: Write> Importer<W> {
    fn packets(&mut self, batch: &Batch) -> Result<(), ImportError> {
        let mut usual = batch.usual.iter();
        for (offset, step) in &batch.steps {
            match step {
                Step::Usual => {
                    if let Some(usual) = usual.next() {
                        self.usual(*offset, usual);
                    }
                    self.kernel.writer.flush_if_full().map_err(ImportError::Write)?;
                }
                Step::Other(bytes) => {
                    let bytes = batch.bytes.get(bytes.clone()).unwrap_or_default();
                    match packets::contents(bytes) {
                        Contents::Compressed(compressed) => self.compressed(*offset, compressed)?,
                        Contents::Plain(others, kernel_events) => {
                            self.plain(*offset, &others, kernel_events.as_deref())?;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}
