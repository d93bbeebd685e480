//! A provider, the client or the reader of the output goes.

use super::*;

fn client_closed() -> Event {
    Event::ClientClosed { client: CLIENT }
}

fn output_failed() -> Event {
    Event::OutputFailed { client: CLIENT, reason: "no reader".to_owned() }
}

//= docs/protocol.md#a-provider-that-dies
#[test]
fn before_the_start_a_dead_provider_leaves_nothing() {
    let mut bench = Bench::initialized(&[A]);
    assert_eq!(bench.dies(A), [Action::DropTracee(A)]);
    assert_eq!(bench.core.providers(Uid::ROOT), []);
}

#[test]
fn while_starting_a_dead_provider_is_salvaged_and_not_waited_for() {
    let mut bench = Bench::initialized(&[A, B]);
    bench.start();
    bench.send(A, started());
    assert_eq!(
        bench.dies(B),
        [transfer_of(B, true), Action::ReplyStart(CLIENT, Ok(())), entered(SessionState::Started)]
    );
    assert_eq!(bench.transferred(B), [Action::DropTracee(B)]);
}

#[test]
fn while_started_a_dead_provider_is_salvaged_at_once() {
    let mut bench = Bench::started(&[A, B]);
    assert_eq!(bench.dies(A), [transfer_of(A, true)]);
    assert_eq!(bench.transferred(A), [Action::DropTracee(A)]);
    assert_eq!(bench.stop(true), [Action::StopTracee(B), entered(SessionState::Stopping)]);
    bench.send(B, FifoRequest::Stopped);
    assert_eq!(
        bench.transferred(B),
        [entered(SessionState::Stopped), stop_reply(vec![entry(A, "ended"), entry(B, "stopped")])]
    );
}

#[test]
fn a_closed_fifo_alone_does_not_make_a_buffer_quiet() {
    let mut bench = Bench::started(&[A]);
    assert_eq!(bench.leaves(A), [transfer_of(A, false)]);
    assert_eq!(bench.transferred(A), [Action::DropTracee(A)]);
    // The channel says so too, later.
    assert_eq!(bench.dies(A), []);
    assert_eq!(
        bench.stop(true),
        [entered(SessionState::Stopping), entered(SessionState::Stopped), stop_reply(vec![entry(A, "left")])]
    );
}

//= docs/protocol.md#a-provider-that-dies
#[test]
fn a_provider_that_closes_while_it_records_is_read_when_its_process_is_dead() {
    let mut bench = Bench::started(&[A, B]);
    assert_eq!(bench.closes(A), [Action::WatchProcess(A)]);
    // Its channel closes too, while it is dying.
    assert_eq!(bench.event(Event::ProviderClosed { provider: A, process: ProcessState::Alive }), []);
    assert_eq!(bench.pass(Duration::from_millis(999)), []);
    let died = || Event::ProcessDied { provider: A };
    assert_eq!(bench.event(died()), [Action::ForgetProcess(A), transfer_of(A, true)]);
    assert_eq!(bench.event(died()), []);
    assert_eq!(bench.transferred(A), [Action::DropTracee(A)]);
    // The next event may say so before the process is seen to be dead.
    assert_eq!(bench.closes(B), [Action::WatchProcess(B)]);
    assert_eq!(bench.dies(B), [Action::ForgetProcess(B), transfer_of(B, true)]);
}

//= docs/protocol.md#a-provider-that-dies
#[test]
fn a_process_that_goes_on_is_waited_for_one_second() {
    let mut bench = Bench::started(&[A]);
    assert_eq!(bench.closes(A), [Action::WatchProcess(A)]);
    assert_eq!(bench.core.next_deadline(), Some(bench.now + Duration::from_secs(1)));
    // A Stop waits for it, and sends it nothing.
    assert_eq!(bench.stop(true), [entered(SessionState::Stopping)]);
    assert_eq!(bench.pass(Duration::from_millis(999)), []);
    assert_eq!(bench.pass(Duration::from_millis(1)), [Action::ForgetProcess(A), transfer_of(A, false)]);
    assert_eq!(
        bench.transferred(A),
        [Action::DropTracee(A), entered(SessionState::Stopped), stop_reply(vec![entry(A, "left")])]
    );
}

#[test]
fn a_start_waits_for_a_provider_that_may_be_dying() {
    let mut bench = Bench::initialized(&[A]);
    bench.start();
    assert_eq!(bench.closes(A), [Action::WatchProcess(A)]);
    assert_eq!(bench.state(), Some(SessionState::Starting));
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.state(), Some(SessionState::Started));
}

