//! Durations that use a processor, and one whose thread waits while another does. What the thread's own clock
//! said before and behind each is in the instants around them.
#![forbid(unsafe_code)]

use rustix::time::{ClockId, clock_gettime};
use std::thread;
use trace_provider::{Scope, TraceProvider, counter, duration, duration_begin, duration_end, instant};

/// How long a duration keeps a processor busy, in nanoseconds.
const BUSY: u64 = 5_000_000;
/// How many durations a round has that do nothing.
const SHORT: usize = 50;

fn thread_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).expect("a time")
}

fn spin() {
    let until = thread_time() + BUSY;
    while thread_time() < until {
        std::hint::spin_loop();
    }
}

fn main() {
    let _provider = TraceProvider::new("thread_time");
    // The first is of a thread and of sites that the engine has not seen yet, the second is not.
    for round in 0..2_u32 {
        instant!("time", "around", Scope::Thread, "time" => thread_time());
        {
            duration!("time", "waiting", "round" => round);
            let spinning = thread::spawn(move || {
                instant!("time", "around", Scope::Thread, "time" => thread_time());
                {
                    duration!("time", "spinning", "round" => round);
                    duration!("time", "nested");
                    spin();
                }
                instant!("time", "around", Scope::Thread, "time" => thread_time());
            });
            spinning.join().expect("it ends");
        }
        duration_begin!("time", "pair");
        duration_end!("time", "pair");
        for _ in 0..SHORT {
            duration!("time", "short");
        }
        instant!("time", "around", Scope::Thread, "time" => thread_time());
    }
    counter!("time", "none", 1, "value" => 1);
    duration!("time", "full", "a" => 1, "b" => 2, "c" => 3, "d" => 4, "e" => 5, "f" => 6, "g" => 7, "h" => 8,
        "i" => 9, "j" => 10, "k" => 11, "l" => 12, "m" => 13, "n" => 14);
}
