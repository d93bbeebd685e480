//! The bytes of every message are committed: a change of them is a change of the protocol.
//!
//! `UPDATE_GOLDEN=1 cargo test -p trace-protocol` rewrites the files in `testdata/`.

mod support;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use support::{H, Sample, samples};

fn golden_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(format!("{name}.hex"))
}

/// Sixteen bytes to a line, beginning with the header on a line of its own.
fn render(sample: &Sample, bytes: &[u8], handles: &[H]) -> String {
    let mut text = format!("# {}: {} bytes, handles {:?}\n", sample.name, bytes.len(), handles);
    let (header, body) = bytes.split_at(8);
    for line in std::iter::once(header).chain(body.chunks(16)) {
        let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(text, "{}", hex.join(" ")).unwrap();
    }
    text
}

fn parse(text: &str) -> Vec<u8> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(str::split_whitespace)
        .map(|byte| u8::from_str_radix(byte, 16).unwrap())
        .collect()
}

#[test]
fn every_message_has_the_committed_bytes() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1");
    for sample in samples() {
        let encoded = sample.message.clone().encode(sample.txid).unwrap();
        let text = render(&sample, &encoded.bytes, &encoded.handles);
        let path = golden_path(sample.name);
        if update {
            fs::write(&path, &text).unwrap();
        }
        let committed =
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(text, committed, "{}", sample.name);
    }
}

#[test]
fn the_committed_bytes_decode_to_the_samples() {
    for sample in samples() {
        let bytes = parse(&fs::read_to_string(golden_path(sample.name)).unwrap());
        let handles = sample.message.clone().encode(sample.txid).unwrap().handles;
        let (txid, message) = sample.message.decode_alike(&bytes, handles).unwrap();
        assert_eq!((txid, &message), (sample.txid, &sample.message));
    }
}

#[test]
fn no_committed_file_lacks_a_sample() {
    let mut names: Vec<String> = samples().iter().map(|sample| format!("{}.hex", sample.name)).collect();
    names.sort();
    let mut files: Vec<String> = fs::read_dir(golden_path("x").parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files, names);
}

//= docs/protocol.md#a-recording-is-announced
#[test]
fn a_recording_is_announced_in_a_file_of_this_name() {
    assert_eq!(trace_protocol::registry::recording_of(1000), "recording.1000");
}
