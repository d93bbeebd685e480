//! Observers of a recording: what they get, and what they cannot do.

use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use trace_protocol::controller::{
    ObserveError, ObserveOptions, ObservedProvider, SessionRequest, SessionResponse, SessionState,
    StartOptions, StopOptions, TraceConfig,
};
use trace_protocol::{BufferingMode, VersionRange};
use trace_tests::client::{Client, Collector, Session};
use trace_tests::observer::Observed;
use trace_tests::sandbox::Process;
use trace_tests::{Archive, Sandbox, wait_for};
use zx_sim::Channel;

const MODES: [BufferingMode; 3] = [BufferingMode::Oneshot, BufferingMode::Circular, BufferingMode::Streaming];
const OPTIONS: ObserveOptions = ObserveOptions {
    versions: VersionRange::only(1),
    interval_milliseconds: 50,
    wants_records: true,
    program: None,
    open_for_ns: None,
};

struct Scene {
    sandbox: Sandbox,
    client: Client,
    manager: Process,
}

impl Scene {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        let manager = sandbox.spawn("trace", &["manager"]);
        let client = Client::connect(&sandbox);
        Self { sandbox, client, manager }
    }

    fn start(&self, mode: BufferingMode, megabytes: u32) -> Session {
        let mut session = self.client.begin(TraceConfig {
            buffering_mode: mode,
            buffer_size_megabytes_hint: megabytes,
            ..TraceConfig::default()
        });
        let started = session.ask(SessionRequest::StartTracing(StartOptions::default()));
        assert_eq!(started, SessionResponse::StartTracing(Ok(())));
        session
    }

    /// A program that has recorded `rounds` rounds when this returns, and waits until its file is removed.
    fn living(&self, rounds: u64) -> Process {
        fs::write(self.sandbox.file("wait"), "").unwrap();
        let file = self.sandbox.file("wait");
        let mut living =
            self.sandbox.spawn_recorded("living", &[file.to_str().unwrap(), &rounds.to_string()]);
        assert_eq!(living.line(), "printed by the program");
        living
    }

    fn let_go(&self, living: Process) {
        fs::remove_file(self.sandbox.file("wait")).unwrap();
        living.succeed();
    }
}

fn stop(session: &mut Session) {
    let answer = session.ask(SessionRequest::StopTracing(StopOptions { write_results: true }));
    assert!(matches!(answer, SessionResponse::StopTracing(Ok(_))), "{answer:?}");
}

/// Reads what an observer gets until something is true of it.
fn observed_until(collector: &Collector, what: &str, is_true: impl Fn(&Observed) -> bool) -> Observed {
    wait_for(what, || Some(Observed::of_bytes(&collector.so_far())).filter(&is_true))
}

/// How often each name occurs.
fn names(archive: &Archive) -> BTreeMap<String, usize> {
    let mut names = BTreeMap::new();
    archive.events.iter().for_each(|event| *names.entry(event.name()).or_default() += 1);
    names
}

/// 500 durations, a begin and an end, and a counter in each round.
fn expected(rounds: usize) -> BTreeMap<String, usize> {
    [("work", 500), ("request", 2), ("queue", 1)]
        .map(|(name, count)| (name.to_owned(), count * rounds))
        .into()
}

