//! Starts and stops, their timers, and which data is written when.

use super::*;

const MS: Duration = Duration::from_millis(1);

fn retaining() -> StartOptions {
    StartOptions { buffer_disposition: BufferDisposition::Retain, ..StartOptions::default() }
}

//= docs/protocol.md#timers
//= docs/protocol.md#tracee
#[test]
fn a_start_waits_for_its_timeout_and_no_longer() {
    let config = TraceConfig { start_timeout_milliseconds: 1500, ..TraceConfig::default() };
    let mut bench = Bench::configured(&[A, B], config);
    bench.start();
    bench.send(A, started());
    assert_eq!(bench.core.next_deadline(), Some(bench.now + 1000 * MS));
    assert_eq!(bench.pass(1000 * MS), []);
    assert_eq!(bench.waited_for, ["provider-2 (pid 1002)"]);
    assert_eq!(bench.core.next_deadline(), Some(bench.now + 500 * MS));
    assert_eq!(bench.pass(499 * MS), []);
    assert_eq!(bench.pass(MS), [Action::ReplyStart(CLIENT, Ok(())), entered(SessionState::Started)]);
    assert_eq!(bench.log, ["program 2 \"provider-2\" (pid 1002): has not started in time"]);
    assert_eq!(bench.core.next_deadline(), None);
    // It may still come.
    assert_eq!(bench.send(B, started()), []);
    assert_eq!(
        bench.stop(true),
        [Action::StopTracee(A), Action::StopTracee(B), entered(SessionState::Stopping)]
    );
}

#[test]
fn a_provider_that_does_not_stop_is_read_while_it_writes() {
    let config = TraceConfig { stop_timeout_milliseconds: 2000, ..TraceConfig::default() };
    let mut bench = Bench::configured(&[A, B], config);
    bench.start();
    bench.send(A, started());
    bench.send(B, started());
    bench.stop(true);
    assert_eq!(bench.send(B, FifoRequest::Stopped), [transfer_of(B, true)]);
    assert_eq!(bench.transferred(B), []);
    assert_eq!(bench.pass(1000 * MS), []);
    assert_eq!(bench.waited_for, ["provider-1 (pid 1001)"]);
    assert_eq!(bench.core.next_deadline(), Some(bench.now + 1000 * MS));
    assert_eq!(bench.pass(999 * MS), []);
    assert_eq!(bench.pass(MS), [transfer_of(A, false)]);
    assert_eq!(bench.log, ["program 1 \"provider-1\" (pid 1001): did not stop in time"]);
    assert_eq!(
        bench.transferred(A),
        [entered(SessionState::Stopped), stop_reply(vec![entry(B, "stopped"), entry(A, "did not stop")])]
    );
}

#[test]
fn the_default_timeouts_are_five_seconds() {
    let mut bench = Bench::initialized(&[A]);
    // The client gets the names of the providers that it waits for after a second.
    let timeout = |bench: &mut Bench| {
        assert_eq!(bench.core.next_deadline(), Some(bench.now + 1000 * MS));
        assert_eq!(bench.pass(1000 * MS), []);
        assert_eq!(bench.core.next_deadline(), Some(bench.now + 4000 * MS));
    };
    bench.start();
    timeout(&mut bench);
    bench.send(A, started());
    assert_eq!(bench.core.next_deadline(), None);
    bench.stop(true);
    timeout(&mut bench);
    bench.event(Event::ClientClosed { client: CLIENT });
    assert_eq!(bench.core.next_deadline(), Some(bench.now + 5000 * MS));
    assert_eq!(bench.waited_for, ["provider-1 (pid 1001)", "provider-1 (pid 1001)"]);
}

#[test]
fn ten_providers_that_are_waited_for_are_named_after_a_second() {
    let waited_for = |count| {
        let mut bench = Bench::initialized(&(1..=count).map(ProviderId).collect::<Vec<_>>());
        bench.start();
        bench.pass(999 * MS);
        assert!(bench.waited_for.is_empty());
        bench.pass(MS);
        bench.waited_for
    };
    let names = (1..=10).map(|id| format!("provider-{id} (pid {})", 1000 + id)).collect::<Vec<_>>();
    assert_eq!(waited_for(10), names);
    assert_eq!(waited_for(12), [names, vec!["2 more".to_owned()]].concat());
}

#[test]
fn data_is_transferred_one_by_one_in_the_order_of_stopping() {
    let mut bench = Bench::stopping(&[A, B, C], true);
    assert_eq!(bench.send(C, FifoRequest::Stopped), [transfer_of(C, true)]);
    assert_eq!(bench.send(A, FifoRequest::Stopped), []);
    assert_eq!(bench.send(B, FifoRequest::Stopped), []);
    assert_eq!(bench.transferred(C), [transfer_of(A, true)]);
    assert_eq!(bench.transferred(A), [transfer_of(B, true)]);
    // Stop is answered when all data was handed over, not when all providers have stopped.
    assert_eq!(bench.state(), Some(SessionState::Stopping));
    let entries = [C, A, B].map(|provider| entry(provider, "stopped"));
    assert_eq!(bench.transferred(B), [entered(SessionState::Stopped), stop_reply(entries.to_vec())]);
}

