//! The front end: lays frames out, submits them and presents what comes back.

use crate::message::Message;
use crate::work::{compute, scatter};
use std::collections::VecDeque;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use trace_provider::{
    Id, Koid, Scope, TraceProvider, async_begin, async_end, async_instant, counter, duration, duration_begin,
    duration_end, flow_begin, flow_end, instant,
};

const FRAMES: u64 = 60;
/// Frames under way at once.
const DEPTH: usize = 2;

/// Runs the demonstration.
pub fn run() -> io::Result<()> {
    let _provider = TraceProvider::new("demo");
    let directory = std::env::temp_dir().join(format!("trace-demo-{}", std::process::id()));
    std::fs::create_dir(&directory)?;
    let result = with_children(&directory.join("storage"));
    std::fs::remove_dir_all(&directory)?;
    let presented = result?;
    println!("demo: presented {presented} frames");
    Ok(())
}

fn with_children(socket: &Path) -> io::Result<u64> {
    duration_begin!("startup", "start processes");
    let mut storage = spawn("storage", socket)?;
    let mut renderer = spawn("renderer", socket)?;
    let (storage_pid, renderer_pid) = (u64::from(storage.id()), u64::from(renderer.id()));
    duration_end!("startup", "start processes", "storage" => Koid(storage_pid), "renderer" => Koid(renderer_pid));

    let (Some(mut requests), Some(mut frames)) = (renderer.stdin.take(), renderer.stdout.take()) else {
        return Err(io::Error::other("the renderer has no pipes"));
    };
    let mut under_way = VecDeque::new();
    let mut presented = 0;
    for number in 0..FRAMES {
        submit(number, &mut requests, &mut under_way)?;
        while under_way.len() > DEPTH {
            presented += present(&mut frames, &mut under_way)?;
        }
    }
    instant!("frames", "last frame submitted", Scope::Global, "frames" => FRAMES);
    drop(requests);
    while !under_way.is_empty() {
        presented += present(&mut frames, &mut under_way)?;
    }
    drop(storage.stdin.take());
    for (name, child) in [("renderer", &mut renderer), ("storage", &mut storage)] {
        let status = child.wait()?;
        if !status.success() {
            return Err(io::Error::other(format!("{name} ended with {status}")));
        }
    }
    Ok(presented)
}

fn spawn(role: &str, socket: &Path) -> io::Result<Child> {
    duration!("startup", "spawn", "role" => role);
    Command::new(std::env::current_exe()?)
        .arg0(format!("demo-{role}"))
        .args([role.as_ref(), socket.as_os_str()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
}

fn submit(number: u64, requests: &mut impl io::Write, under_way: &mut VecDeque<Id>) -> io::Result<()> {
    let tiles = 3 + scatter(number) % 4;
    duration!("frames", "frame", "number" => number, "tiles" => tiles);
    let id = Id::new();
    async_begin!(id, "frames", "latency", "number" => number);
    {
        duration!("layout", "layout");
        for pass in ["measure", "arrange"] {
            duration!("layout", "pass", "kind" => pass);
            compute(120 + scatter(number) % 200);
        }
        if number.is_multiple_of(10) {
            instant!("layout", "full layout", Scope::Thread, "dirty" => true, "ratio" => number as f64 / FRAMES as f64);
        }
    }
    duration!("ipc", "submit");
    flow_begin!("ipc", "frame", id);
    Message { number, flow: id.0, amount: tiles }.write(requests)?;
    async_instant!(id, "frames", "latency", "step" => "submitted");
    under_way.push_back(id);
    counter!("frames", "queue", 0, "depth" => under_way.len());
    Ok(())
}

fn present(frames: &mut impl io::Read, under_way: &mut VecDeque<Id>) -> io::Result<u64> {
    let message = {
        duration!("ipc", "wait for frame");
        Message::read(frames)?.ok_or(io::ErrorKind::UnexpectedEof)?
    };
    duration!("frames", "present", "number" => message.number, "pixels" => message.amount);
    flow_end!("ipc", "frame", message.flow);
    compute(60);
    if let Some(id) = under_way.pop_front() {
        async_end!(id, "frames", "latency");
    }
    counter!("frames", "queue", 0, "depth" => under_way.len());
    Ok(1)
}
