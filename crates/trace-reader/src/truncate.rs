//! Where the last whole record of a trace ends that was cut off while it was written.

use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};
use trace_format::record::RecordHeader;

const BUFFER_BYTES: usize = 1 << 20;

/// Bytes at the beginning of a trace that are whole records. Only their sizes are looked at.
///
/// # Errors
/// The input cannot be read.
pub fn complete_records_end(input: &mut (impl Read + Seek)) -> io::Result<u64> {
    let length = input.seek(SeekFrom::End(0))?;
    input.seek(SeekFrom::Start(0))?;
    let mut input = BufReader::with_capacity(BUFFER_BYTES, input);
    let mut end = 0;
    loop {
        let mut word = [0; 8];
        match input.read_exact(&mut word) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(end),
            read => read?,
        }
        let size = RecordHeader(u64::from_le_bytes(word)).size().bytes() as u64;
        if size == 0 || size > length - end {
            return Ok(end);
        }
        input.seek_relative(i64::try_from(size - 8).unwrap_or(i64::MAX))?;
        end += size;
    }
}

/// The same of an input that can be read once, such as data that is decompressed; and whether it ends there.
///
/// # Errors
/// The input cannot be read. That it is cut off is no error.
pub fn complete_records(input: impl Read) -> io::Result<(u64, bool)> {
    let mut input = BufReader::new(input);
    let mut end = 0;
    loop {
        let mut word = [0; 8];
        let mut filled = 0;
        while filled < word.len() {
            match input.read(&mut word[filled..]) {
                Ok(0) => return Ok((end, filled == 0)),
                Ok(read) => filled += read,
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok((end, false)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let size = RecordHeader(u64::from_le_bytes(word)).size().bytes() as u64;
        let Some(rest) = size.checked_sub(8) else { return Ok((end, false)) };
        match io::copy(&mut input.by_ref().take(rest), &mut io::sink()) {
            Ok(copied) if copied == rest => end += size,
            Ok(_) => return Ok((end, false)),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok((end, false)),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{COMPLETE, bytes};
    use std::io::Cursor;

    #[test]
    fn wherever_it_is_cut_whole_records_remain() {
        let bytes = bytes(&COMPLETE);
        let mut ends = vec![0];
        while let Some(word) = bytes[ends[ends.len() - 1]..].first_chunk::<8>() {
            ends.push(ends[ends.len() - 1] + RecordHeader(u64::from_le_bytes(*word)).size().bytes());
        }
        assert!(ends.len() > 10 && ends.last() == Some(&bytes.len()));
        for length in 0..=bytes.len() {
            let expected = ends.iter().rfind(|end| **end <= length).unwrap();
            let whole = complete_records_end(&mut Cursor::new(&bytes[..length])).unwrap();
            assert_eq!(whole, *expected as u64, "cut at byte {length}");
            let is_end = *expected == length;
            assert_eq!(complete_records(&bytes[..length]).unwrap(), (whole, is_end), "cut at byte {length}");
        }
    }

    #[test]
    fn a_record_without_a_size_ends_it() {
        assert_eq!(complete_records_end(&mut Cursor::new([0; 64])).unwrap(), 0);
        assert_eq!(complete_records(&[0; 64][..]).unwrap(), (0, false));
    }
}
