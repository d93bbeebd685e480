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
pub fn with_scratch<R>(call: impl FnOnce(&mut Scratch) -> R) -> R {
    let mut call = Some(call);
    let shared = SCRATCH.try_with(|scratch| {
        let mut scratch = scratch.try_borrow_mut().ok()?;
        scratch.arguments.clear();
        call.take().map(|call| call(&mut scratch))
    });
    match (shared, call) {
        (Ok(Some(result)), _) => result,
        (_, Some(call)) => call(&mut Scratch::new()),
        (_, None) => unreachable!("a function that was called has returned"),
    }
}

/// Calls a function with the spans that the thread is in, the innermost last. It does not run code of the
/// program. None in a thread that ends.
pub fn with_entered<R>(call: impl FnOnce(&mut Vec<Entered>) -> R) -> Option<R> {
    ENTERED.try_with(|entered| Some(call(&mut *entered.try_borrow_mut().ok()?))).ok().flatten()
}
