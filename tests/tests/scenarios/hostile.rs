//! Providers that mean harm, beside honest ones.

use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use trace_format::loss::LossCode;
use trace_format::units::ProviderId;
use trace_protocol::controller::{
    ProviderStats, ProvisionerRequest, ProvisionerResponse, SessionRequest, SessionResponse, StartOptions,
    StopOptions, TraceConfig,
};
use trace_protocol::{BufferingMode, FifoRequest};
use trace_tests::client::{Client, Collector, Session};
use trace_tests::proxy::{Proxy, Replay};
use trace_tests::sandbox::Process;
use trace_tests::{Archive, Sandbox, wait_for};
use zx_sim::{Channel, Handle};

const THREADS: u64 = 4;
/// Events of each thread of an honest program.
const EVENTS: u64 = 1500;

pub(super) struct Scene {
    pub sandbox: Sandbox,
    pub client: Client,
    pub manager: Process,
}

/// A session in which some programs record.
pub(super) struct Recording {
    session: Session,
    output: Collector,
}

impl Scene {
    pub fn new() -> Self {
        Self::with(|sandbox| sandbox.spawn("trace", &["manager"]))
    }

    /// With a manager that was started in another way.
    pub fn with(start: impl FnOnce(&Sandbox) -> Process) -> Self {
        let sandbox = Sandbox::new();
        let manager = start(&sandbox);
        let client = Client::connect(&sandbox);
        Self { sandbox, client, manager }
    }

    pub fn start(&self, mode: BufferingMode) -> Recording {
        self.start_of(mode, &[])
    }

    /// Of programs with some names; without any, of all.
    pub fn start_of(&self, mode: BufferingMode, programs: &[&str]) -> Recording {
        let config = TraceConfig {
            programs: programs.iter().map(|name| (*name).to_owned()).collect(),
            buffering_mode: mode,
            buffer_size_megabytes_hint: 1,
            start_timeout_milliseconds: 2000,
            stop_timeout_milliseconds: 2000,
            ..TraceConfig::default()
        };
        let mut session = self.client.begin(config);
        let output = session.collect();
        let answer = session.ask(SessionRequest::StartTracing(StartOptions::default()));
        assert_eq!(answer, SessionResponse::StartTracing(Ok(())));
        Recording { session, output }
    }

    /// Programs with so many events each, from beginning to end.
    pub fn run_honest(&self, count: usize) {
        let page = |number: usize| {
            let page = self.sandbox.file(&format!("page-{number}"));
            fs::write(&page, [0; 4096]).unwrap();
            page
        };
        let pages: Vec<PathBuf> = (0..count).map(page).collect();
        let limit = EVENTS.to_string();
        let spawn = |page: &PathBuf| self.sandbox.spawn_recorded("burst", &[page.to_str().unwrap(), &limit]);
        let programs: Vec<Process> = pages.iter().map(spawn).collect();
        for program in programs {
            let output = program.finish();
            assert!(output.status.success(), "{output:?}");
        }
    }

    pub fn spawn_hostile(&self, arguments: &[&str]) -> Process {
        let mut hostile = self.sandbox.spawn_recorded("hostile", arguments);
        assert_eq!(hostile.line(), "ready");
        hostile
    }

    /// The most memory that the manager has had.
    pub fn peak_memory_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.manager.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// The manager answers, and it does so soon.
    pub fn assert_alive(&mut self) {
        let begin = Instant::now();
        let answer = self.client.ask(ProvisionerRequest::GetProviders);
        assert!(matches!(answer, ProvisionerResponse::Providers { .. }), "{answer:?}");
        assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
        assert!(self.manager.is_running());
    }
}

impl Recording {
    /// Ends it; what is in the archive, and what was said of each provider.
    pub fn stop(mut self) -> (Archive, Vec<ProviderStats>) {
        let answer = self.session.ask(SessionRequest::StopTracing(StopOptions { write_results: true }));
        let SessionResponse::StopTracing(Ok(result)) = answer else { panic!("{answer:?}") };
        drop(self.session);
        (Archive::of_bytes(&self.output.finish()), result.provider_stats)
    }
}

impl Recording {
    /// What has come of it when its manager has died.
    pub fn received(self) -> Archive {
        drop(self.session);
        Archive::of_prefix(&self.output.finish())
    }
}

