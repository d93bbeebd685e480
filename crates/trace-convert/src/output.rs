//! Bytes that are appended in short pieces of a constant size, whose rest is overwritten by the next piece.
//!
//! A vector does more for each piece: its capacity is tested, its length stored, and a piece of any other
//! size is copied by a call.

/// Room to begin with, and least room to add.
const ROOM_BYTES: usize = 4 << 10;

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

    /// Appends any bytes.
    #[inline]
    pub fn slice(&mut self, bytes: &[u8]) {
        match self.room.get_mut(self.length..).and_then(|room| room.get_mut(..bytes.len())) {
            Some(room) => room.copy_from_slice(bytes),
            None => self.with_more_room(bytes),
        }
        self.length += bytes.len();
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
    fn pieces_follow_each_other_wherever_the_room_ends() {
        for before in 0..20 {
            let mut output = Output::default();
            let mut expected = vec![b'.'; ROOM_BYTES + before - 10];
            output.slice(&expected);
            for length in 0..=8 {
                output.piece(*b"abcdefgh", length);
                expected.extend_from_slice(&b"abcdefgh"[..length]);
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
