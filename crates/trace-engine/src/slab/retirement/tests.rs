#![allow(unsafe_code)]

use super::*;
use crate::own_process::is_own_process;
use crate::record::event::Event;
use crate::record::hot_path::write_event;
use crate::sync::AtomicBool;
use crate::sync::AtomicU64;
use crate::thread::registry::Acquired;
use trace_format::event::EventType;

static SITE: Site = Site::new("cat", "litmus", &[]);

/// The asymmetric fence: a thread that was seen outside of its event writes nothing any more into what
/// was taken from it. Without the fence on all threads some of a million attempts miss a writer whose
/// counter is still on its way to memory.
//= docs/buffer.md#retiring
#[test]
fn a_thread_that_was_seen_outside_writes_no_more() {
    const ATTEMPTS: u64 = 600_000;
    const LEAST: Duration = Duration::from_secs(10);
    // Where other programs have the processors, an attempt takes a thousand times as long.
    const MOST: Duration = Duration::from_secs(30);
    const RECORD_BYTES: usize = 16;
    assert!(sys::register_membarrier(), "the kernel has no membarrier: this machine cannot show anything");
    SITE.switch_on();
    SITE.publish(1, 2);
    let words: Vec<AtomicU64> = (0..8192).map(|_| AtomicU64::new(0)).collect();
    let start = words.as_ptr().expose_provenance();
    let is_over = AtomicBool::new(false);
    let (sender, owner) = std::sync::mpsc::channel();
    let mut misses = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let Some(Acquired::Own(block)) = registry::acquire() else { panic!("no block") };
            sender.send(block).unwrap();
            let event = Event { event_type: EventType::Instant, start: None, extra: None };
            while !is_over.load(Ordering::Relaxed) {
                write_event(&SITE, event, &());
            }
        });
        let block = owner.recv().unwrap();
        let own = block.first_slab();
        let begin = Instant::now();
        let mut attempts = 0;
        // Attempts without a fence are so quick that there have to be more of them.
        while (attempts < ATTEMPTS || begin.elapsed() < LEAST) && begin.elapsed() < MOST {
            attempts += 1;
            own.set_space(start..start + size_of_val(words.as_slice()));
            while own.cursor() < start + 3 * RECORD_BYTES {
                core::hint::spin_loop();
            }
            own.revoke();
            fence_all_threads();
            let counter = block.counter();
            while counter & 1 != 0 && block.counter() == counter {
                core::hint::spin_loop();
            }
            let seen = own.cursor();
            misses += u64::from((0..20).any(|_| own.cursor() != seen));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(misses, 0, "of at least {ATTEMPTS} attempts");
}

// SAFETY: a site among the others.
#[unsafe(link_section = "trace_sites_1")]
static FENCED: Site = Site::new("cat", "fence", &[]);

/// Lets `membarrier` fail from now on.
fn refuse_membarrier() {
    let jump = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let filter = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
        libc::sock_filter { code: jump, jt: 0, jf: 1, k: libc::SYS_membarrier as u32 },
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // SAFETY: a filter of four instructions, which the kernel copies.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program), 0);
    }
}

//= docs/buffer.md#retiring
#[test]
fn where_the_fence_is_refused_later_writers_fence_themselves() {
    // What is found out holds for the whole process.
    if !is_own_process("slab::retirement::tests::where_the_fence_is_refused_later_writers_fence_themselves") {
        return;
    }
    assert!(sys::register_membarrier(), "the kernel has no membarrier");
    FENCED.switch_on();
    FENCED.publish(1, 2);
    fence_all_threads();
    assert_eq!(FENCED.published(), Some((1, 2)), "the dispatcher fences its thread");
    refuse_membarrier();
    fence_all_threads();
    assert!(FENCED.is_on());
    assert_eq!(FENCED.published(), None, "its events go the way with a fence");
    assert!(!sys::register_membarrier(), "no site is published any more");
    FENCED.publish(1, 2);
    fence_all_threads();
    assert_eq!(FENCED.published(), None, "also where it was published behind the refusal");
}