/// Everything that honest programs wrote is there, in order, and nothing else.
pub(super) fn assert_honest(archive: &Archive, count: usize, what: &str) {
    let honest: Vec<ProviderId> =
        archive.providers.iter().filter(|(_, name)| name.as_str() == "burst").map(|(id, _)| *id).collect();
    assert_eq!(honest.len(), count, "{what}: {:?}", archive.providers);
    for id in honest {
        for thread in 0..THREADS {
            let of_thread =
                archive.events.iter().filter(|event| event.provider == id && event.u64("thread") == thread);
            let numbers: Vec<u64> = of_thread.map(|event| event.u64("n")).collect();
            let place = numbers.iter().zip(0..EVENTS).position(|(found, expected)| *found != expected);
            let (found, next) = (numbers.len(), place.and_then(|place| numbers.get(place)));
            let place = place.unwrap_or(found);
            let who = format!("{what}: provider {}, thread {thread}", id.0);
            assert!(numbers.iter().copied().eq(0..EVENTS), "{who}: {found} of {EVENTS}, {next:?} at {place}");
        }
        assert_eq!(archive.losses.iter().filter(|loss| loss.provider == id).count(), 0, "{what}");
    }
}

fn hostile(stats: &[ProviderStats]) -> &ProviderStats {
    stats.iter().find(|stats| stats.name == "hostile").expect("it took part")
}

/// The records of each provider's part, without the marks between parts.
fn parts(archive: &[u8]) -> BTreeMap<u64, Vec<u8>> {
    let mut parts: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    let (mut rest, mut provider) = (archive, 0);
    while let Some((header, _)) = rest.split_first_chunk::<8>() {
        let header = u64::from_le_bytes(*header);
        let words = if header & 0xf == 15 { header >> 4 & 0xffff_ffff } else { header >> 4 & 0xfff };
        let (record, after) = rest.split_at(8 * words as usize);
        rest = after;
        match (header & 0xf, header >> 16 & 0xf) {
            (0, 4) => continue,
            (0, 1 | 2) => provider = header >> 20 & 0xffff_ffff,
            _ => {}
        }
        parts.entry(provider).or_default().extend_from_slice(record);
    }
    parts
}

/// Beside one that scribbles, the part of each honest program is what the manager makes of what that program
/// gave it to read, alone.
//= docs/protocol.md#what-no-peer-can-do
#[test]
fn an_honest_part_is_made_of_its_own_providers_data_alone() {
    const LONG: u64 = 15_000;
    const PROGRAMS: usize = 9;
    for mode in [BufferingMode::Oneshot, BufferingMode::Circular, BufferingMode::Streaming] {
        let is_streaming = mode == BufferingMode::Streaming;
        let scene = Scene::new();
        let recording = scene.start(mode);
        let rogue = scene.spawn_hostile(&["scribble"]);
        let names: Vec<String> = (0..PROGRAMS).map(|number| format!("honest-{number}")).collect();
        let spawn = |name: &String| {
            let proxy = Proxy::new(&scene.sandbox, name);
            let page = scene.sandbox.file(&format!("page-{name}"));
            fs::write(&page, [0; 4096]).unwrap();
            let mut command = scene.sandbox.command("burst");
            // Slow enough for a busy machine to save each half.
            let (limit, pause) = if is_streaming { (LONG, "300") } else { (EVENTS, "50") };
            command.arg(page).arg(limit.to_string()).arg(pause);
            command.env("TRACE_RUNTIME_DIR", proxy.directory()).env("TRACE_RECORD", "1");
            (Sandbox::spawn_command(command), proxy)
        };
        let programs: Vec<_> = names.iter().map(spawn).collect();
        let mut kept = Vec::new();
        for (program, proxy) in programs {
            let output = program.finish();
            assert!(output.status.success(), "{output:?}");
            kept.push(proxy.finish());
        }
        let mut session = recording.session;
        let answer = session.ask(SessionRequest::StopTracing(StopOptions { write_results: true }));
        let SessionResponse::StopTracing(Ok(result)) = answer else { panic!("{answer:?}") };
        drop(session);
        drop(rogue);
        let found = parts(&recording.output.finish());

        // Each again, with another manager, whose clock is said to be the same.
        let other = Sandbox::new();
        fs::copy(scene.sandbox.runtime_dir().join("ticks"), other.runtime_dir().join("ticks")).unwrap();
        let _manager = other.spawn("trace", &["manager"]);
        let again = Client::connect(&other);
        let mut honest: Vec<(u32, usize)> = Vec::new();
        for stats in &result.provider_stats {
            honest.extend(names.iter().position(|name| *name == stats.name).map(|place| (stats.id, place)));
        }
        honest.sort_unstable();
        assert_eq!(honest.len(), PROGRAMS);
        let mut next = 1;
        for (id, place) in honest {
            let (steps, name) = (&kept[place], &names[place]);
            let saves = steps.iter().filter(|step| step.is_save()).count();
            // The first half is full on any machine; how many follow depends on how fast they are saved.
            assert_eq!(saves > 0, is_streaming, "{mode:?}: {saves} halves");
            // It has the same number here.
            (next..id).for_each(|_| drop(Replay::new(&other, "filler")));
            next = id + 1;
            let replay = Replay::new(&other, name);
            let config =
                TraceConfig { buffering_mode: mode, buffer_size_megabytes_hint: 1, ..TraceConfig::default() };
            let mut session = again.begin(config);
            let output = session.collect();
            session.send(SessionRequest::StartTracing(StartOptions::default()));
            replay.run(steps);
            assert_eq!(session.answer(), SessionResponse::StartTracing(Ok(())));
            let answer = session.ask(SessionRequest::StopTracing(StopOptions { write_results: true }));
            assert!(matches!(answer, SessionResponse::StopTracing(Ok(_))), "{answer:?}");
            drop(session);
            let alone = parts(&output.finish());
            let (found, alone) = (&found[&u64::from(id)], &alone[&u64::from(id)]);
            assert!(found.len() > 4 * EVENTS as usize * 32, "{mode:?}, {name}: {} bytes", found.len());
            assert!(found == alone, "{mode:?}, {name}: {} bytes, alone {}", found.len(), alone.len());
        }
    }
}

