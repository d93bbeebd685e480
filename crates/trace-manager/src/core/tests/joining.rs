//! A provider registers while a session exists.

use super::*;

//= docs/protocol.md#a-provider-that-registers-during-a-session
#[test]
fn before_the_start_it_is_initialized() {
    let mut bench = Bench::initialized(&[A]);
    assert_eq!(bench.register(B), [initialize_of(B)]);
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
fn while_starting_it_is_waited_for() {
    let mut bench = Bench::initialized(&[A]);
    bench.start();
    assert_eq!(bench.register(B), [initialize_of(B), start_of(B, BufferDisposition::ClearEntire)]);
    assert_eq!(bench.send(A, started()), []);
    assert_eq!(
        bench.send(B, started()),
        [Action::ReplyStart(CLIENT, Ok(())), entered(SessionState::Started)]
    );
}

#[test]
fn while_started_it_is_started_and_changes_nothing() {
    let mut bench = Bench::started(&[A]);
    assert_eq!(bench.register(B), [initialize_of(B), start_of(B, BufferDisposition::ClearEntire)]);
    assert_eq!(bench.send(B, started()), []);
    assert_eq!(
        bench.stop(true),
        [Action::StopTracee(A), Action::StopTracee(B), entered(SessionState::Stopping)]
    );
}

#[test]
fn a_late_joiner_is_cleared_even_in_a_run_that_retains() {
    let mut bench = Bench::stopped(&[A], false);
    bench.start_with(StartOptions::default());
    bench.send(A, started());
    assert_eq!(bench.register(B), [initialize_of(B), start_of(B, BufferDisposition::ClearEntire)]);
}

#[test]
fn while_stopping_the_session_does_not_wait_for_it() {
    let mut bench = Bench::stopping(&[A], true);
    assert_eq!(bench.register(B), [initialize_of(B)]);
    bench.send(A, FifoRequest::Stopped);
    assert_eq!(bench.transferred(A), [entered(SessionState::Stopped), stop_reply(vec![entry(A, "stopped")])]);
    // It takes part in the next run.
    assert_eq!(bench.start()[1], start_of(B, BufferDisposition::ClearEntire));
}

#[test]
fn while_stopped_it_waits_for_the_next_start() {
    let mut bench = Bench::stopped(&[A], true);
    assert_eq!(bench.register(B), [initialize_of(B)]);
    assert_eq!(bench.start()[1], start_of(B, BufferDisposition::ClearEntire));
}

#[test]
fn while_terminating_it_is_left_alone() {
    let mut bench = Bench::terminating(&[A]);
    assert_eq!(bench.register(B), []);
    bench.send(A, FifoRequest::Stopped);
    bench.transferred(A);
    assert_eq!(bench.leaves(A), [Action::DropTracee(A), ended()]);
    // The next session has it.
    let actions = bench.event(Event::Initialize {
        client: CLIENT,
        pid: 77,
        uid: Uid::ROOT,
        config: TraceConfig::default(),
    });
    assert_eq!(actions[1..3], [initialize_of(A), initialize_of(B)]);
}

#[test]
fn one_that_gets_no_buffer_is_named_and_not_waited_for() {
    let mut bench = Bench::initialized(&[A, B]);
    bench.start();
    bench.send(A, started());
    let no_space =
        zx_sim::Error::NoSpace { directory: "/dev/shm".into(), needed: 4_194_304, available: 4096 };
    let reason = Unmade::from(no_space);
    assert_eq!(
        bench.event(Event::TraceeFailed { provider: B, reason: reason.clone() }),
        [
            // Its application waits for the start.
            Action::TerminateTracee(B),
            Action::DropTracee(B),
            Action::ReplyStart(CLIENT, Ok(())),
            entered(SessionState::Started)
        ]
    );
    assert_eq!(bench.log, [format!("program 2 \"provider-2\" (pid 1002): not traced: {reason}")]);
    assert_eq!(bench.stop(true), [Action::StopTracee(A), entered(SessionState::Stopping)]);
    bench.send(A, FifoRequest::Stopped);
    let problem = reason.to_string();
    let untraced = ProviderStats { problem, is_out_of_space: true, ..bare_entry(B, "not traced") };
    assert_eq!(
        bench.transferred(A),
        [entered(SessionState::Stopped), stop_reply(vec![entry(A, "stopped"), untraced])]
    );
    // It is still registered.
    assert_eq!(bench.core.providers(Uid::ROOT).len(), 2);
}

//= docs/protocol.md#providers-that-cannot-be-recorded
//= docs/protocol.md#categories-of-a-session
#[test]
fn a_client_that_asks_for_it_gets_reports_of_single_providers() {
    let mut bench = Bench::new();
    bench.register(A);
    let config = TraceConfig { wants_untraced: true, wants_known_categories: true, ..TraceConfig::default() };
    let uid = Uid::ROOT;
    let actions = bench.event(Event::Initialize { client: CLIENT, pid: 77, uid, config });
    assert_eq!(actions[1..3], [initialize_of(A), Action::AskCategories(A)]);
    assert_eq!(bench.core.wants_known_categories(A), Some(CLIENT));
    assert_eq!(Bench::initialized(&[A]).core.wants_known_categories(A), None);
    let untraced = |name: &str, pid, reason: &str| {
        let (name, reason) = (name.to_owned(), reason.to_owned());
        Action::Untraced(CLIENT, Untraced { name, pid, reason })
    };
    let refused = |uid| Event::ProviderRefused {
        provider: ProviderId(5),
        name: "old".into(),
        pid: 9,
        uid,
        reason: "too old".into(),
    };
    assert_eq!(bench.event(refused(uid)), [untraced("old", 9, "too old")]);
    let failed = bench.event(Event::TraceeFailed { provider: A, reason: Unmade::Gone });
    let untraced = untraced("provider-1", 1001, "it is gone");
    assert_eq!(failed, [Action::TerminateTracee(A), untraced, Action::DropTracee(A)]);
    let ended = bench.core.ended(CLIENT);
    let ends: Vec<_> =
        ended.iter().map(|stats| (&*stats.name, &*stats.disposition, &*stats.problem)).collect();
    assert_eq!(ends, [("old", "refused", "too old"), ("provider-1", "not traced", "it is gone")]);
}

//= docs/protocol.md#providers-that-cannot-be-recorded
#[test]
fn a_provider_that_does_not_start_in_time_is_reported_and_never_stops() {
    let mut bench = Bench::new();
    bench.register(A);
    let config =
        TraceConfig { wants_untraced: true, start_timeout_milliseconds: 300, ..TraceConfig::default() };
    bench.event(Event::Initialize { client: CLIENT, pid: 77, uid: Uid::ROOT, config });
    bench.start();
    let reason = "it has not started within 300 ms, and joins when it does".to_owned();
    let untraced = Untraced { name: "provider-1".to_owned(), pid: 1001, reason };
    let actions = bench.pass(Duration::from_millis(300));
    assert_eq!(actions[0], Action::Untraced(CLIENT, untraced));
    bench.stop(true);
    let actions = bench.pass(Duration::from_secs(5));
    assert!(actions.contains(&Action::Transfer {
        client: CLIENT,
        provider: A,
        part: Part::Rest { is_quiet: false }
    }));
    let actions = bench.transferred(A);
    assert!(actions.contains(&stop_reply(vec![entry(A, "did not start")])), "{actions:?}");
}

/// What it has done until it started is missing; and all of it, if it ends before.
//= docs/protocol.md#programs-of-which-something-is-missing
#[test]
fn a_provider_that_does_not_start_in_time_joins_late() {
    let config = TraceConfig { start_timeout_milliseconds: 300, ..TraceConfig::default() };
    let slow = || {
        let mut bench = Bench::configured(&[A], config.clone());
        bench.start();
        bench.pass(Duration::from_millis(300));
        bench
    };
    let missing = |reason: LossCode, disposition| {
        [(A, "provider-1".to_owned(), Some(reason), disposition, String::new())]
    };
    let mut bench = slow();
    bench.send(A, started());
    assert_eq!(bench.missing, missing(LossCode::JOINED_LATE, None));
    bench.stop(true);
    bench.send(A, FifoRequest::Stopped);
    let actions = bench.transferred(A);
    let late = Lost { reason: LossCode::JOINED_LATE.0, records: 1 };
    let is_late = |action: &Action| matches!(action, Action::ReplyStop(_, Ok(result)) if result.provider_stats[0].losses == [late]);
    assert!(actions.iter().any(is_late), "{actions:?}");

    let mut bench = slow();
    bench.dies(A);
    let stats =
        ProviderStats { events_archived: Some(0), records_dropped: Some(0), ..ProviderStats::default() };
    bench.event(Event::TransferFinished { provider: A, stats, is_complete: true });
    let end = Some(ProviderDisposition::EndedBeforeStart);
    bench.written(A);
    assert_eq!(bench.missing, missing(LossCode::NOT_RECORDED, end));
    let losses = |bench: &Bench| bench.core.ended(CLIENT)[0].losses.clone();
    assert_eq!(losses(&bench), [Lost { reason: LossCode::NOT_RECORDED.0, records: 1 }]);
}

#[test]
fn a_refusal_before_the_start_is_still_reported_after_it() {
    let mut bench = Bench::initialized(&[A]);
    bench.event(Event::TraceeFailed { provider: A, reason: Unmade::Gone });
    bench.start();
    let untraced = ProviderStats { problem: "it is gone".to_owned(), ..bare_entry(A, "not traced") };
    assert_eq!(
        bench.stop(true),
        [entered(SessionState::Stopping), entered(SessionState::Stopped), stop_reply(vec![untraced])]
    );
}

//= docs/protocol.md#a-recording-is-announced
#[test]
fn a_provider_that_ends_before_its_start_is_called_that() {
    for (has_started, events, expected) in
        [(false, 0, "ended before its start"), (true, 0, "ended"), (false, 3, "ended")]
    {
        let mut bench = Bench::started(&[A]);
        bench.register(B);
        if has_started {
            bench.send(B, started());
        }
        bench.dies(B);
        let metrics = |events| ProviderStats {
            events_archived: Some(events),
            records_dropped: Some(0),
            ..ProviderStats::default()
        };
        bench.event(Event::TransferFinished { provider: B, stats: metrics(events), is_complete: true });
        bench.written(B);
        bench.stop(true);
        bench.send(A, FifoRequest::Stopped);
        let of_b = bare_entry(B, expected);
        let of_b = ProviderStats { records_dropped: Some(0), events_archived: Some(events), ..of_b };
        let expected = stop_reply(vec![of_b, entry(A, "stopped")]);
        assert_eq!(bench.transferred(A)[1], expected);
    }
}

/// It was answered that there is a recording, which ends before the provider is handled.
//= docs/protocol.md#a-recording-is-announced
#[test]
fn an_application_does_not_wait_for_the_start_of_a_recording_that_is_over() {
    let waiting = |provider| Event::ProviderRegistered {
        provider,
        name: "app".to_owned(),
        pid: 5,
        uid: Uid::ROOT,
        is_late: false,
        is_waiting: true,
    };
    let mut bench = Bench::initialized(&[A]);
    bench.start();
    bench.send(A, started());
    assert!(!bench.event(waiting(B)).contains(&Action::StopTracee(B)));
    bench.stop(true);
    let actions = bench.event(waiting(C));
    // After its buffer, which it gets for another start.
    assert_eq!(actions.last(), Some(&Action::StopTracee(C)));
    // Without any recording, too.
    assert_eq!(Bench::new().event(waiting(A)), [Action::StopTracee(A)]);
}

//= docs/protocol.md#a-recording-is-announced
#[test]
fn a_provider_that_registers_after_its_program_has_gone_on_is_named() {
    let late = |provider| Event::ProviderRegistered {
        provider,
        name: format!("provider-{}", provider.0),
        pid: 1000 + u64::from(provider.0),
        uid: Uid::ROOT,
        is_late: true,
        is_waiting: false,
    };
    // Of one that was there before the recording nothing is missing.
    let mut bench = Bench::new();
    bench.event(late(A));
    bench.event(Event::Initialize {
        client: CLIENT,
        pid: 77,
        uid: Uid::ROOT,
        config: TraceConfig::default(),
    });
    bench.start();
    bench.send(A, started());
    bench.event(late(B));
    bench.send(B, started());
    bench.stop(true);
    bench.send(A, FifoRequest::Stopped);
    bench.send(B, FifoRequest::Stopped);
    bench.transferred(A);
    let problem = "it could not join in time: what it did before is not recorded".to_owned();
    let losses = unknown(LossCode::JOINED_LATE);
    let late = ProviderStats { problem, losses, ..entry(B, "stopped") };
    assert_eq!(bench.transferred(B)[1], stop_reply(vec![entry(A, "stopped"), late]));
}

/// What a provider has recorded before is a provider of its own, whose data goes into the archive at once.
//= docs/protocol.md#what-was-recorded-before
#[test]
fn what_is_handed_over_is_archived_before_the_rest() {
    let mut bench = Bench::started(&[A]);
    bench.register(B);
    assert_eq!(bench.event(Event::HandedOver { provider: C, from: B }), [transfer_of(C, true)]);
    bench.send(B, started());
    bench.stop(true);
    bench.send(A, FifoRequest::Stopped);
    assert_eq!(bench.send(B, FifoRequest::Stopped), []);
    assert_eq!(bench.read(C), [transfer_of(A, true)]);
    // It has nothing but its buffer, which is deleted.
    assert_eq!(bench.written(C), [Action::DropTracee(C)]);
    bench.transferred(A);
    let name = bare_entry(B, "stopped").name;
    let handed_over = ProviderStats { name, pid: 1000 + u64::from(B.0), ..entry(C, "handed over") };
    let stats = vec![handed_over, entry(A, "stopped"), entry(B, "stopped")];
    assert_eq!(bench.transferred(B), [entered(SessionState::Stopped), stop_reply(stats)]);
}

/// Where no archive takes it, it stays.
#[test]
fn what_is_handed_over_in_vain_stays_in_its_buffer() {
    let mut bench = Bench::started(&[A]);
    assert_eq!(bench.event(Event::HandedOver { provider: C, from: B }), [Action::LeaveBuffer(C)]);
    bench.event(Event::OutputFailed { client: CLIENT, reason: "full".to_owned() });
    assert_eq!(bench.event(Event::HandedOver { provider: C, from: A }), [Action::LeaveBuffer(C)]);
    let mut idle = Bench::new();
    idle.register(A);
    assert_eq!(idle.event(Event::HandedOver { provider: C, from: A }), [Action::LeaveBuffer(C)]);
}
