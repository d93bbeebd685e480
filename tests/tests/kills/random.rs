//! Numbers that decide what a trial does.

/// Numbers that look random, another sequence for each word.
pub struct Random(u64);

impl Random {
    pub fn new(word: &str, trial: u64) -> Self {
        // FNV-1a.
        let bytes = word.bytes().chain(trial.to_le_bytes());
        let mixed = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |mixed, byte| {
            (mixed ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        Self(mixed | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 8
    }

    /// One of so many numbers, from 0 on.
    pub fn below(&mut self, count: u64) -> u64 {
        self.next() % count
    }
}
