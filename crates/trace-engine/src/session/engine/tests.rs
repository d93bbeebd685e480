mod left;

use super::*;
use crate::own_process::is_own_process;
use crate::sync::{AtomicBool, Ordering};
use std::sync::Arc;

const BYTES: usize = 256 << 10;

/// Reports that the memory of a trace is the caller's again.
struct Owner(Arc<AtomicBool>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Begins a stream in memory that is never freed; says when the engine has let go of it.
fn begin() -> (Engine, Arc<AtomicBool>) {
    let is_free = Arc::new(AtomicBool::new(false));
    let memory = Box::leak(vec![0_u64; BYTES / 8].into_boxed_slice());
    // SAFETY: words that are used for nothing else.
    let region =
        unsafe { Region::from_memory(memory.as_mut_ptr().cast(), BYTES, Box::new(Owner(is_free.clone()))) };
    let engine = initialize(region, BufferMode::Streaming, Config::new(1, "test", 1_000_000_000)).unwrap();
    engine.start(Disposition::Retain, &[]).unwrap();
    (engine, is_free)
}

fn later() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

/// One test, as there is one engine, and in a process of its own: a trace takes what threads have, also those
/// of other tests.
#[test]
fn a_trace_lives_as_long_as_what_was_given_out_of_it() {
    if !is_own_process("session::engine::tests::a_trace_lives_as_long_as_what_was_given_out_of_it") {
        return;
    }
    let (engine, is_free) = begin();
    engine.terminate(later()).unwrap();
    assert!(is_free.load(Ordering::SeqCst), "no thread has it");

    // The end of it waits for what another thread does with it.
    let (engine, is_free) = begin();
    let lease = Lease::counted();
    let context = lease.context().unwrap();
    let engine = Arc::new(engine);
    let ending = engine.clone();
    let ended = std::thread::spawn(move || ending.terminate(later()));
    while lease::has_context() {
        std::thread::yield_now();
    }
    assert_eq!(engine.flush(), Err(Error::NotStreaming), "there is no trace any more");
    assert_eq!(context.buffer().layout().mode, BufferMode::Streaming);
    context.streaming().flush();
    assert!(!is_free.load(Ordering::SeqCst) && !ended.is_finished());
    drop(lease);
    ended.join().unwrap().unwrap();
    assert!(is_free.load(Ordering::SeqCst));

    // For so long; then it stays where it is.
    let (engine, is_free) = begin();
    let lease = Lease::counted();
    let context = lease.context().unwrap();
    engine.terminate(Instant::now()).unwrap();
    context.streaming().flush();
    drop(lease);
    assert!(!is_free.load(Ordering::SeqCst));
    assert_eq!(state(), State::Idle);

    // The same of a thread that counts as inside an event.
    let (engine, is_free) = begin();
    let lease = Lease::of_thread();
    let context = lease.context().unwrap();
    let ended = std::thread::spawn(move || engine.terminate(Instant::now()));
    ended.join().unwrap().unwrap();
    assert_eq!(context.buffer().layout().mode, BufferMode::Streaming);
    drop(lease);
    assert!(!is_free.load(Ordering::SeqCst));
}
