//! What is one for the process, for one test at a time: the engine, and the program's hook.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use trace_engine::set_event_hook;
use trace_format::event::Event;

static IS_TAKEN: Mutex<bool> = Mutex::new(false);
static FREE: Condvar = Condvar::new();

/// The engine for one test: others wait until the last copy of this is gone.
#[derive(Clone)]
pub struct Alone(#[expect(dead_code, reason = "counted")] Arc<Turn>);

struct Turn;

impl Drop for Turn {
    fn drop(&mut self) {
        *IS_TAKEN.lock().unwrap_or_else(PoisonError::into_inner) = false;
        FREE.notify_one();
    }
}

/// Waits for the others.
pub fn alone() -> Alone {
    let is_taken = IS_TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    *FREE.wait_while(is_taken, |is_taken| *is_taken).unwrap_or_else(PoisonError::into_inner) = true;
    Alone(Arc::new(Turn))
}

/// The program has a hook for as long as this lives, and no other test has a turn.
pub struct Hooked(#[expect(dead_code, reason = "kept")] Alone);

impl Hooked {
    pub fn new(alone: &Alone, hook: impl Fn(&Event<'_>) -> bool + Send + Sync + 'static) -> Self {
        set_event_hook(Some(Box::new(hook)));
        Self(alone.clone())
    }
}

impl Drop for Hooked {
    fn drop(&mut self) {
        set_event_hook(None);
    }
}
