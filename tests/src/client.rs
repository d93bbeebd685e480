//! A client that speaks the manager's protocols itself, for what the `trace` tool does not do, or would never
//! do.

use crate::sandbox::{DEADLINE, Sandbox, wait_for};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;
use trace_protocol::controller::{
    ObserveOptions, Observing, ProvisionerRequest, ProvisionerResponse, SessionRequest, SessionResponse,
    TraceConfig,
};
use trace_protocol::{Encoded, Message, ProtocolError, Txid};
use zx_sim::{Channel, Error, Handle, Signals, Socket, Vmo, wait_one};

/// A connection to a running manager.
pub struct Client(pub Channel);

/// A session and where its archive comes out.
pub struct Session {
    /// Its channel.
    pub channel: Channel,
    /// Not read yet.
    pub output: Socket,
    next: u32,
}

/// Reads a socket to its end, in a thread of its own.
pub struct Collector {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: JoinHandle<()>,
}

impl Client {
    /// Connects to the manager of a scenario, which is about to listen.
    ///
    /// # Panics
    /// If it does not.
    #[must_use]
    pub fn connect(sandbox: &Sandbox) -> Self {
        let path = sandbox.runtime_dir().join("provisioner");
        Self(wait_for("a manager to listen", || Channel::connect(&path).ok()))
    }

    /// Asks something.
    ///
    /// # Panics
    /// If there is no answer.
    #[must_use]
    pub fn ask(&self, request: ProvisionerRequest<Handle>) -> ProvisionerResponse {
        send(&self.0, request.encode(Txid(1)));
        receive(&self.0).expect("an answer")
    }

    /// Has a snapshot taken; what was answered, and the archive.
    ///
    /// # Panics
    /// If there is no answer.
    #[must_use]
    pub fn snapshot(&self) -> (ProvisionerResponse, Vec<u8>) {
        let (ours, theirs) = Socket::pair().expect("sockets");
        let collector = Collector::new(ours);
        let answer =
            self.ask(ProvisionerRequest::TakeSnapshot { program: None, output: theirs.into_handle() });
        (answer, collector.finish())
    }

    /// Asks to observe what is being recorded; what was answered, and where the frames come.
    ///
    /// # Panics
    /// If there is no answer.
    #[must_use]
    pub fn observe(&self, options: ObserveOptions) -> (Observing, Socket) {
        let (ours, theirs) = Socket::pair().expect("sockets");
        let request = ProvisionerRequest::Observe { options, output: theirs.into_handle() };
        match self.ask(request) {
            ProvisionerResponse::Observe(observing) => (observing, ours),
            answer => panic!("{answer:?}"),
        }
    }

    /// Begins a session.
    ///
    /// # Panics
    /// If the system has no more sockets.
    #[must_use]
    pub fn begin(&self, config: TraceConfig) -> Session {
        let (output, their_output) = Socket::pair().expect("sockets");
        self.begin_into(config, output, their_output)
    }

    /// As [`Client::begin`], with an output that was made before.
    ///
    /// # Panics
    /// As there.
    #[must_use]
    pub fn begin_into(&self, config: TraceConfig, output: Socket, their_output: Socket) -> Session {
        let (channel, their_channel) = Channel::pair().expect("channels");
        let request: ProvisionerRequest<Handle> = ProvisionerRequest::InitializeTracing {
            session: their_channel.into_handle(),
            config,
            output: their_output.into_handle(),
        };
        send(&self.0, request.encode(Txid::ONE_WAY));
        Session { channel, output, next: 1 }
    }
}

impl Session {
    /// Asks something, and skips what the manager says unasked.
    ///
    /// # Panics
    /// If there is no answer.
    pub fn ask(&mut self, request: SessionRequest) -> SessionResponse {
        self.send(request);
        self.answer()
    }

    /// The next answer to something that was asked, without what the manager says unasked.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn answer(&self) -> SessionResponse {
        loop {
            match receive(&self.channel).expect("an answer") {
                SessionResponse::OnSessionStateChange(_) | SessionResponse::OnWaiting(_) => {}
                response => return response,
            }
        }
    }

    /// Sends a request without waiting for the answer.
    ///
    /// # Panics
    /// If the manager is gone.
    pub fn send(&mut self, request: SessionRequest) {
        send(&self.channel, Message::<Handle>::encode(request, Txid(self.next)));
        self.next += 1;
    }

    /// Reads the archive as it comes.
    ///
    /// # Panics
    /// If the system has no more descriptors.
    #[must_use]
    pub fn collect(&self) -> Collector {
        Collector::new(self.output.duplicate().expect("a descriptor"))
    }
}

impl Collector {
    /// Begins to read.
    #[must_use]
    pub fn new(socket: Socket) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let collected = bytes.clone();
        let thread = std::thread::spawn(move || {
            let mut chunk = vec![0; 64 << 10];
            loop {
                match socket.read(&mut chunk) {
                    Ok(0) | Err(Error::PeerClosed) => return,
                    Ok(length) => {
                        collected.lock().expect("no panic").extend_from_slice(&chunk[..length]);
                    }
                    Err(Error::ShouldWait) => {
                        let wanted = Signals::READABLE | Signals::PEER_CLOSED;
                        let _ = wait_one(&socket, wanted, None);
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        });
        Self { bytes, thread }
    }

    /// What came so far.
    ///
    /// # Panics
    /// Never.
    #[must_use]
    pub fn so_far(&self) -> Vec<u8> {
        self.bytes.lock().expect("no panic").clone()
    }

    /// Everything, when the other side has closed.
    ///
    /// # Panics
    /// If the socket cannot be read, or the other side does not close within [`DEADLINE`].
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        wait_for("the other side to close", || self.thread.is_finished().then_some(()));
        self.thread.join().expect("the socket can be read");
        self.bytes.lock().expect("no panic").clone()
    }
}

fn send(channel: &Channel, message: Result<Encoded<Handle>, trace_protocol::ProtocolError>) {
    let message = message.map(|message| message.spill(Vmo::store)).expect("it fits").expect("a vmo");
    match channel.write(&message.bytes, message.handles) {
        // What a manager has said before it closed can still be read.
        Ok(()) | Err(zx_sim::Error::PeerClosed) => {}
        Err(error) => panic!("the manager listens: {error}"),
    }
}

/// The next message; none when the other side has closed.
///
/// # Panics
/// If it takes too long, or makes no sense.
pub fn receive<T: Message<Handle>>(channel: &Channel) -> Option<T> {
    let deadline = Instant::now() + DEADLINE;
    loop {
        match channel.read() {
            Ok(message) => {
                let encoded = Encoded { bytes: message.bytes, handles: message.handles };
                let load = |handle: Handle, length: usize| {
                    let vmo = Vmo::from_sealed_handle(handle).expect("a vmo");
                    Ok::<_, ProtocolError>(vmo.to_bytes(length).expect("its bytes"))
                };
                let encoded = encoded.unspill(load).expect("a message");
                return Some(T::decode(&encoded.bytes, encoded.handles).expect("a message").1);
            }
            Err(Error::ShouldWait) => {
                assert!(Instant::now() < deadline, "the manager does not answer");
                let wanted = Signals::READABLE | Signals::PEER_CLOSED;
                let _ = wait_one(channel, wanted, Some(deadline));
            }
            Err(_) => return None,
        }
    }
}
