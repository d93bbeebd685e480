//! Something to be busy with.

use std::hint::black_box;

/// Keeps a processor busy for about so many microseconds of a fast one; the same steps every time.
pub fn compute(micros: u64) -> u64 {
    let mut state = micros | 1;
    for _ in 0..micros * 1200 {
        state = black_box(state ^ (state << 13));
        state ^= state >> 7;
        state ^= state << 17;
    }
    state
}

/// A number that looks random and is always the same for the same input.
pub fn scatter(value: u64) -> u64 {
    let mut value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
