//! Hands a mapped VMO to the engine.
//!
//! Invariant **M1**: a `zx_sim::Mapping` stays where it is until it is dropped, yields no references, and
//! is given away with the region.
#![allow(unsafe_code)]

use trace_engine::Region;
use zx_sim::Mapping;

/// The mapping as the engine's region, which unmaps it in the end.
pub(crate) fn region(mapping: Mapping) -> Region {
    let (base, bytes) = (mapping.as_ptr(), mapping.len());
    // SAFETY: a page-aligned shared mapping of so many bytes that lives as long as its owner, into which
    // nothing else holds references (M1).
    unsafe { Region::from_mapping(base, bytes, Box::new(mapping)) }
}