/// Its packets are not read any further; the records in its buffer are those that have been agreed on.
//= docs/protocol.md#fifo-packets
#[test]
fn a_provider_of_an_unknown_fifo_version_is_in_the_archive() {
    for mode in [BufferingMode::Oneshot, BufferingMode::Circular, BufferingMode::Streaming] {
        let scene = Scene::new();
        let proxy = Proxy::new(&scene.sandbox, "later");
        let recording = scene.start(mode);
        let page = scene.sandbox.file("page");
        fs::write(&page, [0; 4096]).unwrap();
        let mut command = scene.sandbox.command("burst");
        command.arg(page).arg("20").env("TRACE_RUNTIME_DIR", proxy.directory()).env("TRACE_RECORD", "1");
        Sandbox::spawn_command(command).succeed();
        let last = proxy.finish().pop().unwrap();
        recording.stop();

        let started = last.with_packet(&FifoRequest::Started { version: 2 });
        let replay = Replay::new(&scene.sandbox, "later");
        let config =
            TraceConfig { buffering_mode: mode, buffer_size_megabytes_hint: 1, ..TraceConfig::default() };
        let mut session = scene.client.begin(config);
        let output = session.collect();
        session.send(SessionRequest::StartTracing(StartOptions::default()));
        let (channel, fifo) = replay.run(&[started]);
        let is_closed = || matches!(fifo.read(&mut [0; 16]), Err(zx_sim::Error::PeerClosed));
        wait_for("the manager to close its side", || is_closed().then_some(()));
        assert_eq!(session.answer(), SessionResponse::StartTracing(Ok(())));
        // It need not have gone when the recording ends.
        let channel = (mode == BufferingMode::Oneshot).then_some(channel);
        scene.run_honest(1);
        let (archive, stats) = Recording { session, output }.stop();
        drop(channel);
        assert_honest(&archive, 1, &format!("{mode:?}"));
        let stats = stats.iter().find(|stats| stats.name == "later").unwrap();
        assert_eq!(stats.disposition, "broke the protocol", "{mode:?}");
        let id = ProviderId(stats.id);
        assert_eq!(archive.providers[&id], "later", "{mode:?}");
        let events = archive.events.iter().filter(|event| event.provider == id).count();
        let losses = archive.losses.iter().filter(|loss| loss.provider == id).map(|loss| loss.reason);
        let losses: Vec<_> = losses.collect();
        assert_eq!((events as u64, &losses[..]), (20 * THREADS, &[LossCode::REST_MISSING][..]), "{mode:?}");
    }
}

