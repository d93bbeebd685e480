//! Peers that try to freeze the manager, to fill its memory, or to use up its descriptors.

use super::hostile::{Scene, assert_honest};
use super::questions::answer_categories;
use rustix::process::Signal;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use trace_protocol::controller::{
    ProviderInfo, ProvisionerRequest, ProvisionerResponse, Refusal, SessionRequest, SessionResponse,
    SnapshotError, StartOptions, StopOptions, TraceConfig,
};
use trace_protocol::fifo::PACKET_BYTES;
use trace_protocol::limits::MAX_UNANSWERED;
use trace_protocol::provider::ProviderRequest;
use trace_protocol::{BufferingMode, Message, Txid};
use trace_tests::client::{Client, receive};
use trace_tests::proxy::{register, try_register};
use trace_tests::sandbox::{DEADLINE, Process, Sandbox};
use trace_tests::{Archive, Requirement, wait_for};
use zx_sim::{Channel, Handle, Socket};

/// Sends a request as a client that does not wait for the answer.
fn send(channel: &Channel, request: ProvisionerRequest<Handle>, txid: Txid) -> zx_sim::Result<()> {
    let message = request.encode(txid).unwrap();
    channel.write(&message.bytes, message.handles)
}

/// The flag that keeps a write from waiting is one of the open file, which a peer that made it still has.
//= docs/protocol.md#what-no-peer-can-do
#[test]
fn a_client_that_has_the_manager_wait_is_not_waited_for() {
    let mut scene = Scene::new();
    let (output, theirs) = Socket::pair().unwrap();
    let copy: OwnedFd = theirs.as_fd().try_clone_to_owned().unwrap();
    let config = TraceConfig { buffer_size_megabytes_hint: 16, ..TraceConfig::default() };
    let mut session = scene.client.begin_into(config, output, theirs);
    let answer = session.ask(SessionRequest::StartTracing(StartOptions::default()));
    assert_eq!(answer, SessionResponse::StartTracing(Ok(())));
    rustix::io::ioctl_fionbio(&copy, false).unwrap();
    let page = scene.sandbox.file("page");
    fs::write(&page, [0; 4096]).unwrap();
    let burst = scene.sandbox.spawn_recorded("burst", &[page.to_str().unwrap(), "50000"]);
    burst.succeed();
    session.send(SessionRequest::StopTracing(StopOptions { write_results: true }));
    for _ in 0..50 {
        scene.assert_alive();
    }
    scene.manager.signal(Signal::TERM);
    wait_for("the manager to end", || (!scene.manager.is_running()).then_some(()));
}

/// Runs the manager by way of a shell, which says what becomes of its standard error.
fn manager_with(sandbox: &Sandbox, redirection: &str) -> Process {
    let mut command = Command::new("sh");
    let trace = trace_tests::build::program("trace").to_str().unwrap();
    command.args(["-c", &format!("exec {trace} manager {redirection}")]);
    command.env("TRACE_RUNTIME_DIR", sandbox.runtime_dir());
    Sandbox::spawn_command(command)
}

#[test]
fn the_manager_lives_whatever_becomes_of_its_log() {
    // The last is a pipe without a reader.
    for redirection in ["2>&-", "2>/dev/full", "2>&1"] {
        let mut scene = Scene::with(|sandbox| manager_with(sandbox, redirection));
        let recording = scene.start(BufferingMode::Oneshot);
        for _ in 0..3000 {
            let registry = Channel::connect(&scene.sandbox.runtime_dir().join("registry"));
            // It says so of each.
            let _ = registry.map(|registry| registry.write(&[0xff; 64], Vec::new()));
        }
        scene.run_honest(1);
        scene.assert_alive();
        assert_honest(&recording.stop().0, 1, redirection);
        scene.assert_alive();
    }
}

#[test]
fn the_log_is_bounded_and_says_what_it_leaves_out() {
    let scene = Scene::new();
    let registry = scene.sandbox.runtime_dir().join("registry");
    for _ in 0..3000 {
        let registry = wait_for("a connection", || Channel::connect(&registry).ok());
        registry.write(&[0xff; 64], Vec::new()).unwrap();
    }
    let is_told = || scene.manager.stderr_so_far().contains(" lines were not logged").then_some(());
    wait_for("the rest to be counted", is_told);
    let log = scene.manager.stderr_so_far();
    assert!(log.lines().count() < 1000, "{} lines", log.lines().count());
    assert!(log.starts_with("trace-manager: bad registration from pid "), "{log}");
}

