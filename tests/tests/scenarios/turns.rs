//! Messages that take long: whatever peers send, no turn of the manager's loop does.
//!
//! The manager notes a turn of more than 20 ms of processor time in its log. Without optimizations it has
//! five
//! times as long.
//= docs/internals/manager.md#what-a-message-may-cost

use super::hostile::{Scene, assert_honest};
use super::questions::{long_list, question as question_of};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::process::Signal;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use trace_protocol::controller::{
    ProvisionerRequest, ProvisionerResponse, SessionRequest, SessionResponse, StartOptions, StopOptions,
    TraceConfig,
};
use trace_protocol::provider::{ProviderRequest, ProviderResponse};
use trace_protocol::{BufferingMode, Message, Txid};
use trace_tests::client::{Client, receive};
use trace_tests::proxy::{Proxy, register, register_sparse};
use trace_tests::scene::wait_for_death;
use trace_tests::{Archive, Sandbox, wait_for};
use zx_sim::{Channel, Handle};

const MOST_MILLISECONDS: u64 = if cfg!(debug_assertions) { 100 } else { 20 };
const SIZE: u64 = 64 << 20;
/// Bytes that a user's programs have copied at most.
const MAX_COPIED: u64 = 128 << 20;

/// Registers programs; none of them sends STARTED later.
fn programs(scene: &Scene, count: u32) -> Vec<Channel> {
    let runtime = scene.sandbox.runtime_dir();
    (0..count).map(|number| register(&runtime, &format!("bulk-{number}")).0).collect()
}

fn await_start(channel: &Channel) -> ProviderRequest<Handle> {
    let request = receive::<ProviderRequest<Handle>>(channel);
    request.filter(|request| matches!(request, ProviderRequest::Initialize { .. })).expect("Initialize")
}

/// Hands a buffer over that has memory at every `step`th byte.
fn hand_over(channel: &Channel, step: Option<u64>) {
    let memory = memfd_create("bulk", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&memory, SIZE).unwrap();
    for place in step.into_iter().flat_map(|step| (0..SIZE / step).map(move |number| number * step)) {
        rustix::io::pwrite(&memory, &[7], place).unwrap();
    }
    let response =
        ProviderResponse::HandOver { buffer: Handle::new(memory), buffering_mode: BufferingMode::Oneshot };
    let message = response.encode(Txid::ONE_WAY).unwrap();
    channel.write(&message.bytes, message.handles).unwrap();
}

/// Bytes on the file system of the manager's directory.
fn used(scene: &Scene) -> u64 {
    let mut directories = vec![scene.sandbox.runtime_dir()];
    let mut bytes = 0;
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap().flatten() {
            match entry.metadata() {
                Ok(found) if found.is_dir() => directories.push(entry.path()),
                found => bytes += found.map_or(0, |found| found.blocks() * 512),
            }
        }
    }
    bytes
}

fn copy_of(handle: &Handle) -> Handle {
    Handle::new(handle.as_fd().try_clone_to_owned().unwrap())
}

fn assert_turns_were_short(scene: &Scene) {
    let log = scene.manager.stderr_so_far();
    let took =
        log.lines().filter_map(|line| line.split_once("a turn took ")?.1.split(' ').next()?.parse().ok());
    assert!(took.max().unwrap_or(0) <= MOST_MILLISECONDS, "{log}");
}

//= docs/protocol.md#what-was-recorded-before
#[test]
fn hand_overs_are_copied_in_steps_and_within_a_limit() {
    let mut scene = Scene::new();
    let programs = programs(&scene, 40);
    let recording = scene.start(BufferingMode::Oneshot);
    let initialized: Vec<_> = programs.iter().map(await_start).collect();
    let before = used(&scene);
    for (number, channel) in programs.iter().enumerate() {
        // All, every second page, or none.
        hand_over(channel, [Some(4096), Some(8192), None][number.min(2)]);
    }
    let is_over = AtomicBool::new(false);
    let most = std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let mut most = 0;
            while !is_over.load(Ordering::Relaxed) {
                most = most.max(used(&scene));
            }
            most
        });
        scene.run_honest(1);
        // All that was handed over before is copied, since it is read in front of that.
        let copied = || scene.manager.stderr_so_far().matches("its own buffer cannot be deleted").count();
        wait_for("the copies", || (copied() == programs.len()).then_some(()));
        is_over.store(true, Ordering::Relaxed);
        looking.join().unwrap()
    });
    let copied = most.saturating_sub(before);
    assert!((1..=MAX_COPIED + (8 << 20)).contains(&copied), "{copied} bytes");
    assert_turns_were_short(&scene);
    drop((programs, initialized));
    scene.assert_alive();
    assert_honest(&recording.stop().0, 1, "hand-overs");
    assert_turns_were_short(&scene);
}

