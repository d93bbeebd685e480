//! Gives up the file system and all sockets, as a sandbox does, and records.
//!
//! `sandboxed EVENTS`: from here on the kernel refuses to open files and sockets, and to look for them. So
//! many events, as many in a forked child, and then the end.

use trace_provider::{Scope, TraceProvider, instant};

/// What needs the file system, and what makes or connects sockets.
const REFUSED: [libc::c_long; 14] = [
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_readlinkat,
    libc::SYS_faccessat,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_inotify_init1,
    libc::SYS_ptrace,
];

/// Has the kernel refuse these calls.
fn give_up() {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let mut filter = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0)];
    for call in REFUSED {
        filter.push(libc::sock_filter {
            code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
            jt: 0,
            jf: 1,
            k: u32::try_from(call).expect("a number"),
        });
        filter.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32));
    }
    filter.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW));
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // SAFETY: a filter of so many instructions, which the kernel copies.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program), 0);
    }
}

fn record(count: u64) {
    (0..count).for_each(|number| instant!("sandboxed", "event", Scope::Thread, "number" => number));
}

fn main() {
    let count: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).expect("a number");
    give_up();
    assert!(std::fs::read("/proc/self/comm").is_err() && std::net::TcpListener::bind("[::1]:0").is_err());
    let provider = TraceProvider::new("sandboxed");
    record(count);
    // SAFETY: the child records, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        record(count);
        // SAFETY: no memory is touched.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: the child of this process, and a number to write to.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    drop(provider);
    println!("child {status}");
}
