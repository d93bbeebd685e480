//! Hosts with little of something.

use crate::begun::{Guest, Host};
use trace_provider::{Scope, TraceProvider, instant};

type Resource = libc::__rlimit_resource_t;

/// Lowers a limit that can be lifted again.
pub fn limit(resource: Resource, value: u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a structure of this function's.
    unsafe {
        libc::getrlimit(resource, &raw mut limit);
        limit.rlim_cur = value.min(limit.rlim_max);
        assert_eq!(libc::setrlimit(resource, &raw const limit), 0);
    }
}

pub fn lift() {
    limit(libc::RLIMIT_FSIZE, u64::MAX);
    limit(libc::RLIMIT_NOFILE, 1024);
    limit(libc::RLIMIT_AS, u64::MAX);
}

/// Notes what a guest says: the test knows what it should be.
fn say(host: &Host, result: Result<(), String>) {
    if let Err(error) = result {
        std::fs::write(host.directory.join("error"), error).expect("a file");
    }
}

/// Files are short from the beginning (`ulimit -f`).
pub fn small_files(host: &mut Host) {
    limit(libc::RLIMIT_FSIZE, 512);
    let begun = host.try_begin(1);
    host.record("before");
    host.record("after");
    let ended = host.try_end();
    lift();
    say(host, begun.and(ended));
}

/// Files are short when the recording ends.
pub fn smaller_files(host: &mut Host) {
    host.begin();
    host.record("before");
    limit(libc::RLIMIT_FSIZE, 512);
    host.record("after");
    if matches!(host.guest, Some(Guest::Startup)) {
        // It notes the provider's name beside the buffer.
        drop(TraceProvider::new("hosts"));
    }
    let ended = host.try_end();
    lift();
    say(host, ended);
}

/// There are no more descriptors, or only a few (`ulimit -n`).
pub fn few_numbers(host: &mut Host) {
    for numbers in [3, 4, 6, 9] {
        limit(libc::RLIMIT_NOFILE, numbers);
        let begun = host.try_begin(1);
        lift();
        if numbers == 3 {
            say(host, begun);
        }
        host.guest = None;
    }
}

/// No address space for a buffer (`ulimit -v`).
pub fn little_space(host: &mut Host) {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("its size");
    let pages: u64 = pages.split(' ').next().and_then(|pages| pages.parse().ok()).expect("a number");
    let limit = || limit(libc::RLIMIT_AS, pages * 4096 + (32 << 20));
    if !host.is_client() {
        limit();
    }
    let begun = host.try_begin(64);
    host.record("before");
    host.record("after");
    limit();
    let ended = host.try_end();
    lift();
    say(host, begun.and(ended));
}

/// A control group without room for the buffer, which would be filled.
pub fn little_memory(host: &mut Host) {
    let group = std::env::var_os("HOSTS_GROUP").expect("a group");
    std::fs::write(group, std::process::id().to_string()).expect("a process joins");
    let begun = host.try_begin(64);
    if !host.is_client() {
        host.record("before");
        (0..1_500_000_u64).for_each(|n| instant!("hosts", "many", Scope::Thread, "n" => n));
    }
    let ended = host.try_end();
    say(host, begun.and(ended));
}
