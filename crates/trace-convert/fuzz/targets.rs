//! What is fuzzed: plain functions of bytes, which `cargo fuzz` feeds and a test replays over the corpus.
#![allow(dead_code, reason = "each program uses one of them")]

use serde_json::Value;
use std::io;
use trace_convert::catapult::{Container, Dialect, Options};
use trace_convert::{catapult, import, perfetto};
use trace_format::metadata::MAGIC_WORD;
use trace_reader::{Item, Reader};

/// Exports records behind a magic number: a document is whole, also where the archive is not.
pub fn export(data: &[u8]) {
    let trace = [&MAGIC_WORD.to_le_bytes(), data].concat();
    for dialect in [Dialect::Fuchsia, Dialect::Chrome(Container::Array), Dialect::Chrome(Container::Object)] {
        let mut document = Vec::new();
        let options = Options { dialect, ..Options::default() };
        let _ = catapult::convert_with(&*trace, &mut document, options);
        let _: Value = serde_json::from_slice(&document).expect("a whole document");
    }
    let _ = perfetto::convert(&*trace, io::sink(), trace_convert::Filter::default());
}

/// Imports a text: there is a sound archive, also where the text is not.
pub fn import(data: &[u8]) {
    let mut archive = Vec::new();
    let _ = import::json::import(data, &mut archive);
    let mut reader = Reader::of_slice(&archive).expect("an archive");
    while let Some(item) = reader.next_item().expect("a whole archive") {
        assert!(!matches!(item.item, Item::Damage { .. }), "{item:?}");
    }
}