/// What a provider's thread of ours says into its FIFO while the manager closes it.
#[test]
fn a_flood_of_packets_ends_with_the_channel() {
    let mut scene = Scene::new();
    let before = scene.peak_memory_kib();
    for _ in 0..2 {
        let (channel, _) = register(&scene.sandbox.runtime_dir(), "flood");
        let recording = scene.start(BufferingMode::Oneshot);
        let request = receive::<ProviderRequest<Handle>>(&channel);
        let Some(ProviderRequest::Initialize { config }) = request else { panic!("{request:?}") };
        let is_over = Arc::new(AtomicBool::new(false));
        let fifo = config.fifo.into_fd();
        let over = is_over.clone();
        let flood = std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                let flags = rustix::net::SendFlags::NOSIGNAL | rustix::net::SendFlags::DONTWAIT;
                if rustix::net::send(&fifo, &[0; PACKET_BYTES], flags) == Err(rustix::io::Errno::PIPE) {
                    break;
                }
            }
        });
        drop(channel);
        scene.assert_alive();
        let (_, _) = recording.stop();
        is_over.store(true, Ordering::Relaxed);
        flood.join().unwrap();
    }
    let grown = scene.peak_memory_kib() - before;
    assert!(grown < 16 << 10, "{grown} KiB");
}

#[test]
fn endless_requests_are_refused() {
    let scene = Scene::new();
    let (silent, _) = register(&scene.sandbox.runtime_dir(), "silent");
    let asker = Client::connect(&scene.sandbox);
    for txid in 0..=MAX_UNANSWERED {
        send(&asker.0, ProvisionerRequest::GetKnownCategories, Txid(txid as u32 + 1)).unwrap();
    }
    let refused = ProvisionerResponse::Refused {
        reason: "16 requests on this connection wait for their answers".to_owned(),
    };
    assert_eq!(receive::<ProvisionerResponse>(&asker.0), Some(refused));
    assert_eq!(receive::<ProvisionerResponse>(&asker.0), None, "the connection closes");
    drop(silent);
    let recording = scene.start(BufferingMode::Oneshot);
    scene.run_honest(1);
    assert_honest(&recording.stop().0, 1, "afterwards");
}

#[test]
fn endless_waits_for_alerts_are_refused() {
    let mut scene = Scene::new();
    let mut session = scene.client.begin(TraceConfig::default());
    for _ in 0..17 {
        session.send(SessionRequest::WatchAlert);
    }
    let reason = "16 requests for an alert wait for their answers".to_owned();
    let refusal = Refusal { limit: Some(16), ..Refusal::from(reason) };
    assert_eq!(session.answer(), SessionResponse::Refused(refusal));
    scene.assert_alive();
}

#[test]
fn two_snapshots_on_a_connection_get_their_own_answers() {
    let scene = Scene::new();
    let recording = scene.start(BufferingMode::Oneshot);
    let outputs: Vec<(Socket, Socket)> = (0..2).map(|_| Socket::pair().unwrap()).collect();
    let mut readers = Vec::new();
    for (txid, (ours, theirs)) in (7..).zip(outputs) {
        readers.push(trace_tests::client::Collector::new(ours));
        let request = ProvisionerRequest::TakeSnapshot { program: None, output: theirs.into_handle() };
        send(&scene.client.0, request, Txid(txid)).unwrap();
    }
    let mut answers = Vec::new();
    for _ in 0..2 {
        let message = wait_for("an answer", || scene.client.0.read().ok());
        answers
            .push(<ProvisionerResponse as Message<Handle>>::decode(&message.bytes, message.handles).unwrap());
    }
    answers.sort_by_key(|(txid, _)| txid.0);
    // The second came while the first was taken, unless that was over already.
    let (first, second) = (&answers[0], &answers[1]);
    assert!(matches!(first, (Txid(7), ProvisionerResponse::TakeSnapshot(Ok(_)))), "{first:?}");
    let ProvisionerResponse::TakeSnapshot(result) = &second.1 else { panic!("{second:?}") };
    let is_busy = matches!(result, Err(SnapshotError::Busy));
    let archives: Vec<usize> = readers.into_iter().map(|reader| reader.finish().len()).collect();
    assert_eq!((second.0, archives[0] > 0, archives[1] == 0), (Txid(8), true, is_busy));
    recording.stop();
}

