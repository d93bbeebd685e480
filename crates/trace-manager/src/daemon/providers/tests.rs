//! How many providers a user may have.

use super::registration::{Connection, plain_name};
use super::*;
use rustix::net::SendFlags;
use trace_format::buffer::BUFFER_VERSION;
use trace_protocol::BufferingMode;
use trace_protocol::VersionRange;
use trace_protocol::limits::MAX_PROVIDERS_OF_A_USER;
use trace_protocol::registry::{Registration, RegistryStatus};
use zx_sim::{Fifo, Listener};

/// A provider without a connection.
pub(super) fn provider() -> Provider {
    Provider {
        name: "app".to_owned(),
        pid: 1,
        uid: Uid(0),
        channel: None,
        process: None,
        tracee: None,
        unanswered: VecDeque::new(),
        has_handed_over: false,
        dumps_memory: false,
        answers_dumps: false,
        parent: None,
        command_line: None,
        registered: 0,
        records_alerts: true,
        is_elsewhere: false,
        backs_buffer: false,
        has_scopes: false,
        redacts: true,
    }
}

//= docs/protocol.md#registry
#[test]
fn names_of_providers_have_no_control_characters() {
    assert_eq!(plain_name("größer (2)"), "größer (2)");
    assert_eq!(plain_name("a\u{1b}]52;c;aGk=\u{7}\nb\u{9b}"), "a\u{fffd}]52;c;aGk=\u{fffd}\u{fffd}b\u{fffd}");
    // A replacement is longer.
    assert_eq!(plain_name(&"\n".repeat(100)), "\u{fffd}".repeat(33));
}

//= docs/protocol.md#limits
#[test]
fn a_user_can_have_so_many_providers_and_others_have_theirs() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = RuntimeDir::open_or_create(&directory.path().join("run")).unwrap();
    let clock = Clock::measure();
    let mut providers = Providers::new(runtime, clock);
    let (_ours, theirs) = Channel::pair().unwrap();
    let registration = Registration {
        provider: theirs.into_handle(),
        pid: 1,
        name: "app".to_owned(),
        protocol: VersionRange::PROTOCOL,
        buffer_header: VersionRange::only(BUFFER_VERSION),
        tick_source: ticks::UNKNOWN.to_owned(),
        dumps_memory: false,
        answers_dumps: false,
        parent: None,
        command_line: None,
        records_alerts: true,
        numbers_threads: false,
        backs_buffer: false,
        has_scopes: false,
        redacts: true,
    };
    let (one, other) = (Uid(1000), Uid(1001));
    for id in 0..MAX_PROVIDERS_OF_A_USER {
        assert_eq!(providers.refusal(&registration, one), None);
        let provider = Provider { uid: one, ..provider() };
        providers.providers.insert(ProviderId(id as u32), provider);
    }
    let reason = "4096 programs of this user are registered already".to_owned();
    assert_eq!(providers.refusal(&registration, one), Some((RegistryStatus::Ok, reason)));
    assert_eq!(providers.refusal(&registration, other), None);
}

/// A registry that a connection of this process waits at, and the daemon's state about providers.
fn registry(directory: &tempfile::TempDir) -> (Providers, Io, Listener, Channel) {
    crate::daemon::inherited::allow_many_descriptors();
    let runtime = RuntimeDir::open_or_create(&directory.path().join("run")).unwrap();
    let path = directory.path().join("registry");
    let listener = Listener::bind(&path).unwrap();
    let connection = Channel::connect(&path).unwrap();
    (Providers::new(runtime, Clock::measure()), Io::new().unwrap(), listener, connection)
}

