//! What is fuzzed: plain functions of bytes, which `cargo fuzz` feeds and a test replays over the corpus.
#![allow(dead_code, reason = "each program uses one of them")]

use serde_json::Value;
use std::io;
use trace_convert::catapult::{Container, Dialect, Options};
use trace_convert::folded::Roots;
use trace_convert::tables::{self, Csv, CsvTexts, Trace};
use trace_convert::{Filter, Jobs, Odd, OddFinder, catapult, firefox, folded, import, perfetto, speedscope};
use trace_format::metadata::MAGIC_WORD;
use trace_reader::{Disorder, Item, Reader};

/// Exports records behind a magic number: a document is whole, also where the archive is not.
pub fn export(data: &[u8]) {
    let trace = [&MAGIC_WORD.to_le_bytes(), data].concat();
    for dialect in [Dialect::Fuchsia, Dialect::Chrome(Container::Array), Dialect::Chrome(Container::Object)] {
        let mut document = Vec::new();
        let options = Options { dialect, ..Options::default() };
        let summary = catapult::convert_in_memory(&trace, &mut document, options);
        let _: Value = serde_json::from_slice(&document).expect("a whole document");
        // Several threads write the same.
        for (threads, batch_bytes) in [(2, 64), (3, 1000)] {
            let mut shared = Vec::new();
            let options = Options { dialect, jobs: Jobs { threads, batch_bytes }, ..Options::default() };
            let found = catapult::convert_in_memory(&trace, &mut shared, options);
            assert_eq!(found.ok(), summary.as_ref().ok().cloned());
            assert!(shared == document, "{threads} threads");
        }
    }
    let mut packets = Vec::new();
    let summary = perfetto::convert(&trace, &mut packets, Filter::default());
    for (threads, batch_bytes) in [(2, 64), (3, 1000)] {
        let mut shared = Vec::new();
        let odd = Some(Odd::find_in(&trace, OddFinder::default()).unwrap_or_default());
        let options = perfetto::Options { jobs: Jobs { threads, batch_bytes }, odd, ..Default::default() };
        let found = perfetto::convert_with(&*trace, &mut shared, options);
        assert_eq!(found.ok(), summary.as_ref().ok().cloned());
        assert!(shared == packets, "{threads} threads");
    }
    for roots in [Roots::Processes, Roots::Threads] {
        let _ = folded::convert(&*trace, io::sink(), trace_convert::Filter::default(), roots);
        let _ = folded::convert_slices(in_memory(&trace), io::sink(), Filter::default(), roots);
    }
    profiles(&trace);
    let disorder = Disorder::find(&*trace).unwrap_or_default();
    let mut csv = Csv::new(CsvTexts::Unchanged, |_| Ok(io::sink())).expect("a sink");
    let _ = tables::fill(&*trace, &disorder, &mut csv, Filter::default());
    #[cfg(feature = "parquet")]
    {
        let trace = Trace { disorder: Some(disorder), ..in_memory(&trace) };
        let _ = tables::write_parquet(trace, &Filter::default(), |_| Ok(io::sink()));
    }
}

fn in_memory(archive: &[u8]) -> Trace {
    let archive = archive.to_vec();
    let open = move || Ok(Box::new(io::Cursor::new(archive.clone())) as Box<dyn io::Read>);
    Trace { name: String::new(), open: Box::new(open), disorder: None, bytes: None }
}

/// Documents for profilers are whole; what speedscope insists on holds, and Firefox's columns are of one
/// length.
fn profiles(archive: &[u8]) {
    let list = |value: &Value| value.as_array().expect("a list").clone();
    let mut document = Vec::new();
    if speedscope::convert(in_memory(archive), &mut document, Filter::default()).is_ok() {
        let document: Value = serde_json::from_slice(&document).expect("a whole document");
        let frames = list(&document["shared"]["frames"]).len() as u64;
        for profile in list(&document["profiles"]) {
            if profile["type"] == "sampled" {
                assert_eq!(list(&profile["samples"]).len(), list(&profile["weights"]).len());
                continue;
            }
            let (mut open, mut at) = (Vec::new(), 0);
            for event in list(&profile["events"]) {
                let (frame, time) = (event["frame"].as_u64(), event["at"].as_u64());
                assert!(frame < Some(frames) && time >= Some(at), "{profile}");
                at = time.unwrap_or_default();
                if event["type"] == "O" { open.push(frame) } else { assert_eq!(open.pop(), Some(frame)) }
            }
            assert!(open.is_empty() && profile["endValue"].as_u64() >= Some(at), "{profile}");
        }
    }
    let mut document = Vec::new();
    if firefox::convert(in_memory(archive), &mut document, Filter::default()).is_ok() {
        let document: Value = serde_json::from_slice(&document).expect("a whole document");
        for thread in list(&document["threads"]) {
            for table in ["samples", "markers", "stackTable", "frameTable", "funcTable", "resourceTable"] {
                let columns = thread[table].as_object().expect("an object");
                let lengths =
                    columns.values().filter_map(Value::as_array).map(|column| Some(column.len() as u64));
                lengths
                    .for_each(|length| assert_eq!(length, columns["length"].as_u64(), "{table}: {thread}"));
            }
        }
    }
}

/// Imports JSON.
pub fn import_json(data: &[u8]) {
    let mut archive = Vec::new();
    let _ = import::json::import(data, &mut archive);
    is_sound(&archive);
}

/// Imports ftrace's text.
pub fn import_ftrace(data: &[u8]) {
    let mut archive = Vec::new();
    let _ = import::ftrace::import(data, &mut archive);
    is_sound(&archive);
}

/// Imports Perfetto's packets.
pub fn import_perfetto(data: &[u8]) {
    let _ = import::perfetto::is_perfetto(data, true);
    let mut archive = Vec::new();
    let _ = import::perfetto::import(data, &mut archive);
    is_sound(&archive);
}

/// Opens a trace in containers, and imports it.
pub fn container(data: &[u8]) {
    let _ = import::other_format(data);
    for member in [None, Some("a"), Some("a:b")] {
        let Ok(opened) = import::container::open(io::Cursor::new(data.to_vec()), member) else { continue };
        let mut archive = Vec::new();
        let mut input = io::Read::take(opened.input, MOST_CONTAINED_BYTES);
        match opened.format {
            Some(format) => {
                let _ = format.import(input, &mut archive);
                is_sound(&archive);
            }
            None => {
                let _ = io::copy(&mut input, &mut io::sink());
            }
        }
    }
}

/// How much of what is in a container is imported.
const MOST_CONTAINED_BYTES: u64 = 16 << 20;

/// There is a sound archive, also where the input is not sound.
fn is_sound(archive: &[u8]) {
    let mut reader = Reader::of_slice(archive).expect("an archive");
    while let Some(item) = reader.next_item().expect("a whole archive") {
        assert!(!matches!(item.item, Item::Damage { .. }), "{item:?}");
    }
}
