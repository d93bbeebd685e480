//! The same calls as `native/words.h`, whose records must be the same words.

use trace_provider::{
    Koid, Scope, TraceProvider, async_begin, async_end, async_instant, blob, blob_attachment, blob_record,
    counter, duration, duration_begin, duration_end, flow_begin, flow_end, flow_step, instaflow_begin,
    instaflow_step, instant,
};

fn main() {
    let _provider = TraceProvider::new("");
    let negative = -7_i32;
    let unsigned = 4_000_000_000_u32;
    let large_negative = -5_000_000_000_i64;
    let large = u64::MAX;
    let number = 0.1_f64;
    let text = "eleven long";
    let yes = true;
    let pointer: *const () = core::ptr::without_provenance(0x1234_5678_9abc);
    instant!("words", "thread", Scope::Thread);
    instant!("words", "process", Scope::Process, "negative" => negative);
    instant!("words", "global", Scope::Global, "unsigned" => unsigned, "yes" => yes);
    counter!("words", "counter", 0x12_3456_7890, "large negative" => large_negative, "large" => large);
    duration_begin!("words", "begin", "number" => number);
    duration_end!("words", "begin", "text" => text);
    {
        duration!("words", "scope", "text" => text, "pointer" => pointer, "null" => ());
    }
    async_begin!(77, "words", "operation", "koid" => Koid(99));
    async_instant!(77, "words", "operation");
    async_end!(77, "words", "operation");
    flow_begin!("other words", "flow", 88);
    flow_step!("other words", "flow", 88, "negative" => negative);
    flow_end!("other words", "flow", 88);
    instaflow_begin!("other words", "instaflow", "step", 99, "text" => text);
    for round in 0..3_i32 {
        for length in 0..=17_u32 {
            let part = &"0123456789abcdefg"[..length as usize];
            instant!("words", "text", Scope::Thread, "round" => round, "text" => part, "length" => length);
        }
        {
            duration!("words", "round", "round" => round, "yes" => yes, "text" => text, "pointer" => pointer,
                "null" => ());
        }
        counter!("words", "rounds", 1, "number" => number, "large" => large, "koid" => Koid(5),
            "large negative" => large_negative);
        instaflow_step!("other words", "instaflow", "step", 99, "round" => round);
    }
    blob_record!("words", 1, "blob", b"some bytes");
    blob!("words", "large blob", b"some bytes", "negative" => negative);
    blob_attachment!("words", "attachment", b"some bytes");
}