//= docs/protocol.md#what-no-peer-can-do
#[test]
fn a_provider_that_scribbles_over_its_buffer_harms_itself_alone() {
    for mode in [BufferingMode::Oneshot, BufferingMode::Circular, BufferingMode::Streaming] {
        let mut scene = Scene::new();
        let recording = scene.start(mode);
        let rogue = scene.spawn_hostile(&["scribble"]);
        scene.run_honest(9);
        scene.assert_alive();
        let (archive, stats) = recording.stop();
        assert_honest(&archive, 9, &format!("{mode:?}"));
        assert!(!hostile(&stats).problem.is_empty(), "{mode:?}: {:?}", hostile(&stats));
        scene.assert_alive();
        drop(rogue);
    }
}

/// Counters that make no sense are reported as such, and an event that is dated years ahead is dropped.
//= docs/buffer.md#contents-that-are-checked
#[test]
fn impossible_counters_are_reported_as_damage() {
    for mode in [BufferingMode::Oneshot, BufferingMode::Circular, BufferingMode::Streaming] {
        let scene = Scene::new();
        let mut recording = scene.start(mode);
        let rogue = scene.spawn_hostile(&["counters"]);
        let answer = recording.session.ask(SessionRequest::GetProgress);
        let SessionResponse::Progress(progress) = answer else { panic!("{answer:?}") };
        assert!(progress[0].is_damaged && progress[0].dropped == 0, "{mode:?}: {progress:?}");
        scene.run_honest(1);
        let (archive, stats) = recording.stop();
        assert_honest(&archive, 1, &format!("{mode:?}"));
        let stats = hostile(&stats);
        let problem = stats.problem.as_str();
        assert!(problem.contains("1 invalid records"), "{mode:?}: {problem}");
        assert!(problem.contains("ticks, "), "{mode:?}: {problem}");
        let damage = "the buffer's counters are damaged: how many records are missing is not known";
        assert!(problem.ends_with(damage), "{mode:?}: {problem}");
        assert_eq!((stats.records_dropped, stats.events_archived), (Some(0), Some(99)), "{mode:?}");
        assert_eq!(stats.records_generated, None, "{mode:?}");
        let id = ProviderId(stats.id);
        let losses = archive.losses.iter().filter(|loss| loss.provider == id);
        let losses: Vec<_> = losses.map(|loss| (loss.reason, loss.count)).collect();
        assert_eq!(losses, [(LossCode::MALFORMED, 1), (LossCode::DAMAGED_COUNTERS, 1)], "{mode:?}");
        assert!(archive.ledgers.iter().all(|ledger| ledger.provider != id), "{mode:?}");
        let numbers = archive.events.iter().filter(|event| event.provider == id).map(|event| event.u64("n"));
        assert!(numbers.eq((0..100).filter(|number| *number != 50)), "{mode:?}");
        drop(rogue);
    }
}

/// A damaged word hides nothing that is sound, while the program is recorded, when it ends, and in a stream.
//= docs/buffer.md#contents-that-are-checked
#[test]
fn whatever_word_of_a_header_is_damaged_all_events_are_archived_and_the_damage_is_known() {
    // Those that the engine does not write again.
    const WORDS: [&str; 10] = ["0", "2", "3", "4", "9", "10", "11", "12", "13", "14"];
    for (mode, events) in
        [(BufferingMode::Oneshot, 6000), (BufferingMode::Circular, 6000), (BufferingMode::Streaming, 20_000)]
    {
        let scene = Scene::new();
        let recording = scene.start(mode);
        let rogues = WORDS.map(|word| scene.spawn_hostile(&["header", word, &events.to_string()]));
        scene.run_honest(1);
        let (archive, stats) = recording.stop();
        assert_honest(&archive, 1, &format!("{mode:?}"));
        for stats in stats.iter().filter(|stats| stats.name == "hostile") {
            let what = format!("{mode:?}: {stats:?}");
            assert!(stats.problem.starts_with("the buffer's header is damaged ("), "{what}");
            assert_eq!((stats.events_archived, stats.records_generated), (Some(events), None), "{what}");
            let id = ProviderId(stats.id);
            let losses = archive.losses.iter().filter(|loss| loss.provider == id);
            let losses: Vec<_> = losses.map(|loss| (loss.reason, loss.count)).collect();
            assert_eq!(losses, [(LossCode::DAMAGED_COUNTERS, 1)], "{what}");
            let numbers = archive.events.iter().filter(|event| event.provider == id);
            assert!(numbers.map(|event| event.u64("n")).eq(0..events), "{what}");
        }
        assert_eq!(stats.len(), WORDS.len() + 1, "{mode:?}: {stats:?}");
        drop(rogues);
    }
}

