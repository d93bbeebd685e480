//! The storage service: answers reads over a socket, with a small cache in front of a slow disk.

use crate::message::Message;
use crate::work::{compute, scatter};
use std::collections::VecDeque;
use std::io::{self, Read};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use trace_provider::{Scope, TraceProvider, counter, duration, flow_step, instant};

const CACHED: usize = 12;

#[derive(Default)]
struct Cache {
    textures: VecDeque<u64>,
    hits: u64,
    misses: u64,
}

/// Serves every client until stdin is closed and the clients have gone.
pub fn run(socket: &Path) -> io::Result<()> {
    let _provider = TraceProvider::new("demo-storage");
    let listener = UnixListener::bind(socket)?;
    let cache = Arc::new(Mutex::new(Cache::default()));
    let (served, serving) = mpsc::channel();
    thread::Builder::new().name("accept".to_owned()).spawn(move || {
        for (number, client) in listener.incoming().flatten().enumerate() {
            let cache = cache.clone();
            let serve = move || serve(client, &cache);
            let thread = thread::Builder::new().name(format!("client-{number}")).spawn(serve);
            if thread.is_err() || served.send(thread).is_err() {
                return;
            }
        }
    })?;
    let mut rest = Vec::new();
    io::stdin().lock().read_to_end(&mut rest)?;
    // The last answer is sent before its duration ends, which a process that ends cuts off.
    serving.try_iter().flatten().for_each(|thread| drop(thread.join()));
    Ok(())
}

fn serve(mut client: UnixStream, cache: &Mutex<Cache>) {
    while let Ok(Some(request)) = Message::read(&mut client) {
        duration!("storage", "serve read", "texture" => request.number);
        flow_step!("storage", "read", request.flow);
        if !look_up(cache, request.number) {
            duration!("storage", "read disk", "texture" => request.number);
            compute(150 + scatter(request.number) % 250);
        }
        let amount = 4096 * (1 + request.number % 8);
        if (Message { amount, ..request }).write(&mut client).is_err() {
            return;
        }
    }
}

fn look_up(cache: &Mutex<Cache>, texture: u64) -> bool {
    duration!("storage", "look up", "texture" => texture);
    let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
    let is_hit = cache.textures.contains(&texture);
    if is_hit {
        cache.hits += 1;
    } else {
        cache.misses += 1;
        cache.textures.push_back(texture);
        if cache.textures.len() > CACHED {
            let evicted = cache.textures.pop_front();
            instant!("storage", "evict", Scope::Thread, "texture" => evicted.unwrap_or_default());
        }
        instant!("storage", "cache miss", Scope::Process, "texture" => texture);
    }
    counter!("storage", "cache", 0, "hits" => cache.hits, "misses" => cache.misses);
    is_hit
}