#[test]
fn a_dying_provider_is_not_given_longer_than_the_stop() {
    let config = TraceConfig { stop_timeout_milliseconds: 10, ..TraceConfig::default() };
    let mut bench = Bench::started_with(&[A], config);
    bench.closes(A);
    bench.stop(true);
    assert_eq!(bench.pass(Duration::from_millis(10)), [Action::ForgetProcess(A), transfer_of(A, false)]);
    assert_eq!(
        bench.transferred(A),
        [Action::DropTracee(A), entered(SessionState::Stopped), stop_reply(vec![entry(A, "left")])]
    );
}

#[test]
fn a_provider_that_cannot_write_any_more_is_not_watched() {
    // It has its buffer and was never started, or it has stopped.
    let mut bench = Bench::initialized(&[A]);
    assert_eq!(bench.closes(A), [Action::DropTracee(A)]);
    let mut bench = Bench::stopped(&[A], false);
    assert_eq!(bench.closes(A), [transfer_of(A, true)]);
}

#[test]
fn while_stopping_a_dead_provider_is_salvaged() {
    let mut bench = Bench::stopping(&[A], true);
    assert_eq!(bench.dies(A), [transfer_of(A, true)]);
    assert_eq!(
        bench.transferred(A),
        [Action::DropTracee(A), entered(SessionState::Stopped), stop_reply(vec![entry(A, "ended")])]
    );
}

#[test]
fn a_provider_that_stops_and_dies_is_written_once() {
    let mut bench = Bench::stopping(&[A, B], true);
    assert_eq!(bench.send(A, FifoRequest::Stopped), [transfer_of(A, true)]);
    assert_eq!(bench.dies(A), []);
    assert_eq!(bench.transferred(A), [Action::DropTracee(A)]);
    assert_eq!(bench.dies(B), [transfer_of(B, true)]);
    assert_eq!(
        bench.transferred(B),
        [
            Action::DropTracee(B),
            entered(SessionState::Stopped),
            stop_reply(vec![entry(A, "stopped"), entry(B, "ended")])
        ]
    );
}

#[test]
fn a_provider_that_dies_under_a_stop_that_does_not_write_is_salvaged() {
    let mut bench = Bench::stopping(&[A], false);
    assert_eq!(bench.dies(A), [transfer_of(A, true)]);
    assert_eq!(
        bench.transferred(A),
        [Action::DropTracee(A), entered(SessionState::Stopped), stop_reply(vec![entry(A, "ended")])]
    );
}

#[test]
fn after_the_stop_a_dead_provider_is_salvaged_if_it_was_not_written() {
    let mut written = Bench::stopped(&[A], true);
    assert_eq!(written.dies(A), [Action::DropTracee(A)]);
    let mut kept = Bench::stopped(&[A], false);
    assert_eq!(kept.dies(A), [transfer_of(A, true)]);
    assert_eq!(kept.transferred(A), [Action::DropTracee(A)]);
}

#[test]
fn a_provider_that_leaves_after_it_stopped_is_quiet() {
    let mut bench = Bench::stopped(&[A], false);
    assert_eq!(bench.leaves(A), [transfer_of(A, true)]);
}

#[test]
fn a_provider_that_leaves_in_a_second_run_is_not_quiet() {
    let mut bench = Bench::stopped(&[A], false);
    bench.start();
    bench.send(A, started());
    assert_eq!(bench.leaves(A), [transfer_of(A, false)]);
}

#[test]
fn a_provider_that_dies_in_a_run_after_an_unwritten_stop_is_salvaged() {
    let mut bench = Bench::stopped(&[A], false);
    bench.start();
    bench.send(A, started());
    assert_eq!(bench.dies(A), [transfer_of(A, true)]);
    assert_eq!(bench.transferred(A), [Action::DropTracee(A)]);
}

#[test]
fn while_terminating_a_dead_provider_is_salvaged_and_the_session_ends() {
    let mut bench = Bench::terminating(&[A]);
    assert_eq!(bench.dies(A), [transfer_of(A, true)]);
    assert_eq!(bench.transferred(A), [Action::DropTracee(A), ended()]);
}

#[test]
fn a_dead_provider_says_nothing_more() {
    let mut bench = Bench::stopping(&[A, B], true);
    bench.dies(A);
    assert_eq!(bench.send(A, FifoRequest::Stopped), []);
    assert_eq!(bench.send_bad(A), []);
    assert_eq!(bench.dies(A), []);
}

#[test]
fn a_client_that_goes_gets_its_results() {
    let mut bench = Bench::started(&[A, B]);
    assert_eq!(
        bench.event(client_closed()),
        [Action::TerminateTracee(A), Action::TerminateTracee(B), entered(SessionState::Terminating)]
    );
    // A provider that gets Terminate while it records stops first.
    assert_eq!(bench.send(A, FifoRequest::Stopped), [transfer_of(A, true)]);
    assert_eq!(bench.leaves(A), []);
    assert_eq!(bench.leaves(B), []);
    assert_eq!(bench.transferred(A), [transfer_of(B, false), Action::DropTracee(A)]);
    assert_eq!(bench.transferred(B), [Action::DropTracee(B), ended()]);
}

