//! Traces to test with.

/// A complete trace: one process with one thread and one duration, and a sentinel for every kind of
/// record that it takes.
pub const COMPLETE: [u64; 27] = [
    0x0016_5478_4604_0010,
    0x0040_0000_0011_0020,
    0x0000_0000_6f6d_6564,
    0x0000_0000_0000_0021,
    0x0000_0000_3b9a_ca00,
    0x0000_0003_0001_0022,
    0x0000_0000_0074_6163,
    0x0000_0004_0002_0022,
    0x0000_0000_6b72_6f77,
    0x0000_0007_0003_0022,
    0x0073_7365_636f_7270,
    0x0000_0000_0001_0033,
    0x0000_0000_0000_04d2,
    0x0000_0000_0000_162e,
    0x0000_0080_0401_0037,
    0x0000_0000_0000_04d2,
    0x0000_0000_6f6d_6564,
    0x0000_0180_0402_0057,
    0x0000_0000_0000_162e,
    0x0000_0000_6e69_616d,
    0x0000_0000_0003_0028,
    0x0000_0000_0000_04d2,
    0x0002_0001_0114_0054,
    0x0000_0000_0000_03e8,
    0x0000_0007_8001_0022,
    0x0000_0000_0000_006e,
    0x0000_0000_0000_1388,
];

/// Where each record of [`COMPLETE`] begins, in words.
pub const COMPLETE_STARTS: [usize; 10] = [0, 1, 3, 5, 7, 9, 11, 14, 17, 22];

/// The bytes of words.
pub fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Takes records in words.
pub struct Words(pub Vec<u64>);

impl trace_format::sink::Sink for Words {
    fn word(&mut self, word: u64) {
        self.0.push(word);
    }
}

/// The bytes of a record.
pub fn encode(record: &trace_format::record::Record<'_>) -> Vec<u8> {
    let mut words = Words(Vec::new());
    record.encode(&mut words).unwrap();
    bytes(&words.0)
}

/// Yields one byte at a time, with an interruption before each.
pub struct Trickle<'a> {
    pub bytes: &'a [u8],
    pub is_interrupted: bool,
}

impl std::io::Read for Trickle<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        self.is_interrupted = !self.is_interrupted;
        if self.is_interrupted {
            return Err(std::io::ErrorKind::Interrupted.into());
        }
        let (Some((first, rest)), Some(slot)) = (self.bytes.split_first(), to.first_mut()) else {
            return Ok(0);
        };
        *slot = *first;
        self.bytes = rest;
        Ok(1)
    }
}