#[test]
fn the_timeout_does_not_answer_before_the_data_was_handed_over() {
    let mut bench = Bench::stopping(&[A, B], true);
    assert_eq!(bench.send(A, FifoRequest::Stopped), [transfer_of(A, true)]);
    assert_eq!(bench.pass(Duration::from_secs(60)), []);
    assert_eq!(bench.transferred(A), [transfer_of(B, false)]);
    assert_eq!(
        bench.transferred(B),
        [entered(SessionState::Stopped), stop_reply(vec![entry(A, "stopped"), entry(B, "did not stop")])]
    );
}

#[test]
fn an_unrequested_transfer_is_logged() {
    let mut bench = Bench::started(&[A]);
    assert_eq!(bench.read(A), []);
    assert_eq!(bench.log, ["program 1: transferred without being asked"]);
}

#[test]
fn the_first_start_clears_whatever_is_asked() {
    for disposition in BufferDisposition::ALL {
        let mut bench = Bench::initialized(&[A]);
        let options = StartOptions { buffer_disposition: *disposition, ..StartOptions::default() };
        assert_eq!(bench.start_with(options)[0], start_of(A, BufferDisposition::ClearEntire));
    }
}

#[test]
fn a_start_after_written_results_clears_whatever_is_asked() {
    for disposition in BufferDisposition::ALL {
        let mut bench = Bench::stopped(&[A], true);
        let options = StartOptions { buffer_disposition: *disposition, ..StartOptions::default() };
        assert_eq!(bench.start_with(options)[0], start_of(A, BufferDisposition::ClearEntire));
    }
}

#[test]
fn a_start_after_unwritten_results_does_what_is_asked() {
    for disposition in BufferDisposition::ALL {
        let mut bench = Bench::stopped(&[A], false);
        let options = StartOptions { buffer_disposition: *disposition, ..StartOptions::default() };
        assert_eq!(bench.start_with(options)[0], start_of(A, *disposition));
    }
}

#[test]
fn a_fresh_buffer_is_cleared_beside_one_that_is_kept() {
    let mut bench = Bench::stopped(&[A], false);
    assert_eq!(bench.register(B), [initialize_of(B)]);
    assert_eq!(
        bench.start_with(retaining()),
        [
            start_of(A, BufferDisposition::Retain),
            start_of(B, BufferDisposition::ClearEntire),
            entered(SessionState::Starting)
        ]
    );
}

#[test]
fn two_runs_are_written_together_when_the_first_stop_does_not_write() {
    let mut bench = Bench::stopping(&[A], false);
    assert_eq!(
        bench.send(A, FifoRequest::Stopped),
        [entered(SessionState::Stopped), stop_reply(vec![bare_entry(A, "stopped")])]
    );
    bench.start_with(retaining());
    bench.send(A, started());
    bench.stop(true);
    assert_eq!(bench.send(A, FifoRequest::Stopped), [transfer_of(A, true)]);
    assert_eq!(bench.transferred(A), [entered(SessionState::Stopped), stop_reply(vec![entry(A, "stopped")])]);
}

#[test]
fn figures_are_those_of_the_last_run() {
    let mut bench = Bench::stopped(&[A, B], true);
    bench.dies(B);
    bench.start();
    bench.send(A, started());
    bench.stop(true);
    bench.send(A, FifoRequest::Stopped);
    assert_eq!(bench.transferred(A), [entered(SessionState::Stopped), stop_reply(vec![entry(A, "stopped")])]);
}

#[test]
fn a_stop_that_does_not_write_times_out_too() {
    let mut bench = Bench::stopping(&[A, B], false);
    assert_eq!(bench.send(A, FifoRequest::Stopped), []);
    assert_eq!(
        bench.pass(Duration::from_secs(5)),
        [
            entered(SessionState::Stopped),
            stop_reply(vec![bare_entry(A, "stopped"), bare_entry(B, "did not stop")])
        ]
    );
}

#[test]
fn a_provider_that_has_not_stopped_is_not_started_again() {
    let mut bench = Bench::stopping(&[A, B], false);
    bench.send(A, FifoRequest::Stopped);
    bench.pass(Duration::from_secs(5));
    assert_eq!(
        bench.start_with(retaining()),
        [start_of(A, BufferDisposition::Retain), entered(SessionState::Starting)]
    );
    assert_eq!(
        bench.log.last().unwrap(),
        "program 2 \"provider-2\" (pid 1002): not started, it is still Stopping"
    );
    assert_eq!(
        bench.send(A, started()),
        [Action::ReplyStart(CLIENT, Ok(())), entered(SessionState::Started)]
    );
    // What it recorded in the first run comes with the second Stop, which does not wait for it again.
    assert_eq!(
        bench.stop(true),
        [Action::StopTracee(A), entered(SessionState::Stopping), transfer_of(B, false)]
    );
    bench.send(A, FifoRequest::Stopped);
    assert_eq!(bench.transferred(B), [transfer_of(A, true)]);
    assert_eq!(
        bench.transferred(A),
        [entered(SessionState::Stopped), stop_reply(vec![entry(B, "did not stop"), entry(A, "stopped")])]
    );
}

