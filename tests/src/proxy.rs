//! Stands between one program and the manager, hands on what each says to the other, and keeps what the
//! manager is given to read: the packets, and the buffer as it was with each of them.
//!
//! The program has a buffer of its own; the manager's is filled before each packet, so that it reads what was
//! kept and nothing else.

use crate::sandbox::{DEADLINE, Sandbox, wait_for};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Instant;
use trace_protocol::fifo::{FIFO_DEPTH, PACKET_BYTES};
use trace_protocol::provider::{ProviderConfig, ProviderRequest};
use trace_protocol::registry::{Registration, RegistryRequest, RegistryResponse};
use trace_protocol::{Encoded, FifoRequest, Message, Txid, VersionRange};
use zx_sim::{Channel, Error, Fifo, Handle, Listener, Signals, Vmo, WaitSet, wait_one};

/// One packet of a program's, and its buffer at that time.
pub struct Step {
    packet: [u8; PACKET_BYTES],
    memory: Vec<u8>,
}

/// A program's line to the manager, from its registration to its end.
pub struct Proxy {
    directory: PathBuf,
    thread: JoinHandle<Vec<Step>>,
}

/// What the manager gave a provider to record with.
struct Given {
    fifo: Fifo,
    buffer: Vmo,
}

impl Proxy {
    /// Listens for one program, which registers under another name.
    ///
    /// # Panics
    /// If the system has no more sockets.
    #[must_use]
    pub fn new(sandbox: &Sandbox, name: &str) -> Self {
        Self::with(sandbox, name, Release::This)
    }

    /// As [`Proxy::new`]; to the manager the program is one of an earlier release.
    ///
    /// # Panics
    /// As [`Proxy::new`].
    #[must_use]
    pub fn of_earlier_release(sandbox: &Sandbox, name: &str) -> Self {
        Self::with(sandbox, name, Release::Earlier)
    }

    fn with(sandbox: &Sandbox, name: &str, release: Release) -> Self {
        let directory = sandbox.file(&format!("proxy-{name}"));
        std::fs::create_dir(&directory).expect("a directory");
        let listener = Listener::bind(&directory.join("registry")).expect("a socket");
        let (runtime, name) = (sandbox.runtime_dir(), name.to_owned());
        let thread = std::thread::spawn(move || serve(&listener, &runtime, &name, release));
        Self { directory, thread }
    }

    /// The program's runtime directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What was kept, when the program has ended.
    ///
    /// # Panics
    /// If something went wrong on the way.
    #[must_use]
    pub fn finish(self) -> Vec<Step> {
        self.thread.join().expect("no panic")
    }
}

/// Registers a provider with the manager: the manager's line to it, and its answer.
///
/// # Panics
/// If no manager listens, or it does not answer.
#[must_use]
pub fn register(runtime: &Path, name: &str) -> (Channel, RegistryResponse) {
    register_as(runtime, name, Release::This).expect("an answer")
}

/// Registers a provider that backs its buffer itself.
///
/// # Panics
/// If the manager does not take it.
#[must_use]
pub fn register_sparse(runtime: &Path, name: &str) -> Channel {
    register_as(runtime, name, Release::Sparse).expect("an answer").0
}

/// Registers as [`register`] does, where others keep the manager so busy that it may close the connection.
///
/// # Panics
/// If no manager listens.
#[must_use]
pub fn try_register(runtime: &Path, name: &str) -> Option<(Channel, RegistryResponse)> {
    register_as(runtime, name, Release::This)
}

/// What a registration says that earlier releases do not say.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Release {
    This,
    /// This one, and it backs its buffer.
    Sparse,
    Earlier,
}