//= docs/protocol.md#observers
#[test]
fn an_observer_gets_everything_while_the_program_runs_and_the_owner_the_same() {
    for mode in MODES {
        let scene = Scene::new();
        let mut session = scene.start(mode, 4);
        let output = session.collect();
        let (observing, socket) = scene.client.observe(OPTIONS);
        assert_eq!((observing.result, observing.served), (Ok(1), VersionRange::only(1)));
        let collector = Collector::new(socket);
        let living = scene.living(3);
        // The program waits: nothing is flushed, no buffer is full.
        let is_there = |observed: &Observed| {
            observed.last("living").is_some_and(|provider| provider.progress.records == 3 * 503)
        };
        let observed = observed_until(&collector, "all records", is_there);
        assert_eq!(names(&observed.archive()), expected(3), "{mode:?}");
        let ObservedProvider { progress, missed, has_ended } = observed.last("living").unwrap();
        assert_eq!((progress.dropped, missed, has_ended, progress.is_damaged), (0, 0, false, false));
        assert_eq!(progress.pid, u64::from(living.pid()));
        let last = observed.counts.last().unwrap();
        assert_eq!((last.state, last.mode, last.dropped_updates), (SessionState::Started, mode, 0));
        // One that comes later gets what is still in the buffer, with the definitions.
        let late = Collector::new(scene.client.observe(OPTIONS).1);
        let late_observed = observed_until(&late, "all records again", is_there);
        assert_eq!(names(&late_observed.archive()), expected(3), "{mode:?}");
        scene.let_go(living);
        let observed = observed_until(&collector, "the end of the program", |observed| {
            observed.last("living").is_some_and(|provider| provider.has_ended)
        });
        assert_eq!(names(&observed.archive()), expected(3), "{mode:?}: nothing comes twice");
        stop(&mut session);
        drop(session);
        assert_eq!(names(&Archive::of_bytes(&output.finish())), expected(3), "{mode:?}");
        let observed = Observed::of_bytes(&collector.finish());
        assert!(observed.is_over && Observed::of_bytes(&late.finish()).is_over);
        let updates: Vec<u64> = observed.counts.iter().map(|counts| counts.update).collect();
        assert!(updates.iter().copied().eq(1..=updates.len() as u64), "{updates:?}");
        assert_eq!(observed.counts.last().unwrap().state, SessionState::Terminating);
    }
}

/// Programs that end at once, and one that is killed, are read to their ends.
//= docs/protocol.md#observers
#[test]
fn of_short_lives_nothing_is_missing() {
    let scene = Scene::new();
    let mut session = scene.start(BufferingMode::Streaming, 1);
    let slow = ObserveOptions { interval_milliseconds: 10_000, ..OPTIONS };
    let collector = Collector::new(scene.client.observe(slow).1);
    let output = session.collect();
    for _ in 0..20 {
        let file = scene.sandbox.file("none");
        scene.sandbox.spawn_recorded("living", &[file.to_str().unwrap()]).succeed();
    }
    let killed = scene.living(1);
    killed.signal(Signal::KILL);
    killed.finish();
    stop(&mut session);
    drop(session);
    assert_eq!(names(&Archive::of_bytes(&output.finish())), expected(21));
    let observed = Observed::of_bytes(&collector.finish());
    assert!(observed.is_over);
    assert_eq!(names(&observed.archive()), expected(21));
    let ended = observed.counts.iter().flat_map(|counts| &counts.providers);
    let ended = ended.filter(|provider| provider.has_ended);
    let ended: Vec<_> = ended.map(|provider| (provider.progress.records, provider.missed)).collect();
    assert_eq!(ended, [(503, 0); 21]);
}

/// Of a program that writes faster than anything reads, the numbers are exact.
//= docs/protocol.md#observers
#[test]
fn what_an_observer_does_not_get_is_counted() {
    for mode in [BufferingMode::Circular, BufferingMode::Streaming] {
        let scene = Scene::new();
        let mut session = scene.start(mode, 1);
        let output = session.collect();
        let collector = Collector::new(scene.client.observe(OPTIONS).1);
        scene.sandbox.spawn_recorded("stream", &["4", "200000", "0"]).succeed();
        stop(&mut session);
        drop(session);
        let archive = Archive::of_bytes(&output.finish());
        let generated: u64 = archive.generated().values().sum();
        assert_eq!(generated, 800_000, "{mode:?}");
        let observed = Observed::of_bytes(&collector.finish());
        let ObservedProvider { progress, missed, has_ended } = observed.last("stream").unwrap();
        assert!(has_ended && observed.is_over);
        assert_eq!(progress.records + progress.dropped, 800_000, "{mode:?}");
        let seen = observed.archive();
        assert_eq!(seen.events.len() as u64 + missed, progress.records, "{mode:?}");
        assert!(!seen.events.is_empty());
        // Each once, and as it was written.
        for (thread, events) in seen.by_thread("event") {
            let mut numbers: Vec<u64> = events.iter().map(|event| event.u64("n")).collect();
            numbers.sort_unstable();
            assert!(numbers.is_sorted_by(|one, next| one < next), "{mode:?}, thread {thread}: twice");
        }
    }
}

