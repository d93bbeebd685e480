//! A session's requests and their answers.

use super::*;
use trace_protocol::controller::{ProviderInfo, ProviderSpec};

//= docs/protocol.md#session
#[test]
fn a_session_without_providers_runs_through() {
    let mut bench = Bench::new();
    let config = TraceConfig::default();
    assert_eq!(
        bench.event(Event::Initialize { client: CLIENT, pid: 77, uid: Uid::ROOT, config: config.clone() }),
        [
            Action::BeginArchive { client: CLIENT, pid: 77, config, uid: Uid::ROOT },
            entered(SessionState::Initialized)
        ]
    );
    assert_eq!(
        bench.start(),
        [entered(SessionState::Starting), Action::ReplyStart(CLIENT, Ok(())), entered(SessionState::Started)]
    );
    assert_eq!(
        bench.stop(true),
        [entered(SessionState::Stopping), entered(SessionState::Stopped), stop_reply(Vec::new())]
    );
    assert_eq!(bench.core.next_deadline(), None);
    assert_eq!(
        bench.event(Event::ClientClosed { client: CLIENT }),
        [entered(SessionState::Terminating), ended()]
    );
    assert!(!bench.core.has_session());
    assert_eq!(bench.core.next_deadline(), None);
}

#[test]
fn one_provider_runs_through() {
    let mut bench = Bench::new();
    assert_eq!(bench.register(A), []);
    let config = TraceConfig::default();
    assert_eq!(
        bench.event(Event::Initialize { client: CLIENT, pid: 77, uid: Uid::ROOT, config: config.clone() }),
        [
            Action::BeginArchive { client: CLIENT, pid: 77, config, uid: Uid::ROOT },
            initialize_of(A),
            entered(SessionState::Initialized)
        ]
    );
    assert_eq!(bench.start(), [start_of(A, BufferDisposition::ClearEntire), entered(SessionState::Starting)]);
    assert_eq!(
        bench.send(A, started()),
        [Action::ReplyStart(CLIENT, Ok(())), entered(SessionState::Started)]
    );
    assert_eq!(bench.stop(true), [Action::StopTracee(A), entered(SessionState::Stopping)]);
    assert_eq!(bench.send(A, FifoRequest::Stopped), [transfer_of(A, true)]);
    assert_eq!(bench.transferred(A), [entered(SessionState::Stopped), stop_reply(vec![entry(A, "stopped")])]);
    assert_eq!(
        bench.event(Event::ClientClosed { client: CLIENT }),
        [Action::TerminateTracee(A), entered(SessionState::Terminating)]
    );
    assert_eq!(bench.leaves(A), [Action::DropTracee(A), ended()]);
    assert_eq!(bench.log, Vec::<String>::new());
    // It stays registered: the next session traces it again.
    assert_eq!(bench.core.providers(Uid::ROOT).len(), 1);
}

#[test]
fn a_start_is_refused_in_these_states() {
    let cases = [
        (Bench::new(), StartError::NotInitialized),
        (Bench::started(&[A]), StartError::AlreadyStarted),
        (Bench::stopping(&[A], true), StartError::Stopping),
        (Bench::terminating(&[A]), StartError::Terminating),
    ];
    for (mut bench, error) in cases {
        let before = bench.state();
        assert_eq!(bench.start(), [Action::ReplyStart(CLIENT, Err(error))]);
        assert_eq!(bench.state(), before);
    }
    let mut bench = Bench::initialized(&[A]);
    bench.start();
    assert_eq!(bench.state(), Some(SessionState::Starting));
    assert_eq!(bench.start(), [Action::ReplyStart(CLIENT, Err(StartError::AlreadyStarted))]);
    // The first one is still answered.
    assert_eq!(
        bench.send(A, started()),
        [Action::ReplyStart(CLIENT, Ok(())), entered(SessionState::Started)]
    );
}

#[test]
fn a_stop_is_refused_in_these_states() {
    let cases = [
        (Bench::new(), StopError::NotInitialized),
        (Bench::stopped(&[A], true), StopError::NotStarted),
        (Bench::terminating(&[A]), StopError::NotStarted),
    ];
    for (mut bench, error) in cases {
        let before = bench.state();
        assert_eq!(bench.stop(true), [Action::ReplyStop(CLIENT, Err(error))]);
        assert_eq!(bench.state(), before);
    }
    let mut bench = Bench::stopping(&[A], true);
    assert_eq!(bench.stop(false), [Action::ReplyStop(CLIENT, Err(StopError::NotStarted))]);
    // The first one ends normally, and still writes.
    assert_eq!(bench.send(A, FifoRequest::Stopped), [transfer_of(A, true)]);
    assert_eq!(bench.transferred(A), [entered(SessionState::Stopped), stop_reply(vec![entry(A, "stopped")])]);
}

