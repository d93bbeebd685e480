//! A thread that is stopped in the middle of an event: the bytes it is copying are on a page it may not read
//! yet.

use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::thread::JoinHandle;
use trace_engine::{Scope, instant};

const PAGE: usize = 4096;
/// Of this test's own: not yet, stopped on the page, let go.
const RUNNING: u32 = 0;
const FROZEN: u32 = 1;
const RELEASED: u32 = 2;

static STATE: AtomicU32 = AtomicU32::new(RUNNING);
static FORBIDDEN: AtomicPtr<libc::c_void> = AtomicPtr::new(core::ptr::null_mut());

extern "C" fn on_fault(_signal: libc::c_int) {
    STATE.store(FROZEN, Ordering::SeqCst);
    while STATE.load(Ordering::SeqCst) != RELEASED {
        core::hint::spin_loop();
    }
    // SAFETY: a page of ours; the instruction that faulted is run again.
    unsafe { libc::mprotect(FORBIDDEN.load(Ordering::SeqCst), PAGE, libc::PROT_READ) };
}

fn write(payload: &[u8]) {
    instant!("cat", "frozen", Scope::Thread, "n" => 0_u64, "payload" => payload);
}

/// A thread inside an event, until it is let go.
pub struct Frozen(Option<JoinHandle<()>>);

impl Frozen {
    /// Waits until a thread has recorded one event named "frozen", and is inside a second.
    pub fn new() -> Self {
        STATE.store(RUNNING, Ordering::SeqCst);
        // SAFETY: a fresh page; a handler that does what a handler may.
        let page = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let page = libc::mmap(core::ptr::null_mut(), PAGE, libc::PROT_NONE, flags, -1, 0);
            assert_ne!(page, libc::MAP_FAILED);
            FORBIDDEN.store(page, Ordering::SeqCst);
            let mut action: libc::sigaction = core::mem::zeroed();
            action.sa_sigaction = on_fault as *const () as usize;
            assert_eq!(libc::sigaction(libc::SIGSEGV, &raw const action, core::ptr::null_mut()), 0);
            page.addr()
        };
        let thread = std::thread::spawn(move || {
            write(&[1, 2, 3]);
            // SAFETY: the handler makes it readable at the first access.
            write(unsafe { core::slice::from_raw_parts(core::ptr::with_exposed_provenance(page), 16) });
        });
        FORBIDDEN.load(Ordering::SeqCst).expose_provenance();
        while STATE.load(Ordering::SeqCst) != FROZEN {
            std::thread::yield_now();
        }
        Self(Some(thread))
    }

    /// Lets the thread finish its event and end.
    pub fn release(&mut self) {
        // Only one's own: the next test may have one already.
        if let Some(thread) = self.0.take() {
            STATE.store(RELEASED, Ordering::SeqCst);
            thread.join().unwrap();
        }
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.release();
    }
}
