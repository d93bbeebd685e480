//! Shuttle does not look at plain memory: that two threads write to one slab shows in its records.

use core::ops::Range;

pub(crate) fn guard(_slabs: impl Iterator<Item = Range<usize>>) {}

pub(crate) fn assert_exclusive(_addresses: Range<usize>) {}

pub(crate) fn assert_shared(_addresses: &Range<usize>) {}