#[test]
fn a_stop_before_any_start_has_nothing_to_wait_for() {
    let mut bench = Bench::initialized(&[A, B]);
    assert_eq!(
        bench.stop(true),
        [entered(SessionState::Stopping), entered(SessionState::Stopped), stop_reply(Vec::new())]
    );
    assert_eq!(
        bench.start(),
        [
            start_of(A, BufferDisposition::ClearEntire),
            start_of(B, BufferDisposition::ClearEntire),
            entered(SessionState::Starting)
        ]
    );
}

#[test]
fn a_stop_answers_the_start_it_overtakes() {
    let mut bench = Bench::initialized(&[A]);
    bench.start();
    assert_eq!(
        bench.stop(true),
        [Action::ReplyStart(CLIENT, Ok(())), Action::StopTracee(A), entered(SessionState::Stopping)]
    );
    // The provider obeys both requests in their order.
    assert_eq!(bench.send(A, started()), []);
    assert_eq!(bench.send(A, FifoRequest::Stopped), [transfer_of(A, true)]);
}

#[test]
fn another_clients_requests_do_not_touch_the_session() {
    let other = ClientId(8);
    let mut bench = Bench::started(&[A]);
    assert_eq!(
        bench.event(Event::Initialize {
            client: other,
            pid: 77,
            uid: Uid::ROOT,
            config: TraceConfig::default()
        }),
        [Action::RefuseClient {
            client: other,
            refusal: Refusal {
                reason: "the trace manager is in use by pid 77".to_owned(),
                recorder: Some(Recorder { pid: Some(77), ..Recorder::default() }),
                limit: None
            }
        }]
    );
    let options = StopOptions { write_results: true };
    assert_eq!(
        bench.event(Event::Stop { client: other, options }),
        [Action::ReplyStop(other, Err(StopError::NotInitialized))]
    );
    let options = StartOptions::default();
    assert_eq!(
        bench.event(Event::Start { client: other, options }),
        [Action::ReplyStart(other, Err(StartError::NotInitialized))]
    );
    assert_eq!(bench.event(Event::ClientClosed { client: other }), []);
    assert_eq!(bench.state(), Some(SessionState::Started));
}

#[test]
fn sizes_and_categories_come_from_session_and_spec() {
    let strings = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let config = |megabytes, spec_megabytes| TraceConfig {
        categories: strings(&["app", "net:*"]),
        buffer_size_megabytes_hint: megabytes,
        provider_specs: vec![ProviderSpec {
            name: "provider-1".to_owned(),
            buffer_size_megabytes_hint: spec_megabytes,
            categories: strings(&["net:*", "special"]),
        }],
        ..TraceConfig::default()
    };
    let of = |provider, megabytes: u64, categories: &[&str]| Action::InitializeTracee {
        client: CLIENT,
        provider,
        buffer_bytes: megabytes << 20,
        mode: BufferingMode::Oneshot,
        categories: strings(categories),
    };
    for (hint, spec, expected_a, expected_b) in
        [(2, Some(16), 16, 2), (2, None, 2, 2), (0, None, 1, 1), (3, Some(0), 1, 3)]
    {
        let mut bench = Bench::new();
        bench.register(A);
        bench.register(B);
        let actions = bench.event(Event::Initialize {
            client: CLIENT,
            pid: 77,
            uid: Uid::ROOT,
            config: config(hint, spec),
        });
        assert_eq!(
            actions[1..3],
            [of(A, expected_a, &["app", "net:*", "special"]), of(B, expected_b, &["app", "net:*"])]
        );
    }
}

