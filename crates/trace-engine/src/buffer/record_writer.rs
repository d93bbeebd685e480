//! Stores the words of one record into space that was reserved for it.
//!
//! Invariants:
//!
//! * **W1** A writer is made for a reservation of so many words of a live region, and no more than that is
//!   written: sizes come from the same value that is written, and the traits that compute them are
//!   sealed.
//! * **W2** The reserved words belong to this thread until the header is stored.
#![allow(unsafe_code)]

use crate::sync::{AtomicU64, Ordering, assert_exclusive};
#[cfg(not(modelled))]
use crate::sys;
use core::marker::PhantomData;
use trace_format::sink::Sink;

/// Writes the payload words of one record, in order, and its header last, while its region is there.
pub struct RecordWriter<'a> {
    header: *const AtomicU64,
    next: *const AtomicU64,
    #[cfg(debug_assertions)]
    end: *const AtomicU64,
    region: PhantomData<&'a AtomicU64>,
}

impl RecordWriter<'_> {
    /// Starts a record at `address`.
    ///
    /// # Safety
    /// `words` words from `address` on are reserved for this thread in a region that stays mapped while
    /// the writer exists, and at most `words - 1` payload words are written (W1, W2).
    #[inline(always)]
    pub(crate) unsafe fn new(address: usize, words: usize) -> Self {
        assert_exclusive(address..address + words * 8);
        let header = core::ptr::with_exposed_provenance::<AtomicU64>(address);
        let _ = words;
        Self {
            header,
            next: header.wrapping_add(1),
            #[cfg(debug_assertions)]
            end: header.wrapping_add(words),
            region: PhantomData,
        }
    }

    /// Stores the next payload word.
    #[inline(always)]
    pub(crate) fn word(&mut self, word: u64) {
        #[cfg(debug_assertions)]
        debug_assert!(self.next < self.end, "a record outgrew its reservation");
        // SAFETY: inside the reservation (W1), which is ours (W2).
        unsafe { (*self.next).store(word, Ordering::Relaxed) };
        self.next = self.next.wrapping_add(1);
    }

    /// Stores bytes, padded with zeros to a whole word.
    #[inline(always)]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        let mut leftover = bytes;
        while let Some((word, behind)) = leftover.split_first_chunk() {
            self.word(u64::from_le_bytes(*word));
            leftover = behind;
        }
        if !leftover.is_empty() {
            let mut last = [0; 8];
            last[..leftover.len()].copy_from_slice(leftover);
            self.word(u64::from_le_bytes(last));
        }
    }

    /// Stores the header word: from here on the record exists for readers.
    #[inline(always)]
    pub(crate) fn commit(self, header: u64) {
        #[cfg(debug_assertions)]
        debug_assert!(self.next == self.end, "a record is shorter than its reservation");
        assert_exclusive(self.header.addr()..self.next.addr());
        // SAFETY: the first word of the reservation (W1, W2).
        // Release: pairs with the reader's acquiring load (or read of the file) of the header.
        unsafe { (*self.header).store(header, Ordering::Release) };
    }
}

/// Words that have room on the stack.
#[cfg(not(modelled))]
const FEW_WORDS: usize = 64;

/// Calls a function with the bytes that another one writes as the payload of a record outside of any buffer.
/// It writes so many words. It may be called in the handler of a signal: of more words than a few, memory is
/// mapped; if there is none, there are no bytes.
#[cfg(not(modelled))]
pub(crate) fn with_payload<R>(
    words: usize,
    write: impl FnOnce(&mut RecordWriter<'_>),
    use_bytes: impl FnOnce(&[u8]) -> R,
) -> R {
    if words <= FEW_WORDS {
        let memory = [const { AtomicU64::new(0) }; FEW_WORDS + 1];
        return with_payload_in(&memory[..=words], write, use_bytes);
    }
    let bytes = (words + 1) * 8;
    let address = sys::map_wiped_on_fork(bytes);
    if address.is_null() {
        return use_bytes(&[]);
    }
    // SAFETY: a fresh mapping of so many bytes, zeroed, which is this call's and is unmapped behind it.
    let memory = unsafe { core::slice::from_raw_parts(address.cast::<AtomicU64>(), words + 1) };
    let result = with_payload_in(memory, write, use_bytes);
    // SAFETY: the mapping of this call, to which nothing refers any more.
    unsafe { sys::unmap(address, bytes) };
    result
}

#[cfg(not(modelled))]
fn with_payload_in<R>(
    memory: &[AtomicU64],
    write: impl FnOnce(&mut RecordWriter<'_>),
    use_bytes: impl FnOnce(&[u8]) -> R,
) -> R {
    let address = memory.as_ptr().expose_provenance();
    // SAFETY: memory for a header and so many words (W1), which no other thread knows (W2).
    let mut record = unsafe { RecordWriter::new(address, memory.len()) };
    write(&mut record);
    for word in &memory[1..] {
        word.store(word.load(Ordering::Relaxed).to_le(), Ordering::Relaxed);
    }
    let payload = memory[1..].as_ptr().cast();
    // SAFETY: these words as bytes; none is written any more while they are lent.
    use_bytes(unsafe { core::slice::from_raw_parts(payload, (memory.len() - 1) * 8) })
}

impl Sink for RecordWriter<'_> {
    fn word(&mut self, word: u64) {
        Self::word(self, word);
    }
}