#[test]
fn a_client_that_goes_after_an_unwritten_stop_gets_its_results() {
    let mut bench = Bench::stopped(&[A], false);
    bench.event(client_closed());
    assert_eq!(bench.leaves(A), [transfer_of(A, true)]);
    assert_eq!(bench.transferred(A), [Action::DropTracee(A), ended()]);
}

#[test]
fn a_client_that_goes_after_a_written_stop_gets_nothing_twice() {
    let mut bench = Bench::stopped(&[A], true);
    bench.event(client_closed());
    assert_eq!(bench.leaves(A), [Action::DropTracee(A), ended()]);
}

#[test]
fn a_provider_that_does_not_terminate_is_read_and_left() {
    let mut bench = Bench::terminating(&[A]);
    assert_eq!(bench.pass(Duration::from_millis(4999)), []);
    assert_eq!(bench.pass(Duration::from_millis(1)), [transfer_of(A, false)]);
    assert_eq!(bench.transferred(A), [Action::DropTracee(A), ended()]);
    assert_eq!(bench.log, ["program 1 \"provider-1\" (pid 1001): did not terminate in time"]);
}

#[test]
fn a_provider_that_did_not_stop_is_not_waited_for_at_the_end() {
    let mut bench = Bench::stopping(&[A], true);
    bench.pass(Duration::from_secs(5));
    bench.transferred(A);
    assert_eq!(
        bench.event(client_closed()),
        [Action::TerminateTracee(A), entered(SessionState::Terminating), Action::DropTracee(A), ended()]
    );
}

//= docs/protocol.md#session
#[test]
fn an_output_without_reader_aborts_a_stop() {
    let mut bench = Bench::stopping(&[A, B], true);
    assert_eq!(bench.send(A, FifoRequest::Stopped), [transfer_of(A, true)]);
    assert_eq!(bench.send(B, FifoRequest::Stopped), []);
    assert_eq!(
        bench.event(output_failed()),
        [
            Action::ReplyStop(CLIENT, Err(StopError::Aborted)),
            Action::TerminateTracee(A),
            Action::TerminateTracee(B),
            entered(SessionState::Terminating)
        ]
    );
    assert_eq!(bench.log, ["session aborted: no reader"]);
    assert_eq!(bench.event(output_failed()), []);
    // Nothing more is written.
    assert_eq!(bench.leaves(A), [Action::LeaveBuffer(A)]);
    assert_eq!(
        bench.leaves(B),
        [Action::LeaveBuffer(B), Action::EndSession { client: CLIENT, is_aborted: true }]
    );
    // A new session works, also with providers of the old one.
    let actions = bench.event(Event::Initialize {
        client: CLIENT,
        pid: 77,
        uid: Uid::ROOT,
        config: TraceConfig::default(),
    });
    assert_eq!(actions[1..3], [initialize_of(A), initialize_of(B)]);
}

#[test]
fn an_output_without_reader_aborts_a_start() {
    let mut bench = Bench::initialized(&[A]);
    bench.start();
    assert_eq!(
        bench.event(output_failed()),
        [
            Action::ReplyStart(CLIENT, Err(StartError::Terminating)),
            Action::TerminateTracee(A),
            entered(SessionState::Terminating)
        ]
    );
    assert_eq!(
        bench.pass(Duration::from_secs(5)),
        [Action::LeaveBuffer(A), Action::EndSession { client: CLIENT, is_aborted: true }]
    );
}

#[test]
fn an_output_that_fails_at_the_end_does_not_hold_up_the_end() {
    let mut bench = Bench::terminating(&[A, B]);
    assert_eq!(bench.dies(A), [transfer_of(A, true)]);
    assert_eq!(bench.dies(B), []);
    assert_eq!(
        bench.event(output_failed()),
        [
            Action::LeaveBuffer(A),
            Action::LeaveBuffer(B),
            Action::EndSession { client: CLIENT, is_aborted: true }
        ]
    );
}

#[test]
fn without_a_session_nothing_is_done() {
    let mut bench = Bench::new();
    bench.register(A);
    assert_eq!(bench.event(client_closed()), []);
    assert_eq!(bench.event(output_failed()), []);
    assert_eq!(bench.leaves(A), []);
    assert_eq!(bench.transferred(A), []);
    assert_eq!(bench.event(Event::WatchAlert { client: CLIENT }), []);
    assert_eq!(bench.pass(Duration::from_secs(1000)), []);
    assert_eq!(bench.dies(A), []);
}
