//! The examples of docs/meaning.md.

use crate::{Interval, Nested, Nesting};

const PAGE: &str = include_str!("../../../docs/meaning.md");

/// Slices with their names, of records such as `begin A 0, complete B 5 to 9, end 20`.
fn slices(records: &str) -> Vec<(String, Interval)> {
    let (mut open, mut slices) = (Vec::new(), Vec::new());
    for (number, record) in (1..).zip(records.split(", ")) {
        let words: Vec<&str> = record.split(' ').collect();
        let time = |word: &str| word.parse::<u64>().unwrap();
        match words[..] {
            ["begin", name, at] => open.push((name, time(at), number)),
            ["end", at] | ["end", _, at] => {
                let (name, begin, begun) = open.pop().unwrap();
                let interval = Interval { begin, end: time(at), begun, ended: number };
                slices.push((name.to_owned(), interval));
            }
            ["complete", name, begin, "to", end] => {
                let interval = Interval { begin: time(begin), end: time(end), begun: number, ended: number };
                slices.push((name.to_owned(), interval));
            }
            _ => panic!("{record}"),
        }
    }
    slices.sort_by_key(|(_, slice)| slice.begun);
    slices
}

/// What the page says of them, such as `B 5 to 9, in A, own 4`.
fn meaning(slices: &[(String, Interval)]) -> Vec<String> {
    let mut nesting = Nesting::default();
    (0..).zip(slices).for_each(|(of, (_, slice))| nesting.push(1, slice, of));
    let mut nested: Vec<Nested> = Vec::new();
    nesting
        .finish(|slice| {
            nested.push(slice);
            Ok(())
        })
        .unwrap();
    nested.sort_by_key(|nested| nested.of);
    nested
        .iter()
        .map(|Nested { of, parent, own, .. }| {
            let (name, Interval { begin, end, .. }) = &slices[*of as usize];
            let parent =
                parent.map_or_else(String::new, |parent| format!(", in {}", slices[parent as usize].0));
            format!("{name} {begin} to {end}{parent}, own {}", own.unwrap())
        })
        .collect()
}

//= docs/meaning.md#which-begin-an-end-belongs-to
//= docs/meaning.md#what-is-inside-what
//= docs/meaning.md#own-time
#[test]
fn examples_of_the_page_are_right() {
    let examples: Vec<&str> = PAGE.split("```").skip(1).step_by(2).collect();
    let mut count = 0;
    for example in examples.iter().filter_map(|example| example.strip_prefix("text\n")) {
        let (records, expected) = example.split_once('\n').unwrap();
        // How operations pair is tested with the conversions.
        if !records.contains("operation") {
            assert_eq!(meaning(&slices(records)), expected.trim().lines().collect::<Vec<_>>(), "{records}");
            count += 1;
        }
    }
    assert_eq!(count, 5);
}
