//! Hosts with children.

use crate::begun::{Host, PATIENCE, record, run, wait};
use std::ffi::CString;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Forks a child that may not hang.
fn child(body: impl FnOnce()) {
    // SAFETY: the child does what children of programs with threads may do on this system, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: a number.
        unsafe { libc::alarm(PATIENCE.as_secs() as u32 / 2) };
        let is_well = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).is_ok();
        // SAFETY: ends the process at once.
        unsafe { libc::_exit(i32::from(!is_well)) };
    }
    wait(child, 0);
}

/// Children in each state: before it begins, while it records, with what the parent has, and after the end.
pub fn forks(host: &mut Host) {
    child(|| record("child"));
    host.begin();
    child(|| record("child"));
    host.record("before");
    child(|| host.end_in_child());
    child(|| {
        record("child");
        host.end_in_child();
    });
    // One that is forked from a child, and outlives it.
    child(|| child(|| record("child")));
    host.record("after");
    host.end();
    child(|| host.end_in_child());
    no_children();
}

/// Children of several threads at once.
pub fn threads(host: &mut Host) {
    host.begin();
    host.record("before");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| child(|| record("child")));
        }
    });
    host.record("after");
    host.end();
    no_children();
}

/// Other programs, by each call that there is: they inherit nothing that the host has not opened.
pub fn spawns(host: &mut Host) {
    let script =
        "for fd in /proc/self/fd/*; do case ${fd##*/} in 0|1|2) ;; *) test ! -S $fd || exit 7;; esac; done";
    let arguments = ["/bin/sh", "-c", script].map(|text| CString::new(text).expect("a text"));
    let arguments: Vec<_> = arguments.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect();
    let each = || {
        // SAFETY: the child only makes system calls, and ends.
        let forked = unsafe { libc::fork() };
        if forked == 0 {
            // SAFETY: texts and a list of the parent's, which live as long.
            unsafe {
                libc::execv(arguments[0], arguments.as_ptr());
                libc::_exit(9);
            }
        }
        wait(forked, 0);
        let mut child = 0;
        // SAFETY: texts and lists of this program's, ended by null.
        let spawned = unsafe {
            libc::posix_spawn(
                &raw mut child,
                arguments[0],
                std::ptr::null(),
                std::ptr::null(),
                arguments.as_ptr().cast(),
                [std::ptr::null_mut()].as_ptr(),
            )
        };
        assert_eq!(spawned, 0);
        wait(child, 0);
    };
    each();
    host.begin();
    each();
    host.record("before");
    each();
    host.record("after");
    host.end();
    each();
    no_children();
}

static ENDED: AtomicUsize = AtomicUsize::new(0);

extern "C" fn on_child(_signal: libc::c_int) {
    ENDED.fetch_add(1, Ordering::Relaxed);
}

/// There is no child, and no end of one is reported.
fn no_children() {
    let mut status = 0;
    // SAFETY: a place for a status.
    let waited = unsafe { libc::waitpid(-1, &raw mut status, 0) };
    assert_eq!(waited, -1, "a child that is not the host's: {status}");
}

/// Waits for all its children, of which it has one.
pub fn waits(host: &mut Host) {
    // SAFETY: a handler that only counts.
    unsafe { libc::signal(libc::SIGCHLD, on_child as extern "C" fn(libc::c_int) as libc::sighandler_t) };
    host.begin();
    no_children();
    assert_eq!(ENDED.load(Ordering::Relaxed), 0, "no child has ended");
    host.record("before");
    // SAFETY: the child ends at once.
    let own = unsafe { libc::fork() };
    if own == 0 {
        // SAFETY: as above.
        unsafe { libc::_exit(3) };
    }
    let mut status = 0;
    // SAFETY: a place for a status.
    let waited = unsafe { libc::waitpid(-1, &raw mut status, 0) };
    assert_eq!((waited, status), (own, 3 << 8), "the only child");
    no_children();
    host.record("after");
    host.end();
    no_children();
    let children = if host.is_client() { 3 } else { 1 };
    assert_eq!(ENDED.load(Ordering::Relaxed), children, "the host's own have ended");
}

/// Ignores the end of children, which leaves no zombies.
pub fn ignores(host: &mut Host) {
    // SAFETY: a number.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    host.begin();
    host.record("before");
    run(&["/bin/true"]);
    no_children();
    host.record("after");
    host.end();
    no_children();
}