/// One that never reads is dropped from, and nothing else.
//= docs/protocol.md#observers
#[test]
fn an_observer_that_never_reads_costs_the_recording_nothing() {
    let scene = Scene::new();
    // Room for all that is not saved in time on a busy machine.
    let mut session = scene.start(BufferingMode::Streaming, 16);
    let output = session.collect();
    let (_, never_read) = scene.client.observe(OPTIONS);
    let reads = Collector::new(scene.client.observe(OPTIONS).1);
    scene.sandbox.spawn_recorded("stream", &["2", "150000", "100000"]).succeed();
    let living = scene.living(1);
    observed_until(&reads, "what comes later", |observed| {
        observed.last("living").is_some_and(|provider| provider.progress.records == 503)
    });
    scene.let_go(living);
    stop(&mut session);
    drop(session);
    let archive = Archive::of_bytes(&output.finish());
    let events = names(&archive);
    assert_eq!(events["event"], 300_000);
    assert_eq!(events["work"], 500);
    // The one that reads has everything of the second program, and of the first what there was time for.
    let observed = Observed::of_bytes(&reads.finish());
    let provider = observed.last("stream").unwrap();
    assert_eq!(names(&observed.archive())["event"] as u64 + provider.missed, 300_000);
    // The other one learns how much it has not received, if it reads in the end; or its socket is closed.
    let late = Observed::of_bytes(&Collector::new(never_read).finish());
    assert!(late.counts.len() < observed.counts.len(), "{} updates", late.counts.len());
    // The manager serves on.
    let _next = scene.start(BufferingMode::Oneshot, 1);
}

//= docs/protocol.md#observers
#[test]
fn a_thousand_observers_are_refused_and_leave_nothing() {
    let mut scene = Scene::new();
    let (observing, _) = scene.client.observe(OPTIONS);
    assert_eq!(observing.result, Err(ObserveError::NothingRecorded));
    let mut session = scene.start(BufferingMode::Streaming, 1);
    let output = session.collect();
    let descriptors =
        |scene: &Scene| fs::read_dir(format!("/proc/{}/fd", scene.manager.pid())).unwrap().count();
    let living = scene.living(1);
    let before = descriptors(&scene);
    let mut observers = Vec::new();
    for number in 0..1000 {
        let client = Client::connect(&scene.sandbox);
        let (observing, socket) = client.observe(OPTIONS);
        let expected = if number < 4 { Ok(1) } else { Err(ObserveError::Busy) };
        assert_eq!(observing.result, expected, "{number}");
        observers.push((client, socket));
    }
    for versions in [VersionRange::new(2..=9).unwrap(), VersionRange::only(u16::MAX)] {
        let (observing, _) = Client::connect(&scene.sandbox).observe(ObserveOptions { versions, ..OPTIONS });
        let expected = (Err(ObserveError::Version), VersionRange::only(1));
        assert_eq!((observing.result, observing.served), expected);
    }
    // A channel is no socket for frames.
    let (_ours, theirs) = Channel::pair().unwrap();
    let request = trace_protocol::controller::ProvisionerRequest::Observe {
        options: OPTIONS,
        output: theirs.into_handle(),
    };
    let message = trace_protocol::Message::encode(request, trace_protocol::Txid(1)).unwrap();
    let broken = Client::connect(&scene.sandbox);
    broken.0.write(&message.bytes, message.handles).unwrap();
    let answer = trace_tests::client::receive::<trace_protocol::controller::ProvisionerResponse>(&broken.0);
    assert!(answer.is_none(), "{answer:?}");
    drop((observers, broken));
    wait_for("everything to be closed", || (descriptors(&scene) <= before + 1).then_some(()));
    // There is room again.
    // The oldest idle connections of clients were closed meanwhile.
    let client = Client::connect(&scene.sandbox);
    let room = || Some(client.observe(OPTIONS)).filter(|(observing, _)| observing.result == Ok(1));
    let (_, socket) = wait_for("room for an observer", room);
    let collector = Collector::new(socket);
    observed_until(&collector, "the records", |observed| names(&observed.archive()) == expected(1));
    scene.let_go(living);
    stop(&mut session);
    drop(session);
    assert_eq!(names(&Archive::of_bytes(&output.finish())), expected(1));
    assert!(scene.manager.is_running());
}
