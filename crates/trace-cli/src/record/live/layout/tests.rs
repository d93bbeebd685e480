//! What the screen says, at several sizes.

use super::*;
use std::collections::BTreeMap;
use trace_analysis::live::Snapshot;
use trace_protocol::BufferingMode;
use trace_protocol::controller::{Counts, ObservedProvider, ProviderProgress, SessionState};

fn picture() -> Picture {
    let provider = |id, name: &str, records, dropped| ObservedProvider {
        progress: ProviderProgress {
            id,
            name: name.to_owned(),
            pid: 4000 + u64::from(id),
            records,
            dropped,
            fill: 12.4,
            ..ProviderProgress::default()
        },
        missed: 7,
        has_ended: false,
    };
    let counts = Counts {
        update: 4,
        dropped_updates: 0,
        ticks: 9,
        ticks_per_second: 1,
        state: SessionState::Started,
        mode: BufferingMode::Streaming,
        providers: vec![provider(1, "server", 1_234_567, 0), provider(2, "a\u{1b}[2J", 12, 3)],
        left_out: 0,
    };
    let span = |provider, name: &str, count| LiveSpan {
        provider: ProviderId(provider),
        category: "net".to_owned(),
        name: name.to_owned(),
        kind: trace_analysis::assertion::Kind::Slice,
        count,
        total_ns: 2_500_000_000,
        max_ns: 12_000_000,
        p50_ns: Some(1500.0),
        p99_ns: None,
    };
    let counter = LiveCounter {
        provider: ProviderId(1),
        category: "net".to_owned(),
        name: "queue".to_owned(),
        id: 0,
        series: "depth".to_owned(),
        values: vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0],
    };
    let snapshot = Snapshot {
        seconds: 5.0,
        events: BTreeMap::from([(ProviderId(1), 5000), (ProviderId(2), 5)]),
        all_events: BTreeMap::from([(ProviderId(1), 1_234_567), (ProviderId(2), 12)]),
        spans: vec![span(1, "request", 4000), span(2, "idle", 3)],
        counters: vec![counter],
        other_samples: 0,
        other_spans: 0,
    };
    Picture { counts, snapshot }
}

fn at(width: usize, height: usize) -> Vec<String> {
    lines(Some(&picture()), View { width, height, only: None, own: None })
}

//= docs/live.md#what-is-shown
#[test]
fn a_wide_screen_has_everything() {
    assert_eq!(
        at(100, 40),
        [
            "trace live: started, streaming | 2 programs | 1,001 events/s | 3 lost | q quits, Tab: next program",
            "",
            "program      pid    records  events/s  fill  lost  missed",
            "server      4001  1,234,567     1,000  12 %     0       7",
            "a\\u{1b}[2J  4002         12         1  12 %     3       7",
            "",
            "duration     program     count   /s  total     p50  p99    max",
            "net/request  server      4,000  800  2.5 s  1.5 µs    -  12 ms",
            "net/idle     a\\u{1b}[2J      3    1  2.5 s  1.5 µs    -  12 ms",
            "",
            "counter          program  value",
            "net/queue depth  server       7  ▁▂▃▄▅▆▇█",
        ]
    );
}

//= docs/live.md#what-is-shown
#[test]
fn a_small_screen_has_what_matters_most_and_says_what_is_left_out() {
    assert_eq!(
        at(40, 11),
        [
            "trace live: started, streaming | 2 prog…",
            "",
            "program       records  events/s  lost",
            "server      1,234,567     1,000     0",
            "a\\u{1b}[2J         12         1     3",
            "",
            "duration     count  total     p50  p99",
            "net/request  4,000  2.5 s  1.5 µs    -",
            "",
            "counter         program  value",
            "net/queue dep…  server       7  ▁▂▃▄▅▆▇█",
        ]
    );
    let lines = at(40, 12);
    assert_eq!(lines[8], "net/idle         3  2.5 s  1.5 µs    -");
    let mut picture = picture();
    picture.snapshot.spans = vec![picture.snapshot.spans[0].clone(); 50];
    let view = View { width: 60, height: 20, only: None, own: None };
    let lines = super::lines(Some(&picture), view);
    assert_eq!(lines.len(), 20);
    assert_eq!(lines[16], "… 41 more durations");
    for width in 0..120 {
        for height in 0..30 {
            let lines = at(width, height);
            assert!(lines.len() <= height, "{width} × {height}: {lines:?}");
            for line in lines {
                assert!(console::measure_text_width(&line) <= width, "{width} × {height}: {line}");
                assert!(!line.contains('\u{1b}'));
            }
        }
    }
}

#[test]
fn one_program_alone() {
    let only = Some(ProviderId(2));
    let lines = lines(Some(&picture()), View { width: 200, height: 20, only, own: Some(State::Stopping) });
    assert!(lines[0].starts_with("trace live: stopping, streaming | 2 programs | "), "{lines:?}");
    assert!(lines[0].contains(" | only a\\u{1b}[2J (pid 4002) | "), "{lines:?}");
    let text = lines[1..].join("\n");
    assert!(text.contains("net/idle") && !text.contains("server") && !text.contains("queue"), "{text}");
}

#[test]
fn bars_are_between_the_lowest_and_the_highest() {
    assert_eq!(sparkline(&[1.0, 1.0], 10), "▁▁");
    assert_eq!(sparkline(&[9.0, 0.0, 4.0, 8.0], 3), "▁▅█");
    assert_eq!(sparkline(&[f64::MIN, 0.0, f64::MAX], 10), "▁▅█");
    assert_eq!(sparkline(&[], 10), "");
}
