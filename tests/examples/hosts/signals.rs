//! Hosts that have signals to themselves.

use crate::begun::{Host, PATIENCE, manager};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::time::Instant;

static MAIN: AtomicI32 = AtomicI32::new(0);
static MINE: AtomicUsize = AtomicUsize::new(0);
static OTHERS: AtomicUsize = AtomicUsize::new(0);

extern "C" fn handle(_signal: libc::c_int) {
    // SAFETY: a number out.
    let place = if unsafe { libc::gettid() } == MAIN.load(Ordering::Relaxed) { &MINE } else { &OTHERS };
    place.fetch_add(1, Ordering::Relaxed);
}

/// Those that are no faults, that can be handled, and that are not sent when a child ends.
fn signals() -> impl Iterator<Item = libc::c_int> {
    let not = [
        libc::SIGKILL,
        libc::SIGSTOP,
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGFPE,
        libc::SIGILL,
        libc::SIGTRAP,
        libc::SIGCHLD,
        // The others that stop a process take it back.
        libc::SIGCONT,
    ];
    (1..=31).chain(34..=64).filter(move |signal| !not.contains(signal))
}

fn set() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the first call initializes the set, and the others add numbers to it.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        signals().for_each(|signal| _ = libc::sigaddset(set.as_mut_ptr(), signal));
        set.assume_init()
    }
}

fn mask(how: libc::c_int) {
    let set = set();
    // SAFETY: a set that was initialized.
    unsafe { libc::pthread_sigmask(how, &raw const set, std::ptr::null_mut()) };
}

/// Sends each of them to the process.
fn send_all() {
    // SAFETY: numbers.
    signals().for_each(|signal| unsafe { assert_eq!(libc::kill(libc::getpid(), signal), 0) });
}

/// No signal is handled by a thread of the guest, also while the host's thread takes none.
pub fn handles(host: &mut Host) {
    // SAFETY: numbers, and a handler that only counts.
    unsafe {
        MAIN.store(libc::gettid(), Ordering::Relaxed);
        signals().for_each(|signal| {
            _ = libc::signal(signal, handle as extern "C" fn(libc::c_int) as libc::sighandler_t);
        });
    }
    host.begin();
    host.record("before");
    mask(libc::SIG_BLOCK);
    send_all();
    host.record("after");
    mask(libc::SIG_UNBLOCK);
    assert_eq!(OTHERS.load(Ordering::Relaxed), 0, "threads of the guest");
    assert_eq!(MINE.load(Ordering::Relaxed), signals().count());
    send_all();
    host.end();
    assert_eq!(OTHERS.load(Ordering::Relaxed), 0, "threads of the guest");
    assert_eq!(MINE.load(Ordering::Relaxed), 2 * signals().count());
}

/// Each signal waits for the thread that asks for it, and none ends the process.
pub fn sigwait(host: &mut Host) {
    host.begin();
    host.record("before");
    mask(libc::SIG_BLOCK);
    send_all();
    let wanted = set();
    for _ in signals() {
        let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: a set and a time; what the signal carries is not wanted.
        let taken = unsafe { libc::sigtimedwait(&raw const wanted, std::ptr::null_mut(), &raw const none) };
        assert!(taken > 0, "a signal went elsewhere");
    }
    host.record("after");
    host.end();
}

/// All signals are blocked from the beginning; they are not for a manager that is started meanwhile.
pub fn blocks(host: &mut Host) {
    let mut all = MaybeUninit::uninit();
    // SAFETY: the first call initializes the set.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut());
    }
    host.begin();
    if host.is_client() {
        let status = std::fs::read_to_string(format!("/proc/{}/status", manager())).expect("a manager");
        assert!(status.contains("SigBlk:\t0000000000000000"), "{status}");
    }
    host.record("before");
    host.record("after");
    host.end();
}

/// Standard error is a pipe without a reader, or a file as long as it may be; each message is lost, and no
/// signal comes.
pub fn pipe(host: &mut Host) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    // SAFETY: numbers of this program's, and the usual action of a signal, which std has ignored.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        assert_eq!(libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&writer), 2), 2);
    }
    let say = |end: Instant| {
        while Instant::now() < end {
            zx_sim::debuglog::write_for_process("a message");
        }
    };
    host.begin();
    host.record("before");
    let closing = std::thread::spawn(move || drop(reader));
    say(Instant::now() + PATIENCE / 400);
    closing.join().expect("no panic");
    crate::limits::limit(libc::RLIMIT_FSIZE, 100);
    let path = host.directory.join("stderr");
    std::fs::write(&path, [b'x'; 100]).expect("a file");
    let file = std::fs::File::options().append(true).open(path).expect("the file");
    // SAFETY: numbers of this program's.
    unsafe { assert_eq!(libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&file), 2), 2) };
    say(Instant::now() + PATIENCE / 400);
    crate::limits::lift();
    host.record("after");
    host.end();
}
