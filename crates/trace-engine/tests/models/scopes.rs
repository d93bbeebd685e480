//! Scopes that begin and end while another process reads their slot.

use crate::models::check::check;
use crate::sync::{Arc, Ordering, fence};
use crate::thread::open_scopes::{OpenScopes, ScopesRun};
use trace_format::scopes::{ENTRY_BYTES, ROOM};

/// What a reader takes: two copies that are the same, with the same word between and behind them.
fn read(scopes: &OpenScopes) -> Option<Vec<[u64; 2]>> {
    let word = scopes.word();
    let depth = ((ROOM - (word & ROOM)) / ENTRY_BYTES) as usize;
    let entries = || -> Vec<[u64; 2]> { (0..depth).map(|depth| scopes.at(depth)).collect() };
    let same = || {
        fence(Ordering::SeqCst);
        scopes.word() == word
    };
    let first = entries();
    let is_same = same();
    let second = entries();
    (is_same && same() && first == second).then_some(first)
}

/// The second scope inside takes the entry of the first: the depth is the same, and the scope is not.
#[test]
fn a_reader_finds_what_was_open_at_some_moment() {
    check(4, |order| {
        let scopes = Arc::new(OpenScopes::new());
        scopes.join(ScopesRun::new(7));
        let write = |scopes: &OpenScopes| {
            let outer = scopes.begin(10, 1).expect("an entry");
            for (start, references) in [(20, 2), (30, 3)] {
                let inner = scopes.begin(start, references).expect("an entry");
                scopes.end(inner);
            }
            scopes.end(outer);
        };
        let look = |scopes: &OpenScopes| {
            let Some(found) = read(scopes) else { return };
            // One that is just beginning has no time yet.
            let open: Vec<[u64; 2]> = found.into_iter().filter(|[start, _]| *start != 0).collect();
            let is_real =
                [&[][..], &[[10, 1]], &[[10, 1], [20, 2]], &[[10, 1], [30, 3]]].contains(&&open[..]);
            assert!(is_real, "{open:?}");
        };
        order.play(&scopes, write, look);
        assert_eq!(read(&scopes), Some(Vec::new()));
    });
}

/// A run begins while a scope of the one before does: it is of that one, or the next.
#[test]
fn what_began_in_another_run_is_not_in_this_one() {
    check(3, |order| {
        let scopes = Arc::new(OpenScopes::new());
        scopes.join(ScopesRun::new(7));
        let before = scopes.begin(10, 1).expect("an entry");
        scopes.join(ScopesRun::new(8));
        let write = move |scopes: &OpenScopes| {
            scopes.end(before);
            let inner = scopes.begin(20, 2).expect("an entry");
            scopes.end(before);
            scopes.end(inner);
        };
        let look = |scopes: &OpenScopes| {
            assert_eq!(scopes.word() >> 32, 8);
            let found = read(scopes).unwrap_or_default();
            assert!(found.iter().all(|[start, _]| [0, 20].contains(start)), "{found:?}");
        };
        order.play(&scopes, write, look);
        assert_eq!(read(&scopes), Some(Vec::new()));
    });
}
