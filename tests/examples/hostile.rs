//! A provider that means harm: to its buffer, to the buffer's file, or to the manager's patience.
//!
//! `hostile scribble`, `hostile counters`, `hostile newer`, `hostile header WORD EVENTS`, `hostile file
//! truncate|shrink|grow|punch|unlink`, `hostile fifo flood|half|unexpected|deaf`, `hostile lingering`. It
//! says `ready` when it has begun, and goes on until it is killed, or, with damaged counters or a damaged
//! header, until its input ends.

use rustix::fs::{FallocateFlags, fallocate};
use rustix::net::{SendFlags, send};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use trace_format::buffer::{BufferMode, Layout};
use trace_format::scopes::SCOPES_BYTES;
use trace_format::slab::LossReason;
use trace_protocol::provider::ProviderRequest;
use trace_protocol::registry::{Registration, RegistryRequest};
use trace_protocol::{FifoRequest, Message, Txid, VersionRange};
use trace_provider::{Scope, TraceProvider, instant};
use zx_sim::{Channel, Error, Handle, Signals, wait_one};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["scribble"] => scribble(),
        ["counters"] => damage_counters(),
        ["newer"] => write_later_kinds(),
        ["header", word, events] => damage_header(word, events),
        ["file", how] => spoil_file(how),
        ["fifo", how] => spoil_fifo(how),
        ["lingering"] => linger(),
        _ => panic!(
            "hostile scribble | counters | newer | header WORD EVENTS | file HOW | fifo HOW | lingering"
        ),
    }
}

fn say_ready() {
    println!("ready");
}

/// The file behind the buffer that is mapped into this process.
fn buffer_path() -> PathBuf {
    loop {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("the mappings");
        let path =
            maps.lines().find_map(|line| line.find('/').map(|at| &line[at..]).filter(|path| is_buffer(path)));
        if let Some(path) = path {
            return PathBuf::from(path);
        }
        std::thread::yield_now();
    }
}

fn is_buffer(path: &str) -> bool {
    path.contains("/session-") && path.contains("/provider-")
}

fn open(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).open(path).expect("the buffer's file")
}

/// Events on one side, random words over all of the buffer on the other.
fn scribble() {
    let _provider = TraceProvider::new("hostile");
    let path = buffer_path();
    let file = open(&path);
    std::thread::spawn(move || {
        let words = file.metadata().expect("its size").len() / 8;
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        loop {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            // The header, the words of slabs and the ledger more often than the rest.
            let place = if random & 1 == 0 { random >> 8 } else { (random >> 8) % 1024 };
            let word = match random >> 1 & 7 {
                0 => 0,
                1 => u64::MAX,
                2 => 1,
                3 => random & 0xffff,
                _ => random,
            };
            let _ = file.write_all_at(&word.to_le_bytes(), place % words * 8);
        }
    });
    say_ready();
    let mut number = 0_u64;
    loop {
        instant!("hostile", "event", Scope::Thread, "n" => number);
        number += 1;
        if number.is_multiple_of(1000) {
            std::thread::park_timeout(Duration::from_micros(100));
        }
    }
}

/// An impossible number of lost records.
const DROPPED: u64 = 3_851_492_659_759_677_440;

/// A hundred events, of which one is then dated years ahead, and counters that make no sense in a buffer that
/// is otherwise sound.
fn damage_counters() {
    let provider = TraceProvider::new("hostile");
    let path = buffer_path();
    for number in 0..100_u64 {
        instant!("hostile", "event", Scope::Thread, "n" => number);
    }
    let file = open(&path);
    let word_at = |offset: u64| {
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, offset).expect("a word");
        u64::from_le_bytes(bytes)
    };
    let store = |offset: u64, word: u64| file.write_all_at(&word.to_le_bytes(), offset).expect("a word");
    let size = file.metadata().expect("its size").len() - SCOPES_BYTES;
    let mode = BufferMode::from_bits((word_at(8) >> 16) as u8).expect("a mode");
    let layout = Layout::new(size, mode).expect("a layout");
    store(layout.loss_entry(LossReason::TooLarge), DROPPED);
    // The records of the thread stand one behind the other from the start of its first slab.
    let mut record = layout.slab(0);
    for _ in 0..50 {
        record += (word_at(record) >> 4 & 0xfff) * 8;
    }
    store(record + 8, word_at(record + 8) | 1 << 62);
    say_ready();
    let _ = std::io::stdin().read_line(&mut String::new());
    drop(provider);
}

