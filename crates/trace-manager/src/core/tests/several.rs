//! Several recordings of one user's, of different programs.
//= docs/protocol.md#several-sessions

use super::*;

const OTHER: ClientId = ClientId(8);

fn initialize(client: ClientId, programs: &[&str]) -> Event {
    let programs = programs.iter().map(|name| (*name).to_owned()).collect();
    let config = TraceConfig { programs, ..TraceConfig::default() };
    Event::Initialize { client, pid: 70 + client.0 as u32, uid: Uid::ROOT, config }
}

fn initialized(actions: &[Action]) -> Vec<(ClientId, ProviderId)> {
    let provider = |action: &Action| match action {
        Action::InitializeTracee { client, provider, .. } => Some((*client, *provider)),
        _ => None,
    };
    actions.iter().filter_map(provider).collect()
}

/// Two recordings, of A and of B, and C which is in none.
fn two() -> Bench {
    let mut bench = Bench::new();
    for provider in [A, B, C] {
        bench.register(provider);
    }
    assert_eq!(initialized(&bench.event(initialize(CLIENT, &["provider-1"]))), [(CLIENT, A)]);
    assert_eq!(initialized(&bench.event(initialize(OTHER, &["provider-2", "later"]))), [(OTHER, B)]);
    for client in [CLIENT, OTHER] {
        bench.event(Event::Start { client, options: StartOptions::default() });
    }
    bench.send(A, started());
    bench.send(B, started());
    bench
}

#[test]
fn each_has_its_programs_and_neither_notices_the_other() {
    let mut bench = two();
    let states = |bench: &Bench| [CLIENT, OTHER].map(|client| Some(bench.core.session_state(client)?.0));
    assert_eq!(states(&bench), [Some(SessionState::Started); 2]);
    assert!(bench.core.is_started(Uid::ROOT, "later") && !bench.core.is_started(Uid::ROOT, "provider-3"));
    // One that registers joins the one that has asked for it.
    let registered = |name: &str| Event::ProviderRegistered {
        provider: ProviderId(9),
        name: name.to_owned(),
        pid: 9,
        uid: Uid::ROOT,
        is_late: false,
        is_waiting: false,
    };
    assert_eq!(bench.event(registered("none")), []);
    bench.event(Event::ProviderClosed { provider: ProviderId(9), process: ProcessState::Dead });
    assert_eq!(initialized(&bench.event(registered("later"))), [(OTHER, ProviderId(9))]);
    bench.send(ProviderId(9), started());
    // The end of one is none of the other's.
    assert_eq!(bench.stop(true), [Action::StopTracee(A), entered(SessionState::Stopping)]);
    assert_eq!(bench.send(A, FifoRequest::Stopped), [transfer_of(A, true)]);
    bench.transferred(A);
    assert_eq!(states(&bench), [Some(SessionState::Stopped), Some(SessionState::Started)]);
    bench.event(Event::ClientClosed { client: CLIENT });
    assert_eq!(bench.leaves(A), [Action::DropTracee(A), ended()]);
    assert_eq!(states(&bench), [None, Some(SessionState::Started)]);
    // A program that dies is written into the archive of its own.
    let part = Part::Rest { is_quiet: true };
    assert_eq!(bench.dies(B), [Action::Transfer { client: OTHER, provider: B, part }]);
    // And a broken output ends its own recording.
    let actions = bench.event(Event::OutputFailed { client: OTHER, reason: "full".to_owned() });
    assert!(actions.contains(&Action::LeaveBuffer(B)), "{actions:?}");
    assert_eq!(states(&bench), [None, Some(SessionState::Terminating)]);
}

