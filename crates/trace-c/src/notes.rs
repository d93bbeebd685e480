//! The notes of the executable and of all libraries that are loaded, which the loader has mapped with them.
//!
//! Invariant **O1**: the loader does not unload anything during a call of `dl_iterate_phdr`, and what it
//! tells of there are the program headers of what is mapped.
#![allow(unsafe_code)]

use core::ffi::{c_int, c_void};
use core::ops::ControlFlow;

/// A note, which lives as long as the call that it is handed to.
#[derive(Clone, Copy, Debug)]
pub struct Note<'a> {
    pub name: &'a [u8],
    pub note_type: u32,
    pub description: &'a [u8],
}

type Look<'a> = &'a mut dyn FnMut(Note<'_>) -> ControlFlow<()>;

/// Calls a function with each note, until it breaks. Nothing is loaded or unloaded meanwhile, so it must not
/// wait for a thread that does.
pub fn for_each(mut look: Look<'_>) {
    // SAFETY: the callback keeps to its signature, and the data is alive during the call.
    unsafe { libc::dl_iterate_phdr(Some(look_at), (&raw mut look).cast()) };
}

unsafe extern "C" fn look_at(info: *mut libc::dl_phdr_info, _size: usize, look: *mut c_void) -> c_int {
    // SAFETY: O1; the data is that of `for_each`.
    unsafe {
        let look = &mut *look.cast::<Look<'_>>();
        let headers = core::slice::from_raw_parts((*info).dlpi_phdr, usize::from((*info).dlpi_phnum));
        for header in headers.iter().filter(|header| header.p_type == libc::PT_NOTE) {
            let start = ((*info).dlpi_addr + header.p_vaddr) as usize as *const u8;
            let segment = core::slice::from_raw_parts(start, header.p_memsz as usize);
            if walk(segment, header.p_align as usize, look).is_break() {
                return 1;
            }
        }
    }
    0
}

/// Calls a function with the notes of a segment. Ends at one that is larger than the rest of it.
fn walk(segment: &[u8], alignment: usize, look: Look<'_>) -> ControlFlow<()> {
    let align = |size: usize| size.next_multiple_of(if alignment == 8 { 8 } else { 4 });
    let mut rest = segment;
    while let Some((header, _)) = rest.split_at_checked(12) {
        let number = |at: usize| {
            let bytes = header[at..].first_chunk().copied().unwrap_or_default();
            u32::from_ne_bytes(bytes)
        };
        let (name_size, size) = (number(0) as usize, number(4) as usize);
        let description = align(12 + name_size);
        let (Some(name), Some(bytes)) =
            (rest.get(12..12 + name_size), rest.get(description..description + size))
        else {
            break;
        };
        look(Note { name, note_type: number(8), description: bytes })?;
        rest = rest.get(description + align(size)..).unwrap_or_default();
    }
    ControlFlow::Continue(())
}