/// A hundred events, of which nine of ten are then records of kinds that only later versions have.
fn write_later_kinds() {
    let provider = TraceProvider::new("newer");
    let path = buffer_path();
    for number in 0..100_u64 {
        instant!("hostile", "event", Scope::Thread, "n" => number);
    }
    let file = open(&path);
    let size = file.metadata().expect("its size").len() - SCOPES_BYTES;
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, 8).expect("a word");
    let mode = BufferMode::from_bits((u64::from_le_bytes(bytes) >> 16) as u8).expect("a mode");
    let mut record = Layout::new(size, mode).expect("a layout").slab(0);
    for number in 0..100_u64 {
        file.read_exact_at(&mut bytes, record).expect("a word");
        let header = u64::from_le_bytes(bytes);
        let words = header >> 4 & 0xfff;
        let later = match number % 10 {
            kind @ 1..=4 => header & !0xf | (10 + kind),
            5 => header & !0xf_0000 | (11 + number / 20) << 16,
            6 => 8 | words << 4 | 9 << 60,
            7 => 10 | words << 4 | 5 << 16,
            8 if number < 50 => 15 | words << 4 | 3 << 36,
            8 => 15 | words << 4 | 2 << 40,
            9 => 5 | words << 4 | ((words - 1) * 8) << 32 | 9 << 48,
            _ => header,
        };
        file.write_all_at(&later.to_le_bytes(), record).expect("a word");
        record += words * 8;
    }
    say_ready();
    let _ = std::io::stdin().read_line(&mut String::new());
    drop(provider);
}

/// So many events, and a word of the header that has all bits inverted when half of them are recorded.
fn damage_header(word: &str, events: &str) {
    let provider = TraceProvider::new("hostile");
    let path = buffer_path();
    let (word, events): (u64, u64) = (word.parse().expect("a word"), events.parse().expect("a number"));
    for number in 0..events {
        if number == events / 2 {
            let file = open(&path);
            let mut bytes = [0; 8];
            file.read_exact_at(&mut bytes, word * 8).expect("a word");
            file.write_all_at(&bytes.map(|byte| !byte), word * 8).expect("a word");
        }
        instant!("hostile", "event", Scope::Thread, "n" => number);
    }
    say_ready();
    let _ = std::io::stdin().read_line(&mut String::new());
    drop(provider);
}

/// Some events, and then the file is no longer what it was. Nothing more is written: that would be its own
/// end.
fn spoil_file(how: &str) {
    let _provider = TraceProvider::new("hostile");
    let path = buffer_path();
    for number in 0..100_u64 {
        instant!("hostile", "event", Scope::Thread, "n" => number);
    }
    let file = open(&path);
    let size = file.metadata().expect("its size").len();
    match how {
        "truncate" => file.set_len(0).expect("it can be cut"),
        "shrink" => file.set_len(size / 64 + 3).expect("it can be cut"),
        "grow" => file.set_len(size * 4).expect("it can grow"),
        "punch" => {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(&file, flags, 0, size).expect("holes");
        }
        "unlink" => std::fs::remove_file(&path).expect("it can be removed"),
        _ => panic!("file truncate | shrink | grow | punch | unlink"),
    }
    say_ready();
    loop {
        std::thread::park();
    }
}

