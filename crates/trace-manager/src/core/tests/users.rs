//! Several users, one manager.
//= docs/protocol.md#users

use super::*;

const ALICE: Uid = Uid(1000);
const BOB: Uid = Uid(1001);

fn registered(provider: ProviderId, uid: Uid) -> Event {
    Event::ProviderRegistered { provider, name: format!("of-{}", uid.0), pid: 5, uid, is_late: false }
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
    assert!(bench.core.is_started(ALICE) && !bench.core.is_started(BOB));
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
        assert_eq!(bench.core.recorded(), None);
        bench.event(initialize(CLIENT, uid));
        assert_eq!(bench.core.recorded(), None, "it records when it is started");
        bench.start();
        assert_eq!(bench.core.recorded(), Some(expected));
        bench.stop(true);
        assert_eq!(bench.core.recorded(), None);
        bench.start();
        assert_eq!(bench.core.recorded(), Some(expected), "again");
        bench.event(Event::ClientClosed { client: CLIENT });
        assert_eq!(bench.core.recorded(), None);
    }
}

#[test]
fn what_another_user_records_is_not_shown() {
    let other = ClientId(8);
    let mut bench = of_all_users(Uid::ROOT);
    bench.event(initialize(CLIENT, ALICE));
    bench.start();
    let refused = |reason: &str| [Action::RefuseClient { client: other, reason: reason.to_owned() }];
    assert_eq!(bench.event(initialize(other, BOB)), refused("the trace manager is in use by user 1000"));
    let named = refused("the trace manager is in use by \"secret\" (pid 77)");
    assert_eq!(bench.event(initialize(other, ALICE)), named);
    assert_eq!(bench.event(initialize(other, Uid::ROOT)), named);
    let refused = [Action::ReplySnapshot(other, Err(SnapshotError::NotStarted))];
    assert_eq!(bench.event(Event::Snapshot { client: other, uid: BOB }), refused);
    let actions = bench.event(Event::Snapshot { client: other, uid: ALICE });
    assert!(
        matches!(&actions[..], [Action::TakeSnapshot { providers, .. }] if *providers == [B]),
        "{actions:?}"
    );
}