/// What was recorded is recovered, and the next recording deletes the part that was copied.
//= docs/protocol.md#what-was-recorded-before
#[test]
fn a_manager_that_is_killed_while_it_copies_leaves_nothing_behind() {
    for part in 0..5 {
        let scene = Scene::new();
        let programs = programs(&scene, 2);
        let recording = scene.start(BufferingMode::Oneshot);
        scene.run_honest(1);
        let initialized: Vec<_> = programs.iter().map(await_start).collect();
        let before = used(&scene);
        programs.iter().for_each(|channel| hand_over(channel, Some(4096)));
        // Or everything, if that is faster.
        let is_copied = || scene.manager.stderr_so_far().contains("its own buffer cannot be deleted");
        let has_part = || used(&scene) > before + part * (16 << 20);
        wait_for("a part", || (has_part() || is_copied()).then_some(()));
        scene.manager.signal(Signal::KILL);
        wait_for_death(scene.manager.pid());
        drop((programs, initialized));
        // The program has ended, and was archived then.
        assert_honest(&recording.received(), 1, "copied");
        let recovered = scene.sandbox.trace(["recover", "-o", "recovered.fxt"]);
        assert!(recovered.status.success(), "{recovered:?}");
        let recovered = Archive::read(&scene.sandbox.file("recovered.fxt"));
        assert!(recovered.events.is_empty(), "{:?}", recovered.providers);
        let next = scene.sandbox.record(&["-o", "next.fxt"], "emit", &["1", "1"]);
        assert!(next.status.success(), "{next:?}");
        wait_for("the files to go", || (used(&scene) < 1 << 20).then_some(()));
    }
}

//= docs/protocol.md#what-no-peer-can-do
#[test]
fn lists_that_nothing_has_asked_for_are_not_read() {
    let mut scene = Scene::new();
    let programs = programs(&scene, 5);
    let recording = scene.start(BufferingMode::Oneshot);
    let initialized: Vec<_> = programs.iter().map(await_start).collect();
    let list = long_list(Txid(77));
    for _ in 0..100 {
        for channel in &programs {
            // Until it has read some.
            wait_for("room", || {
                let handles: Vec<_> = list.handles.iter().map(copy_of).collect();
                channel.write(&list.bytes, handles).ok()
            });
        }
    }
    scene.run_honest(1);
    scene.assert_alive();
    assert_turns_were_short(&scene);
    drop((programs, initialized));
    assert_honest(&recording.stop().0, 1, "lists");
    assert_turns_were_short(&scene);
}

/// The longest answers that there are, to a client that has asked.
#[test]
fn lists_that_a_client_has_asked_for_are_read_one_at_a_time() {
    let mut scene = Scene::new();
    let programs = programs(&scene, 8);
    let client = Client::connect(&scene.sandbox);
    let question = ProvisionerRequest::GetKnownCategories.encode(Txid(1)).unwrap();
    client.0.write(&question.bytes, question.handles).unwrap();
    for channel in &programs {
        let list = long_list(question_of(channel));
        channel.write(&list.bytes, list.handles).unwrap();
    }
    let answer = receive::<ProvisionerResponse>(&client.0);
    assert!(matches!(answer, Some(ProvisionerResponse::KnownCategories(_))));
    scene.assert_alive();
    assert_turns_were_short(&scene);
}

/// Six archives at once, of buffers that are full.
#[test]
fn data_of_several_recordings_is_moved_in_turns() {
    let mut scene = Scene::new();
    let names = ["a", "b", "c", "d", "e", "f"];
    let page = scene.sandbox.file("page");
    std::fs::write(&page, [0; 4096]).unwrap();
    let mut sessions = Vec::new();
    for name in names {
        let proxy = Proxy::new(&scene.sandbox, name);
        let config = TraceConfig {
            programs: vec![name.to_owned()],
            buffer_size_megabytes_hint: 8,
            ..TraceConfig::default()
        };
        let mut session = scene.client.begin(config);
        let answer = session.ask(SessionRequest::StartTracing(StartOptions::default()));
        assert_eq!(answer, SessionResponse::StartTracing(Ok(())));
        let mut command = scene.sandbox.command("burst");
        command.arg(&page).arg("30000").env("TRACE_RUNTIME_DIR", proxy.directory()).env("TRACE_RECORD", "1");
        Sandbox::spawn_command(command).succeed();
        sessions.push((session, proxy));
    }
    // None of them is read before.
    let outputs: Vec<_> = sessions.iter_mut().map(|(session, _)| session.collect()).collect();
    for (session, _) in &mut sessions {
        session.send(SessionRequest::StopTracing(StopOptions { write_results: true }));
    }
    for ((session, proxy), output) in sessions.into_iter().zip(outputs) {
        assert!(matches!(session.answer(), SessionResponse::StopTracing(Ok(_))));
        drop(session);
        assert_eq!(Archive::of_bytes(&output.finish()).events.len(), 120_000);
        drop(proxy.finish());
    }
    scene.assert_alive();
    assert_turns_were_short(&scene);
}

