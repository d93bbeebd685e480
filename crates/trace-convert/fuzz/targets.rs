//! What is fuzzed: plain functions of bytes, which `cargo fuzz` feeds and a test replays over the corpus.
#![allow(dead_code, reason = "each program uses one of them")]

use serde_json::Value;
use std::io;
use trace_convert::catapult::{Container, Dialect, Options};
use trace_convert::tables::{self, Csv};
use trace_convert::{Filter, Jobs, catapult, folded, import, perfetto};
use trace_format::metadata::MAGIC_WORD;
use trace_reader::{Disorder, Item, Reader};

/// Exports records behind a magic number: a document is whole, also where the archive is not.
pub fn export(data: &[u8]) {
    let trace = [&MAGIC_WORD.to_le_bytes(), data].concat();
    for dialect in [Dialect::Fuchsia, Dialect::Chrome(Container::Array), Dialect::Chrome(Container::Object)] {
        let mut document = Vec::new();
        let options = Options { dialect, ..Options::default() };
        let summary = catapult::convert_with(&*trace, &mut document, options);
        let _: Value = serde_json::from_slice(&document).expect("a whole document");
        // Several threads write the same.
        for (threads, batch_bytes) in [(2, 64), (3, 1000)] {
            let mut shared = Vec::new();
            let options = Options { dialect, jobs: Jobs { threads, batch_bytes }, ..Options::default() };
            let found = catapult::convert_with(&*trace, &mut shared, options);
            assert_eq!(found.ok(), summary.as_ref().ok().cloned());
            assert!(shared == document, "{threads} threads");
        }
    }
    let _ = perfetto::convert(&*trace, io::sink(), Filter::default());
    let _ = folded::convert(&*trace, io::sink());
    let disorder = Disorder::find(&*trace).unwrap_or_default();
    let mut csv = Csv::new(|_| Ok(io::sink())).expect("a sink");
    let _ = tables::fill(&*trace, &disorder, &mut csv, Filter::default());
    #[cfg(feature = "parquet")]
    {
        let open = move || Ok(Box::new(io::Cursor::new(trace.clone())) as Box<dyn io::Read>);
        let trace = tables::Trace {
            name: String::new(),
            open: Box::new(open),
            disorder: Some(disorder),
            bytes: None,
        };
        let _ = tables::write_parquet(trace, &Filter::default(), |_| Ok(io::sink()));
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

/// There is a sound archive, also where the input is not sound.
fn is_sound(archive: &[u8]) {
    let mut reader = Reader::of_slice(archive).expect("an archive");
    while let Some(item) = reader.next_item().expect("a whole archive") {
        assert!(!matches!(item.item, Item::Damage { .. }), "{item:?}");
    }
}
