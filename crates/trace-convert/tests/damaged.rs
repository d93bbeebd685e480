//! Each file of the conformance corpus, when it is cut anywhere, and when any bit is another.
#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;
use trace_analysis::check::{Limits, check, check_slice};
use trace_reader::dump::{Line, RawLine};
use trace_reader::{Disorder, Item, Reader, Records};

/// Files of at most this size are damaged bit by bit.
const SMALL_BYTES: usize = 600;

struct File {
    name: String,
    bytes: Vec<u8>,
}

fn files() -> Vec<File> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/corpus");
    let paths = fs::read_dir(corpus).expect("a directory").map(|entry| entry.expect("an entry").path());
    let traces = paths.filter(|path| path.extension().is_some_and(|extension| extension == "fxt"));
    let file = |path: std::path::PathBuf| File {
        name: path.file_stem().expect("a name").to_string_lossy().into_owned(),
        bytes: fs::read(&path).expect("a file"),
    };
    let files: Vec<File> = traces.map(file).collect();
    assert!(files.len() > 100, "{}", files.len());
    files
}

fn lines(bytes: &[u8]) -> Vec<String> {
    // Cut within its first record a file may look like something else.
    let Ok(mut reader) = Reader::of_slice(bytes) else { return Vec::new() };
    let mut lines = Vec::new();
    while let Ok(Some(record)) = reader.next_item() {
        lines.push(Line(&record).to_string());
    }
    lines
}

#[test]
fn any_cut_gives_the_records_before_it() {
    for file in files() {
        // Damage is reported by what comes behind it.
        let is_damaged = file.name.starts_with("damage-");
        let whole = lines(&file.bytes);
        let ends: Vec<usize> = Records::of_slice(&file.bytes)
            .map_while(Result::ok)
            .map(|record| record.offset.0 as usize + record.size.bytes())
            .collect();
        for cut in 1..file.bytes.len() {
            let found = lines(&file.bytes[..cut]);
            if is_damaged {
                continue;
            }
            assert!(whole.starts_with(&found), "{} cut at {cut}", file.name);
            let expected = ends.iter().filter(|end| **end <= cut).count();
            assert_eq!(found.len(), expected, "{} cut at {cut}", file.name);
            let Ok(report) = check(&file.bytes[..cut], Limits::default(), &Disorder::default()) else {
                assert!(cut < 8, "{} cut at {cut}", file.name);
                continue;
            };
            let is_cut = report.problems.iter().any(|problem| problem.kind == "truncated");
            let last = ends.iter().filter(|end| **end <= cut).max().copied().unwrap_or(0);
            let zeros = file.bytes[last..cut].iter().all(|byte| *byte == 0) && cut % 8 == 0;
            assert_eq!(is_cut, last != cut && !zeros, "{} cut at {cut}", file.name);
        }
    }
}

#[test]
fn any_flipped_bit_is_survived() {
    let mut flips = 0;
    for file in files().into_iter().filter(|file| file.bytes.len() <= SMALL_BYTES) {
        let mut damaged = file.bytes.clone();
        for bit in 0..damaged.len() * 8 {
            damaged[bit / 8] ^= 1 << (bit % 8);
            survive(&damaged);
            damaged[bit / 8] ^= 1 << (bit % 8);
            flips += 1;
        }
    }
    assert!(flips > 100_000, "{flips}");
}

/// Reads in all ways: every byte is accounted for, and slices and streams see the same.
fn survive(bytes: &[u8]) {
    let Ok(mut reader) = Reader::of_slice(bytes) else { return };
    let mut last = None;
    while let Ok(Some(record)) = reader.next_item() {
        assert!(last < Some(record.offset), "{record:?}");
        last = Some(record.offset);
        let (line, raw) = (Line(&record).to_string(), RawLine(&record).to_string());
        assert!(!line.contains('\n') && !raw.contains('\n'));
        if let Item::Damage { bytes: damaged } = record.item {
            assert!(damaged >= 8 && record.offset.0 + damaged <= bytes.len() as u64);
        }
    }
    let report = check_slice(bytes, Limits::default()).expect("it was a trace before");
    let disorder = Disorder::find(bytes).expect("it was a trace before");
    let streamed = check(bytes, Limits::default(), &disorder).expect("it was a trace before");
    assert_eq!(report.problems, streamed.problems);
    assert_eq!(report.bytes, bytes.len() as u64);
    let _ = trace_convert::catapult::convert(bytes, std::io::sink());
}
