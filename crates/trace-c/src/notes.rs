//! The notes of the executable and of all libraries that are loaded, which the loader has mapped with them.
//!
//! Invariant **O1**: the loader does not unload anything during a call of `dl_iterate_phdr`, and what it
//! reports there are the program headers of what is mapped.
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

/// The executable or a library, for as long as the call that it is handed to.
pub struct Object<'a> {
    /// What the loader has added to the addresses in the file.
    base: u64,
    headers: &'a [libc::Elf64_Phdr],
}

type LookAtObject<'a> = &'a mut dyn FnMut(&Object<'_>) -> ControlFlow<()>;

impl Object<'_> {
    /// Whether an address is in one of its segments.
    pub fn holds(&self, address: usize) -> bool {
        let address = address as u64;
        self.headers.iter().filter(|header| header.p_type == libc::PT_LOAD).any(|header| {
            let start = self.base.wrapping_add(header.p_vaddr);
            (start..start.wrapping_add(header.p_memsz)).contains(&address)
        })
    }

    fn notes(&self, look: Look<'_>) -> ControlFlow<()> {
        for header in self.headers.iter().filter(|header| header.p_type == libc::PT_NOTE) {
            let start = (self.base + header.p_vaddr) as usize as *const u8;
            // SAFETY: the header is one of a mapped object, so that the loader has mapped this segment of it,
            // in this size (O1). Notes are never written, and bytes need no alignment.
            let segment = unsafe { core::slice::from_raw_parts(start, header.p_memsz as usize) };
            walk(segment, header.p_align as usize, look)?;
        }
        ControlFlow::Continue(())
    }
}

/// Calls a function with each note, until it breaks. Nothing is loaded or unloaded during the call, so the
/// function must not wait for a thread that does.
pub fn for_each(look: Look<'_>) {
    for_each_object(&mut |object| object.notes(look));
}

/// Calls a function with the executable and then with each library, until it breaks, as [`for_each`] does.
pub fn for_each_object(mut look: LookAtObject<'_>) {
    // SAFETY: `look_at` has the signature that the loader calls, and the data that it expects, which outlives
    // the call.
    unsafe { libc::dl_iterate_phdr(Some(look_at), (&raw mut look).cast()) };
}

unsafe extern "C" fn look_at(info: *mut libc::dl_phdr_info, _size: usize, look: *mut c_void) -> c_int {
    // SAFETY: the loader's own structure, which it does not change during the call (O1).
    let info = unsafe { &*info };
    // SAFETY: the array that the loader describes with this number, as long as nothing is unloaded (O1).
    let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    // SAFETY: the variable of `for_each_object`, which nothing else uses while `dl_iterate_phdr` runs.
    let look = unsafe { &mut *look.cast::<LookAtObject<'_>>() };
    c_int::from(look(&Object { base: info.dlpi_addr, headers }).is_break())
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
