//! Pictures of small traces.

use super::*;
use crate::in_memory;
use trace_convert::import::json;

fn trace(events: &str) -> Trace {
    let mut bytes = Vec::new();
    json::import(format!("{{\"traceEvents\":[{events}]}}").as_bytes(), &mut bytes).expect("events");
    in_memory("a.fxt", bytes)
}

fn picture(events: &str, from: Option<u64>, to: Option<u64>) -> (String, Summary) {
    let mut output = Vec::new();
    let [from, to] = [from, to].map(|moment| moment.map(Moment::FromBegin));
    let summary = write(trace(events), Window { from, to }, None, &mut output).unwrap();
    (String::from_utf8(output).unwrap(), summary)
}

/// What is between two texts, for each time that they occur.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> Vec<&'a str> {
    text.split(begin).skip(1).filter_map(|part| part.split(end).next()).collect()
}

const EVENTS: &str = r##"
    {"ph":"M","pid":1,"name":"process_name","args":{"name":"app"}},
    {"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"main"}},
    {"ph":"X","ts":1000,"dur":1000,"pid":1,"tid":1,"cat":"c","name":"frame"},
    {"ph":"X","ts":1250,"dur":500,"pid":1,"tid":1,"cat":"c","name":"draw <tile>"},
    {"ph":"s","ts":1500,"pid":1,"tid":1,"cat":"c","name":"go","id":"9"},
    {"ph":"i","ts":1750,"pid":1,"tid":1,"cat":"c","name":"now","s":"p"},
    {"ph":"X","ts":1600,"dur":200,"pid":1,"tid":2,"cat":"c","name":"raster"},
    {"ph":"f","bp":"e","ts":1600,"pid":1,"tid":2,"cat":"c","name":"go","id":"9"},
    {"ph":"C","ts":1000,"pid":1,"tid":1,"cat":"c","name":"depth","args":{"n":2}},
    {"ph":"C","ts":1500,"pid":1,"tid":1,"cat":"c","name":"depth","args":{"n":4}},
    {"ph":"b","ts":1100,"pid":1,"tid":1,"cat":"c","name":"load","id":"0x1"},
    {"ph":"e","ts":1900,"pid":1,"tid":1,"cat":"c","name":"load","id":"0x1"},
    {"ph":"B","ts":1950,"pid":7,"tid":8,"cat":"c","name":"open"}"##;

//= docs/svg.md#the-picture
#[test]
fn a_picture_has_everything_where_and_when_it_was() {
    let (text, summary) = picture(EVENTS, None, None);
    let shapes = between(&text, "<g>", "</g>");
    let expected = [
        r#"<title>frame
1 ms
at 0 ns
c</title><rect class="c8" x="190" y="86" width="1000" height="17"/><text x="193" y="98.5">frame</text>"#,
        r#"<title>draw &lt;tile&gt;
500 µs
at 250 µs
c</title><rect class="c11" x="440" y="104" width="500" height="17"/><text x="443" y="116.5">draw &lt;tile&gt;</text>"#,
        r#"<title>raster
200 µs
at 600 µs
c</title><rect class="c6" x="790" y="126" width="200" height="17"/><text x="793" y="138.5">raster</text>"#,
        r#"<title>load
800 µs
at 100 µs
c</title><rect class="c8" x="290" y="148" width="800" height="17"/><text x="293" y="160.5">load</text>"#,
        r#"<title>open
has not ended
at 950 µs
c</title><rect class="c4 open" x="1140" y="230" width="50" height="17"/><text x="1143" y="242.5">open</text>"#,
    ];
    assert_eq!(shapes.len(), expected.len(), "{text}");
    for (shape, expected) in shapes.iter().zip(expected) {
        assert_eq!(strip_colour(shape), strip_colour(expected));
    }
    let arrows = between(&text, "<path class=\"flow\" ", "</path>");
    let arrow =
        "marker-end=\"url(#head)\" d=\"M690 113C740 113 740 135 790 135\"><title>go 0x9\n100 µs</title>";
    assert_eq!(arrows, [arrow]);
    let points = between(&text, "<path class=\"point\" ", "</path>");
    assert_eq!(points, ["d=\"M940 76l4 4l-4 4l-4-4z\"><title>now\nat 750 µs</title>"]);
    let counters = between(&text, "<path class=\"counter\" ", "</path>");
    let counter =
        "d=\"M190 200L190 186L690 186L690 172L1190 172L1190 200z\"><title>2 to 4, at the end 4</title>";
    assert_eq!(counters, [counter]);
    let labels = ["app 1", "main 1", "thread 2", "load", "depth:n", "process 7", "thread 8"];
    for label in labels {
        assert!(text.contains(&format!("{label}<title>{label}</title>")), "{label}: {text}");
    }
    assert_eq!((summary.events, summary.skipped), (8, Vec::new()));
    assert_eq!(summary.remarks, [("slices without an end".to_owned(), 1)]);
}

/// Which of the colours a name has does not matter.
fn strip_colour(shape: &str) -> String {
    let mut shape = shape.to_owned();
    for number in (0..12).rev() {
        shape = shape.replace(&format!("class=\"c{number}"), "class=\"c");
    }
    shape
}

//= docs/svg.md#the-command
#[test]
fn a_window_has_what_is_in_it_at_least_partly() {
    let (text, summary) = picture(EVENTS, Some(700_000), Some(800_000));
    let titles: Vec<&str> =
        between(&text, "<g><title>", "</title>").iter().filter_map(|title| title.lines().next()).collect();
    assert_eq!(titles, ["frame", "draw &lt;tile&gt;", "raster", "load"]);
    // What is around the slice goes on beyond the window.
    assert!(text.contains("x=\"190\" y=\"86\" width=\"1000\""), "{text}");
    assert!(text.contains("x=\"190\" y=\"126\" width=\"1000\""), "{text}");
    assert!(text.contains("700 µs to 800 µs (100 µs)"), "{text}");
    // The value of before the window.
    assert!(text.contains("<title>4 to 4, at the end 4</title>"), "{text}");
    assert_eq!(summary.events, 5);
    let (text, summary) = picture(EVENTS, Some(550_000), Some(700_000));
    assert!(!text.contains("class=\"flow\""), "{text}");
    assert_eq!(summary.remarks, [("arrows out of the picture, not shown".to_owned(), 1)]);
}

/// As of a program that crashed right after a begin.
//= docs/svg.md#the-command
#[test]
fn what_is_at_the_last_moment_is_there() {
    let events = r##"
        {"ph":"X","ts":0,"dur":10,"pid":1,"tid":1,"name":"around"},
        {"ph":"B","ts":10,"pid":1,"tid":1,"name":"crashed here"},
        {"ph":"i","ts":10,"pid":1,"tid":1,"name":"now","s":"t"},
        {"ph":"C","ts":10,"pid":1,"tid":1,"name":"count","args":{"n":3}},
        {"ph":"X","ts":10,"dur":0,"pid":1,"tid":2,"name":"moment"}"##;
    let titles = |to: Option<u64>| {
        let (text, summary) = picture(events, None, to);
        let titles = between(&text, "<title>", "</title>");
        let titles: Vec<&str> = titles.iter().skip(1).filter_map(|title| title.lines().next()).collect();
        (titles.join("; "), summary.events)
    };
    let (all, events) = titles(None);
    for name in ["around", "crashed here", "now", "3 to 3, at the end 3", "moment"] {
        assert!(all.contains(name), "{name}: {all}");
    }
    assert_eq!(events, 5);
    assert_eq!(titles(Some(10_000)), (all, 5));
    // A window that ends before has what began before.
    assert_eq!(titles(Some(9_999)).1, 1);
}

#[test]
fn windows_outside_and_empty_traces_are_errors() {
    for (from, to) in [(Some(1_000_001), None), (Some(5), Some(5)), (Some(9), Some(3))] {
        // On the clock of the trace, on which its first moment is 1 ms.
        let clock = |nanos| Moment::At(1_000_000 + nanos);
        for [from, to] in [[from, to].map(|at| at.map(Moment::FromBegin)), [from, to].map(|at| at.map(clock))]
        {
            let error = write(trace(EVENTS), Window { from, to }, None, Vec::new()).unwrap_err();
            let why = "the window is empty or outside of the trace, which is 1 ms long";
            assert_eq!(error.to_string(), why);
        }
    }
    let error = write(trace(""), Window::default(), None, Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "the trace has no events that a picture shows");
    // A trace of one moment has a picture.
    let one = r#"{"ph":"i","ts":5,"pid":1,"tid":1,"name":"only","s":"t"}"#;
    assert_eq!(picture(one, None, None).1.events, 1);
}

//= docs/svg.md#the-picture
#[test]
fn short_slices_are_drawn_together_and_counted() {
    let mut events = vec![r#"{"ph":"X","ts":0,"dur":1000000,"pid":1,"tid":1,"name":"long"}"#.to_owned()];
    for place in 0..3000 {
        let name = if place == 7 { "longest" } else { "short" };
        let length = if place == 7 { 0.5 } else { 0.25 };
        events.push(format!(r#"{{"ph":"X","ts":{place},"dur":{length},"pid":1,"tid":1,"name":"{name}"}}"#));
    }
    let (text, summary) = picture(&events.join(","), None, None);
    let titles = between(&text, "<g><title>", "</title>");
    assert_eq!(titles, ["long\n1 s\nat 0 ns", "3000 slices, the longest:\nlongest\n500 ns\nat 7 µs"]);
    let note = "slices are too short to be seen one by one: neighbours are drawn together";
    assert_eq!(summary.remarks, [(note.to_owned(), 3000)]);
    assert!(text.contains(&format!("3000 {note}</text>")), "{text}");
}

/// As deep, as many and as hostile as it gets, the picture stays small and is whole.
#[test]
fn a_picture_is_bounded_and_its_names_are_text() {
    let mut events = Vec::new();
    for depth in 0..40 {
        events.push(format!(
            r#"{{"ph":"X","ts":{depth},"dur":{},"pid":1,"tid":1,"name":"</title><script>alert({depth})"}}"#,
            1000 - 2 * depth
        ));
    }
    for thread in 0..60 {
        for place in 0..200 {
            events.push(format!(
                r#"{{"ph":"X","ts":{},"dur":4,"pid":2,"tid":{thread},"name":"\u0000\u202e&"}}"#,
                place * 5
            ));
        }
    }
    let (text, summary) = picture(&events.join(","), None, None);
    assert!(between(&text, "<g>", "</g>").len() <= merge::MAX_BARS, "{}", text.len());
    assert!(!text.contains("<script") && !text.contains('\0') && !text.contains('\u{202e}'));
    let skipped: Vec<_> = summary.skipped.iter().map(|(kind, count)| (kind.as_str(), *count)).collect();
    assert_eq!(
        skipped,
        [("events of tracks that are not shown", 21 * 200), ("slices deeper than 24 rows", 16)]
    );
    assert_eq!(summary.events, 39 * 200 + 24);
    let opened = text.matches('<').count() - text.matches("</").count() - text.matches("/>").count();
    assert_eq!(opened, text.matches("</").count());
}

//= docs/svg.md#the-picture
#[test]
fn an_arrow_begins_in_the_slice_that_is_open() {
    let events = r##"
        {"ph":"X","ts":0,"dur":100,"pid":1,"tid":1,"name":"outer"},
        {"ph":"X","ts":10,"dur":40,"pid":1,"tid":1,"name":"inner"},
        {"ph":"s","ts":20,"pid":1,"tid":1,"cat":"c","name":"go","id":"1"},
        {"ph":"s","ts":60,"pid":1,"tid":1,"cat":"c","name":"go","id":"2"},
        {"ph":"X","ts":70,"dur":20,"pid":1,"tid":2,"name":"one"},
        {"ph":"f","bp":"e","ts":70,"pid":1,"tid":2,"cat":"c","name":"go","id":"1"},
        {"ph":"f","bp":"e","ts":80,"pid":1,"tid":2,"cat":"c","name":"go","id":"2"},
        {"ph":"f","bp":"e","ts":90,"pid":1,"tid":3,"cat":"c","name":"go","id":"2"},
        {"ph":"X","ts":85,"dur":15,"pid":1,"tid":3,"name":"two"}"##;
    let (text, _) = picture(events, None, None);
    let y = |part: &str| part.split([' ', 'C']).nth(1).unwrap().parse::<f64>().unwrap();
    let from: Vec<f64> = between(&text, "marker-end=\"url(#head)\" d=\"", "\"").into_iter().map(y).collect();
    // The first in the inner slice, the others one row above it.
    assert_eq!(from.len(), 3, "{text}");
    assert_eq!([from[0] - from[1], from[1] - from[2]], [18.0, 0.0], "{text}");
}

//= docs/svg.md#the-picture
#[test]
fn tracks_are_hatched_while_records_are_missing() {
    use trace_format::loss::{LossCode, LossRecord};
    use trace_format::sink::SliceSink;
    use trace_format::units::{ProviderId, Ticks};
    let mut bytes = Vec::new();
    let event = r#"{"traceEvents":[{"ph":"X","ts":0,"dur":10,"pid":1,"tid":1,"name":"x"}]}"#;
    json::import(event.as_bytes(), &mut bytes).unwrap();
    let loss = LossRecord {
        provider: ProviderId(1),
        reason: LossCode(0),
        count: 7,
        first: Ticks(2000),
        last: Ticks(5000),
    };
    let mut words = [0; 32];
    let mut sink = SliceSink::new(&mut words);
    LossRecord::blob(&loss.to_bytes()).encode(&mut sink).unwrap();
    bytes.extend(sink.words().iter().flat_map(|word| word.to_le_bytes()));
    let mut output = Vec::new();
    let summary = write(in_memory("a.fxt", bytes), Window::default(), None, &mut output).unwrap();
    let text = String::from_utf8(output).unwrap();
    let hatched = between(&text, "<rect fill=\"url(#lost)\" ", "</rect>");
    let expected = r#"x="390" y="48" width="300" height="48"><title>7 records lost: buffer full</title>"#;
    assert_eq!(hatched, [expected]);
    assert_eq!(summary.remarks, [("missing records, hatched where the time is known".to_owned(), 7)]);
}
