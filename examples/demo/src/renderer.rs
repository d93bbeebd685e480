//! The renderer: a main thread that takes frames apart, and raster threads that draw their tiles.

use crate::message::Message;
use crate::work::{compute, scatter};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use trace_provider::{
    Id, Scope, TraceProvider, counter, duration, duration_begin, duration_end, flow_begin, flow_end,
    flow_step, instant,
};

const RASTER_THREADS: usize = 3;
const TILE_PIXELS: u64 = 256 * 256;
const CONNECT_WAIT: Duration = Duration::from_secs(5);

#[derive(Clone, Copy)]
struct Tile {
    frame: u64,
    number: u64,
    flow: u64,
}

/// Renders the frames that come in on stdin until it is closed.
pub fn run(socket: &Path) -> io::Result<()> {
    let _provider = TraceProvider::new("demo-renderer");
    let (done, finished) = channel();
    let mut queues = Vec::new();
    for number in 0..RASTER_THREADS {
        let (queue, tiles) = channel();
        queues.push(queue);
        let (storage, done) = (connect(socket)?, done.clone());
        thread::Builder::new()
            .name(format!("raster-{number}"))
            .spawn(move || raster(storage, &tiles, &done))?;
    }
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    while let Some(frame) = Message::read(&mut input)? {
        render(frame, &queues, &finished)?.write(&mut output)?;
    }
    instant!("render", "no more frames", Scope::Process);
    Ok(())
}

fn connect(socket: &Path) -> io::Result<UnixStream> {
    duration!("startup", "connect to storage");
    let deadline = Instant::now() + CONNECT_WAIT;
    loop {
        match UnixStream::connect(socket) {
            Err(_) if Instant::now() < deadline => thread::sleep(Duration::from_millis(1)),
            result => return result,
        }
    }
}

fn render(
    frame: Message,
    queues: &[Sender<Tile>],
    finished: &Receiver<io::Result<()>>,
) -> io::Result<Message> {
    duration!("render", "render frame", "number" => frame.number, "tiles" => frame.amount);
    flow_step!("ipc", "frame", frame.flow);
    {
        duration!("render", "record commands");
        compute(80);
    }
    for number in 0..frame.amount {
        let tile = Tile { frame: frame.number, number, flow: Id::new().0 };
        duration!("render", "schedule tile", "tile" => number);
        flow_begin!("render", "tile", tile.flow);
        let queue = &queues[number as usize % queues.len()];
        queue.send(tile).map_err(io::Error::other)?;
    }
    duration_begin!("render", "wait for tiles");
    for _ in 0..frame.amount {
        finished.recv().map_err(io::Error::other)??;
    }
    duration_end!("render", "wait for tiles");
    duration!("render", "composite");
    compute(100);
    Ok(Message { amount: frame.amount * TILE_PIXELS, ..frame })
}

fn raster(mut storage: UnixStream, tiles: &Receiver<Tile>, done: &Sender<io::Result<()>>) {
    while let Ok(tile) = tiles.recv() {
        let result = raster_tile(&mut storage, tile);
        if done.send(result).is_err() {
            return;
        }
    }
}

fn raster_tile(storage: &mut UnixStream, tile: Tile) -> io::Result<()> {
    duration!("raster", "raster tile", "frame" => tile.frame, "tile" => tile.number);
    flow_end!("render", "tile", tile.flow);
    let texture = scatter(tile.frame / 4 + tile.number * 7) % 24;
    let bytes = {
        duration!("storage", "read texture", "texture" => texture);
        let flow = Id::new();
        flow_begin!("storage", "read", flow);
        Message { number: texture, flow: flow.0, amount: 0 }.write(storage)?;
        let answer = Message::read(storage)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        flow_end!("storage", "read", flow);
        answer.amount
    };
    for stage in ["paths", "text", "blend"] {
        duration!("raster", "stage", "name" => stage, "bytes" => bytes);
        compute(90 + scatter(tile.frame * 31 + tile.number) % 160);
    }
    counter!("raster", "pixels", tile.number, "drawn" => (tile.frame + 1) * TILE_PIXELS);
    Ok(())
}
