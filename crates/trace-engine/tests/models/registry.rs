//! What `crate::thread::registry` is in models: the control blocks of the model that runs.

use crate::thread::block::ThreadBlock;
use core::cell::RefCell;

std::thread_local! {
    /// All threads of a model run on one thread of the system.
    static BLOCKS: RefCell<Vec<&'static ThreadBlock>> = const { RefCell::new(Vec::new()) };
}

/// So many blocks, and no others.
pub(crate) fn begin(count: usize) -> Vec<&'static ThreadBlock> {
    // A model is played through many times, and some kilobytes stay each time.
    let blocks: Vec<&'static ThreadBlock> =
        (0..count).map(|_| &*Box::leak(Box::new(ThreadBlock::new()))).collect();
    BLOCKS.replace(blocks.clone());
    blocks
}

pub(crate) fn all() -> impl Iterator<Item = &'static ThreadBlock> {
    BLOCKS.with_borrow(Clone::clone).into_iter()
}

pub(crate) fn all_from(first: usize) -> impl Iterator<Item = (usize, &'static ThreadBlock)> {
    let blocks = BLOCKS.with_borrow(Clone::clone);
    let first = if first < blocks.len() { first } else { 0 };
    (first..blocks.len()).chain(0..first).map(move |number| (number, blocks[number]))
}

/// Sites are not those of other languages.
pub(crate) fn has_mirror() -> bool {
    false
}