/// Ticks of the processor that a process has used.
fn processor_ticks(process: &Process) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.pid())).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn without_descriptors_the_manager_rests_and_serves_again() {
    let mut scene = with_descriptors(40);
    scene.assert_alive();
    let provisioner = scene.sandbox.runtime_dir().join("provisioner");
    let silent: Vec<_> = (0..100).filter_map(|_| Channel::connect(&provisioner).ok()).collect();
    assert!(silent.len() > 40);
    let is_told = || scene.manager.stderr_so_far().contains("cannot accept a connection").then_some(());
    wait_for("the manager to run out", is_told);
    let (before, begin) = (processor_ticks(&scene.manager), Instant::now());
    wait_for("two seconds", || (begin.elapsed() >= Duration::from_secs(2)).then_some(()));
    let used = processor_ticks(&scene.manager) - before;
    assert!(used < 40, "{used} of 200 ticks: it spins");
    scene.assert_alive();
    drop(silent);
    let client = Client::connect(&scene.sandbox);
    let answer = client.ask(ProvisionerRequest::GetProviders);
    assert_eq!(answer, ProvisionerResponse::Providers { listed: Vec::new(), left_out: 0 });
}

/// A manager with so many descriptors.
fn with_descriptors(count: u32) -> Scene {
    Scene::with(|sandbox| {
        let mut command = Command::new("sh");
        let trace = trace_tests::build::program("trace").to_str().unwrap();
        command.args(["-c", &format!("ulimit -n {count}; exec {trace} manager")]);
        command.env("TRACE_RUNTIME_DIR", sandbox.runtime_dir());
        Sandbox::spawn_command(command)
    })
}

/// Connects as often as the manager lets clients do.
fn use_up(scene: &Scene, most: usize) -> Vec<Channel> {
    let provisioner = scene.sandbox.runtime_dir().join("provisioner");
    let connections: Vec<_> = (0..most).filter_map(|_| Channel::connect(&provisioner).ok()).collect();
    let is_said = || scene.manager.stderr_so_far().contains("cannot accept a connection").then_some(());
    wait_for("the manager to run short", is_said);
    connections
}

/// The first program that is registered.
fn first_provider(client: &Client) -> Option<ProviderInfo> {
    match client.ask(ProvisionerRequest::GetProviders) {
        ProvisionerResponse::Providers { listed, .. } => listed.into_iter().next(),
        answer => panic!("{answer:?}"),
    }
}

/// Connections use up what they may, while halves of a buffer are read.
//= docs/protocol.md#what-no-peer-can-do
#[test]
fn connections_leave_a_recording_the_descriptors_that_it_needs() {
    let scene = with_descriptors(64);
    let stream = trace_tests::build::program("stream").to_str().unwrap();
    let this = std::process::id().to_string();
    // For another process, so that it has no manager of its own, whose limits are better.
    let mut options = vec!["record", "--parent", &this, "-o", "a.fxt"];
    options.extend(["--buffering-mode", "streaming", "--buffer-size", "1"]);
    options.extend(["--fail-on-loss", "--", stream, "1", "80000", "20000"]);
    let recording = scene.sandbox.spawn("trace", &options);
    let client = Client::connect(&scene.sandbox);
    wait_for("the program to record", || first_provider(&client)?.recorded_by.map(drop));
    let connections = use_up(&scene, 100);
    let output = recording.finish();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(Archive::read(&scene.sandbox.file("a.fxt")).events.len(), 80_000);
    drop(connections);
}

/// The same before a recording begins: its buffer and its directory are still to be made.
//= docs/protocol.md#what-no-peer-can-do
#[test]
fn connections_leave_descriptors_for_a_recording_that_begins() {
    let scene = with_descriptors(160);
    let mut emit = scene.sandbox.spawn("emit", &["1", "5", "--wait"]);
    let _ = emit.line();
    wait_for("the program to register", || first_provider(&scene.client).map(drop));
    let connections = use_up(&scene, 250);
    let recording = scene.start(BufferingMode::Oneshot);
    emit.close_stdin();
    emit.succeed();
    let (archive, stats) = recording.stop();
    assert_eq!(archive.events.len(), 5 * 14, "{stats:?}");
    drop(connections);
}

#[test]
fn recordings_that_start_at_once_record_or_name_the_one_that_does() {
    let sandbox = Sandbox::new();
    let start = |number: usize| {
        let file = format!("trace-{number}.fxt");
        let mut command = sandbox.command("trace");
        command.args(["record", "--allow-empty", "-o", &file, "--", "true"]);
        Sandbox::spawn_command(command)
    };
    let recordings: Vec<Process> = (0..12).map(start).collect();
    let mut recorded = 0;
    for recording in recordings {
        let output = recording.finish();
        let stderr = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(0) => recorded += 1,
            Some(125) => {
                assert!(stderr.contains("the trace manager is in use by "), "{stderr}");
            }
            code => panic!("{code:?}: {stderr}"),
        }
    }
    assert!(recorded > 0);
}

