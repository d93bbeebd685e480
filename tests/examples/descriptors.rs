//! A program that takes all numbers of descriptors for itself while it is recorded.
//!
//! `descriptors close FILE` closes all it does not know; `descriptors 0|1|2 FILE` puts an eventfd, an epoll
//! and the file at them in turn, beginning with that one. Then it goes on as if nothing was: it records,
//! drops its provider, forks, and says `well` if all of its own is as it was. Behind FILE there may be the
//! numbers of system calls that fail, as under the filter of a container.

use rustix::event::{EventfdFlags, epoll, eventfd};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use trace_provider::{Scope, TraceProvider, alert, instant};

/// Numbers that the program takes: more than a provider would have.
const NUMBERS: std::ops::Range<RawFd> = 3..64;
/// A process that is blocked for longer is ended by a signal.
const ALARM_S: u32 = 40;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // SAFETY: a number.
    unsafe { libc::alarm(ALARM_S) };
    arguments[2..].iter().for_each(|call| refuse(call.parse().expect("a number")));
    let provider = TraceProvider::new("descriptors");
    for number in 0..10_u64 {
        instant!("descriptors", "before", Scope::Thread, "n" => number);
    }
    let own = match arguments[0].as_str() {
        "close" => {
            // SAFETY: what programs do that want to have no descriptors but those they know.
            assert_eq!(unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) }, 0);
            Vec::new()
        }
        first => take_all(first.parse().expect("a number"), &arguments[1]),
    };
    // It is woken for this.
    alert!("descriptors", "here");
    in_child(&own);
    for number in 0..10_u64 {
        instant!("descriptors", "after", Scope::Thread, "n" => number);
    }
    drop(provider);
    in_child(&own);
    check(&own);
    println!("well");
}

/// Lets a system call fail from now on.
fn refuse(call: u32) {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let is_it = libc::sock_filter {
        code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
        jt: 0,
        jf: 1,
        k: call,
    };
    let filter = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
        is_it,
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

/// What the program has, and under which numbers.
struct Own {
    object: OwnedFd,
    kind: &'static str,
    numbers: Vec<RawFd>,
}

fn take_all(first: RawFd, path: &str) -> Vec<Own> {
    std::fs::write(path, "untouched").expect("a file");
    let file = File::options().read(true).write(true).open(path).expect("the file");
    let objects = [
        ("eventfd", eventfd(0, EventfdFlags::NONBLOCK).expect("an eventfd")),
        ("eventpoll", epoll::create(epoll::CreateFlags::empty()).expect("an epoll")),
        ("file", file.into()),
    ];
    let mut own = objects.map(|(kind, object)| {
        // SAFETY: a number of this program's, out of the way.
        let number = unsafe { libc::fcntl(object.as_raw_fd(), libc::F_DUPFD, NUMBERS.end) };
        assert!(number >= NUMBERS.end);
        drop(object);
        // SAFETY: the call just returned it.
        let object = unsafe { std::os::fd::FromRawFd::from_raw_fd(number) };
        Own { object, kind, numbers: Vec::new() }
    });
    for number in NUMBERS {
        let own = &mut own[(number + first) as usize % 3];
        // SAFETY: numbers; whatever stood there is not this program's.
        assert_eq!(unsafe { libc::dup2(own.object.as_raw_fd(), number) }, number);
        own.numbers.push(number);
    }
    own.into()
}

fn check(own: &[Own]) {
    for Own { object, kind, numbers } in own {
        let inode = |number: RawFd| {
            let link = std::fs::read_link(format!("/proc/self/fd/{number}"));
            link.unwrap_or_else(|error| panic!("{kind} {number}: {error}"))
        };
        let expected = inode(object.as_raw_fd());
        assert!(*kind == "file" || expected.to_string_lossy().contains(kind), "{expected:?}");
        numbers.iter().for_each(|number| assert_eq!(inode(*number), expected, "{number}"));
    }
    let [events, polls, file] = own else {
        return;
    };
    let mut count = [0; 8];
    assert_eq!(rustix::io::read(&events.object, &mut count), Err(rustix::io::Errno::AGAIN), "not written");
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", polls.object.as_raw_fd()));
    assert!(!info.expect("its state").contains("tfd:"), "nothing was added");
    let mut text = String::new();
    let mut file = File::from(file.object.try_clone().expect("the file"));
    file.read_to_string(&mut text).expect("the file");
    rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0)).expect("its beginning");
    assert_eq!(text, "untouched");
}

/// Forks, has the child look at what it has inherited, and waits for it.
fn in_child(own: &[Own]) {
    // SAFETY: the child looks at its descriptors and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let is_well = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(own))).is_ok();
        // SAFETY: ends the process at once.
        unsafe { libc::_exit(i32::from(!is_well)) };
    }
    let mut status = 0;
    // SAFETY: a child of this process, and a place for its status.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, status), (child, 0), "the child found what it should");
}
