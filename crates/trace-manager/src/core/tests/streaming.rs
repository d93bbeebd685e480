//! Halves that are handed over, saved, and given back.

use super::*;

fn streaming(providers: &[ProviderId]) -> Bench {
    Bench::started_with(
        providers,
        TraceConfig { buffering_mode: BufferingMode::Streaming, ..TraceConfig::default() },
    )
}

fn save(wrapped_count: u32, durable_data_end: u64) -> FifoRequest {
    FifoRequest::SaveBuffer { wrapped_count, durable_data_end }
}

fn half_of(provider: ProviderId, wrapped_count: u32, durable_data_end: u64) -> Action {
    Action::Transfer { client: CLIENT, provider, part: Part::Half { wrapped_count, durable_data_end } }
}

fn saved(provider: ProviderId, wrapped_count: u32, durable_data_end: u64) -> Action {
    Action::SendSaved { provider, wrapped_count, durable_data_end }
}

//= docs/protocol.md#saving-a-half
#[test]
fn a_half_is_given_back_when_it_was_saved_and_not_before() {
    let mut bench = streaming(&[A]);
    for (count, durable) in [(0, 16), (1, 16), (2, 64)] {
        assert_eq!(bench.send(A, save(count, durable)), [half_of(A, count, durable)]);
        assert_eq!(bench.transferred(A), [saved(A, count, durable)]);
    }
    assert!(bench.log.is_empty(), "{:?}", bench.log);
}

#[test]
fn halves_of_several_providers_are_saved_one_after_the_other() {
    let mut bench = streaming(&[A, B]);
    assert_eq!(bench.send(A, save(0, 16)), [half_of(A, 0, 16)]);
    assert_eq!(bench.send(B, save(0, 24)), []);
    assert_eq!(bench.transferred(A), [half_of(B, 0, 24), saved(A, 0, 16)]);
    assert_eq!(bench.transferred(B), [saved(B, 0, 24)]);
}

//= docs/protocol.md#confirmations
#[test]
fn what_is_read_is_not_given_back_before_it_is_written() {
    let mut bench = streaming(&[A, B]);
    bench.send(A, save(0, 16));
    bench.send(B, save(0, 24));
    assert_eq!(bench.read(A), [half_of(B, 0, 24)]);
    assert_eq!(bench.read(B), []);
    assert_eq!(bench.written(A), [saved(A, 0, 16)]);
    // A hands over the next while the one of B is on its way.
    assert_eq!(bench.send(A, save(1, 16)), [half_of(A, 1, 16)]);
    assert_eq!(bench.read(A), []);
    // In that order.
    assert_eq!(bench.written(A), []);
    assert_eq!(bench.log, ["program 1: written without being read"]);
    assert_eq!(bench.written(B), [saved(B, 0, 24)]);
    assert_eq!(bench.written(A), [saved(A, 1, 16)]);
}

//= docs/protocol.md#confirmations
#[test]
fn a_stop_is_answered_and_a_buffer_dropped_when_all_is_written() {
    let mut bench = Bench::started(&[A, B]);
    assert_eq!(bench.dies(A), [transfer_of(A, true)]);
    assert_eq!(bench.read(A), []);
    bench.stop(true);
    assert_eq!(bench.send(B, FifoRequest::Stopped), [transfer_of(B, true)]);
    assert_eq!(bench.read(B), []);
    assert_eq!(bench.written(A), [Action::DropTracee(A)]);
    let entries = vec![entry(A, "ended"), entry(B, "stopped")];
    assert_eq!(bench.written(B), [entered(SessionState::Stopped), stop_reply(entries)]);
}

//= docs/protocol.md#confirmations
#[test]
fn what_was_read_and_not_written_is_left_without_a_recipient() {
    let mut bench = Bench::started(&[A, B]);
    bench.dies(A);
    bench.read(A);
    let broken = bench.event(Event::OutputFailed { client: CLIENT, reason: "the client is gone".to_owned() });
    assert_eq!(
        broken,
        [Action::TerminateTracee(B), entered(SessionState::Terminating), Action::LeaveBuffer(A)]
    );
    assert_eq!(bench.written(A), []);
    assert_eq!(
        bench.leaves(B),
        [Action::LeaveBuffer(B), Action::EndSession { client: CLIENT, is_aborted: true }]
    );
}

