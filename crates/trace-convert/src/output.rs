//! Bytes that are appended in short pieces of a constant size, whose rest is overwritten by the next piece.
//!
//! A vector does more for each piece: its capacity is tested, its length stored, and a piece of any other
//! size is copied by a call.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Room to begin with, and least room to add.
const ROOM_BYTES: usize = 4 << 10;

const EIGHT_DIGITS: u64 = 100_000_000;
/// Eight digits 0.
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// The values of the eight digits of a number below 10⁸, a byte each, the first one lowest.
#[inline]
const fn digits(value: u64) -> u64 {
    // Two of four digits, four of two, eight of one. The factors divide by 100 and by 10.
    let fours = (value / 10_000) | ((value % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let twos = hundreds | ((fours - 100 * hundreds) << 16);
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | ((twos - 10 * tens) << 8)
}

/// Copies up to 32 bytes to as many, as two parts of one size that overlap.
#[inline]
fn copy_short(from: &[u8], to: &mut [u8]) {
    let is_copied = copy_two::<16>(from, to) || copy_two::<8>(from, to) || copy_two::<4>(from, to);
    if !is_copied {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
    }
}

/// False for fewer bytes than a part.
#[inline]
fn copy_two<const N: usize>(from: &[u8], to: &mut [u8]) -> bool {
    let (Some(first), Some(last)) = (from.first_chunk::<N>(), from.last_chunk::<N>()) else { return false };
    if let Some(to) = to.first_chunk_mut() {
        *to = *first;
    }
    if let Some(to) = to.last_chunk_mut() {
        *to = *last;
    }
    true
}

/// Collected bytes.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// What was collected, and room behind it, which has any contents.
    room: Vec<u8>,
    length: usize,
}

impl Output {
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.room.get(..self.length).unwrap_or_default()
    }

    #[inline]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Forgets the bytes from a length on.
    #[inline]
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Appends the beginning of a piece.
    #[inline]
    pub fn piece<const N: usize>(&mut self, piece: [u8; N], length: usize) {
        match self.room.get_mut(self.length..).and_then(<[u8]>::first_chunk_mut) {
            Some(room) => *room = piece,
            None => self.with_more_room(&piece),
        }
        self.length += length.min(N);
    }

    /// Appends any bytes. Short ones are copied without a call.
    #[inline]
    pub fn slice(&mut self, bytes: &[u8]) {
        match self.room.get_mut(self.length..).and_then(|room| room.get_mut(..bytes.len())) {
            Some(room) if bytes.len() > 32 => room.copy_from_slice(bytes),
            Some(room) => copy_short(bytes, room),
            None => self.with_more_room(bytes),
        }
        self.length += bytes.len();
    }

    /// Appends all digits of a number.
    #[inline]
    pub fn decimal(&mut self, value: u64) {
        if value < EIGHT_DIGITS {
            return self.first_digits(value);
        }
        let (high, low) = (value / EIGHT_DIGITS, value % EIGHT_DIGITS);
        if high < EIGHT_DIGITS {
            self.first_digits(high);
        } else {
            self.first_digits(high / EIGHT_DIGITS);
            self.piece((digits(high % EIGHT_DIGITS) | ZEROS).to_le_bytes(), 8);
        }
        self.piece((digits(low) | ZEROS).to_le_bytes(), 8);
    }

    /// Those of a number with up to eight.
    #[inline]
    fn first_digits(&mut self, value: u64) {
        let digits = digits(value);
        // The last one stands even if it is 0.
        let leading = (digits | 1 << 56).trailing_zeros() / 8;
        self.piece(((digits | ZEROS) >> (8 * leading)).to_le_bytes(), 8 - leading as usize);
    }

    /// Appends zeros, for the caller to overwrite.
    pub fn zeros(&mut self, count: usize) -> &mut [u8] {
        let from = self.length;
        self.length += count;
        if self.room.len() < self.length {
            self.room.resize(self.length + ROOM_BYTES, 0);
        }
        let zeros = self.room.get_mut(from..self.length).unwrap_or_default();
        zeros.fill(0);
        zeros
    }

    /// The number of characters that [`Self::base64`] appends.
    pub const fn base64_length(bytes: &[u8]) -> usize {
        bytes.len().div_ceil(3) * 4
    }

    /// Appends bytes as base64, padded.
    pub fn base64(&mut self, bytes: &[u8]) {
        // The room is exactly as large as the text, so that it cannot be too small.
        let _ = STANDARD.encode_slice(bytes, self.zeros(Self::base64_length(bytes)));
    }

    /// Opens a gap of so many bytes in front of those from a place on.
    pub fn insert(&mut self, at: usize, count: usize) {
        let end = self.length;
        self.zeros(count);
        self.room.copy_within(at.min(end)..end, at.min(end) + count);
    }

    /// Replaces the byte at a place.
    #[inline]
    pub fn set(&mut self, at: usize, byte: u8) {
        if let Some(old) = self.room.get_mut(at) {
            *old = byte;
        }
    }

    #[cold]
    #[inline(never)]
    fn with_more_room(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        self.room.resize(2 * end + ROOM_BYTES, 0);
        if let Some(room) = self.room.get_mut(self.length..end) {
            room.copy_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_those_of_std() {
        let edges =
            (0..20).map(|digits| 10_u64.pow(digits)).flat_map(|ten| [ten - 1, ten, ten + 1, 3 * (ten / 7)]);
        let spread = (0..64).flat_map(|bits| [u64::MAX >> bits, 0x1234_5678_9abc_def1 >> bits]);
        for value in edges.chain(spread).chain(0..100_001) {
            let mut output = Output::default();
            output.decimal(value);
            assert_eq!(output.bytes(), value.to_string().as_bytes());
        }
        for value in (0..EIGHT_DIGITS).step_by(997) {
            assert_eq!((digits(value) | ZEROS).to_le_bytes(), format!("{value:08}").as_bytes());
        }
    }

    #[test]
    fn pieces_follow_each_other_wherever_the_room_ends() {
        for before in 0..20 {
            let mut output = Output::default();
            let mut expected = vec![b'.'; ROOM_BYTES + before - 10];
            output.slice(&expected);
            for length in 0..=8 {
                output.piece(*b"abcdefgh", length);
                expected.extend_from_slice(&b"abcdefgh"[..length]);
            }
            for length in 0..40 {
                let bytes: Vec<u8> = (0..length).collect();
                output.slice(&bytes);
                expected.extend_from_slice(&bytes);
            }
            output.zeros(2)[1] = b'z';
            output.slice(b"end");
            expected.extend_from_slice(b"\0zend");
            assert_eq!(output.bytes(), expected);
            output.insert(expected.len() - 3, 2);
            output.set(expected.len() - 2, b'!');
            expected.splice(expected.len() - 3..expected.len() - 3, *b"e!");
            assert_eq!(output.bytes(), expected);
            output.truncate(3);
            output.truncate(5);
            assert_eq!(output.bytes(), b"...");
        }
    }
}