#[test]
fn a_provider_that_stops_late_may_start_again() {
    let mut bench = Bench::stopping(&[A], true);
    assert_eq!(bench.pass(Duration::from_secs(5)), [transfer_of(A, false)]);
    bench.transferred(A);
    // Its data is in the archive and must not come twice.
    assert_eq!(bench.send(A, FifoRequest::Stopped), []);
    assert_eq!(bench.start()[0], start_of(A, BufferDisposition::ClearEntire));
}

#[test]
fn a_provider_that_stops_late_after_an_unwritten_stop_is_quiet() {
    let mut bench = Bench::stopping(&[A, B], false);
    bench.send(B, FifoRequest::Stopped);
    bench.pass(Duration::from_secs(5));
    bench.start_with(retaining());
    bench.send(B, started());
    assert_eq!(bench.send(A, FifoRequest::Stopped), []);
    assert_eq!(
        bench.stop(true),
        [Action::StopTracee(B), entered(SessionState::Stopping), transfer_of(A, true)]
    );
}

#[test]
fn further_categories_count_for_one_start() {
    let mut bench = Bench::initialized(&[A]);
    let more = vec!["more".to_owned()];
    let options = StartOptions { additional_categories: more.clone(), ..StartOptions::default() };
    let start = |provider, additional_categories: &[String]| Action::StartTracee {
        provider,
        disposition: BufferDisposition::ClearEntire,
        additional_categories: additional_categories.to_vec(),
    };
    assert_eq!(bench.start_with(options)[0], start(A, &more));
    bench.send(A, started());
    assert_eq!(bench.register(B), [initialize_of(B), start(B, &more)]);
    bench.stop(true);
    bench.send(A, FifoRequest::Stopped);
    bench.transferred(A);
    bench.send(B, FifoRequest::Stopped);
    bench.transferred(B);
    bench.start();
    assert_eq!(bench.register(C), [initialize_of(C), start(C, &[])]);
}

#[test]
fn thousands_of_providers_are_answered_for_in_one_message() {
    use trace_protocol::{Message, Txid, controller::SessionResponse};
    let mut bench = Bench::started(&[A]);
    for number in 10..4010 {
        let provider = ProviderId(number);
        let name = "n".repeat(100);
        bench.event(Event::ProviderRegistered {
            provider,
            name,
            pid: u64::MAX,
            uid: Uid::ROOT,
            is_late: false,
            is_waiting: false,
        });
        assert_eq!(bench.dies(provider), [transfer_of(provider, true)]);
        let stats = ProviderStats {
            events_archived: Some(1),
            bytes_archived: Some(u64::MAX),
            records_dropped: Some(2),
            non_durable_bytes_written: Some(3),
            malformed_records: Some(4),
            records_generated: Some(5),
            problem: "p".repeat(1000),
            ..ProviderStats::default()
        };
        bench.event(Event::TransferFinished { provider, stats, is_complete: true });
        bench.written(provider);
    }
    bench.stop(true);
    bench.send(A, FifoRequest::Stopped);
    let actions = bench.transferred(A);
    let Some(Action::ReplyStop(_, Ok(result))) = actions.last() else {
        panic!("{actions:?}");
    };
    assert_eq!(result.provider_stats.len(), 2500);
    let last = result.provider_stats.last().unwrap();
    assert_eq!((last.name.as_str(), last.disposition.as_str()), ("further programs", "summed up"));
    let events: u64 = result.provider_stats.iter().filter_map(|stats| stats.events_archived).sum();
    assert_eq!(events, 4000 + metrics(A).events_archived.unwrap());
    // Of the last one nothing but its events is known.
    let summed = last.events_archived.unwrap() - metrics(A).events_archived.unwrap();
    assert_eq!(last.bytes_archived, Some(u64::MAX));
    let sums = [last.records_dropped, last.non_durable_bytes_written, last.malformed_records];
    assert_eq!(sums, [2, 3, 4].map(|each| Some(each * summed)));
    assert_eq!(last.records_generated, Some(5 * summed));
    let response = SessionResponse::StopTracing(Ok(result.clone()));
    let encoded = Message::<u32>::encode(response, Txid(1)).unwrap();
    assert!(encoded.bytes.len() < trace_protocol::limits::MAX_SPILLED_BYTES);
}
