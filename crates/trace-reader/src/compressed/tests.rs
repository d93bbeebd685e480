use crate::records::{ReadError, Records};
use crate::testing::{COMPLETE, COMPLETE_STARTS, bytes};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn zstd(data: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

/// Records of an archive, and how it ended.
fn count(data: &[u8]) -> (usize, Option<ReadError>) {
    let mut records = match Records::archive(data) {
        Ok(records) => records,
        Err(error) => return (0, Some(error)),
    };
    let mut count = 0;
    loop {
        match records.next_record() {
            Ok(Some(_)) => count += 1,
            Ok(None) => return (count, None),
            Err(error) => return (count, Some(error)),
        }
    }
}

#[test]
fn compressed_archives_are_recognized_by_their_content() {
    let trace = bytes(&COMPLETE);
    for data in [gzip(&trace), zstd(&trace)] {
        assert!(matches!(count(&data), (10, None)));
        // Two members, one behind the other, are one archive.
        assert!(matches!(count(&[&data[..], &data].concat()), (20, None)));
    }
    assert_eq!(COMPLETE_STARTS.len(), 10);
}

//= docs/import.md#what-is-cut-off
#[test]
fn zeros_behind_gzip_data_are_padding() {
    let data = gzip(&bytes(&COMPLETE));
    for padding in [1, 7, 512, 20_000] {
        let padded = [&data[..], &vec![0; padding]].concat();
        assert!(matches!(count(&padded), (10, None)), "{padding}");
        assert!(matches!(count(&[&padded[..], &data].concat()), (20, None)), "{padding}");
        let error = cause(count(&[&padded[..], b"x"].concat()).1);
        assert_eq!(error, "the gzip data is cut off", "{padding}");
        let error = cause(count(&[&padded[..], b"something else"].concat()).1);
        assert_eq!(error, "bad gzip data: invalid gzip header", "{padding}");
    }
}

#[test]
fn what_is_inside_must_be_a_trace() {
    for data in [gzip(b"hello, world"), zstd(b"hello, world")] {
        let error = count(&data).1.unwrap();
        assert_eq!(error.to_string(), "expected a Fuchsia trace, found text");
    }
    let twice = count(&gzip(&gzip(&bytes(&COMPLETE)))).1.unwrap();
    assert_eq!(twice.to_string(), "expected a Fuchsia trace, found gzip data");
}

/// What kept an input from being read.
fn cause(error: Option<ReadError>) -> String {
    match error {
        Some(ReadError::Io { source, .. }) => source.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn bad_data_keeps_what_came_before_it() {
    // Enough that does not compress for several blocks.
    let mut words = vec![COMPLETE[0]];
    let mut state = 1_u64;
    for _ in 0..100_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        words.extend([0x44, state, 1, 2]);
    }
    let trace = bytes(&words);
    for (data, name) in [(gzip(&trace), "gzip"), (zstd(&trace), "zstd")] {
        let (found, error) = count(&data[..data.len() / 2]);
        assert!((10_000..100_000).contains(&found), "{found}");
        let error = cause(error);
        assert!(error.ends_with(&format!("the {name} data is cut off")), "{error}");
        let mut bad = data.clone();
        for byte in &mut bad[data.len() / 2..data.len() / 2 + 1000] {
            *byte = !*byte;
        }
        // Random bytes may be valid data, until the checksum.
        let (found, error) = count(&bad);
        assert!(found >= 1000 && error.is_some(), "{name}: {found}");
    }
    let trace = bytes(&COMPLETE);
    for data in [gzip(&trace), zstd(&trace)] {
        for cut in 4..data.len() {
            let (found, error) = count(&data[..cut]);
            assert!(error.is_some() || found == 10, "cut at {cut}");
        }
    }
}

#[test]
fn a_window_beyond_8_mib_is_refused_with_advice() {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(27).unwrap();
    encoder.include_contentsize(false).unwrap();
    encoder.write_all(&bytes(&COMPLETE)).unwrap();
    let error = cause(count(&encoder.finish().unwrap()).1);
    assert!(error.contains("a window of more than 8 MiB; decompress it first"), "{error}");
}

#[test]
//= docs/format.md#malformed-input
fn bombs_are_refused() {
    let trace = bytes(&COMPLETE);
    let zeros = vec![0; 16 << 20];
    // 2 GiB of zeros behind a trace: as one frame of zstd, and as members of gzip, whose best ratio is 1 to
    // 1032.
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.write_all(&trace).unwrap();
    (0..128).for_each(|_| encoder.write_all(&zeros).unwrap());
    let zstd = encoder.finish().unwrap();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&zeros).unwrap();
    let gzip = [gzip(&trace), encoder.finish().unwrap().repeat(128)].concat();
    for (bomb, name) in [(zstd, "zstd"), (gzip, "gzip")] {
        assert!(bomb.len() < 2_200_000, "{}", bomb.len());
        let (found, error) = count(&bomb);
        assert_eq!(found, 10);
        let error = cause(error);
        assert!(
            error.contains(&format!("the {name} data grows to more than 1000 times its size")),
            "{error}"
        );
    }
}
