//! What the processes tell each other: three numbers.

use std::io::{self, Read, Write};

/// A request or its answer. The flow id travels along, so that both ends draw the same arrow.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// Number of a frame, or of a texture.
    pub number: u64,
    /// Id of the flow this message is part of.
    pub flow: u64,
    /// How much there is to do, or how much came back.
    pub amount: u64,
}

impl Message {
    /// Sends it.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut bytes = [0; 24];
        for (chunk, value) in bytes.chunks_exact_mut(8).zip([self.number, self.flow, self.amount]) {
            chunk.copy_from_slice(&value.to_le_bytes());
        }
        to.write_all(&bytes)?;
        to.flush()
    }

    /// Receives the next one; none when the other side has closed.
    pub fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let mut bytes = [0; 24];
        match from.read_exact(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            result => result?,
        }
        let value = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
        Ok(Some(Self { number: value(0), flow: value(8), amount: value(16) }))
    }
}
