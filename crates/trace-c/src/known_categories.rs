//! The categories of call sites in C and C++ that have not run yet.
//!
//! Each site whose category is a literal leaves a note with an instruction that loads the literal's address:
//! with that, any operand assembles, and no relocation is left for the loader. Nothing ever runs it.
//!
//! Invariant **N1**: what a note of ours leads to is a literal, which ends in a NUL and is mapped as long as
//! the note is.
#![allow(unsafe_code)]

use crate::notes::{self, Note};
use core::ffi::{CStr, c_char};
use core::ops::ControlFlow;

/// The name and the type of the notes, which are in compiled programs.
//= docs/c.md#known-categories
const NAME: &[u8; 8] = b"tracect\0";
const NOTE_TYPE: u32 = 1;

/// Gives the engine the categories in the notes.
pub fn set_up() {
    trace_engine::engine::set_category_source(for_each);
}

fn for_each(call: &mut dyn FnMut(&[u8])) {
    notes::for_each(&mut |note| {
        if let Some(address) = literal(note) {
            // SAFETY: a literal that ends in a NUL and is mapped as long as its note (N1), which is not
            // unloaded while notes are visited.
            call(unsafe { CStr::from_ptr(address) }.to_bytes());
        }
        ControlFlow::Continue(())
    });
}

/// The literal that a note leads to. None in other notes, and where the address is not a constant.
fn literal(note: Note<'_>) -> Option<*const c_char> {
    if note.name != NAME || note.note_type != NOTE_TYPE {
        return None;
    }
    let address = match *note.description.first_chunk::<8>()? {
        // lea distance(%rip), %rax: from behind these 7 bytes.
        [0x48, 0x8d, 0x05, a, b, c, d, _] => {
            let distance = i32::from_le_bytes([a, b, c, d]);
            note.description.as_ptr().addr().wrapping_add(7).wrapping_add_signed(distance as isize)
        }
        // lea address, %rax
        [0x48, 0x8d, 0x04, 0x25, a, b, c, d] => i32::from_le_bytes([a, b, c, d]) as usize,
        _ => return None,
    };
    (address != 0).then(|| core::ptr::with_exposed_provenance(address))
}
