//! The kernel's own events, beside those of programs. As root, with tracefs.
#![forbid(unsafe_code)]

mod kernel {
    mod access;
    mod categories;
    mod clocks;
    mod losses;
    mod markers;
    mod metrics;
    mod names;
    mod namespaces;
    mod probes;
    mod profiles;
    mod retaining;
    mod switches;
}
