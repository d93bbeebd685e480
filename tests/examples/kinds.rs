//! Records once each what is no ordinary event: messages, blobs, objects, scheduling, virtual threads,
//! instaflows.
#![forbid(unsafe_code)]

use trace_provider::{
    Koid, ThreadState, TraceProvider, blob, blob_attachment, blob_record, context_switch, instaflow_begin,
    instaflow_end, instaflow_step, kernel_object, log, thread_wakeup, vthread_duration_begin,
    vthread_duration_end, vthread_flow_begin, vthread_flow_end,
};

/// Virtual threads whose lower 32 bits are no thread's.
const QUEUES: [u64; 2] = [1 << 24 | 1, 1 << 24 | 2];
/// A process and its threads of some other system.
const GUEST: Koid = Koid(1 << 25);
const CPUS: [Koid; 2] = [Koid(1 << 25 | 1), Koid(1 << 25 | 2)];

fn main() {
    let _provider = TraceProvider::new("kinds");
    log!("kinds", "a message with {}", "grün");
    blob!("kinds", "packet", &[0x45, 0, 0, 28], "port" => 443_u16);
    blob_attachment!("kinds", "shader", b"void main() {}");
    blob_record!("kinds", 1, "piece", b"level=7");
    kernel_object!("kinds", 1, GUEST, "guest");
    for (number, cpu) in CPUS.into_iter().enumerate() {
        kernel_object!("kinds", 2, cpu, &format!("guest cpu {number}"), "process" => GUEST);
    }
    let state = ThreadState::RUNNING;
    context_switch!("kinds", 0, state, CPUS[1], CPUS[0], "incoming_weight" => 5, "outgoing_weight" => i32::MIN);
    thread_wakeup!("kinds", 0, CPUS[1], "weight" => 7, "waker" => CPUS[0]);
    let state = ThreadState::BLOCKED;
    context_switch!("kinds", 0, state, CPUS[0], CPUS[1], "incoming_weight" => 7, "outgoing_weight" => 5);
    instaflow_begin!("kinds", "job", "pushed", 99, "length" => 3_u32);
    instaflow_step!("kinds", "job", "moved", 99);
    instaflow_end!("kinds", "job", "popped", 99);
    for (number, queue) in QUEUES.into_iter().enumerate() {
        let name = format!("queue {number}");
        vthread_duration_begin!("kinds", "draw", &name, queue, "number" => number);
        if number == 0 {
            vthread_flow_begin!("kinds", "frame", &name, queue, 100);
        } else {
            vthread_flow_end!("kinds", "frame", &name, queue, 100);
        }
        vthread_duration_end!("kinds", "draw", &name, queue);
    }
}