#[test]
fn no_program_is_asked_for_twice() {
    let mut bench = two();
    let third = ClientId(10);
    let refusal = |bench: &mut Bench, programs: &[&str]| match &bench.event(initialize(third, programs))[..] {
        [Action::RefuseClient { client, refusal }] if *client == third => Some(refusal.clone()),
        _ => None,
    };
    let by = |pid: u64, program: Option<&str>| {
        let (pid, program) = (Some(pid), program.map(str::to_owned));
        let reason = format!("the trace manager is in use by pid {}", pid.unwrap_or(0));
        Some(Refusal {
            reason,
            recorder: Some(Recorder { pid, program, ..Recorder::default() }),
            limit: None,
        })
    };
    assert_eq!(refusal(&mut bench, &[]), by(77, None), "all programs");
    assert_eq!(refusal(&mut bench, &["provider-3", "provider-2"]), by(78, Some("provider-2")));
    // Whether it runs or not.
    assert_eq!(refusal(&mut bench, &["later"]), by(78, Some("later")));
    assert_eq!(refusal(&mut bench, &["provider-3"]), None);
    assert_eq!(
        bench.core.providers(Uid::ROOT).iter().map(|info| info.recorded_by).collect::<Vec<_>>(),
        [Some(77), Some(78), Some(80)]
    );
}

#[test]
fn requests_about_one_name_a_program_of_it() {
    let mut bench = two();
    let observed = |bench: &mut Bench, number, program: Option<&str>| {
        let (client, program) = (ClientId(number), program.map(str::to_owned));
        match &bench.event(Event::Observe { client, uid: Uid::ROOT, program })[..] {
            [Action::ReplyObserve(_, result)] => *result,
            actions => panic!("{actions:?}"),
        }
    };
    assert_eq!(observed(&mut bench, 100, None), Err(ObserveError::Several));
    assert_eq!(observed(&mut bench, 101, Some("provider-1")), Ok(CLIENT));
    assert_eq!(observed(&mut bench, 102, Some("1002")), Ok(OTHER), "by its process");
    assert_eq!(observed(&mut bench, 103, Some("later")), Ok(OTHER), "it may come");
    assert_eq!(observed(&mut bench, 104, Some("provider-3")), Err(ObserveError::NothingRecorded));
    // A memory dump is one of all.
    assert_eq!(bench.core.recording(Uid::ROOT), Some(vec![A, B]));
    assert_eq!(bench.core.recording_in(OTHER), Some(vec![B]));
    let taken = |bench: &mut Bench, number, program: &str| {
        let (client, program) = (ClientId(number), Some(program.to_owned()));
        match &bench.event(Event::Snapshot { client, uid: Uid::ROOT, program })[..] {
            [Action::TakeSnapshot { session, providers, .. }] => Ok((*session, providers.clone())),
            [Action::ReplySnapshot(_, Err(error))] => Err(*error),
            actions => panic!("{actions:?}"),
        }
    };
    // One at a time of each.
    assert_eq!(taken(&mut bench, 200, "provider-1"), Ok((CLIENT, vec![A])));
    assert_eq!(taken(&mut bench, 201, "provider-1"), Err(SnapshotError::Busy));
    assert_eq!(taken(&mut bench, 202, "provider-2"), Ok((OTHER, vec![B])));
    // And few of a user's, also of sessions that are over.
    for number in 0..3 {
        let name = format!("more-{number}");
        bench.event(initialize(ClientId(300 + number), &[&name]));
        bench.event(Event::Start { client: ClientId(300 + number), options: StartOptions::default() });
        let expected =
            if number < 2 { Ok((ClientId(300 + number), vec![])) } else { Err(SnapshotError::Busy) };
        assert_eq!(taken(&mut bench, 210 + number, &name), expected);
    }
    let result = || Ok(StopResult { provider_stats: Vec::new() });
    let finished = |session| Event::SnapshotFinished { session, result: result() };
    assert_eq!(bench.event(finished(OTHER)), [Action::ReplySnapshot(ClientId(202), result())]);
    assert_eq!(bench.event(finished(OTHER)), []);
    assert_eq!(bench.event(finished(CLIENT)), [Action::ReplySnapshot(ClientId(200), result())]);
}
