//! Arguments that come before their event.

use trace_format::further::FurtherArguments;
use trace_format::record::{RecordHeader, RecordType};

/// What all arguments of an event may take; those beyond are left out.
const MAX_BYTES: usize = 128 << 20;
/// Memory that is kept for the next event.
const KEPT_BYTES: usize = 64 << 10;

#[derive(Debug, Default)]
pub(crate) struct Further {
    pieces: Vec<u8>,
    /// An event has them.
    is_used: bool,
    /// There are more, for which there was no room.
    is_full: bool,
}

impl Further {
    #[inline]
    pub const fn is_any(&self) -> bool {
        !self.pieces.is_empty()
    }

    #[inline]
    pub fn arguments(&self) -> FurtherArguments<'_> {
        FurtherArguments::new(&self.pieces)
    }

    /// What comes next takes them if it is an event. Only definitions may be between.
    #[cold]
    pub fn before(&mut self, header: RecordHeader) {
        let record_type = header.record_type();
        let is_waiting = !self.is_used
            && matches!(
                record_type,
                Some(RecordType::Event | RecordType::Blob | RecordType::String | RecordType::Thread)
            );
        if !is_waiting {
            self.clear();
        }
        self.is_used = record_type == Some(RecordType::Event);
    }

    #[cold]
    pub fn push(&mut self, piece: &[u8]) {
        self.is_used = false;
        self.is_full |= self.pieces.len() + piece.len() > MAX_BYTES;
        if !self.is_full {
            self.pieces.extend_from_slice(piece);
        }
    }

    pub fn clear(&mut self) {
        self.pieces.clear();
        self.is_full = false;
        self.pieces.shrink_to(KEPT_BYTES);
    }
}