/// Each of them gets a buffer when the recording begins.
#[test]
fn a_recording_of_thousands_of_programs_begins_in_turns() {
    // The system's part of it does not become shorter by optimizations.
    let count = if cfg!(debug_assertions) { 2500 } else { 1000 };
    let mut scene = Scene::new();
    let runtime = scene.sandbox.runtime_dir();
    let programs: Vec<Channel> =
        (0..count).map(|number| register_sparse(&runtime, &format!("{number}"))).collect();
    let mut session = scene.client.begin(TraceConfig::default());
    let output = session.collect();
    session.send(SessionRequest::StartTracing(StartOptions::default()));
    programs.iter().for_each(|channel| drop(await_start(channel)));
    scene.assert_alive();
    drop(programs);
    drop(session);
    drop(output.finish());
    assert_turns_were_short(&scene);
}

/// What the manager holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    memory_kib: u64,
    descriptors: u64,
    threads: u64,
    disk_kib: u64,
}

impl Held {
    /// Between recordings, when everything of theirs is gone.
    fn now(scene: &Scene) -> Self {
        let process = format!("/proc/{}", scene.manager.pid());
        let status = std::fs::read_to_string(format!("{process}/status")).unwrap();
        let of = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        Self {
            memory_kib: of("VmRSS:"),
            descriptors: std::fs::read_dir(format!("{process}/fd")).unwrap().count() as u64,
            threads: of("Threads:"),
            disk_kib: used(scene) >> 10,
        }
    }

    fn most(all: &[Self]) -> Self {
        let most = |of: fn(&Self) -> u64| all.iter().map(of).max().unwrap();
        Self {
            memory_kib: most(|held| held.memory_kib),
            descriptors: most(|held| held.descriptors),
            threads: most(|held| held.threads),
            disk_kib: most(|held| held.disk_kib),
        }
    }
}

/// How long it is done again and again: `SOAK_SECONDS`, or a few times.
fn soak_time() -> Duration {
    std::env::var("SOAK_SECONDS")
        .map_or(Duration::ZERO, |text| Duration::from_secs(text.parse().expect("SOAK_SECONDS is a number")))
}

/// Three recordings at once, of programs that hand buffers over, send lists that nothing has asked for,
/// scribble over their buffers, and of honest ones: again and again, and the manager holds no more than at
/// first.
#[test]
fn whatever_is_done_again_and_again_the_manager_does_not_grow() {
    let scene = Scene::new();
    let runtime = scene.sandbox.runtime_dir();
    let begin = Instant::now();
    let mut held = Vec::new();
    while held.len() < 8 || begin.elapsed() < soak_time() {
        let names: Vec<String> = (0..6).map(|number| format!("bulk-{number}")).collect();
        let handing: Vec<Channel> = names[..4].iter().map(|name| register(&runtime, name).0).collect();
        let listing: Vec<Channel> = names[4..].iter().map(|name| register(&runtime, name).0).collect();
        let with = |name: &'static str, bulk: &'static [&'static str]| [&[name], bulk].concat();
        let honest =
            scene.start_of(BufferingMode::Oneshot, &with("burst", &["bulk-0", "bulk-1", "bulk-2", "bulk-3"]));
        let attacked = scene.start_of(BufferingMode::Circular, &with("hostile", &["bulk-4", "bulk-5"]));
        let streamed = scene.start_of(BufferingMode::Streaming, &["stream"]);

        let rogue = scene.spawn_hostile(&["scribble"]);
        let initialized: Vec<_> = handing.iter().chain(&listing).map(await_start).collect();
        handing.iter().for_each(|channel| hand_over(channel, Some(64 << 10)));
        let stream = scene.sandbox.spawn_recorded("stream", &["1", "4000", "20000"]);
        let list = long_list(Txid(77));
        for channel in listing.iter().cycle().take(10) {
            wait_for("room", || channel.write(&list.bytes, list.handles.iter().map(copy_of).collect()).ok());
        }
        scene.run_honest(1);
        stream.succeed();

        assert_honest(&honest.stop().0, 1, "soak");
        let (archive, stats) = streamed.stop();
        let events = archive.events.iter().filter(|event| event.name() == "event").count();
        assert_eq!((events, stats[0].records_dropped), (4000, Some(0)), "{stats:?}");
        drop((rogue, handing, listing, initialized));
        attacked.stop();
        // What a recording has left is deleted behind its end, and threads that close descriptors end.
        let idle = || Some(Held::now(&scene)).filter(|held| held.disk_kib < 256 && held.threads == 1);
        held.push(wait_for("the files and threads to go", idle));
    }
    // Not the first two: they fill what is kept for the next.
    let (early, late) = held[2..].split_at(3.max(held.len() / 4) - 2);
    let (early, late) = (Held::most(early), Held::most(late));
    println!("{} rounds: {early:?}, then {late:?}", held.len());
    assert!(late.memory_kib <= early.memory_kib + early.memory_kib / 8 + 2048, "{held:?}");
    assert!(late.descriptors <= early.descriptors + 4, "{held:?}");
    assert!(late.threads <= early.threads + 2, "{held:?}");
    assert!(late.disk_kib <= early.disk_kib + 64, "{held:?}");
    assert_turns_were_short(&scene);
}