/// A manager that does not serve a provider is not asked again and again.
#[test]
fn a_refused_provider_rests_and_says_so_once() {
    let sandbox = Sandbox::new();
    let listener = zx_sim::Listener::bind(&sandbox.runtime_dir().join("registry")).unwrap();
    let program = sandbox.spawn("emit", &["1", "1", "--wait"]);
    let mut registrations = Vec::new();
    let begin = Instant::now();
    while registrations.len() < 3 {
        let registry = wait_for("a registration", || listener.accept().ok());
        let message = wait_for("its message", || registry.read().ok());
        let (_, request) =
            trace_protocol::registry::RegistryRequest::decode(&message.bytes, message.handles).unwrap();
        let channel = Channel::from_handle(request.into_registration().unwrap().0.provider).unwrap();
        let refused = ProviderRequest::<Handle>::Refused { reason: "no\u{1b}such clock".to_owned() };
        let message = refused.encode(Txid::ONE_WAY).unwrap();
        channel.write(&message.bytes, message.handles).unwrap();
        registrations.push(begin.elapsed());
    }
    // A pause of a second, and one of two.
    assert!(registrations[2] - registrations[0] >= Duration::from_millis(2900), "{registrations:?}");
    let told = program.stderr_so_far();
    assert_eq!(told.lines().filter(|line| line.contains("not traced")).count(), 1, "{told}");
}

/// A program that cannot see by which clock the kernel keeps time takes the manager's.
#[test]
fn a_program_without_sys_is_recorded() {
    if !Requirement::Mounts.is_met("a_program_without_sys_is_recorded") {
        return;
    }
    let sandbox = Sandbox::new();
    let emit = trace_tests::build::program("emit").to_str().unwrap();
    let hidden = format!("mount -t tmpfs none /sys && exec {emit} 1 100");
    let output = sandbox.trace(["record", "-o", "t.fxt", "--", "unshare", "-m", "sh", "-c", &hidden]);
    assert!(output.status.success(), "{output:?}");
    let archive = trace_tests::Archive::read(&sandbox.file("t.fxt"));
    assert_eq!(archive.events.len(), 1400, "{output:?}");
    let (first, last) = (archive.events.first().unwrap(), archive.events.last().unwrap());
    assert!(last.event.nanos().0 - first.event.nanos().0 < 3_600_000_000_000, "one clock");
}

/// A full runtime directory is reported to clients that want to record, and ends nothing.
#[test]
fn the_manager_lives_where_nothing_can_be_written() {
    let mut scene = Scene::with(|sandbox| {
        let mut command = Command::new("sh");
        let trace = trace_tests::build::program("trace").to_str().unwrap();
        let log = sandbox.runtime_dir().join("manager.log").display().to_string();
        // A block of 512 bytes in each file, and no signal about it.
        let run = format!("trap '' XFSZ; ulimit -f 1; exec {trace} manager 2>{log}");
        command.args(["-c", &run]).env("TRACE_RUNTIME_DIR", sandbox.runtime_dir());
        Sandbox::spawn_command(command)
    });
    for _ in 0..100 {
        let registry = Channel::connect(&scene.sandbox.runtime_dir().join("registry"));
        let _ = registry.map(|registry| registry.write(&[0xff; 64], Vec::new()));
    }
    let (_app, _) = register(&scene.sandbox.runtime_dir(), "app");
    let recording = scene.start(BufferingMode::Oneshot);
    scene.assert_alive();
    let (archive, stats) = recording.stop();
    assert_eq!(archive.events.len(), 0);
    assert!(stats[0].problem.contains("File too large"), "{}", stats[0].problem);
    scene.assert_alive();
}