/// The same for people: what is said after a recording, and by `trace check`.
#[test]
fn people_read_of_damaged_counters_and_not_what_is_in_them() {
    let sandbox = Sandbox::new();
    let output = sandbox.record(&["--output-file", "trace.fxt"], "hostile", &["counters"]);
    assert!(output.status.success(), "{output:?}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("the buffer's counters are damaged"), "{stderr}");
    assert!(!stderr.contains("3851492659759677440"), "{stderr}");
    let checked = sandbox.trace(["check", "trace.fxt"]);
    let stdout = String::from_utf8(checked.stdout).unwrap();
    assert!(stdout.contains("1 counters of its buffer were damaged"), "{stdout}");
    assert!(!stdout.contains("3851492659759677440"), "{stdout}");
}

#[test]
fn whatever_becomes_of_a_buffers_file_the_manager_lives() {
    for how in ["truncate", "shrink", "grow", "punch", "unlink"] {
        let mut scene = Scene::new();
        let recording = scene.start(BufferingMode::Oneshot);
        let rogue = scene.spawn_hostile(&["file", how]);
        scene.run_honest(1);
        let (archive, stats) = recording.stop();
        assert_honest(&archive, 1, how);
        let of_rogue = archive.events.iter().filter(|event| event.name() == "event");
        let events = of_rogue.filter(|event| archive.providers[&event.provider] == "hostile").count();
        let problem = hostile(&stats).problem.as_str();
        match how {
            // What is there is there.
            "grow" | "unlink" => assert_eq!((events, problem), (100, ""), "{how}"),
            "truncate" => assert!(events == 0 && problem.contains("ends at byte 0"), "{how}: {problem}"),
            "shrink" => assert!(problem.contains("early"), "{how}: {problem}"),
            _ => assert!(events == 0 && problem.contains("header"), "{how}: {problem}"),
        }
        scene.assert_alive();
        drop(rogue);
    }
}

#[test]
fn whatever_comes_through_a_fifo_the_others_are_recorded() {
    for how in ["flood", "half", "unexpected", "deaf"] {
        let mut scene = Scene::new();
        let rogue = scene.sandbox.spawn("hostile", &["fifo", how]);
        wait_for("it to register", || {
            let ProvisionerResponse::Providers { listed, .. } =
                scene.client.ask(ProvisionerRequest::GetProviders)
            else {
                panic!("another answer");
            };
            // The pid is that of the connection, not the one it claims.
            listed.iter().any(|provider| provider.pid == u64::from(rogue.pid())).then_some(())
        });
        let recording = scene.start(BufferingMode::Streaming);
        scene.run_honest(2);
        scene.assert_alive();
        let (archive, _) = recording.stop();
        assert_honest(&archive, 2, how);
        scene.assert_alive();
        drop(rogue);
    }
}

#[test]
fn silent_and_malformed_connections_delay_no_program() {
    let mut scene = Scene::new();
    // Who has asked before is not the first to be closed.
    scene.assert_alive();
    let connect = |name: &str| Channel::connect(&scene.sandbox.runtime_dir().join(name));
    let mut silent = Vec::new();
    for name in ["registry", "provisioner"] {
        for number in 0..1000 {
            let Ok(channel) = connect(name) else { continue };
            match number % 5 {
                0 => drop(channel),
                1 => drop(channel.write(&[0xff; 64], Vec::new())),
                2 => {
                    let file = fs::File::open("/").unwrap();
                    drop(channel.write(&[1; 9], vec![Handle::new(file.into())]));
                }
                3 => {
                    let null = || Handle::new(fs::File::open("/dev/zero").unwrap().into());
                    drop(channel.write(&[1, 0, 1, 1, 0, 0, 0, 0], (0..64).map(|_| null()).collect()));
                }
                _ => silent.push(channel),
            }
        }
    }
    let recording = scene.start(BufferingMode::Oneshot);
    scene.run_honest(1);
    let (archive, _) = recording.stop();
    assert_honest(&archive, 1, "connections");
    scene.assert_alive();
}

/// A client that stops reading holds up its own archive and nothing else.
#[test]
fn a_client_that_does_not_read_holds_up_itself_alone() {
    let mut scene = Scene::new();
    let mut session =
        scene.client.begin(TraceConfig { buffer_size_megabytes_hint: 16, ..TraceConfig::default() });
    let answer = session.ask(SessionRequest::StartTracing(StartOptions::default()));
    assert_eq!(answer, SessionResponse::StartTracing(Ok(())));
    let page = scene.sandbox.file("page");
    fs::write(&page, [0; 4096]).unwrap();
    let burst = scene.sandbox.spawn_recorded("burst", &[page.to_str().unwrap(), "70000"]);
    burst.succeed();
    session.send(SessionRequest::StopTracing(StopOptions { write_results: true }));
    for _ in 0..50 {
        scene.assert_alive();
    }
    assert!(scene.peak_memory_kib() < 64 << 10, "{} KiB", scene.peak_memory_kib());
    // It changes its mind, and has missed nothing.
    let output = session.collect();
    drop(session);
    let archive = Archive::of_bytes(&output.finish());
    assert_eq!(archive.events.len() as u64, THREADS * 70_000);
    scene.assert_alive();
}

/// A byte a second is no end: the manager answers others, and keeps no more than before.
#[test]
fn a_client_that_reads_a_byte_a_second_holds_up_itself_alone() {
    let mut scene = Scene::new();
    let config = TraceConfig {
        buffering_mode: BufferingMode::Streaming,
        buffer_size_megabytes_hint: 16,
        ..TraceConfig::default()
    };
    let mut session = scene.client.begin(config);
    let answer = session.ask(SessionRequest::StartTracing(StartOptions::default()));
    assert_eq!(answer, SessionResponse::StartTracing(Ok(())));
    let page = scene.sandbox.file("page");
    fs::write(&page, [0; 4096]).unwrap();
    // More than the buffer, the manager and the socket hold together.
    let burst = scene.sandbox.spawn_recorded("burst", &[page.to_str().unwrap(), "200000"]);
    let mut read = Vec::new();
    let mut byte = [0];
    for _ in 0..4 {
        let next = Instant::now() + Duration::from_secs(1);
        while session.output.read(&mut byte).is_err() {
            scene.assert_alive();
        }
        read.push(byte[0]);
        while Instant::now() < next {
            scene.assert_alive();
        }
    }
    // The program did not wait.
    burst.succeed();
    assert!(scene.peak_memory_kib() < 64 << 10, "{} KiB", scene.peak_memory_kib());
    let output = session.collect();
    let answer = session.ask(SessionRequest::StopTracing(StopOptions { write_results: true }));
    assert!(matches!(answer, SessionResponse::StopTracing(Ok(_))), "{answer:?}");
    drop(session);
    read.extend(output.finish());
    let archive = Archive::of_bytes(&read);
    let lost: u64 = archive.losses.iter().map(|loss| loss.count).sum();
    assert!(lost > 0);
    assert_eq!(archive.events.len() as u64 + lost, THREADS * 200_000);
    scene.assert_alive();
}

/// One that dies in mid-archive leaves a manager that serves the next.
#[test]
fn a_client_that_dies_while_it_reads_is_forgotten() {
    let mut scene = Scene::new();
    let page = scene.sandbox.file("page");
    fs::write(&page, [0; 4096]).unwrap();
    let burst = trace_tests::build::program("burst").to_str().unwrap();
    let recording = scene.sandbox.spawn(
        "trace",
        &["record", "--buffering-mode", "streaming", "--", burst, page.to_str().unwrap(), "100000000"],
    );
    wait_for("some of the archive", || {
        let is_partial = |name: &String| name.ends_with(".partial.fxt");
        let partial = scene.sandbox.files().into_iter().find(is_partial)?;
        (fs::metadata(scene.sandbox.file(&partial)).ok()?.len() > 4 << 20).then_some(())
    });
    recording.signal_group(Signal::KILL);
    drop(recording);
    let recording = wait_for("the session to end", || {
        let mut session = scene.client.begin(TraceConfig::default());
        let answer = session.ask(SessionRequest::StartTracing(StartOptions::default()));
        let output = session.collect();
        (answer == SessionResponse::StartTracing(Ok(()))).then_some(Recording { session, output })
    });
    scene.run_honest(1);
    assert_honest(&recording.stop().0, 1, "the next session");
    scene.assert_alive();
}