fn register_as(runtime: &Path, name: &str, release: Release) -> Option<(Channel, RegistryResponse)> {
    let (ours, theirs) = Channel::pair().expect("channels");
    let registration = Registration {
        provider: theirs.into_handle(),
        pid: zx_sim::process_koid(),
        name: name.to_owned(),
        protocol: VersionRange::PROTOCOL,
        buffer_header: VersionRange::only(1),
        tick_source: zx_sim::ticks::source().name().to_owned(),
        dumps_memory: false,
        parent: None,
        records_alerts: release != Release::Earlier,
        numbers_threads: false,
        backs_buffer: release == Release::Sparse,
        redacts: release != Release::Earlier,
        has_scopes: false,
        answers_dumps: false,
        command_line: None,
    };
    let registry = wait_for("the manager to listen", || Channel::connect(&runtime.join("registry")).ok());
    // The connection stays until the answer, so that registrations come in their order.
    let message = RegistryRequest::RegisterProviderSynchronously(registration).encode(Txid(1));
    let message = message.expect("a message");
    registry.write(&message.bytes, message.handles).ok()?;
    let _ = wait_one(&registry, Signals::READABLE | Signals::PEER_CLOSED, Some(Instant::now() + DEADLINE));
    let answer = registry.read().ok()?;
    let (_, answer) = Message::<Handle>::decode(&answer.bytes, answer.handles).expect("an answer");
    Some((ours, answer))
}

const KEY_MANAGER: u64 = 0;
const KEY_PROGRAM: u64 = 1;
const KEY_MANAGERS_FIFO: u64 = 2;
const KEY_PROGRAMS_FIFO: u64 = 3;

fn serve(listener: &Listener, runtime: &Path, name: &str, release: Release) -> Vec<Step> {
    let connection = wait_for("the program to register", || listener.accept().ok());
    let message = wait_for("a registration", || connection.read().ok());
    let (txid, request) = RegistryRequest::decode(&message.bytes, message.handles).expect("a registration");
    let program = Channel::from_handle(request.into_registration().expect("a registration").0.provider)
        .expect("a channel");
    let (manager, answer) = register_as(runtime, name, release).expect("an answer");
    if txid != Txid::ONE_WAY {
        let answer = Message::<Handle>::encode(answer, txid).expect("a message");
        connection.write(&answer.bytes, answer.handles).expect("the program waits for it");
    }
    let waits = WaitSet::new().expect("a wait set");
    let signals = Signals::READABLE | Signals::PEER_CLOSED;
    waits.add(&manager, KEY_MANAGER, signals).expect("a descriptor");
    waits.add(&program, KEY_PROGRAM, signals).expect("a descriptor");
    // What the manager gave, what the program was given for it, and what was kept.
    let mut given: Option<(Given, Given)> = None;
    let mut steps = Vec::new();
    let mut is_saving = false;
    let mut events = Vec::new();
    loop {
        // A packet behind one that the manager is still busy with waits: it comes with another buffer.
        while let Some((theirs, own)) = given.as_ref().filter(|_| !is_saving) {
            let mut packet = [0; PACKET_BYTES];
            match own.fifo.read(&mut packet) {
                Ok(()) => {
                    let memory = own.buffer.to_bytes(own.buffer.size().expect("a size") as usize);
                    let step = Step { packet, memory: memory.expect("it can be read") };
                    step.give(theirs);
                    is_saving = step.is_save();
                    steps.push(step);
                }
                Err(Error::ShouldWait) => break,
                // The program has left the session.
                Err(_) => given = None,
            }
        }
        let wait = waits.wait(&mut events, Some(Instant::now() + DEADLINE));
        wait.expect("it can be waited for");
        assert!(!events.is_empty(), "nothing happens any more");
        for event in &events {
            match event.key {
                KEY_MANAGER => {
                    let Ok(message) = manager.read() else { return steps };
                    let new = forward(&message.bytes, message.handles, &program);
                    if let Some((theirs, own)) = new {
                        waits.add(&theirs.fifo, KEY_MANAGERS_FIFO, signals).expect("a descriptor");
                        waits.add(&own.fifo, KEY_PROGRAMS_FIFO, signals).expect("a descriptor");
                        given = Some((theirs, own));
                    }
                }
                KEY_PROGRAM => match program.read() {
                    Ok(message) => {
                        manager.write(&message.bytes, message.handles).expect("the manager is there")
                    }
                    Err(Error::ShouldWait) => {}
                    Err(_) if given.is_none() || !is_saving => {
                        return drain(given.as_ref(), steps);
                    }
                    Err(_) => {}
                },
                KEY_MANAGERS_FIFO => {
                    let mut packet = [0; PACKET_BYTES];
                    if let Some((theirs, own)) = &given
                        && theirs.fifo.read(&mut packet).is_ok()
                    {
                        is_saving = false;
                        // The program may have gone meanwhile.
                        let _ = own.fifo.write(&packet);
                    }
                }
                _ => {}
            }
        }
    }
}

