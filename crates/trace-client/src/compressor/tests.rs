use super::*;
use std::io::Read;
use std::os::unix::fs::FileExt;
use tempfile::NamedTempFile;
use trace_convert::seekable::FRAME_BYTES;
use zx_sim::{Signals, wait_one};

const LIVE: Manner = Manner { level: 1, has_records: true };
const WORD: usize = 8;

/// Records of so many words, each with a number behind its header.
fn records(sizes: impl Iterator<Item = usize>) -> Vec<u8> {
    let record = |(number, words): (u64, usize)| {
        let header = 4 | (words as u64) << 4;
        let body = std::iter::once(header).chain(std::iter::repeat_n(number, words - 1));
        body.flat_map(u64::to_le_bytes).collect::<Vec<u8>>()
    };
    (0..).zip(sizes).flat_map(record).collect()
}

/// Bytes of each frame, by the table.
fn frames(bytes: &[u8]) -> Vec<usize> {
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let footer = bytes.len() - 9;
    let begin = footer - 8 * number(footer);
    (begin..footer).step_by(8).map(|entry| number(entry + 4)).collect()
}

/// All of a file. The thread writes where its position is.
fn contents(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn start(file: &File) -> Compressor {
    Compressor::start(Place::File(Bounded::new(file.try_clone().unwrap())), LIVE, true).unwrap()
}

fn wait_until_written(compressor: &Compressor) {
    while compressor.pending(|| 0) > 0 {
        wait_one(compressor.news(), Signals::READABLE, None).unwrap();
        compressor.take_news().unwrap();
    }
}

//= docs/recording.md#compressed-while-it-is-recorded
#[test]
fn frames_end_at_the_ends_of_records() {
    let archive = records((0..).map(|number| 2 + number % 37).take(20_000));
    let mut ends = vec![0];
    while let Some(word) = archive[ends[ends.len() - 1]..].first_chunk::<WORD>() {
        ends.push(ends[ends.len() - 1] + (u64::from_le_bytes(*word) >> 4) as usize * WORD);
    }
    assert_eq!(*ends.last().unwrap(), archive.len());
    for piece in [1000, 100_003, 256 << 10] {
        let named = NamedTempFile::new().unwrap();
        let file = named.as_file();
        let mut compressor = start(file);
        for piece in archive.chunks(piece) {
            compressor.push(&mut piece.to_vec()).unwrap();
        }
        wait_until_written(&compressor);
        compressor.finish().unwrap();
        let bytes = contents(file);
        assert_eq!(compressor.written(), bytes.len() as u64);
        assert_eq!(zstd::decode_all(&bytes[..]).unwrap(), archive);
        let frames = frames(&bytes);
        assert_eq!(frames.iter().sum::<usize>(), archive.len());
        let mut end = 0;
        for frame in &frames {
            end += frame;
            assert!(ends.binary_search(&end).is_ok(), "{piece} at a time: {frames:?}");
        }
        let (_, full) = frames.split_last().unwrap();
        assert!(
            full.len() >= 2
                && full.iter().all(|frame| (FRAME_BYTES - (257 << 10)..=FRAME_BYTES).contains(frame))
        );
    }
}

/// The program that waits for its buffer does not wait for a frame to be full.
//= docs/protocol.md#confirmations
#[test]
fn what_has_come_is_readable_soon_and_only_then_counts() {
    let named = NamedTempFile::new().unwrap();
    let file = named.as_file();
    let mut compressor = start(file);
    let archive = records([2; 100].into_iter());
    // Half of the last record: it does not count.
    compressor.push(&mut archive[..archive.len() - WORD].to_vec()).unwrap();
    let whole = archive.len() - 2 * WORD;
    while compressor.pending(|| 0) > WORD as u64 {
        wait_one(compressor.news(), Signals::READABLE, None).unwrap();
        compressor.take_news().unwrap();
    }
    assert_eq!(compressor.pending(|| 0), WORD as u64);
    let mut decoded = Vec::new();
    zstd::Decoder::new(&contents(file)[..]).unwrap().read_to_end(&mut decoded).unwrap_err();
    assert_eq!(decoded, archive[..whole]);
    // Bytes that a pipe's reader has not taken do not count either, in compressed ones.
    compressor.push(&mut archive[archive.len() - WORD..].to_vec()).unwrap();
    while contents(file).len() == decoded.len() || compressor.shared.points().waiting.is_empty() {
        wait_one(compressor.news(), Signals::READABLE, None).unwrap();
        let _ = compressor.news.read(&mut [0; 64]);
    }
    assert_eq!(compressor.pending(|| 1), 2 * WORD as u64);
    assert_eq!(compressor.pending(|| 0), 0);
    // When this is dropped, the file is whole.
    drop(compressor);
    assert_eq!(zstd::decode_all(&contents(file)[..]).unwrap(), archive);
}

/// Without the end of a record that was never to come.
#[test]
fn what_is_cut_off_ends_with_a_whole_record() {
    let archive = records([3; 50].into_iter());
    for (finishes, expected) in [(false, archive.len() - 3 * WORD), (true, archive.len() - 1)] {
        let named = NamedTempFile::new().unwrap();
        let file = named.as_file();
        let mut compressor = start(file);
        compressor.push(&mut archive[..archive.len() - 1].to_vec()).unwrap();
        if finishes {
            compressor.finish().unwrap();
        }
        drop(compressor);
        assert_eq!(zstd::decode_all(&contents(file)[..]).unwrap(), archive[..expected]);
    }
}

#[test]
fn a_file_that_another_process_cuts_is_an_error() {
    let file = NamedTempFile::new().unwrap();
    let mut compressor = start(file.as_file());
    let archive = records([3; 50].into_iter());
    compressor.push(&mut archive.clone()).unwrap();
    wait_until_written(&compressor);
    file.as_file().set_len(1).unwrap();
    compressor.push(&mut archive.clone()).unwrap();
    assert_eq!(compressor.finish().unwrap_err().to_string(), "it was made shorter while it was written");
    assert_eq!(compressor.pending(|| 0), archive.len() as u64);
    assert!(compressor.push(&mut archive.clone()).unwrap_err().to_string().contains("made shorter"));
}

#[test]
fn points_of_an_unread_pipe_are_bounded_and_never_too_far() {
    let mut points = Points::default();
    for number in 1..=100_000 {
        points.push((number, 10 * number));
        assert!(points.waiting.len() <= MAX_POINTS);
    }
    let mut last = 0;
    for unread in (0..=100_000).rev().step_by(7) {
        let read = points.read(unread);
        assert!(read <= 10 * (100_000 - unread) && read >= last);
        last = read;
    }
    assert_eq!(points.read(0), 1_000_000);
}
