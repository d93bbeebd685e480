//! Elects one of the copies of this library in the process, which then works for all of them.
//!
//! Each copy has a note in its executable or library that says where its table is. When a copy is loaded,
//! which the C library does for one at a time, it looks at the notes of all others: if one of them is elected
//! already, that one works for this copy, too, and stays loaded from then on. Otherwise the copy elects
//! itself. One that has a thread in the process stays loaded in any case.
//!
//! Invariants:
//!
//! * **K1** What a note of ours points to, from where it is, is a [`Candidate`] of this layout: the layout's
//!   number is part of the note. It is mapped as long as the note is.
//! * **K2** [`ELECTED`] is null before this copy is set up, and then a copy that stays loaded: itself, or one
//!   that was pinned.
#![allow(unsafe_code)]

use crate::exports::{TABLE, Table};
use crate::layout;
use crate::notes::{self, Note};
use core::mem::MaybeUninit;
use core::ops::ControlFlow;
use core::ptr;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicPtr, Ordering};

/// A copy of the library, which is what a note leads to.
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
const NOTE_TYPE: u32 = 8;
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
    ".long {note_type}",
    ".ascii \"tracecp\\0\"",
    ".quad {copy} - .",
    ".popsection",
    note_type = const NOTE_TYPE,
    copy = sym OWN,
);

unsafe extern "C" {
    static trace_internal_note: u8;
}

/// The table of the elected copy.
#[inline]
pub fn table() -> &'static Table {
    // SAFETY: null, or a copy that is never unloaded and whose fields are atomic or constant (K2).
    match unsafe { ELECTED.load(Ordering::Acquire).as_ref() } {
        Some(elected) => elected.table,
        None => elect().table,
    }
}

/// Called when this copy is loaded. A constructor that runs earlier elects through [`table`].
extern "C" fn on_load() {
    elect();
}

/// Ahead of all constructors of the executable or library that this copy is in.
#[used]
#[unsafe(link_section = ".init_array.00000")]
static ON_LOAD: extern "C" fn() = on_load;

/// Called next. A program that is to be recorded from its first line need not have a provider.
extern "C" fn begin_startup() {
    // What a program has recorded by itself is one recording, however often a plugin with this library is
    // loaded.
    if OWN.is_elected.load(Ordering::Acquire) && trace_provider::startup::begin_by_environment() {
        stay_loaded();
    }
}

/// Behind the standard library's own, which takes the arguments (00099), and ahead of all that programs may
/// have.
#[used]
#[unsafe(link_section = ".init_array.00100")]
static BEGIN_STARTUP: extern "C" fn() = begin_startup;

/// Called when the program ends by `exit`, or this copy is unloaded.
extern "C" fn on_unload() {
    if OWN.is_elected.load(Ordering::Acquire) {
        trace_provider::startup::save();
    }
}

/// Behind all destructors of the executable or library that this copy is in.
#[used]
#[unsafe(link_section = ".fini_array.00000")]
static ON_UNLOAD: extern "C" fn() = on_unload;

fn elect() -> &'static Candidate {
    let pinned = find_elected().and_then(pin);
    let elected = pinned.unwrap_or_else(|| {
        OWN.offset.store(layout::own_offset(is_in_executable(ptr::from_ref(&OWN))), Ordering::Relaxed);
        OWN.is_elected.store(true, Ordering::Release);
        &OWN
    });
    layout::publish(elected.offset.load(Ordering::Relaxed));
    ELECTED.store(ptr::from_ref(elected).cast_mut(), Ordering::Release);
    elected
}

/// The offset of this copy, if it is the elected one.
pub fn own_offset() -> isize {
    OWN.offset.load(Ordering::Relaxed)
}

/// Keeps this copy loaded, as it has a thread or handlers in the process.
pub fn stay_loaded() {
    keep_loaded(&raw const OWN);
}

/// Whether a copy is in the executable, whose thread-locals are where they are in each thread.
fn is_in_executable(copy: *const Candidate) -> bool {
    let mut is_held = false;
    notes::for_each_object(&mut |executable| {
        is_held = executable.holds(copy.addr());
        // The loader reports the executable first.
        ControlFlow::Break(())
    });
    is_held
}

/// Keeps the executable or library that a copy is in loaded, and with it the copy. None if that fails.
fn pin(copy: *const Candidate) -> Option<&'static Candidate> {
    // SAFETY: what a note of ours leads to (K1), which is not unloaded from here on. It was loaded until
    // here: the C library loads and unloads one object at a time, and this copy is being loaded.
    keep_loaded(copy).then(|| unsafe { &*copy })
}

/// Keeps the executable or library that an address is in loaded. True for the executable itself, too.
fn keep_loaded(copy: *const Candidate) -> bool {
    if is_in_executable(copy) {
        return true;
    }
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the call only compares the address, and fills the structure, which is of its type. Zeros are
    // values of all its fields, so that it is initialized even if the call fails.
    let (found, info) = unsafe { (libc::dladdr(copy.cast(), info.as_mut_ptr()), info.assume_init()) };
    if found == 0 || info.dli_fname.is_null() {
        return false;
    }
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
    // SAFETY: the name that the loader has for an object that is still loaded, ended by a NUL. Nothing is
    // loaded by this call (`RTLD_NOLOAD`), so that no constructor runs.
    !unsafe { libc::dlopen(info.dli_fname, flags) }.is_null()
}

/// The copy that a note leads to.
fn candidate(note: Note<'_>) -> Option<*const Candidate> {
    let is_ours = note.note_type == NOTE_TYPE && note.name == NOTE_NAME;
    let distance = i64::from_ne_bytes(note.description.try_into().ok().filter(|_| is_ours)?);
    Some(note.description.as_ptr().wrapping_offset(distance as isize).cast())
}

/// The copy that was elected before, if there is one.
fn find_elected() -> Option<*const Candidate> {
    let mut found = None;
    notes::for_each(&mut |note| match candidate(note) {
        // SAFETY: what a note of ours leads to (K1); nothing is unloaded while notes are visited.
        Some(copy) if unsafe { &*copy }.is_elected.load(Ordering::Acquire) => {
            found = Some(copy);
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

// SAFETY: the pointer is never read or dereferenced: only the linker uses it.
unsafe impl Sync for NotePointer {}
