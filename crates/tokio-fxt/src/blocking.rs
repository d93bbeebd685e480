//! A closure whose run on the blocking pool is recorded.

use crate::operation::{End, Operation, start};
use trace_engine::engine;

/// Records a closure as a task of this name, which begins now: for functions of tokio, and of other crates,
/// that run closures on a pool. The delay of its run is the time in which it was queued. A closure that is
/// dropped before it runs has a bar alone. Takes no lock, and may be called on any thread.
pub fn blocking<R, F: FnOnce() -> R>(name: &str, closure: F) -> impl FnOnce() -> R + use<R, F> {
    let mut queued = Queued(Operation::begin(name), End::Dropped);
    move || {
        let Queued(operation, end) = &mut queued;
        if !operation.site.is_on() {
            return closure();
        }
        let (epoch, start) = (engine::epoch(), start());
        let since = operation.since(epoch);
        *end = End::Panicked;
        let _within = operation.within();
        let running = Running { queued: &mut queued, epoch, start, since };
        let result = closure();
        running.queued.1 = End::Ready;
        result
    }
}

/// Ends the bar when it is dropped.
struct Queued(Operation, End);

impl Drop for Queued {
    fn drop(&mut self) {
        self.0.end(self.1, None);
    }
}

/// Records a run when it is over, also by a panic.
struct Running<'a> {
    queued: &'a mut Queued,
    epoch: u32,
    start: u64,
    since: Option<u64>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.queued.0.record_run(self.epoch, self.start, self.since);
    }
}
