//! Programs of which something is missing.
//= docs/protocol.md#programs-of-which-something-is-missing

use super::*;

const SHY: u64 = 50;

/// A program has stopped waiting.
fn gave_up(pid: u64, sessions: &[ClientId]) -> Event {
    Event::ProviderGaveUp {
        provider: ProviderId(9),
        name: "shy".to_owned(),
        pid,
        uid: Uid::ROOT,
        sessions: sessions.to_vec(),
    }
}

#[test]
fn a_program_that_gave_up_is_reported_once_to_the_session_that_it_waited_for() {
    let mut bench = Bench::started(&[A]);
    assert_eq!(bench.event(gave_up(SHY, &[CLIENT])), []);
    let why = "the trace manager has not answered it in time".to_owned();
    let end = Some(ProviderDisposition::GaveUp);
    let expected = (ProviderId(9), "shy".to_owned(), Some(LossCode::NOT_RECORDED), end, why.clone());
    assert_eq!(bench.missing, [expected]);
    let [stats] = &bench.core.ended(CLIENT)[..] else { panic!("{:?}", bench.core.ended(CLIENT)) };
    assert_eq!((stats.id, stats.disposition.as_str(), &stats.problem), (9, "gave up", &why));
    // It has left a second note since, and a note of another program is older than the session.
    bench.missing.clear();
    assert_eq!(bench.event(gave_up(SHY, &[CLIENT])), []);
    assert_eq!(bench.event(gave_up(SHY + 1, &[])), []);
    assert_eq!((bench.missing, bench.core.ended(CLIENT).len()), (vec![], 1));
}

#[test]
fn a_program_that_gave_up_and_registered_later_has_joined_late() {
    let late = (A, "provider-1".to_owned(), Some(LossCode::JOINED_LATE), None, String::new());
    let mut bench = Bench::started(&[A]);
    // Once, and it is the problem of its entry.
    assert_eq!(bench.event(gave_up(1001, &[CLIENT])), []);
    assert_eq!(bench.event(gave_up(1001, &[CLIENT])), []);
    assert_eq!(bench.missing, std::slice::from_ref(&late));
    bench.stop(true);
    bench.send(A, FifoRequest::Stopped);
    let actions = bench.transferred(A);
    let losses = unknown(LossCode::JOINED_LATE);
    let stats = ProviderStats { problem: JOINED_LATE.to_owned(), losses, ..entry(A, "stopped") };
    assert!(actions.contains(&stop_reply(vec![stats])), "{actions:?}");
    // The program has ended meanwhile.
    let mut bench = Bench::started(&[A]);
    bench.dies(A);
    bench.transferred(A);
    bench.event(gave_up(1001, &[CLIENT]));
    bench.event(gave_up(1001, &[CLIENT]));
    assert_eq!(bench.missing, [late]);
    assert_eq!(bench.core.ended(CLIENT)[0].problem, JOINED_LATE);
}

#[test]
fn one_that_breaks_the_protocol_lacks_the_rest() {
    let mut bench = Bench::started(&[A]);
    bench.send_bad(A);
    // What it sends then is no news.
    bench.send_bad(A);
    let end = Some(ProviderDisposition::BrokeProtocol);
    let why = "bad packet: fifo packet 0x0077: no such request from this side".to_owned();
    assert_eq!(bench.missing, [(A, "provider-1".to_owned(), Some(LossCode::REST_MISSING), end, why)]);
}

/// A program that has ended does nothing that could be missing.
//= docs/protocol.md#programs-of-which-something-is-missing
#[test]
fn the_kernel_goes_on_without_its_provider() {
    let ends = |is_stopping: bool| {
        let mut bench = Bench::started(&[A]);
        bench.register_as(B, KERNEL_PROVIDER.to_owned());
        bench.send(B, started());
        if is_stopping {
            bench.stop(true);
        }
        bench.dies(B);
        bench.dies(A);
        let missing = std::mem::take(&mut bench.missing);
        let actions = if is_stopping { Vec::new() } else { bench.stop(true) };
        let all = actions.into_iter().chain(bench.transferred(B)).chain(bench.transferred(A));
        let stats = all.into_iter().find_map(|action| match action {
            Action::ReplyStop(_, Ok(result)) => Some(result.provider_stats),
            _ => None,
        });
        (missing, stats.expect("an answer"))
    };
    let (missing, stats) = ends(false);
    let end = Some(ProviderDisposition::Ended);
    let (name, why) = (KERNEL_PROVIDER.to_owned(), KERNEL_GOES_ON.to_owned());
    assert_eq!(missing, [(B, name, Some(LossCode::REST_MISSING), end, why)]);
    let kernel = stats.iter().find(|stats| stats.id == B.0).unwrap();
    assert_eq!((&*kernel.problem, &kernel.losses), (KERNEL_GOES_ON, &unknown(LossCode::REST_MISSING)));
    assert!(stats.iter().all(|stats| stats.id == B.0 || stats.losses.is_empty()));
    let (missing, stats) = ends(true);
    assert!(missing.is_empty() && stats.iter().all(|stats| stats.losses.is_empty()), "{stats:?}");
}

#[test]
fn one_that_has_not_started_when_the_recording_stops_was_not_recorded() {
    let mut bench = Bench::initialized(&[A]);
    bench.start();
    bench.stop(true);
    bench.pass(Duration::from_secs(5));
    bench.transferred(A);
    // Nor when it does not end.
    bench.event(Event::ClientClosed { client: CLIENT });
    bench.pass(Duration::from_secs(5));
    let end = Some(ProviderDisposition::DidNotStart);
    assert_eq!(
        bench.missing,
        [(A, "provider-1".to_owned(), Some(LossCode::NOT_RECORDED), end, String::new())]
    );
}

#[test]
fn what_is_refused_or_gets_no_buffer_was_not_recorded() {
    let mut bench = Bench::started(&[A]);
    let refused = |id| Event::ProviderRefused {
        provider: ProviderId(id),
        name: "old".to_owned(),
        pid: 9,
        uid: Uid::ROOT,
        reason: "too old".to_owned(),
    };
    bench.event(refused(5));
    // It retries, and waits in vain.
    bench.event(refused(6));
    bench.event(gave_up(9, &[CLIENT]));
    bench.event(Event::TraceeFailed { provider: A, reason: Unmade::Gone });
    let of = |id, name: &str, end, why: &str| {
        (id, name.to_owned(), Some(LossCode::NOT_RECORDED), Some(end), why.to_owned())
    };
    let expected = [
        of(ProviderId(5), "old", ProviderDisposition::Refused, "too old"),
        of(A, "provider-1", ProviderDisposition::NotTraced, "it is gone"),
    ];
    assert_eq!(bench.missing, expected);
    // A retry succeeds: the program has joined late.
    let registered = Event::ProviderRegistered {
        provider: ProviderId(7),
        name: "old".to_owned(),
        pid: 9,
        uid: Uid::ROOT,
        is_late: false,
        is_waiting: false,
    };
    bench.event(registered);
    let late = (ProviderId(7), "old".to_owned(), Some(LossCode::JOINED_LATE), None, String::new());
    assert_eq!(bench.missing.last(), Some(&late));
}
