//! Packets of providers, expected and not.

use super::*;

fn save_buffer() -> FifoRequest {
    FifoRequest::SaveBuffer { wrapped_count: 0, durable_data_end: 16 }
}

//= docs/protocol.md#fifo-packets
#[test]
fn a_packet_out_of_turn_is_ignored() {
    let mut starting = Bench::initialized(&[A]);
    starting.start();
    let cases = [
        (Bench::initialized(&[A]), started()),
        (Bench::initialized(&[A]), FifoRequest::Stopped),
        (Bench::started(&[A]), started()),
        (starting, save_buffer()),
        (Bench::started(&[A]), save_buffer()),
        (Bench::stopping(&[A], true), started()),
        (Bench::stopping(&[A], true), save_buffer()),
        (Bench::stopped(&[A], true), started()),
        (Bench::stopped(&[A], true), FifoRequest::Stopped),
        (Bench::stopped(&[A], true), save_buffer()),
        (Bench::terminating(&[A]), started()),
        (Bench::terminating(&[A]), save_buffer()),
    ];
    for (mut bench, packet) in cases {
        let (before, text) = (bench.state(), format!("{packet:?}"));
        assert_eq!(bench.send(A, packet), [], "{text} in {before:?}");
        assert_eq!(bench.state(), before);
        assert_eq!(bench.log.len(), 1);
        assert!(bench.log[0].contains(&text), "{}", bench.log[0]);
    }
}

/// A program that ends drops its provider: that stops, and then its channel closes.
#[test]
fn a_provider_that_stops_unasked_is_quiet_when_it_leaves() {
    let mut bench = Bench::started(&[A]);
    assert_eq!(bench.send(A, FifoRequest::Stopped), []);
    assert_eq!(bench.state(), Some(SessionState::Started));
    assert!(bench.log.is_empty(), "{:?}", bench.log);
    assert_eq!(bench.leaves(A), [transfer_of(A, true)]);
}

#[test]
fn a_packet_of_an_unknown_provider_is_ignored() {
    let mut bench = Bench::started(&[A]);
    assert_eq!(bench.send(B, started()), []);
    assert_eq!(bench.send_bad(B), []);
    let mut bench = Bench::new();
    bench.register(A);
    assert_eq!(bench.send(A, started()), []);
}

#[test]
fn a_bad_packet_ends_its_senders_part_and_nothing_else() {
    let mut bench = Bench::started(&[A, B]);
    assert_eq!(bench.send_bad(A), [Action::TerminateTracee(A)]);
    assert_eq!(bench.state(), Some(SessionState::Started));
    assert_eq!(
        bench.log,
        [
            "program 1 \"provider-1\" (pid 1001): bad packet: fifo packet 0x0077: no such request from this side; \
             terminating it"
        ]
    );
    // Asked once is enough.
    assert_eq!(bench.send_bad(A), []);
    // What it has recorded is salvaged when it closes its FIFO.
    assert_eq!(bench.leaves(A), [transfer_of(A, false)]);
    assert_eq!(bench.transferred(A), [Action::DropTracee(A)]);
    assert_eq!(bench.stop(true), [Action::StopTracee(B), entered(SessionState::Stopping)]);
    bench.send(B, FifoRequest::Stopped);
    assert_eq!(
        bench.transferred(B),
        [
            entered(SessionState::Stopped),
            stop_reply(vec![entry(A, "broke the protocol"), entry(B, "stopped")])
        ]
    );
}

#[test]
fn a_bad_packet_of_a_provider_that_stops_properly_keeps_its_name() {
    let mut bench = Bench::started(&[A]);
    bench.send_bad(A);
    assert_eq!(bench.send(A, FifoRequest::Stopped), [transfer_of(A, true)]);
    assert_eq!(bench.transferred(A), []);
    assert_eq!(bench.leaves(A), [Action::DropTracee(A)]);
    assert_eq!(
        bench.stop(true),
        [
            entered(SessionState::Stopping),
            entered(SessionState::Stopped),
            stop_reply(vec![entry(A, "broke the protocol")])
        ]
    );
}

#[test]
fn a_bad_packet_while_starting_does_not_hold_up_the_start() {
    let mut bench = Bench::initialized(&[A, B]);
    bench.start();
    bench.send(A, started());
    assert_eq!(
        bench.send_bad(B),
        [Action::TerminateTracee(B), Action::ReplyStart(CLIENT, Ok(())), entered(SessionState::Started)]
    );
}

#[test]
fn a_terminated_provider_is_not_started_again() {
    let mut bench = Bench::stopped(&[A, B], true);
    assert_eq!(bench.send_bad(A), [Action::TerminateTracee(A)]);
    assert_eq!(bench.start(), [start_of(B, BufferDisposition::ClearEntire), entered(SessionState::Starting)]);
    assert_eq!(
        bench.send(B, started()),
        [Action::ReplyStart(CLIENT, Ok(())), entered(SessionState::Started)]
    );
}

#[test]
fn a_terminated_provider_that_stays_is_waited_for_by_stop() {
    let mut bench = Bench::started(&[A]);
    bench.send_bad(A);
    assert_eq!(bench.stop(true), [entered(SessionState::Stopping)]);
    assert_eq!(bench.pass(Duration::from_secs(5)), [transfer_of(A, false)]);
    assert_eq!(
        bench.transferred(A),
        [entered(SessionState::Stopped), stop_reply(vec![entry(A, "broke the protocol")])]
    );
    // The end of the session does not wait for it again.
    assert_eq!(
        bench.event(Event::ClientClosed { client: CLIENT }),
        [Action::TerminateTracee(A), entered(SessionState::Terminating), Action::DropTracee(A), ended()]
    );
}