/// Registers, and does with the FIFO what no provider does.
/// Registers a provider that has no engine.
fn register() -> Channel {
    let directory = PathBuf::from(std::env::var_os("TRACE_RUNTIME_DIR").expect("a runtime directory"));
    let registry = Channel::connect(&directory.join("registry")).expect("a manager");
    let (ours, theirs) = Channel::pair().expect("channels");
    let registration = Registration {
        provider: theirs.into_handle(),
        pid: 1,
        name: "hostile".to_owned(),
        protocol: VersionRange::PROTOCOL,
        buffer_header: VersionRange::only(1),
        tick_source: zx_sim::ticks::source().name().to_owned(),
        dumps_memory: false,
        parent: None,
        records_alerts: true,
        numbers_threads: false,
        backs_buffer: false,
        redacts: false,
        has_scopes: false,
        answers_dumps: false,
        command_line: None,
    };
    let message = RegistryRequest::RegisterProvider(registration).encode(Txid::ONE_WAY).expect("it fits");
    registry.write(&message.bytes, message.handles).expect("the manager listens");
    ours
}

fn spoil_fifo(how: &str) {
    let ours = register();
    while let Some(request) = receive(&ours) {
        if let ProviderRequest::Initialize { config } = request {
            harm(config.fifo, how);
        }
    }
}

/// Starts and stops as requested, and stays when it is asked to terminate.
fn linger() {
    let ours = register();
    let mut fifo = None;
    while let Some(request) = receive(&ours) {
        let answer = match request {
            ProviderRequest::Initialize { config } => {
                fifo = Some(config.fifo.into_fd());
                continue;
            }
            ProviderRequest::Start { .. } => FifoRequest::Started { version: 1 },
            ProviderRequest::Stop => FifoRequest::Stopped,
            _ => continue,
        };
        let packet = answer.encode().expect("a packet");
        send(fifo.as_ref().expect("it was initialized"), &packet, SendFlags::NOSIGNAL)
            .expect("there is room");
        if answer == (FifoRequest::Started { version: 1 }) {
            say_ready();
        }
    }
}

fn receive(channel: &Channel) -> Option<ProviderRequest<Handle>> {
    loop {
        match channel.read() {
            Ok(message) => {
                return Some(ProviderRequest::decode(&message.bytes, message.handles).expect("a request").1);
            }
            Err(Error::ShouldWait) => {
                let _ = wait_one(channel, Signals::READABLE | Signals::PEER_CLOSED, None);
            }
            Err(_) => return None,
        }
    }
}

fn harm(fifo: Handle, how: &str) {
    let fifo = fifo.into_fd();
    let packet = |request: FifoRequest| request.encode().expect("a packet");
    let put = |bytes: &[u8]| {
        // Waits for room; an error is the end of the FIFO.
        send(&fifo, bytes, SendFlags::NOSIGNAL).or_else(|error| {
            let _ = wait_one(&fifo, Signals::WRITABLE | Signals::PEER_CLOSED, None);
            if error == rustix::io::Errno::AGAIN { Ok(0) } else { Err(error) }
        })
    };
    let started = packet(FifoRequest::Started { version: 1 });
    say_ready();
    match how {
        "flood" => {
            let alert = packet(FifoRequest::Alert { name: "flood".to_owned() });
            while put(&alert).is_ok() {}
        }
        "half" => {
            let _ = put(&started[..7]);
        }
        "unexpected" => {
            for request in [
                FifoRequest::Stopped,
                FifoRequest::SaveBuffer { wrapped_count: 7, durable_data_end: 8 },
                FifoRequest::BufferSaved { wrapped_count: 0, durable_data_end: 0 },
                FifoRequest::Stopped,
            ] {
                let _ = put(&packet(request));
            }
        }
        // It says that it has started, and never reads or says anything again.
        "deaf" => {
            let _ = put(&started);
            loop {
                std::thread::park();
            }
        }
        _ => panic!("fifo flood | half | unexpected | deaf"),
    }
    std::mem::forget(fifo);
}