//= docs/protocol.md#limits
#[test]
fn a_user_with_many_connections_keeps_no_other_from_registering() {
    let us = Uid(rustix::process::geteuid().as_raw());
    for (theirs, is_ours) in [(Uid(us.0 + 1), false), (us, true)] {
        let directory = tempfile::tempdir().unwrap();
        let (mut providers, io, listener, _connection) = registry(&directory);
        let silent: Vec<_> = (1..=256).map(|_| Channel::pair().unwrap()).collect();
        for (number, (ours, _)) in (1..=256).zip(silent) {
            let deadline = Instant::now() + std::time::Duration::from_secs(60);
            providers.registrations.insert(number, Connection { channel: ours, deadline, uid: theirs });
        }
        // One of few connections is the oldest, and stays if the others are of another user.
        let (few, _theirs) = Channel::pair().unwrap();
        let deadline = Instant::now() + std::time::Duration::from_secs(60);
        providers.registrations.remove(&1);
        providers.registrations.insert(0, Connection { channel: few, deadline, uid: us });
        providers.next_registration = 300;
        let mut new = Vec::new();
        providers.accept(&listener, &io, &mut new).unwrap();
        assert_eq!(new, [300]);
        let left: Vec<u32> = providers.registrations.keys().copied().collect();
        let closed = if is_ours { 0 } else { 2 };
        let expected = [0].into_iter().chain(2..=256).chain([300]).filter(|number| *number != closed);
        assert_eq!(left, expected.collect::<Vec<_>>());
    }
}

//= docs/protocol.md#limits
#[test]
fn a_user_with_many_shared_connections_keeps_no_other_from_sharing() {
    for (uid, is_shared) in [(Uid(1001), true), (Uid(1000), false)] {
        let directory = tempfile::tempdir().unwrap();
        let (mut providers, io, ..) = registry(&directory);
        let mut others = Vec::new();
        for number in 0..256 {
            let (ours, theirs) = Channel::pair().unwrap();
            providers.shared.insert(number, (ours, Uid(1000)));
            others.push(theirs);
        }
        let (ours, theirs) = Channel::pair().unwrap();
        providers.share(300, (ours, uid), Txid(1), &io);
        assert_eq!(theirs.read().is_ok(), is_shared, "{uid:?}");
        assert_eq!(providers.shared.contains_key(&300), is_shared);
        assert_eq!(providers.shared.contains_key(&255), !is_shared);
        assert_eq!(providers.shared.len(), 256);
    }
}

//= docs/protocol.md#what-no-peer-can-do
#[test]
fn packets_of_other_sizes_break_the_protocol_and_no_packet_is_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let (mut providers, mut io, _listener, _connection) = registry(&directory);
    let mut read = |bytes: Option<usize>| {
        let (ours, theirs) = Fifo::create(PACKET_BYTES, FIFO_DEPTH).unwrap();
        let theirs = theirs.into_handle().into_fd();
        let tracee = Tracee {
            session: ClientId(1),
            vmo: Arc::new(Vmo::of_bytes("buffer", &[0; 4096]).unwrap()),
            size: 4096,
            mode: BufferingMode::Oneshot,
            fifo: Some(ours),
            progress: None,
            has_started: true,
            made: 1,
            ended: None,
            has_stopped: false,
            is_terminated: false,
            is_left: false,
            copied: 0,
        };
        providers.providers.insert(ProviderId(1), Provider { tracee: Some(tracee), ..provider() });
        match bytes {
            Some(bytes) => _ = rustix::net::send(&theirs, &vec![0; bytes], SendFlags::NOSIGNAL).unwrap(),
            None => drop(theirs),
        }
        providers.read_fifo(ProviderId(1), &mut io);
        let problem = io.events.drain(..).find_map(|event| match event {
            Event::BrokeProtocol { problem, .. } => Some(problem),
            _ => None,
        });
        problem.unwrap_or_default()
    };
    for bytes in [0, 8, 32] {
        let wrong = Error::ElementSize { expected: PACKET_BYTES, found: bytes };
        assert_eq!(read(Some(bytes)), format!("bad packet: {wrong}"));
    }
    assert_eq!(read(None), "");
}
