//! Arguments for which an event's record has no room.

use super::imported;
use crate::Jobs;
use crate::export::catapult::{self, Container, Dialect, Options};
use crate::export::perfetto;
use crate::filtered::{self, Options as FilterOptions};
use serde_json::{Value, json};
use trace_reader::{Item, Reader};

/// Events with arguments of all kinds: many, long, and names that are long.
fn document() -> Value {
    let many = |count: u32| (0..count).map(|number| (format!("a{number:03}"), json!(number))).collect();
    let args: [Value; 6] = [
        Value::Object(many(40)),
        json!({"sql": "s".repeat(20_000), "plan": "p".repeat(20_000), "n": 1}),
        json!({"source": "x".repeat(300_000), "flag": true, "half": 0.5, "list": vec![7; 30_000]}),
        Value::Object(many(16)),
        json!({"n": 1}),
        json!({"k".repeat(500): "v", "text": "\u{fc}".repeat(16_001)}),
    ];
    let event = |(number, args): (usize, Value)| json!({"ph": "X", "ts": number, "dur": 1, "pid": 1, "tid": 2, "cat": "c", "name": "n", "args": args});
    args.into_iter().enumerate().map(event).collect()
}

/// The arguments of each event of a document in Chrome's dialect.
fn arguments(json: &[u8]) -> Vec<Value> {
    let events: Vec<Value> = serde_json::from_slice(json).unwrap();
    let slices = events.into_iter().filter(|event| event["ph"] == "X");
    slices.map(|mut event| event["args"].take()).collect()
}

fn chrome(archive: &[u8]) -> Vec<u8> {
    let (json, skipped) = converted(archive);
    assert_eq!(skipped, []);
    json
}

/// The document, and what is not in it.
fn converted(archive: &[u8]) -> (Vec<u8>, Vec<(String, u64)>) {
    let mut json = Vec::new();
    let dialect = Dialect::Chrome(Container::Array);
    let summary =
        catapult::convert_in_memory(archive, &mut json, Options { dialect, ..Options::default() }).unwrap();
    (json, summary.skipped)
}

/// Lists are text, as they stand in the document.
fn expected() -> Vec<Value> {
    let mut args: Vec<Value> =
        document().as_array().unwrap().iter().map(|event| event["args"].clone()).collect();
    let list = serde_json::to_string(&args[2]["list"]).unwrap();
    args[2]["list"] = Value::from(list);
    args
}

//= docs/import.md#arguments
//= docs/format.md#further-arguments
#[test]
fn all_arguments_come_through() {
    let (archive, summary) = imported(&document().to_string());
    assert_eq!((summary.events, summary.skipped), (6, vec![]));
    let found = arguments(&chrome(&archive));
    assert_eq!(found, expected());
    // And once more.
    let (again, _) = imported(&String::from_utf8(chrome(&archive)).unwrap());
    assert_eq!(arguments(&chrome(&again)), expected());
    let mut reader = Reader::of_slice(&archive).unwrap();
    let (mut blobs, mut events) = (0, 0);
    while let Some(record) = reader.next_item().unwrap() {
        match record.item {
            Item::FurtherArguments(piece) => {
                assert!(piece.len() <= 32_000 && record.bytes.len() <= 8 * 4095);
                blobs += 1;
            }
            Item::Event(_) => events += 1,
            _ => {}
        }
    }
    // Of the third event 360 kB, and of the last one 32 kB and a name.
    assert_eq!((blobs, events), (1 + 1 + 12 + 1 + 2, 6));
    assert_eq!(reader.warnings().count(), 0);
}

//= docs/format.md#further-arguments
#[test]
fn several_threads_write_the_same_arguments() {
    let (archive, _) = imported(&document().to_string());
    let convert = |threads: usize, batch_bytes: usize| {
        let mut packets = Vec::new();
        let options = perfetto::Options { jobs: Jobs { threads, batch_bytes }, ..Default::default() };
        perfetto::convert_with(&archive[..], &mut packets, options).unwrap();
        packets
    };
    let alone = convert(1, 1 << 20);
    assert!(alone.len() > 400_000, "{}", alone.len());
    for batch_bytes in [1, 40_000, 1 << 20] {
        assert!(convert(3, batch_bytes) == alone, "{batch_bytes}");
    }
}

