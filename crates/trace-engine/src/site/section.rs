//! All call sites of this executable, as the linker laid them out.
//!
//! Invariant **L1**: nothing but [`Site`]s of this layout is ever placed in the section `trace_sites_1`,
//! whose name has the layout's number, and they are 64 bytes each with 64-byte alignment, so between the
//! linker's two symbols lies an array of them.
#![allow(unsafe_code)]

use crate::site::Site;

// SAFETY: the linker defines both symbols for a section that exists, which `ANCHOR` sees to (L1).
unsafe extern "C" {
    #[link_name = "__start_trace_sites_1"]
    static START: u8;
    #[link_name = "__stop_trace_sites_1"]
    static STOP: u8;
}

/// Makes the section exist in programs that have no call site.
// SAFETY: an empty array of sites (L1).
#[unsafe(link_section = "trace_sites_1")]
#[used]
static ANCHOR: [Site; 0] = [];

#[cfg(not(modelled))]
const _: () = assert!(size_of::<Site>() == 64 && align_of::<Site>() == 64);

/// The call sites of the executable or library this crate is linked into.
pub(crate) fn sites() -> &'static [Site] {
    let start = (&raw const START).cast::<Site>();
    let stop = (&raw const STOP).cast::<Site>();
    let count = (stop.addr() - start.addr()) / size_of::<Site>();
    // SAFETY: the linker's symbols bound an array of `count` sites with static life time (L1).
    unsafe { core::slice::from_raw_parts(start, count) }
}
