//! Memory limit for the tables of an import: names and similar items that an input defines once and refers to
//! later.

/// The number of bytes that tables take, and their limit.
//= docs/import.md#memory
#[derive(Debug)]
pub(super) struct Room {
    left: usize,
    lost: u64,
}

/// Limit for names, tracks and clocks of an input.
const TABLE_BYTES: usize = 64 << 20;
/// Maximum memory of an entry besides its text.
pub(super) const ENTRY_BYTES: usize = 64;

impl Default for Room {
    fn default() -> Self {
        Self { left: TABLE_BYTES, lost: 0 }
    }
}

impl Room {
    /// Reserves the given number of bytes; false, which is counted, if there is no room for them.
    pub fn take(&mut self, bytes: usize) -> bool {
        let left = self.left.checked_sub(bytes);
        self.left = left.unwrap_or(self.left);
        self.lost += u64::from(left.is_none());
        left.is_some()
    }

    /// How often there was no room.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns reserved bytes.
    pub fn give_back(&mut self, bytes: usize) {
        self.left += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_ends_and_comes_back() {
        let mut room = Room { left: 10, lost: 0 };
        assert!(room.take(7));
        assert!(!room.take(4));
        assert!(room.take(3));
        assert!(!room.take(1));
        room.give_back(4);
        assert!(room.take(4));
        assert_eq!(room.lost(), 2);
    }
}
