//! Fields of a word.

/// The `width` bits of `word` that begin at bit `low`, shifted down; `width` is 1 to 63.
#[inline]
pub(crate) const fn field(word: u64, low: u32, width: u32) -> u64 {
    (word >> low) & ((1 << width) - 1)
}
