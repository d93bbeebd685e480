//! Documents of many batches, which one thread finds and another writes.

use super::*;
use crate::full::Full;
use proptest::prelude::*;
use std::fmt::Write as _;
use std::io::{self, Read};

/// A text in pieces.
struct Pieces<'a> {
    text: &'a [u8],
    lengths: Vec<usize>,
    next: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let length = self.lengths[self.next % self.lengths.len()].min(to.len()).min(self.text.len());
        self.next += 1;
        let (piece, rest) = self.text.split_at(length);
        to[..length].copy_from_slice(piece);
        self.text = rest;
        Ok(length)
    }
}

/// An event of some kind; every seventeenth is not of the usual form, every 101st is not valid.
fn event(text: &mut String, number: u64) {
    let at = 10 * number;
    let _ = match number {
        number if number % 101 == 100 => {
            writeln!(text, r#"{{"ph":"i","ts":{at},"name":"bad {number}","pid" 8}},"#)
        }
        number if number % 17 == 16 => writeln!(
            text,
            r#"{{"ph":"i","ts":{at},"name":"\u0061{number}","args":{{"list":[{number},{{}}]}}}},"#
        ),
        number if number % 3 == 0 => writeln!(
            text,
            r#"{{"ph":"X","cat":"c","name":"n{}","ts":{at}.125,"dur":3,"pid":1,"tid":2,"args":{{"x":{number},"y":"é"}}}},"#,
            number % 40
        ),
        number if number % 3 == 1 => {
            writeln!(text, r#"{{"name":"n","ph":"B", "ts": {at},"pid":1,"tid":3,"args":{{}}}},"#)
        }
        _ => writeln!(text, r#"{{"ph":"E","ts":{at},"pid":1,"tid":3}},"#),
    };
}

fn document(events: u64) -> String {
    let mut text = "[\n".to_owned();
    (0..events).for_each(|number| event(&mut text, number));
    text + "{}]"
}

#[test]
fn every_event_of_many_batches_comes_in_its_order_and_errors_have_their_lines() {
    let (archive, summary) = imported(&document(20_200));
    assert_eq!(summary.malformed, 200);
    // The opening bracket is the first line.
    let line = |number: u64| format!("line {}, column ", number + 2);
    assert_eq!(summary.first_warnings.len(), 10);
    for (warning, place) in summary.first_warnings.iter().zip(0_u64..) {
        assert!(warning.starts_with(&line(100 + 101 * place)), "{warning}");
    }
    let times: Vec<String> =
        lines(&archive).iter().map(|line| line.split(' ').next().unwrap_or_default().to_owned()).collect();
    assert!(times.is_sorted());
    assert_eq!(times.len() as u64, 20_200 - 200);
}

#[test]
fn what_comes_before_an_error_is_in_the_archive() {
    let mut text = document(20_000);
    text.truncate(text.len() - 3);
    let mut archive = Vec::new();
    let error = import(format!("{text}?").as_bytes(), &mut archive).unwrap_err();
    let ImportError::Stopped { error, summary } = error else { panic!("{error}") };
    assert_eq!(error.to_string(), "line 20002, column 1: expected an event, found '?'");
    assert_eq!(summary.events, 20_000 - 198);
    assert_eq!(lines(&archive).len() as u64, summary.events);
}

#[test]
fn an_archive_that_cannot_be_written_ends_the_import() {
    let text = document(40_000);
    for room in [0, 100_000, 300_000, 600_000] {
        let error = import(text.as_bytes(), Full(room)).unwrap_err();
        let ImportError::Write(error) = error else { panic!("{error}") };
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}

//= docs/import.md#memory
#[test]
fn keys_are_not_mistaken_for_those_of_the_event_before() {
    // They begin alike, are longer than what is compared at once, or come in another order.
    let long = "a".repeat(40);
    let events = [
        r#"{"ph":"i","ts":1,"pid":1,"tid":2,"name":"one","args":{"abcdefghijklmnop1":1,"b":2}}"#.to_owned(),
        r#"{"ph":"i","ts":2,"pid":1,"tid":2,"name":"two","args":{"abcdefghijklmnop2":1,"bb":2}}"#.to_owned(),
        r#"{"ph":"i","ts":3,"tid":2,"pid":1,"nam":"x","name":"three","args":{"abcdefghijklmnop":1}}"#
            .to_owned(),
        format!(r#"{{"ph":"i","ts":4,"tid":2,"pid":1,"name":"four","args":{{"{long}1":1,"{long}":2}}}}"#),
        format!(r#"{{"ph":"i","ts":5,"tid":2,"pid":1,"name":"five","args":{{"{long}2":1,"{long}":2}}}}"#),
        r#"{"ph":"i","ts":5,"tid":2,"pid":1,"name":"x","args":{"abcdefghijklmnop":1,"c":2}}"#.to_owned(),
        r#"{"ph":"i","ts":5,"tid":2,"pid":1,"name":"y","args":{"abcdefghijklmno":123,"c":2}}"#.to_owned(),
        r#"{"ph":"i","ts":6,"tid" : 2,"pid":1,"name":"six","ts2":7,"args":"none"}"#.to_owned(),
    ];
    let (found, _) = events_of(&events.join(","));
    let expected = [
        r#"0.000001000 instant 1/2 "" "one" scope=thread {abcdefghijklmnop1=1i32, b=2i32}"#.to_owned(),
        r#"0.000002000 instant 1/2 "" "two" scope=thread {abcdefghijklmnop2=1i32, bb=2i32}"#.to_owned(),
        r#"0.000003000 instant 1/2 "" "three" scope=thread {abcdefghijklmnop=1i32}"#.to_owned(),
        format!(r#"0.000004000 instant 1/2 "" "four" scope=thread {{{long}1=1i32, {long}=2i32}}"#),
        format!(r#"0.000005000 instant 1/2 "" "five" scope=thread {{{long}2=1i32, {long}=2i32}}"#),
        r#"0.000005000 instant 1/2 "" "x" scope=thread {abcdefghijklmnop=1i32, c=2i32}"#.to_owned(),
        r#"0.000005000 instant 1/2 "" "y" scope=thread {abcdefghijklmno=123i32, c=2i32}"#.to_owned(),
        r#"0.000006000 instant 1/2 "" "six" scope=thread {args="none"}"#.to_owned(),
    ];
    assert_eq!(found, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn the_result_does_not_depend_on_how_the_text_comes(
        events in 0..4000_u64,
        lengths in prop::collection::vec(1..40_000_usize, 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let text = document(events);
        let text = &text.as_bytes()[..2.max(cut.index(4 * text.len()).min(text.len()))];
        let imported = |input: &mut dyn Read| {
            let mut archive = Vec::new();
            let result = import(input, &mut archive);
            (archive, format!("{result:?}"))
        };
        let whole = imported(&mut &*text);
        let pieces = imported(&mut Pieces { text, lengths, next: 0 });
        prop_assert_eq!(whole.1, pieces.1);
        prop_assert!(whole.0 == pieces.0);
    }
}