/// What a program that has gone has still said.
fn drain(given: Option<&(Given, Given)>, mut steps: Vec<Step>) -> Vec<Step> {
    let mut packet = [0; PACKET_BYTES];
    while let Some((theirs, own)) = given.filter(|(_, own)| own.fifo.read(&mut packet).is_ok()) {
        let memory =
            own.buffer.to_bytes(own.buffer.size().expect("a size") as usize).expect("it can be read");
        let step = Step { packet, memory };
        step.give(theirs);
        steps.push(step);
    }
    steps
}

/// Hands a request of the manager's on; with another buffer and FIFO if it brings some.
fn forward(bytes: &[u8], handles: Vec<Handle>, program: &Channel) -> Option<(Given, Given)> {
    let encoded = Encoded { bytes: bytes.to_vec(), handles };
    let (txid, request) = ProviderRequest::decode(&encoded.bytes, encoded.handles).expect("a request");
    let (request, given) = match request {
        ProviderRequest::Initialize { config } => {
            let (config, theirs, own) = replace(config);
            (ProviderRequest::Initialize { config }, Some((theirs, own)))
        }
        request => (request, None),
    };
    let message = request.encode(txid).expect("a message");
    // The program may have gone meanwhile.
    let _ = program.write(&message.bytes, message.handles);
    given
}

fn replace(config: ProviderConfig<Handle>) -> (ProviderConfig<Handle>, Given, Given) {
    let theirs = Given::of(config.fifo, config.buffer);
    let buffer = Vmo::of_bytes(
        "buffer",
        &vec![0; usize::try_from(theirs.buffer.size().expect("a size")).expect("an address")],
    )
    .expect("memory");
    let (fifo, programs_fifo) = Fifo::create(PACKET_BYTES, FIFO_DEPTH).expect("a fifo");
    let config = ProviderConfig {
        buffer: buffer.duplicate().expect("a descriptor").into_handle(),
        fifo: programs_fifo.into_handle(),
        ..config
    };
    (config, theirs, Given { fifo, buffer })
}

impl Given {
    fn of(fifo: Handle, buffer: Handle) -> Self {
        let fifo = Fifo::from_handle(fifo, PACKET_BYTES, FIFO_DEPTH).expect("a fifo");
        Self { fifo, buffer: Vmo::from_handle(buffer).expect("a buffer") }
    }
}

impl Step {
    /// Gives the manager this packet, and the buffer to read with it.
    fn give(&self, manager: &Given) {
        manager.buffer.write_at(0, &self.memory).expect("it can be written");
        manager.fifo.write(&self.packet).expect("there is room for a packet");
    }

    /// The same buffer with another packet.
    #[must_use]
    pub fn with_packet(self, packet: &FifoRequest) -> Self {
        Self { packet: packet.encode().expect("a packet"), ..self }
    }

    /// The manager answers it when it has read a half.
    #[must_use]
    pub fn is_save(&self) -> bool {
        matches!(FifoRequest::from_provider(&self.packet), Ok(FifoRequest::SaveBuffer { .. }))
    }
}

/// A provider that says and shows again what was kept of another.
pub struct Replay {
    channel: Channel,
}

impl Replay {
    /// Registers under a name.
    ///
    /// # Panics
    /// If the manager does not take it.
    #[must_use]
    pub fn new(sandbox: &Sandbox, name: &str) -> Self {
        Self { channel: register(&sandbox.runtime_dir(), name).0 }
    }

    /// From the manager's Start to the provider's end, which is when what is returned is dropped.
    ///
    /// # Panics
    /// If the manager does something else than it did with the other.
    pub fn run(self, steps: &[Step]) -> (Channel, Fifo) {
        let mut given = None;
        loop {
            match crate::client::receive::<ProviderRequest<Handle>>(&self.channel).expect("a request") {
                ProviderRequest::Initialize { config } => given = Some(Given::of(config.fifo, config.buffer)),
                ProviderRequest::Start { .. } => break,
                request => panic!("{request:?}"),
            }
        }
        let given = given.expect("Initialize comes before Start");
        for step in steps {
            step.give(&given);
            if step.is_save() {
                let mut packet = [0; PACKET_BYTES];
                wait_for("a half to be saved", || given.fifo.read(&mut packet).ok());
            }
        }
        (self.channel, given.fifo)
    }
}
