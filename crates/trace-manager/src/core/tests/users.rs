//! Several users, one manager.
//= docs/protocol.md#users

use super::*;
use trace_protocol::controller::ProviderSpec;

const ALICE: Uid = Uid(1000);
const BOB: Uid = Uid(1001);

fn registered(provider: ProviderId, uid: Uid) -> Event {
    Event::ProviderRegistered {
        provider,
        name: format!("of-{}", uid.0),
        pid: 5,
        uid,
        is_late: false,
        is_waiting: false,
    }
}

fn initialize(client: ClientId, uid: Uid) -> Event {
    let config = TraceConfig { command_line: vec!["secret".to_owned()], ..TraceConfig::default() };
    Event::Initialize { client, pid: 77, uid, config }
}

/// A manager with a provider of each of three users: A of root, B of Alice, C of Bob.
fn of_all_users(owner: Uid) -> Bench {
    let mut bench = Bench { core: Core::new(owner), ..Bench::new() };
    for (provider, uid) in [(A, Uid::ROOT), (B, ALICE), (C, BOB)] {
        assert!(bench.event(registered(provider, uid)).is_empty());
    }
    bench
}

fn recorded(bench: &Bench) -> Vec<Recorded> {
    bench.core.recorded().into_iter().collect()
}

fn initialized(actions: &[Action]) -> Vec<ProviderId> {
    let provider = |action: &Action| match action {
        Action::InitializeTracee { provider, .. } => Some(*provider),
        _ => None,
    };
    actions.iter().filter_map(provider).collect()
}

#[test]
fn a_user_sees_and_records_what_is_the_users_own() {
    let listed =
        |bench: &Bench, uid| bench.core.providers(uid).iter().map(|info| info.id).collect::<Vec<_>>();
    let bench = of_all_users(Uid::ROOT);
    assert_eq!(listed(&bench, Uid::ROOT), [1, 2, 3]);
    assert_eq!(listed(&bench, ALICE), [2]);
    assert!(listed(&bench, Uid(4)).is_empty());
    // Whose manager it is sees who registers there.
    let bench = of_all_users(ALICE);
    assert_eq!(listed(&bench, ALICE), [1, 2, 3]);
    assert_eq!(listed(&bench, BOB), [3]);
    for (uid, expected) in [(Uid::ROOT, vec![A, B, C]), (ALICE, vec![B]), (Uid(4), vec![])] {
        let actions = of_all_users(Uid::ROOT).event(initialize(CLIENT, uid));
        assert_eq!(initialized(&actions), expected, "{uid:?}");
    }
}

#[test]
fn only_the_users_own_programs_join() {
    let mut bench = Bench::new();
    bench.event(initialize(CLIENT, ALICE));
    bench.start();
    assert!(bench.core.is_started(ALICE, "app") && !bench.core.is_started(BOB, "app"));
    assert_eq!(bench.event(registered(A, BOB)), []);
    assert_eq!(bench.event(registered(B, Uid::ROOT)), []);
    assert_eq!(initialized(&bench.event(registered(C, ALICE))), [C]);
}

//= docs/protocol.md#a-recording-is-announced
#[test]
fn a_recording_is_announced_to_those_whom_it_has_from_its_start_to_its_stop() {
    for (owner, uid, expected) in [
        (Uid::ROOT, Uid::ROOT, Recorded::All),
        (Uid::ROOT, ALICE, Recorded::User(ALICE)),
        (ALICE, ALICE, Recorded::All),
        (ALICE, Uid::ROOT, Recorded::All),
        (ALICE, BOB, Recorded::User(BOB)),
    ] {
        let mut bench = Bench { core: Core::new(owner), ..Bench::new() };
        assert_eq!(recorded(&bench), vec![]);
        bench.event(initialize(CLIENT, uid));
        assert_eq!(recorded(&bench), vec![], "it records when it is started");
        bench.start();
        assert_eq!(recorded(&bench), vec![expected]);
        bench.stop(true);
        assert_eq!(recorded(&bench), vec![]);
        bench.start();
        assert_eq!(recorded(&bench), vec![expected], "again");
        bench.event(Event::ClientClosed { client: CLIENT });
        assert_eq!(recorded(&bench), vec![]);
    }
}

/// While the kernel's provider records them.
//= docs/protocol.md#markers-that-are-wanted
#[test]
fn markers_are_wanted_of_those_whose_programs_are_recorded() {
    let all = trace_format::markers::ALL;
    for (list, spec, tags) in [
        (&[][..], &[][..], all),
        (&["app"], &[], 0),
        (&["app", "atrace:view"], &[], 0x9),
        (&["kernel:atrace:x"], &[], all),
        (&["app"], &["kernel:atrace:x"], all),
        (&["atrace:view"], &["kernel:atrace:x"], 0x9),
        // Those of one program, which learns it from its recording.
        (&["app"], &["atrace"], 0),
    ] {
        let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let spec = ProviderSpec {
            name: KERNEL_PROVIDER.to_owned(),
            buffer_size_megabytes_hint: None,
            categories: owned(spec),
        };
        let config =
            TraceConfig { categories: owned(list), provider_specs: vec![spec], ..TraceConfig::default() };
        for end in [|bench: &mut Bench| bench.stop(true), |bench: &mut Bench| bench.dies(B)] {
            let config = config.clone();
            let mut bench = Bench { core: Core::new(Uid::ROOT), ..Bench::new() };
            let wanted = |bench: &Bench| bench.core.wanted_markers().into_iter().collect::<Vec<_>>();
            bench.event(Event::Initialize { client: CLIENT, pid: 77, uid: Uid::ROOT, config });
            bench.start();
            assert_eq!(wanted(&bench), [], "{list:?}: nothing records them");
            bench.register_as(B, KERNEL_PROVIDER.to_owned());
            let expected = if tags == 0 { vec![] } else { vec![(Recorded::All, tags)] };
            assert_eq!(wanted(&bench), expected, "{list:?}");
            end(&mut bench);
            assert_eq!(wanted(&bench), [], "{list:?}");
        }
    }
}

