//! The numbers that threads have in a trace.

use std::sync::Arc;

/// Tells a thread's koid by its id in this process.
type Tell = Arc<dyn Fn(u32) -> u64 + Send + Sync>;

/// By which numbers a trace has threads. They are their ids by default.
#[derive(Clone, Default)]
pub struct ThreadKoids(Option<Tell>);

impl ThreadKoids {
    /// Those that a function tells. It is called on the thread itself, inside its first event of a trace: it
    /// may not wait or allocate, and has to leave `errno` as it is.
    pub fn new(tell: impl Fn(u32) -> u64 + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(tell)))
    }

    pub(crate) fn of(&self, thread_id: u32) -> u64 {
        self.0.as_ref().map_or_else(|| thread_id.into(), |tell| tell(thread_id))
    }
}

impl core::fmt::Debug for ThreadKoids {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(if self.0.is_some() { "ThreadKoids(told)" } else { "ThreadKoids(ids)" })
    }
}