#[test]
fn more_categories_than_a_message_may_hold_are_cut() {
    let list = |prefix: &str, count: usize| (0..count).map(|i| format!("{prefix}{i}")).collect();
    let log_of = |of_provider| {
        let config = TraceConfig {
            categories: list("c", 4999),
            provider_specs: vec![ProviderSpec {
                name: "provider-1".to_owned(),
                buffer_size_megabytes_hint: None,
                categories: list("d", of_provider),
            }],
            ..TraceConfig::default()
        };
        let mut bench = Bench::new();
        bench.register(A);
        let actions = bench.event(Event::Initialize { client: CLIENT, pid: 77, uid: Uid::ROOT, config });
        let Action::InitializeTracee { categories, .. } = &actions[1] else {
            panic!("{:?}", actions[1]);
        };
        assert_eq!(categories.len(), 5000);
        bench.log
    };
    assert!(log_of(1).is_empty());
    assert_eq!(log_of(2), ["program 1 \"provider-1\": 5001 categories, those beyond the limit are ignored"]);
}

#[test]
fn providers_are_distinguished_by_number() {
    let mut bench = Bench::new();
    for provider in [A, B] {
        bench.event(Event::ProviderRegistered {
            provider,
            name: "twin".to_owned(),
            pid: 5,
            uid: Uid::ROOT,
            is_late: false,
            is_waiting: false,
        });
    }
    let twin = |id| ProviderInfo {
        id,
        pid: 5,
        name: "twin".to_owned(),
        recorded_by: None,
        recording: None,
        uid: Some(0),
    };
    assert_eq!(bench.core.providers(Uid::ROOT), [twin(1), twin(2)]);
    bench.dies(A);
    assert_eq!(bench.core.providers(Uid::ROOT), [twin(2)]);
}

#[test]
fn registrants_hear_whether_a_start_is_coming() {
    assert!(!Bench::new().core.is_started(Uid::ROOT, "app"));
    assert!(!Bench::initialized(&[A]).core.is_started(Uid::ROOT, "app"));
    let mut bench = Bench::initialized(&[A]);
    bench.start();
    assert!(bench.core.is_started(Uid::ROOT, "app"));
    assert!(Bench::started(&[A]).core.is_started(Uid::ROOT, "app"));
    assert!(!Bench::stopping(&[A], true).core.is_started(Uid::ROOT, "app"));
    assert!(!Bench::stopped(&[A], true).core.is_started(Uid::ROOT, "app"));
    assert!(!Bench::terminating(&[A]).core.is_started(Uid::ROOT, "app"));
}

/// As a client hears of an alert of A's.
fn raised(name: &str) -> Alert {
    let (provider, pid) = (format!("provider-{}", A.0), 1000 + u64::from(A.0));
    Alert { name: name.to_owned(), provider, pid, dropped: 0 }
}

//= docs/protocol.md#alerts
#[test]
fn alerts_and_watchers_are_first_in_first_out() {
    let mut bench = Bench::initialized(&[A]);
    let alert = |name: &str| FifoRequest::Alert { name: name.to_owned() };
    let reply_after =
        |dropped: u64, name: &str| Action::ReplyAlert(CLIENT, Alert { dropped, ..raised(name) });
    let reply = |name: &str| reply_after(0, name);
    let watch = || Event::WatchAlert { client: CLIENT };

    assert_eq!(bench.send(A, alert("early")), []);
    assert_eq!(bench.event(watch()), [reply("early")]);
    assert_eq!(bench.event(watch()), []);
    assert_eq!(bench.event(watch()), []);
    assert_eq!(bench.send(A, alert("fourteen_chars")), [reply("fourteen_chars")]);
    assert_eq!(bench.send(A, alert("")), [reply("")]);

    // Of 19 the first three are dropped, which the next answer says.
    for number in 0..19 {
        assert_eq!(bench.send(A, alert(&number.to_string())), []);
    }
    assert_eq!(bench.event(watch()), [reply_after(3, "3")]);
    for number in 4..19 {
        assert_eq!(bench.event(watch()), [reply(&number.to_string())]);
    }
    assert_eq!(bench.event(watch()), []);
}

#[test]
fn alerts_are_accepted_in_every_state_of_a_provider() {
    let mut starting = Bench::initialized(&[A]);
    starting.start();
    let benches = [
        Bench::initialized(&[A]),
        starting,
        Bench::started(&[A]),
        Bench::stopping(&[A], true),
        Bench::stopped(&[A], true),
        Bench::terminating(&[A]),
    ];
    for mut bench in benches {
        bench.event(Event::WatchAlert { client: CLIENT });
        assert_eq!(
            bench.send(A, FifoRequest::Alert { name: "now".to_owned() }),
            [Action::ReplyAlert(CLIENT, raised("now"))]
        );
    }
}