/// What root asks for on behalf of a user has no other user's programs; nor has it for anybody who may not
/// see that user's.
//= docs/protocol.md#several-sessions
#[test]
fn a_session_may_be_limited_to_a_user() {
    let limited = |uid, user: Uid| {
        let mut bench = of_all_users(Uid::ROOT);
        let config = TraceConfig { user: Some(user.0), ..TraceConfig::default() };
        let first = initialized(&bench.event(Event::Initialize { client: CLIENT, pid: 77, uid, config }));
        bench.start();
        (first, bench)
    };
    let (first, mut bench) = limited(Uid::ROOT, ALICE);
    assert_eq!(first, [A, B]);
    assert_eq!(recorded(&bench), [Recorded::User(Uid::ROOT), Recorded::User(ALICE)]);
    assert!(bench.core.is_started(ALICE, "app") && !bench.core.is_started(BOB, "app"));
    // It is in Alice's way, and in no other user's.
    let config = TraceConfig::default();
    assert!(bench.core.refusal(ALICE, &config).is_some() && bench.core.refusal(BOB, &config).is_none());
    assert_eq!(initialized(&bench.event(initialize(ClientId(8), BOB))), [C]);
    assert_eq!(limited(Uid::ROOT, Uid::ROOT).0, [A]);
    assert_eq!(limited(BOB, ALICE).0, [C]);
}

/// The recording of a user is in the way of one that has all programs, and of no other user.s.
//= docs/protocol.md#several-sessions
#[test]
fn each_user_has_a_recording_of_the_users_own() {
    let other = ClientId(8);
    let mut bench = of_all_users(Uid::ROOT);
    assert_eq!(initialized(&bench.event(initialize(CLIENT, ALICE))), [B]);
    bench.start();
    assert_eq!(initialized(&bench.event(initialize(other, BOB))), [C]);
    bench.event(Event::Start { client: other, options: StartOptions::default() });
    assert_eq!(recorded(&bench), [Recorded::User(ALICE), Recorded::User(BOB)]);
    let recording = |uid| {
        let listed = bench.core.providers(uid).into_iter();
        listed.map(|info| (info.id, info.recorded_by, info.recording)).collect::<Vec<_>>()
    };
    let secret = || (Some(77), Some("\"secret\" (pid 77)".to_owned()));
    let of = |id, (pid, text): (_, Option<String>)| (id, pid, text);
    assert_eq!(recording(ALICE), [of(2, secret())]);
    assert_eq!(recording(Uid::ROOT), [(1, None, None), of(2, secret()), of(3, secret())]);
    // Of the two, the one that is meant has to be named by a program; to Bob there is only one.
    let snapshot = |bench: &mut Bench, uid, program: Option<&str>| {
        let program = program.map(str::to_owned);
        match &bench.event(Event::Snapshot { client: ClientId(9), uid, program })[..] {
            [Action::TakeSnapshot { session, .. }] => {
                let result = Err(SnapshotError::Aborted);
                bench.event(Event::SnapshotFinished { session: *session, result });
                Ok(*session)
            }
            [Action::ReplySnapshot(ClientId(9), Err(error))] => Err(*error),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(snapshot(&mut bench, Uid::ROOT, None), Err(SnapshotError::Several));
    assert_eq!(snapshot(&mut bench, Uid::ROOT, Some("of-1001")), Ok(other));
    assert_eq!(snapshot(&mut bench, Uid::ROOT, Some("of-0")), Err(SnapshotError::NotStarted));
    assert_eq!(snapshot(&mut bench, BOB, None), Ok(other));
    assert_eq!(snapshot(&mut bench, BOB, Some("of-1000")), Err(SnapshotError::NotStarted));
}

#[test]
fn what_another_user_records_is_not_shown() {
    let other = ClientId(8);
    let mut bench = of_all_users(Uid::ROOT);
    bench.event(initialize(CLIENT, ALICE));
    bench.start();
    let refused = |reason: &str, pid: Option<u64>, uid: Uid| {
        let recorder = Some(Recorder { pid, uid: uid.0, ..Recorder::default() });
        let refusal = Refusal { reason: reason.to_owned(), recorder, limit: None };
        [Action::RefuseClient { client: other, refusal }]
    };
    let named = refused("the trace manager is in use by \"secret\" (pid 77)", Some(77), ALICE);
    assert_eq!(bench.event(initialize(other, ALICE)), named);
    assert_eq!(bench.event(initialize(other, Uid::ROOT)), named);
    let mut of_root = of_all_users(Uid::ROOT);
    of_root.event(initialize(CLIENT, Uid::ROOT));
    assert_eq!(
        of_root.event(initialize(other, BOB)),
        refused("the trace manager is in use by user 0", None, Uid::ROOT)
    );
    assert_eq!(of_root.core.providers(BOB)[0].recording.as_deref(), Some("user 0"));
    assert_eq!(of_root.core.providers(BOB)[0].recorded_by, None);
    let refused = [Action::ReplySnapshot(other, Err(SnapshotError::NotStarted))];
    assert_eq!(bench.event(Event::Snapshot { client: other, uid: BOB, program: None }), refused);
    let actions = bench.event(Event::Snapshot { client: other, uid: ALICE, program: None });
    assert!(
        matches!(&actions[..], [Action::TakeSnapshot { providers, .. }] if *providers == [B]),
        "{actions:?}"
    );
}
