//! Hands a mapped VMO to the engine.
//!
//! Invariant **M1**: a `zx_sim::Mapping` stays where it is until it is dropped, yields no references, and
//! is given away with the region.
#![allow(unsafe_code)]

use trace_engine::Region;
use zx_sim::{Guarded, Vmo};

/// The buffer as the engine's region, which unmaps it in the end. Of a buffer that has its memory all pages
/// are present. As long as it is the engine's, the file is marked as in use, where possible without a
/// descriptor.
pub(crate) fn region(vmo: &Vmo) -> zx_sim::Result<Region> {
    let is_sparse = vmo.backed_bytes()? < vmo.size()?;
    let vmo = vmo.marked()?;
    let mapping = if is_sparse { vmo.map_sparse() } else { vmo.map() }?;
    let (base, bytes) = (mapping.as_ptr(), mapping.len());
    let open = if vmo.is_marked_by_mappings() { None } else { Guarded::new(vmo) };
    let owner = Box::new((mapping, open));
    // SAFETY: a page-aligned shared mapping of so many bytes that lives as long as its owner, into which
    // nothing else holds references (M1).
    Ok(unsafe {
        match is_sparse {
            true => Region::from_sparse_mapping(base, bytes, owner),
            false => Region::from_mapping(base, bytes, owner),
        }
    })
}
