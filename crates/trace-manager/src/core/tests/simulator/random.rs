//! Numbers that look random and are the same for the same seed.

use std::time::Duration;

/// Xorshift, 64 bits.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        // Neighbouring seeds shall differ in many bits, and the state must not be zero.
        let mixed = (seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Random((mixed ^ (mixed >> 31)) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Less than `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 11) % bound
    }

    /// True in `percent` of a hundred cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Most often short, sometimes longer than every timeout.
    pub fn delay(&mut self) -> Duration {
        let limit_ms = match self.below(10) {
            0 => 12_000,
            1..=3 => 1000,
            _ => 20,
        };
        Duration::from_millis(self.below(limit_ms))
    }

    /// One of `items`.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> Option<T> {
        let length = u64::try_from(items.len()).ok().filter(|length| *length > 0)?;
        items.get(usize::try_from(self.below(length)).ok()?).copied()
    }
}
