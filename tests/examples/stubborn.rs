//! Emits an event and then does not do what is asked of it.
//!
//! `stubborn register`: prints what became of a synchronous registration, and ends. `stubborn park`: runs on
//! until it is ended. `stubborn ignore-term`: survives SIGTERM. `stubborn stop`: stops itself with all its
//! threads, so that it does not answer. `stubborn once`: emits one event and exits without any clean-up.
//! `stubborn signal N`: ends by that signal. `stubborn exec`: becomes another program. `stubborn abort`.
//! `stubborn alert NAME`: raises it for each line of its input. `stubborn grow`: holds 200 MiB from the first
//! line of its input on, until that ends. `stubborn panic`: panics where that ends the
//! process.

use trace_provider::{Scope, TraceProvider, alert, category_enabled, instant};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().unwrap_or_default();
    if what == "register" {
        let begin = std::time::Instant::now();
        let (_provider, registration) = TraceProvider::new_synchronously("stubborn");
        println!("{registration:?}");
        // It did not wait for a manager that is not there.
        assert!(begin.elapsed().as_secs() < 3);
        return;
    }
    let provider = TraceProvider::new("stubborn");
    instant!("stubborn", "here", Scope::Thread);
    match what.as_str() {
        "once" => {
            std::mem::forget(provider);
            // SAFETY: ends the process at once, which needs nothing.
            unsafe { libc::_exit(0) };
        }
        "alert" => {
            let name = arguments.next().expect("the name of an alert");
            // For each line of its input.
            for _ in std::io::stdin().lines() {
                while !category_enabled!("stubborn") {
                    std::thread::yield_now();
                }
                alert!("stubborn", &name);
                println!("raised");
            }
        }
        "grow" => {
            while !category_enabled!("stubborn") {
                std::thread::yield_now();
            }
            println!("recorded");
            let mut held = Vec::new();
            for _ in std::io::stdin().lines() {
                held.resize(200 << 20, 1_u8);
                println!("{} bytes", held.len());
            }
        }
        "park" => loop {
            std::thread::park();
        },
        "ignore-term" => {
            // SAFETY: no handler runs.
            unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
            println!("ready");
            loop {
                std::thread::park();
            }
        }
        "stop" => {
            println!("ready");
            // SAFETY: stops this process until another process continues it.
            unsafe { libc::raise(libc::SIGSTOP) };
        }
        "exec" => {
            use std::os::unix::process::CommandExt;

            panic!("{}", std::process::Command::new("/bin/true").exec());
        }
        "abort" => std::process::abort(),
        "panic" => {
            extern "C" fn not_unwound() {
                instant!("stubborn", "about to panic", Scope::Thread);
                panic!("as asked");
            }
            not_unwound();
        }
        "signal" => {
            let signal = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(libc::SIGKILL);
            // SAFETY: ends this process.
            unsafe { libc::raise(signal) };
        }
        _ => {}
    }
}
