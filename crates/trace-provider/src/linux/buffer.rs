//! Hands a mapped VMO to the engine.
//!
//! Invariant **M1**: a `zx_sim::Mapping` stays where it is until it is dropped, yields no references, and
//! is given away with the region.
#![allow(unsafe_code)]

use crate::linux::unrecorded::Unrecorded;
use trace_engine::Region;
use trace_engine::trace_format::scopes::SCOPES_BYTES;
use zx_sim::{Guarded, Vmo, map_over};

/// Whether this process's control group has room for so many bytes, which events fill sooner or later: the
/// kernel ends a process whose group has none.
pub(crate) fn check_room(needed: u64) -> Result<(), Unrecorded> {
    match zx_sim::memory_room() {
        Some(room) if room < needed => Err(Unrecorded::Memory { needed, room }),
        _ => Ok(()),
    }
}

/// The buffer as the engine's region, which unmaps it in the end; the last bytes are for open scopes. Of a
/// buffer that has its memory all pages are present. As long as it is the engine's, the file is marked as in
/// use, where possible without a descriptor: one is closed with the thread that calls, if that has its own.
pub(crate) fn region(vmo: &Vmo, scope_bytes: u64) -> zx_sim::Result<Region> {
    let size = vmo.size()?;
    let is_sparse = vmo.backed_bytes()? < size;
    let size = size.saturating_sub(scope_bytes);
    let own = vmo.duplicate()?;
    let vmo = vmo.marked()?;
    let mapping = vmo.map_first(size, is_sparse)?;
    let (base, bytes) = (mapping.as_ptr(), mapping.len());
    let open = if vmo.is_marked_by_mappings() { None } else { Guarded::new(vmo) };
    let owner = Box::new((mapping, open));
    // SAFETY: a page-aligned shared mapping of so many bytes that lives as long as its owner, into which
    // nothing else holds references (M1).
    let region = unsafe {
        match is_sparse {
            true => Region::from_sparse_mapping(base, bytes, owner),
            false => Region::from_mapping(base, bytes, owner),
        }
    };
    if scope_bytes < SCOPES_BYTES {
        return Ok(region);
    }
    // SAFETY: memory of the engine's, of which no code relies on what it holds, as it says.
    let map = move |memory, bytes| unsafe { map_over(&own, memory, size..size + bytes as u64) };
    // SAFETY: nothing else maps this part of the file over that memory, or holds references into it.
    Ok(unsafe { region.with_scopes(Box::new(map)) })
}
