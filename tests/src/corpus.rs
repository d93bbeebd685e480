//! The conformance corpus: small traces, one for each kind of record and boundary value.
//!
//! Where the format's documentation has a worked example, the words stand here in hexadecimal, so that the
//! corpus does not depend on this project's encoder. Everything else is made by it.

use crate::build::workspace;
use std::path::PathBuf;
use trace_analysis::check::{Limits, check_slice};
use trace_format::record::Record;
use trace_format::sink::Sink;
use trace_reader::Reader;
use trace_reader::dump::Line;

mod damaged;
mod events;
mod records;

/// One file of the corpus.
#[derive(Clone, Debug)]
pub struct File {
    /// Its name, without suffix.
    pub name: String,
    /// What it shows, in a few words.
    pub shows: &'static str,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// All files, in the order of their names.
#[must_use]
pub fn files() -> Vec<File> {
    let mut corpus = Corpus(Vec::new());
    records::add(&mut corpus);
    events::add(&mut corpus);
    damaged::add(&mut corpus);
    corpus.0.sort_by(|a, b| a.name.cmp(&b.name));
    corpus.0
}

/// The files, while they are made.
struct Corpus(Vec<File>);

impl Corpus {
    fn add(&mut self, name: &str, shows: &'static str, trace: &Trace) {
        self.0.push(File { name: name.to_owned(), shows, bytes: trace.0.clone() });
    }

    /// A file with these words behind the prelude.
    fn add_words(&mut self, name: &str, shows: &'static str, words: &[u64]) {
        self.add(name, shows, &Trace::prelude().words(words));
    }

    /// A file with this record behind the prelude.
    fn add_record(&mut self, name: &str, shows: &'static str, record: &Record<'_>) {
        self.add(name, shows, &Trace::prelude().record(record));
    }
}

/// A trace that grows.
#[derive(Clone, Debug)]
struct Trace(Vec<u8>);

impl Sink for Trace {
    fn word(&mut self, word: u64) {
        self.0.extend(word.to_le_bytes());
    }
}

impl Trace {
    const MAGIC: u64 = 0x0016_5478_4604_0010;

    fn empty() -> Self {
        Self(Vec::new())
    }

    fn magic() -> Self {
        Self::empty().words(&[Self::MAGIC])
    }

    /// Magic number, provider 1 "corpus", nanoseconds, strings 1 "cat", 2 "name", 3 "arg" and 4 "process",
    /// thread 1 of process 1234: 5678.
    fn prelude() -> Self {
        Self::magic().words(&[
            0x0060_0000_0011_0020,
            0x0000_7375_7072_6f63,
            0x0000_0000_0000_0021,
            0x0000_0000_3b9a_ca00,
            0x0000_0003_0001_0022,
            0x0000_0000_0074_6163,
            0x0000_0004_0002_0022,
            0x0000_0000_656d_616e,
            0x0000_0003_0003_0022,
            0x0000_0000_0067_7261,
            0x0000_0007_0004_0022,
            0x0073_7365_636f_7270,
            0x0000_0000_0001_0033,
            0x0000_0000_0000_04d2,
            0x0000_0000_0000_162e,
        ])
    }

    fn words(mut self, words: &[u64]) -> Self {
        words.iter().for_each(|word| self.word(*word));
        self
    }

    fn record(mut self, record: &Record<'_>) -> Self {
        record.encode(&mut self).expect("a record that can be written");
        self
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }
}

/// What a reader must find in a file: the lines of `trace dump`, then the problems of `trace check`, each
/// with how often it is found and where first.
///
/// # Panics
///
/// If the bytes are no trace.
#[must_use]
pub fn expected(bytes: &[u8]) -> String {
    let mut reader = Reader::of_slice(bytes).expect("a trace");
    let mut text = String::new();
    // A lost position ends the lines, and is a problem.
    while let Ok(Some(record)) = reader.next_item() {
        text.push_str(&format!("{}\n", Line(&record)));
    }
    let report = check_slice(bytes, Limits::default()).expect("a trace");
    let problems = report.problems.iter().map(|problem| ('!', problem));
    for (mark, found) in problems.chain(report.remarks.iter().map(|remark| ('~', remark))) {
        let offset = found.first[0].offset.0;
        text.push_str(&format!("{mark} {} {} {offset:#010x}\n", found.kind, found.count));
    }
    text
}

/// The table of all files, for the corpus's own page.
#[must_use]
pub fn table() -> String {
    let rows = files()
        .into_iter()
        .map(|file| format!("| `{}` | {} | {} |\n", file.name, file.bytes.len(), file.shows));
    format!("| file | bytes | shows |\n|---|---|---|\n{}", rows.collect::<String>())
}

/// The line of each file in the corpus's package.
#[must_use]
pub fn cases() -> String {
    let lines = files().into_iter().map(|file| format!("    case!({:?}, {:?}),\n", file.name, file.shows));
    format!("{CASES_HEADING}{}];\n", lines.collect::<String>())
}

/// Where the lines stand in the package.
pub const CASES_HEADING: &str = "pub const CASES: &[Case] = &[\n";

/// Where the corpus lies.
#[must_use]
pub fn directory() -> PathBuf {
    workspace().join("tests/data/corpus")
}

/// Where the table stands in the corpus's page.
pub const TABLE_HEADING: &str = "## Files\n\n";