/// What is to be removed is removed from blobs, too.
//= docs/filter.md#arguments
//= docs/format.md#further-arguments
#[test]
fn filtered_archives_have_the_arguments_that_are_kept() {
    let (archive, _) = imported(&document().to_string());
    let filter = |options: FilterOptions| {
        let mut output = Vec::new();
        filtered::filter(|| Ok(&archive[..]), &mut output, &options).unwrap();
        output
    };
    assert_eq!(arguments(&chrome(&filter(FilterOptions::default()))), expected());
    let kept = FilterOptions {
        strips_arguments: true,
        kept_arguments: vec!["a039".to_owned(), "source".to_owned()],
        ..FilterOptions::default()
    };
    let kept = filter(kept);
    let found = arguments(&chrome(&kept));
    assert_eq!(found[0], json!({"a039": 39}));
    assert_eq!(found[2], json!({"source": "x".repeat(300_000)}));
    assert_eq!((&found[1], &found[3]), (&Value::Null, &Value::Null));
    let redacted = filter(FilterOptions { redacts_texts: true, ..FilterOptions::default() });
    for long in [b"sssss", b"xxxxx", b"7,7,7"] {
        assert!(!redacted.windows(5).any(|bytes| bytes == long), "{long:?}");
    }
    assert_eq!(arguments(&chrome(&redacted)).len(), 6);
}

/// Further arguments belong to the next event, and to no other.
//= docs/format.md#further-arguments
#[test]
fn blobs_without_their_event_are_not_those_of_another() {
    let (archive, _) = imported(&document().to_string());
    let mut without = Vec::new();
    let mut reader = Reader::of_slice(&archive).unwrap();
    let mut dropped = 0;
    while let Some(record) = reader.next_item().unwrap() {
        // An object is where the event was.
        if let Item::Event(event) = &record.item
            && !event.arguments.further().is_empty()
            && dropped == 0
        {
            dropped += 1;
            without.extend_from_slice(&[0x0001_0027_u64 + (1 << 24), 5].map(u64::to_le_bytes).concat());
            continue;
        }
        without.extend_from_slice(record.bytes);
    }
    assert_eq!(dropped, 1);
    assert_eq!(arguments(&chrome(&without)), expected()[1..]);
    assert_eq!(warnings(&without), ["lost-arguments"]);
}

fn warnings(archive: &[u8]) -> Vec<&'static str> {
    let mut reader = Reader::of_slice(archive).unwrap();
    while reader.next_item().unwrap().is_some() {}
    reader.warnings().by_kind().map(|(kind, ..)| kind).collect()
}

/// What is behind a missing or damaged blob could be read as anything.
//= docs/format.md#further-arguments
#[test]
fn an_event_without_one_of_its_blobs_has_no_further_arguments() {
    let text = "PASSWORD=secret-".repeat(6000);
    let event =
        json!([{"ph": "X", "ts": 1, "dur": 1, "pid": 1, "tid": 2, "args": {"m": 2, "n": 1, "text": text}}]);
    let (archive, _) = imported(&event.to_string());
    let mut places = Vec::new();
    let mut reader = Reader::of_slice(&archive).unwrap();
    while let Some(record) = reader.next_item().unwrap() {
        if let Item::FurtherArguments(_) = record.item {
            let start = record.offset.0 as usize;
            places.push(start..start + record.bytes.len());
        }
    }
    assert_eq!(places.len(), 4);
    for place in &places {
        let missing = [&archive[..place.start], &archive[place.end..]].concat();
        assert_eq!(arguments(&chrome(&missing)), [json!({"m": 2, "n": 1})]);
        assert_eq!(warnings(&missing), ["lost-arguments"]);
        let mut zeroed = archive.clone();
        zeroed[place.clone()].fill(0);
        assert_eq!(arguments(&chrome(&zeroed)), [json!({"m": 2, "n": 1})]);
        // The head of the blob: its version, the sum, and the place.
        for byte in [24, 26, 32] {
            let mut damaged = archive.clone();
            damaged[place.start + byte] ^= 4;
            assert_eq!(arguments(&converted(&damaged).0), [json!({"m": 2, "n": 1})], "{byte}");
            assert_eq!(warnings(&damaged), ["lost-arguments"], "{byte}");
        }
    }
}
