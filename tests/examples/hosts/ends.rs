//! Hosts that end in the middle.

use crate::begun::{Host, record};

/// Ends with this.
const CODE: i32 = 7;

extern "C" fn at_exit() {
    record("end");
}

/// By a name of a function that ends the process, or its first thread.
pub fn end(host: &mut Host, how: &str) {
    // SAFETY: a function that only records.
    unsafe { libc::atexit(at_exit) };
    host.begin();
    host.record("before");
    match how {
        // SAFETY: nothing of this program's is used any more.
        "exit" => unsafe { libc::exit(CODE) },
        // SAFETY: as above.
        "_exit" => unsafe { libc::_exit(CODE) },
        "abort" => std::process::abort(),
        "returns" => {
            std::mem::forget(host.guest.take());
        }
        "first thread" => {
            let mut host = std::mem::replace(host, Host::new("", std::path::PathBuf::new()));
            // The loop of a polled provider stays where it is: it may go to another thread.
            std::thread::spawn(move || {
                let process = std::process::id();
                while !std::fs::read_to_string(format!("/proc/{process}/task/{process}/stat"))
                    .is_ok_and(|stat| stat.contains(") Z "))
                {
                    std::thread::yield_now();
                }
                host.record("after");
                host.end();
                // SAFETY: nothing of this program's is used any more.
                unsafe { libc::_exit(CODE) };
            });
            // SAFETY: only this thread ends, as by `pthread_exit` in C.
            unsafe { libc::syscall(libc::SYS_exit, 0) };
        }
        how => panic!("{how} is no hostility"),
    }
}
