use super::*;
use std::io::Read;

/// Bytes that compress like records, and are nowhere the same.
fn data(length: usize) -> Vec<u8> {
    (0_u64..).flat_map(|number| u64::to_le_bytes(number * 1050)).take(length).collect()
}

fn decompressed(bytes: &[u8]) -> Vec<u8> {
    zstd::decode_all(bytes).unwrap()
}

fn number(bytes: &[u8]) -> usize {
    u32::from_le_bytes(bytes.try_into().unwrap()) as usize
}

/// The entries of the table at the end, read as the format's description says.
fn table(bytes: &[u8]) -> Vec<(usize, usize)> {
    let footer = bytes.len() - 9;
    assert_eq!(bytes[footer + 4..], [0, 0xb1, 0xea, 0x92, 0x8f]);
    let frames = number(&bytes[footer..footer + 4]);
    let begin = footer - 8 * frames;
    assert_eq!(bytes[begin - 8..begin - 4], [0x5e, 0x2a, 0x4d, 0x18]);
    assert_eq!(number(&bytes[begin - 4..begin]), 8 * frames + 9);
    let entries = bytes[begin..footer].chunks(8);
    entries.map(|entry| (number(&entry[..4]), number(&entry[4..]))).collect()
}

#[test]
fn each_frame_is_read_alone_where_the_table_says() {
    let data = data(5 * FRAME_BYTES / 2);
    for piece in [1000, 128 << 10, data.len()] {
        let mut writer = Writer::new(Vec::new(), FAST_LEVEL).unwrap();
        data.chunks(piece).for_each(|piece| writer.write_all(piece).unwrap());
        let bytes = writer.finish().unwrap();
        assert!(bytes.len() < data.len(), "{}", bytes.len());
        assert_eq!(decompressed(&bytes), data);
        let (mut place, mut content) = (0, 0);
        for (compressed, plain) in table(&bytes) {
            let frame = &bytes[place..place + compressed];
            assert_eq!(decompressed(frame), data[content..content + plain], "{piece} at a time");
            // With a checksum of what it holds, and no larger window than a frame.
            let mut damaged = frame.to_vec();
            *damaged.last_mut().unwrap() ^= 1;
            assert!(zstd::decode_all(&damaged[..]).is_err());
            let mut decoder = zstd::Decoder::new(frame).unwrap();
            decoder.window_log_max(20).unwrap();
            decoder.read_to_end(&mut Vec::new()).unwrap();
            (place, content) = (place + compressed, content + plain);
        }
        let sizes: Vec<usize> = table(&bytes).into_iter().map(|(_, plain)| plain).collect();
        assert_eq!(sizes, [FRAME_BYTES, FRAME_BYTES, FRAME_BYTES / 2]);
        assert_eq!(place, bytes.len() - (8 + 3 * 8 + 9), "the table comes right behind");
    }
}

#[test]
fn a_frame_can_end_sooner() {
    let data = data(3000);
    let mut writer = Writer::new(Vec::new(), DEFAULT_LEVEL).unwrap();
    for piece in data.chunks(1000) {
        assert_eq!(writer.room(), FRAME_BYTES);
        writer.write_all(piece).unwrap();
        assert_eq!(writer.room(), FRAME_BYTES - 1000);
        writer.end_frame().unwrap();
        writer.end_frame().unwrap();
    }
    let bytes = writer.finish().unwrap();
    let sizes: Vec<usize> = table(&bytes).into_iter().map(|(_, plain)| plain).collect();
    assert_eq!(sizes, [1000; 3]);
    assert_eq!(decompressed(&bytes), data);
}

/// What a decoder gets out of data that ends too soon.
fn decompressed_so_far(bytes: &[u8]) -> Vec<u8> {
    let mut decoder = zstd::Decoder::new(bytes).unwrap();
    let (mut all, mut piece) = (Vec::new(), [0; 4096]);
    while let Ok(read @ 1..) = decoder.read(&mut piece) {
        all.extend_from_slice(&piece[..read]);
    }
    all
}

#[test]
fn what_was_flushed_can_be_read_wherever_the_rest_is_cut_off() {
    let data = data(300_000);
    let mut writer = Writer::new(Vec::new(), FAST_LEVEL).unwrap();
    let mut flushed = Vec::new();
    for piece in data.chunks(70_000) {
        writer.write_all(piece).unwrap();
        writer.flush().unwrap();
        flushed.push(writer.written() as usize);
    }
    let last = writer.written();
    writer.flush().unwrap();
    assert_eq!(writer.written(), last, "nothing more to flush");
    let bytes = writer.output().clone();
    for (number, length) in (1..).zip(flushed) {
        assert_eq!(decompressed_so_far(&bytes[..length]), data[..data.len().min(number * 70_000)]);
        // One byte less is a block less.
        assert!(decompressed_so_far(&bytes[..length - 1]).len() < number * 70_000 - 1000);
    }
}

#[test]
fn nothing_is_a_frame_too() {
    let bytes = Writer::new(Vec::new(), FAST_LEVEL).unwrap().finish().unwrap();
    assert_eq!(bytes[..4], [0x28, 0xb5, 0x2f, 0xfd]);
    assert_eq!(decompressed(&bytes), [0; 0]);
    assert_eq!(table(&bytes), [(bytes.len() - 25, 0)]);
}

/// A disk that is full.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = bytes.len().min(self.0);
        self.0 -= written;
        if written == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(written) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_error_of_the_output_is_reported_and_does_not_count() {
    let data = data(1000);
    let mut writer = Writer::new(Full(40), FAST_LEVEL).unwrap();
    writer.write_all(&data).unwrap();
    assert_eq!(writer.flush().unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(writer.written(), 0);
}
