//! Observers of a session.
//= docs/protocol.md#observers

use super::*;
use trace_protocol::limits::MAX_OBSERVERS;

const OTHER: Uid = Uid(1000);

fn observe(bench: &mut Bench, number: u64, uid: Uid) -> Result<(), ObserveError> {
    let client = ClientId(number);
    match &bench.event(Event::Observe { client, uid, program: None })[..] {
        [Action::ReplyObserve(found, result)] if *found == client => {
            result.map(|session| assert_eq!(session, CLIENT))
        }
        actions => panic!("{actions:?}"),
    }
}

#[test]
fn there_is_something_to_observe_from_the_beginning_of_a_session_to_its_end() {
    let mut bench = Bench::new();
    assert_eq!(observe(&mut bench, 100, Uid::ROOT), Err(ObserveError::NothingRecorded));
    let mut bench = Bench::initialized(&[A]);
    assert_eq!(observe(&mut bench, 100, Uid::ROOT), Ok(()));
    // Another user does not learn that there is a session.
    assert_eq!(observe(&mut bench, 101, OTHER), Err(ObserveError::NothingRecorded));
    bench.start();
    bench.send(A, started());
    bench.event(Event::ClientClosed { client: CLIENT });
    bench.send(A, FifoRequest::Stopped);
    bench.transferred(A);
    let end = bench.event(Event::FifoClosed { provider: A, process: ProcessState::Alive });
    let place = |wanted: &dyn Fn(&Action) -> bool| end.iter().position(wanted).expect("it is there");
    let dropped = place(&|action| *action == Action::DropTracee(A));
    let ended = place(&|action| matches!(action, Action::EndSession { .. }));
    let informed = place(&|action| *action == Action::EndObserver(ClientId(100)));
    assert!(dropped < ended && ended < informed, "{end:?}");
    assert_eq!(observe(&mut bench, 102, Uid::ROOT), Err(ObserveError::NothingRecorded));
}

#[test]
fn so_many_observe_and_one_that_goes_makes_room() {
    let mut bench = Bench::initialized(&[A]);
    let most = MAX_OBSERVERS as u64;
    for number in 0..most {
        assert_eq!(observe(&mut bench, 100 + number, Uid::ROOT), Ok(()));
    }
    for number in 0..1000 {
        assert_eq!(observe(&mut bench, 200 + number, Uid::ROOT), Err(ObserveError::Busy));
    }
    // One that was refused has taken no place, and gives none back.
    assert_eq!(bench.event(Event::ObserverClosed { client: ClientId(200) }), []);
    assert_eq!(observe(&mut bench, 2000, Uid::ROOT), Err(ObserveError::Busy));
    assert_eq!(bench.event(Event::ObserverClosed { client: ClientId(100) }), []);
    assert_eq!(observe(&mut bench, 2001, Uid::ROOT), Ok(()));
}