/// What the manager has now: memory in KiB, and descriptors.
fn possessions(manager: &Process) -> (u64, usize) {
    let process = format!("/proc/{}", manager.pid());
    let status = fs::read_to_string(format!("{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    let memory = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    (memory, fs::read_dir(format!("{process}/fd")).unwrap().count())
}

/// Attacks again and again until it is over: each on a thread of its own.
fn attack(sandbox: &Sandbox, is_over: &Arc<AtomicBool>) -> Vec<std::thread::JoinHandle<()>> {
    let runtime = sandbox.runtime_dir();
    let repeat = |act: Box<dyn Fn() + Send>| {
        let is_over = is_over.clone();
        std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                act();
            }
        })
    };
    let [registry, provisioner] = ["registry", "provisioner"].map(|name| runtime.join(name));
    let (silent_registry, silent_provisioner) = (registry.clone(), provisioner.clone());
    vec![
        // Nonsense, which is logged.
        repeat(Box::new(move || {
            let _ = Channel::connect(&registry).map(|channel| channel.write(&[0xff; 64], Vec::new()));
        })),
        // Connections that say nothing.
        repeat(Box::new(move || {
            let channels = [&silent_registry, &silent_provisioner].into_iter().cycle().take(200);
            drop(channels.map(|path| Channel::connect(path)).collect::<Vec<_>>());
        })),
        // Requests without end, whose answers are never read.
        repeat(Box::new(move || {
            let Ok(channel) = Channel::connect(&provisioner) else { return };
            for txid in 1..100 {
                let _ = send(&channel, ProvisionerRequest::GetKnownCategories, Txid(txid));
                // Other tests in this process have descriptors, too.
                let Ok((_ours, theirs)) = Socket::pair() else { return };
                let request =
                    ProvisionerRequest::TakeSnapshot { program: None, output: theirs.into_handle() };
                let _ = send(&channel, request, Txid(1000 + txid));
            }
        })),
        // A provider that comes with a large answer and a full FIFO, and goes.
        repeat(Box::new(move || {
            // The other attacks may push it out: the oldest of those that have not registered yet is closed.
            let Some((channel, _)) = try_register(&runtime, "comes-and-goes") else { return };
            answer_categories(&channel, Txid(1));
            while let Some(request) = channel
                .read()
                .ok()
                .and_then(|message| ProviderRequest::decode(&message.bytes, message.handles).ok())
            {
                if let (_, ProviderRequest::Initialize { config }) = request {
                    let fifo = config.fifo.into_fd();
                    let flags = rustix::net::SendFlags::NOSIGNAL | rustix::net::SendFlags::DONTWAIT;
                    while rustix::net::send(&fifo, &[0; PACKET_BYTES], flags).is_ok() {}
                }
            }
        })),
    ]
}

/// Seconds of every attack at once; a nightly campaign takes more.
fn attack_time() -> Duration {
    let seconds = std::env::var("ATTACK_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(5))
}

//= docs/protocol.md#what-no-peer-can-do
#[test]
fn under_every_attack_at_once_an_honest_recording_is_complete() {
    // By default the allocator keeps more with every larger block that was freed.
    let mut scene = Scene::with(|sandbox| {
        let mut command = sandbox.command("trace");
        command
            .arg("manager")
            .env("MALLOC_TRIM_THRESHOLD_", "131072")
            .env("MALLOC_MMAP_THRESHOLD_", "131072");
        Sandbox::spawn_command(command)
    });
    scene.assert_alive();
    // What a first recording needs is not the attackers' doing.
    let recording = scene.start(BufferingMode::Oneshot);
    scene.run_honest(1);
    assert_honest(&recording.stop().0, 1, "before");
    let before = possessions(&scene.manager);

    let recording = scene.start(BufferingMode::Oneshot);
    let page = scene.sandbox.file("page-of-honest");
    fs::write(&page, [0; 4096]).unwrap();
    // It takes three seconds and more.
    let honest = scene.sandbox.spawn_recorded("burst", &[page.to_str().unwrap(), "1500", "2000"]);
    wait_for("it to record", || fs::read(&page).unwrap().iter().any(|byte| *byte != 0).then_some(()));
    let is_over = Arc::new(AtomicBool::new(false));
    let attackers = attack(&scene.sandbox, &is_over);
    let scribbler = scene.spawn_hostile(&["scribble"]);
    let begin = Instant::now();
    while begin.elapsed() < attack_time() {
        scene.assert_alive();
    }
    honest.succeed();
    is_over.store(true, Ordering::Relaxed);
    attackers.into_iter().for_each(|attacker| attacker.join().unwrap());
    drop(scribbler);
    let (archive, _) = recording.stop();
    assert_honest(&archive, 1, "every attack at once");
    // Between what is used the allocator still keeps 13 MiB, however long the attack takes.
    let mut after = before;
    let deadline = Instant::now() + DEADLINE;
    while Instant::now() < deadline {
        after = possessions(&scene.manager);
        if after.0 <= before.0 + (24 << 10) && after.1 <= before.1 + 4 {
            return;
        }
        scene.assert_alive();
    }
    panic!("{before:?} before, {after:?} after: KiB of memory and descriptors");
}
