//! Which waker a task gets, and what it allocates: polled by hand, with and without a recording. One test, as
//! a process has one recording.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};
use trace_engine::engine;
use trace_engine::{BufferMode, Config, Disposition, Region};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: everything is the system allocator's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Counts wakes.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_task_keeps_its_waker_and_polls_allocate_nothing() {
    let seen: Rc<RefCell<Vec<Waker>>> = Rc::new(RefCell::new(Vec::with_capacity(16)));
    let left = seen.clone();
    let mut task = pin!(tokio_fxt::task(
        "task",
        poll_fn(move |context| {
            left.borrow_mut().push(context.waker().clone());
            Poll::<()>::Pending
        })
    ));
    let wakes = Arc::new(Wakes::default());
    let (first, second) = (Waker::from(wakes.clone()), Waker::from(Arc::new(Wakes::default())));
    let mut poll = |waker: &Waker| {
        let before = ALLOCATIONS.get();
        assert!(task.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
        let given = seen.borrow_mut().pop().expect("it was polled");
        (given, ALLOCATIONS.get() - before)
    };
    // Without a recording, it is the one that polls.
    let (given, allocations) = poll(&first);
    assert!(given.will_wake(&first) && allocations == 0);

    let (region, _words) = Region::on_heap(1 << 20);
    let engine =
        engine::initialize(region, BufferMode::Oneshot, Config::new(1, "wakers", 1)).expect("it is idle");
    engine.start(Disposition::Retain, &[]).expect("it is initialized");
    let (own, _) = poll(&first);
    assert!(!own.will_wake(&first));
    for _ in 0..3 {
        own.wake_by_ref();
        let (again, allocations) = poll(&first);
        assert!(again.will_wake(&own) && allocations == 0);
        again.wake();
    }
    assert_eq!(wakes.0.load(Ordering::Relaxed), 6);
    // Another waker gets another one of ours, once; the older one still wakes its own task.
    let (other, allocations) = poll(&second);
    assert!(!other.will_wake(&own) && !other.will_wake(&second) && allocations == 1);
    assert!(poll(&second).0.will_wake(&other));
    own.wake();
    assert_eq!(wakes.0.load(Ordering::Relaxed), 7);
    engine.terminate(Instant::now() + Duration::from_secs(5)).expect("it was started");

    let (given, allocations) = poll(&first);
    assert!(given.will_wake(&first) && allocations == 0);
}
