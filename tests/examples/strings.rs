//! A provider with more strings than a small buffer has room to define: 64 call sites, whose names and
//! arguments have 700 bytes and more each.
//!
//! `strings ROUNDS`: each of two threads passes each site so often, with the number of the round.
#![forbid(unsafe_code)]

use trace_provider::{Scope, TraceProvider, instant};

macro_rules! hundred {
    () => {
        "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
    };
}

macro_rules! long {
    ($name:literal, $site:literal) => {
        concat!(
            $name,
            " ",
            $site,
            " ",
            hundred!(),
            hundred!(),
            hundred!(),
            hundred!(),
            hundred!(),
            hundred!(),
            hundred!()
        )
    };
}

macro_rules! pass {
    ($round:expr, $($site:literal)*) => {
        $(instant!("strings", long!("name", $site), Scope::Thread, long!("argument", $site) => $round);)*
    };
}

fn pass_all(round: u64) {
    pass!(round, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
    pass!(round, 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63);
}

fn main() {
    let rounds: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).expect("how often");
    let _provider = TraceProvider::new("strings");
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..rounds).for_each(pass_all));
        }
    });
}
