//! Elects one of the copies of this library in the process, which then works for all of them.
//!
//! Each copy has a note in its executable or library that says where its table is. When a copy is loaded,
//! which the C library does for one at a time, it looks at the notes of all others: if one of them works
//! already, that one works for this copy, too, and stays loaded from then on. One that has a thread in the
//! process stays loaded in any case.
//!
//! Invariants:
//!
//! * **K1** What a note of ours points to, from where it is, is a [`Candidate`] of this layout: the layout's
//!   number is part of the note.
//! * **K2** [`ELECTED`] is null before this copy is set up, and then a copy that stays loaded: itself, or one
//!   that was pinned.
#![allow(unsafe_code)]

use crate::exports::{TABLE, Table};
use crate::layout;
use crate::notes::{self, Note};
use core::ffi::{c_int, c_void};
use core::ops::ControlFlow;
use core::ptr;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicPtr, Ordering};
use trace_format::mutants;

/// What a note leads to.
#[repr(C)]
struct Candidate {
    /// No copy was elected when it was loaded.
    is_elected: AtomicBool,
    /// Of its thread-local from the thread pointer; 0 if that is not the same in each thread.
    offset: AtomicIsize,
    table: &'static Table,
}

static OWN: Candidate =
    Candidate { is_elected: AtomicBool::new(false), offset: AtomicIsize::new(0), table: &TABLE };

static ELECTED: AtomicPtr<Candidate> = AtomicPtr::new(ptr::null_mut());

/// Type of the note: changes with anything that copies expect of each other.
const NOTE_TYPE: u32 = 3;
const NOTE_NAME: &[u8; 8] = b"tracecp\0";

// Name size, description size, type, name, and the distance from the description to the copy.
core::arch::global_asm!(
    ".pushsection .note.trace_copy, \"a\", @note",
    ".p2align 2",
    ".globl trace_internal_note",
    ".hidden trace_internal_note",
    "trace_internal_note:",
    ".long 8",
    ".long 8",
    ".long 3",
    ".ascii \"tracecp\\0\"",
    ".quad {copy} - .",
    ".popsection",
    copy = sym OWN,
);

unsafe extern "C" {
    static trace_internal_note: u8;
}

/// The table of the copy that works for this process.
#[inline]
pub fn table() -> &'static Table {
    // SAFETY: K2.
    match unsafe { ELECTED.load(Ordering::Acquire).as_ref() } {
        Some(first) => first.table,
        None => elect().table,
    }
}

/// Called when this copy is loaded; and by whoever is earlier than that.
extern "C" fn on_load() {
    elect();
}

/// Ahead of all constructors of the executable or library that this copy is in.
#[used]
#[unsafe(link_section = ".init_array.00000")]
static ON_LOAD: extern "C" fn() = on_load;

fn elect() -> &'static Candidate {
    // SAFETY: K1; it is pinned before anything is done with it.
    let first = match unsafe { find_elected().as_ref() } {
        Some(other) if !mutants::is_on("each copy works for itself") && pin(other) => other,
        _ => {
            OWN.offset.store(layout::own_offset(is_in_executable(&OWN)), Ordering::Relaxed);
            OWN.is_elected.store(true, Ordering::Release);
            &OWN
        }
    };
    layout::publish(first.offset.load(Ordering::Relaxed));
    ELECTED.store(ptr::from_ref(first).cast_mut(), Ordering::Release);
    first
}

/// The offset of this copy, if it works for the process.
pub fn own_offset() -> isize {
    OWN.offset.load(Ordering::Relaxed)
}

/// Keeps this copy loaded, as it has a thread or handlers in the process.
pub fn stay() {
    pin(&OWN);
}

/// Whether a copy is in the executable, whose thread-locals are where they are in each thread.
fn is_in_executable(copy: &'static Candidate) -> bool {
    /// Looks at the first that the loader tells of, which is the executable.
    unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _size: usize, copy: *mut c_void) -> c_int {
        // SAFETY: the loader's own structures, valid during the call.
        let (base, headers) = unsafe {
            let headers = core::slice::from_raw_parts((*info).dlpi_phdr, usize::from((*info).dlpi_phnum));
            ((*info).dlpi_addr, headers)
        };
        let address = copy.addr() as u64;
        let holds = |header: &libc::Elf64_Phdr| {
            let start = base.wrapping_add(header.p_vaddr);
            header.p_type == libc::PT_LOAD && (start..start.wrapping_add(header.p_memsz)).contains(&address)
        };
        if headers.iter().any(holds) { IN_EXECUTABLE } else { ELSEWHERE }
    }
    const IN_EXECUTABLE: c_int = 1;
    const ELSEWHERE: c_int = 2;
    // SAFETY: the callback keeps to its signature, and only takes the address of what it gets.
    let found = unsafe { libc::dl_iterate_phdr(Some(look), ptr::from_ref(copy).cast_mut().cast()) };
    found == IN_EXECUTABLE
}

/// Keeps whatever a copy is in loaded. True for the executable itself, too.
fn pin(copy: &'static Candidate) -> bool {
    if is_in_executable(copy) {
        return true;
    }
    // SAFETY: a structure of numbers and pointers, for which zeros are values.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: the call fills the structure with the file that holds the address; its name is a string of the
    // loader's.
    unsafe {
        if libc::dladdr(ptr::from_ref(copy).cast(), &raw mut info) == 0 || info.dli_fname.is_null() {
            return false;
        }
        let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
        !libc::dlopen(info.dli_fname, flags).is_null()
    }
}

/// The copy that a note leads to.
fn candidate(note: Note<'_>) -> Option<*const Candidate> {
    let is_ours = note.note_type == NOTE_TYPE && note.name == NOTE_NAME;
    let distance = i64::from_ne_bytes(note.description.try_into().ok().filter(|_| is_ours)?);
    Some(note.description.as_ptr().wrapping_offset(distance as isize).cast())
}

/// The copy that works for the process already, if there is one.
fn find_elected() -> *const Candidate {
    let mut found = ptr::null();
    notes::for_each(&mut |note| match candidate(note) {
        // SAFETY: K1; nothing is unloaded meanwhile.
        Some(copy) if unsafe { &*copy }.is_elected.load(Ordering::Acquire) => {
            found = copy;
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    found
}

/// Makes the linker take the note along.
#[used]
static KEEP_NOTE: NotePointer = NotePointer(&raw const trace_internal_note);

struct NotePointer(#[expect(dead_code, reason = "it is there for the linker")] *const u8);

// SAFETY: nobody follows it.
unsafe impl Sync for NotePointer {}
