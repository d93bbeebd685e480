//! A provider whose names are made to be obeyed by terminals, and to look like something else: its own, that
//! of its process and thread, of categories, events, arguments, counters, blobs, messages and memory dumps.
//!
//! `spoofing`: emits, says `ready`, and goes on until its input ends.
#![forbid(unsafe_code)]

use trace_provider::{
    Scope, TraceProvider, alert, async_begin, async_end, blob, blob_attachment, counter, duration,
    flow_begin, instant, log,
};
use trace_tests::spoof;

const CATEGORY: &str = spoof!("category");

fn emit() {
    duration!(CATEGORY, spoof!("span"), spoof!("argument") => spoof!("value"));
    instant!(CATEGORY, spoof!("instant"), Scope::Thread, spoof!("argument") => spoof!("value"));
    counter!(CATEGORY, spoof!("counter"), 1, spoof!("series") => 7_u64);
    async_begin!(1, CATEGORY, spoof!("operation"));
    async_end!(1, CATEGORY, spoof!("operation"));
    flow_begin!(CATEGORY, spoof!("flow"), 2);
    blob!(CATEGORY, spoof!("blob"), spoof!("bytes").as_bytes(), spoof!("argument") => spoof!("value"));
    blob_attachment!(CATEGORY, spoof!("attachment"), spoof!("bytes").as_bytes());
    log!(CATEGORY, "{}", spoof!("message"));
}

fn main() {
    // Linux has 15 bytes of the name of a process, which is that of its first thread.
    let _ = std::fs::write("/proc/self/comm", "p\u{1b}]2;x\u{7}\n\u{202e}");
    let provider = TraceProvider::new(spoof!("provider"));
    provider.on_memory_dump(|dump| dump.add(spoof!("memory"), 1));
    let thread = std::thread::Builder::new().name(spoof!("thread").to_owned());
    thread.spawn(emit).expect("a thread").join().expect("no panic");
    emit();
    println!("ready");
    let _ = std::io::stdin().read_line(&mut String::new());
    alert!(CATEGORY, spoof!("alert"));
    emit();
}
