//! Arguments that come before their event.

use crate::item;
use crate::tables::Provider;
use trace_format::blob::Blob;
use trace_format::further::{self, ARGUMENTS_BLOB_NAME, FurtherArguments, Piece};
use trace_format::record::{RecordHeader, RecordType};

/// What all arguments of an event may take; one with more has none of them.
const MAX_BYTES: u64 = 128 << 20;
/// Memory that is kept for the next event.
const KEPT_BYTES: usize = 64 << 10;

#[derive(Debug, Default)]
pub(crate) struct Further {
    pieces: Vec<u8>,
    /// How many bytes there should be.
    total: u64,
    /// There are some, or there were some that could not be read.
    is_any: bool,
    is_broken: bool,
    /// An event has them.
    is_used: bool,
}

impl Further {
    #[inline]
    pub const fn is_any(&self) -> bool {
        self.is_any
    }

    #[inline]
    pub fn arguments(&self) -> FurtherArguments<'_> {
        FurtherArguments::new(&self.pieces)
    }

    /// What comes next takes them if it is an event. Only definitions may be between. False if they are lost.
    #[cold]
    pub fn before(&mut self, header: RecordHeader) -> bool {
        match header.record_type() {
            _ if self.is_used => self.clear(),
            Some(RecordType::Blob | RecordType::String | RecordType::Thread) => {}
            Some(RecordType::Event) if self.is_whole() => self.is_used = true,
            _ => {
                self.clear();
                return false;
            }
        }
        true
    }

    fn is_whole(&self) -> bool {
        !self.is_broken && self.pieces.len() as u64 == self.total && self.arguments().is_sound()
    }

    #[cold]
    pub fn push(&mut self, piece: Piece<'_>) {
        if !self.is_any {
            self.total = piece.total;
            self.is_any = true;
        }
        let is_next = piece.at == self.pieces.len() as u64 && piece.total == self.total;
        self.is_broken |= !is_next || piece.at + piece.bytes.len() as u64 > piece.total.min(MAX_BYTES);
        if self.is_broken {
            self.pieces.clear();
        } else {
            self.pieces.extend_from_slice(piece.bytes);
        }
    }

    /// Forgets those that wait; whether there were any.
    pub fn lose(&mut self) -> bool {
        let is_lost = self.is_any && !self.is_used;
        self.clear();
        is_lost
    }

    fn clear(&mut self) {
        self.pieces.clear();
        self.pieces.shrink_to(KEPT_BYTES);
        (self.total, self.is_any, self.is_broken, self.is_used) = (0, false, false, false);
    }
}

/// The part of an event's arguments in a blob, if it has one.
pub(crate) fn piece_of<'a>(provider: &Provider, blob: &Blob<'a>) -> Option<Piece<'a>> {
    let name = item::resolve(provider, blob.name);
    further::piece(blob.payload).filter(|_| name == ARGUMENTS_BLOB_NAME)
}