#[test]
fn the_rest_comes_after_the_halves() {
    let mut bench = streaming(&[A]);
    bench.send(A, save(0, 16));
    assert_eq!(bench.stop(true), [Action::StopTracee(A), entered(SessionState::Stopping)]);
    assert_eq!(bench.send(A, FifoRequest::Stopped), []);
    assert_eq!(bench.transferred(A), [transfer_of(A, true), saved(A, 0, 16)]);
    let stopped = [entered(SessionState::Stopped), stop_reply(vec![entry(A, "stopped")])];
    assert_eq!(bench.transferred(A), stopped);
}

#[test]
fn a_provider_that_hands_over_what_is_not_due_is_terminated() {
    for (packets, problem) in [
        (vec![save(1, 16)], "half 1 is handed over, expected 0"),
        (vec![save(0, 16), save(1, 16)], "a half is handed over while another is being saved"),
        (vec![save(0, 20)], "20 bytes of durable data, where there were 0"),
        (vec![save(0, 1 << 40)], "1099511627776 bytes of durable data, where there were 0"),
    ] {
        let mut bench = streaming(&[A]);
        let (last, before) = packets.split_last().unwrap();
        for packet in before {
            bench.send(A, packet.clone());
        }
        assert_eq!(bench.send(A, last.clone()), [Action::TerminateTracee(A)]);
        assert!(bench.log.last().unwrap().contains(problem), "{:?}", bench.log);
    }
    let mut bench = streaming(&[A]);
    bench.send(A, save(0, 64));
    bench.transferred(A);
    assert_eq!(bench.send(A, save(1, 56)), [Action::TerminateTracee(A)]);
    let problem = "56 bytes of durable data, where there were 64";
    assert!(bench.log.last().unwrap().contains(problem), "{:?}", bench.log);
}

//= docs/protocol.md#saving-a-half
#[test]
fn a_half_that_cannot_be_read_is_not_called_saved() {
    let mut bench = streaming(&[A, B]);
    bench.send(A, save(0, 16));
    let stats = ProviderStats { problem: "is cut short".to_owned(), ..ProviderStats::default() };
    let unread = Event::TransferFinished { provider: A, stats, is_complete: false };
    assert_eq!(bench.event(unread), [Action::TerminateTracee(A)]);
    assert!(bench.log.last().unwrap().contains("half 0 is cut short"), "{:?}", bench.log);
    // The others go on.
    assert_eq!(bench.send(B, save(0, 16)), [half_of(B, 0, 16)]);
    assert_eq!(bench.transferred(B), [saved(B, 0, 16)]);
}

#[test]
fn a_half_of_a_provider_that_died_is_saved_and_not_confirmed() {
    let mut bench = streaming(&[A]);
    bench.send(A, save(0, 16));
    assert_eq!(bench.dies(A), []);
    assert_eq!(bench.transferred(A), [transfer_of(A, true)]);
    assert_eq!(bench.transferred(A), [Action::DropTracee(A)]);
}

#[test]
fn a_run_that_clears_counts_from_the_start_and_one_that_retains_goes_on() {
    for (disposition, next) in [
        (BufferDisposition::Retain, 1),
        (BufferDisposition::ClearNondurable, 0),
        (BufferDisposition::ClearEntire, 0),
    ] {
        let mut bench = streaming(&[A]);
        bench.send(A, save(0, 16));
        bench.transferred(A);
        bench.stop(false);
        bench.send(A, FifoRequest::Stopped);
        bench.start_with(StartOptions { buffer_disposition: disposition, ..StartOptions::default() });
        bench.send(A, started());
        assert_eq!(bench.send(A, save(next, 16)), [half_of(A, next, 16)], "{disposition:?}");
    }
}

#[test]
fn in_other_modes_nothing_is_handed_over() {
    for mode in [BufferingMode::Oneshot, BufferingMode::Circular] {
        let mut bench =
            Bench::started_with(&[A], TraceConfig { buffering_mode: mode, ..TraceConfig::default() });
        assert_eq!(bench.send(A, save(0, 16)), []);
        assert!(bench.log.last().unwrap().contains("unexpected SaveBuffer"), "{:?}", bench.log);
    }
}
