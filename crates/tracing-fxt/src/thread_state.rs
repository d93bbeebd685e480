//! What a thread keeps: memory to put records together, and the spans that it is in.

use crate::callsites::Callsite;
use core::cell::RefCell;
use trace_engine::ArgumentBuffer;

/// A span that the thread is in.
#[derive(Clone, Copy, Debug)]
pub struct Entered {
    pub id: u64,
    pub callsite: &'static Callsite,
}

/// Memory to put a record together.
#[derive(Debug)]
pub struct Scratch {
    pub arguments: ArgumentBuffer,
    pub text: String,
    /// Fields that go behind the text.
    pub fields: String,
}

impl Scratch {
    const fn new() -> Self {
        Self { arguments: ArgumentBuffer::new(), text: String::new(), fields: String::new() }
    }
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = const { RefCell::new(Scratch::new()) };
    static ENTERED: RefCell<Vec<Entered>> = const { RefCell::new(Vec::new()) };
}

/// Calls a function with memory that holds no arguments. A value that records events while it is shown gets
/// memory of its own.
#[inline]
pub fn with_scratch<R>(call: impl Fn(&mut Scratch) -> R) -> R {
    let shared = SCRATCH.try_with(|scratch| match scratch.try_borrow_mut() {
        Ok(mut scratch) => {
            scratch.arguments.clear();
            call(&mut scratch)
        }
        Err(_) => call(&mut Scratch::new()),
    });
    // A thread that ends has no memory of its own any more.
    shared.unwrap_or_else(|_| call(&mut Scratch::new()))
}

/// Calls a function with the spans that the thread is in, the innermost last. It does not run code of the
/// program. None in a thread that ends.
#[inline]
pub fn with_entered<R>(call: impl FnOnce(&mut Vec<Entered>) -> R) -> Option<R> {
    ENTERED.try_with(|entered| Some(call(&mut *entered.try_borrow_mut().ok()?))).ok().flatten()
}
