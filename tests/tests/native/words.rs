//! The same calls in Rust, C and C++ make the same records, word for word.

use super::programs::record;
use std::path::Path;
use trace_format::record::{RecordHeader, RecordType};
use trace_tests::{Requirement, Sandbox, build, native};

/// Bits of an event's header that say what kind it is.
const COMPLETE: u64 = 4;
/// Words of the header, the references and the timestamp of a large blob that is an event.
const BLOB_TIME: usize = 2;

/// Strings, events and blobs of an archive, with zeros for what is a time or an id of the process.
fn words(program: &Path) -> Vec<Vec<u64>> {
    let (sandbox, _) = record(program, &[]);
    let bytes = std::fs::read(sandbox.file("trace.fxt")).expect("the archive");
    let words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let mut kept = Vec::new();
    let mut rest = words.as_slice();
    let mut is_provider = false;
    while let Some(header) = rest.first() {
        let header = RecordHeader(*header);
        let kind = header.record_type();
        let size = if kind == Some(RecordType::Large) {
            header.0 >> 4 & 0xffff_ffff
        } else {
            header.size().0 as u64
        };
        let (record, behind) = rest.split_at(size as usize);
        rest = behind;
        let mut record = record.to_vec();
        match kind {
            // A provider's name, or its section; the manager is number 0.
            Some(RecordType::Metadata) if matches!(header.0 >> 16 & 15, 1 | 2) => {
                is_provider = header.0 >> 20 & 0xffff_ffff != 0;
            }
            Some(RecordType::String) if is_provider => kept.push(record),
            // What the manager says of a provider has its name inline.
            Some(RecordType::Blob) if is_provider && header.0 >> 31 & 1 == 0 => kept.push(record),
            Some(RecordType::Event) if is_provider => {
                assert_ne!(header.0 >> 24 & 0xff, 0, "threads are indexed");
                record[1] = 0;
                if header.0 >> 16 & 15 == COMPLETE {
                    *record.last_mut().expect("words") = 0;
                }
                kept.push(record);
            }
            Some(RecordType::Large) if is_provider => {
                if header.0 >> 36 & 15 == 0 {
                    record[BLOB_TIME] = 0;
                }
                kept.push(record);
            }
            _ => {}
        }
    }
    kept
}

#[test]
fn records_of_c_and_cxx_are_those_of_rust() {
    if !Requirement::Compilers.is_met("records_of_c_and_cxx_are_those_of_rust") {
        return;
    }
    let expected = words(build::program("words"));
    // 3 blobs; 16 events, and 3 times 18 texts, a duration, a counter and 3 of a flow.
    assert_eq!(expected.len(), 3 + 16 + 3 * 23 + strings(&expected), "{expected:x?}");
    let sandbox = Sandbox::new();
    let c = native::C.map(|compiler| (compiler, "words.c", "-std=gnu11"));
    let cxx = native::CXX.map(|compiler| (compiler, "words.cc", "-std=c++17"));
    for (compiler, source, standard) in c.into_iter().chain(cxx) {
        for optimization in ["-O0", "-O3"] {
            let program = sandbox.file("words");
            native::program(compiler, &[source], &[standard, optimization], &program);
            assert_eq!(words(&program), expected, "{compiler} {optimization}");
        }
    }
}

fn strings(records: &[Vec<u64>]) -> usize {
    records.iter().filter(|record| RecordHeader(record[0]).record_type() == Some(RecordType::String)).count()
}
