//! Long files that are written faster than a disk is used to: work that would stop the writer for a moment
//! later is begun in advance.

use crate::sys;
use rustix::fs::{FallocateFlags, fallocate, fstatfs};
use std::fs::File;

/// Shorter files are left alone.
const MIN_BYTES: u64 = 16 << 20;
/// How much is reserved at a time.
const RESERVED_BYTES: u64 = 64 << 20;
/// After how many bytes the disk is to write them.
const WRITE_BACK_BYTES: u64 = 8 << 20;
/// `EXT4_SUPER_MAGIC` of `linux/magic.h`.
const EXT4: u64 = 0xef53;

/// A file that is written from its beginning on, without gaps.
///
/// The disk writes the data as it comes, not when there is so much of it that all writers have to wait. On
/// ext4, blocks are reserved behind the end of the file: it finds them for each page otherwise, which takes
/// longer than copying the page does.
#[derive(Debug)]
pub struct Ahead {
    /// Blocks are reserved up to here; none if that is not possible, or no gain.
    reserved: Option<u64>,
    /// The disk was asked to write up to here.
    begun: u64,
}

impl Ahead {
    /// For a file of which nothing is written yet. May take as long as its file system wants, as all of this.
    #[must_use]
    pub fn new(file: &File) -> Self {
        let is_ext4 = fstatfs(file).is_ok_and(|stat| u64::try_from(stat.f_type) == Ok(EXT4));
        Self { reserved: is_ext4.then_some(0), begun: 0 }
    }

    /// The file has so many bytes now.
    pub fn advance(&mut self, file: &File, written: u64) {
        if written < MIN_BYTES {
            return;
        }
        if let Some(reserved) = self.reserved.filter(|reserved| *reserved < written + WRITE_BACK_BYTES) {
            let begin = reserved.max(written);
            let more = fallocate(file, FallocateFlags::KEEP_SIZE, begin, RESERVED_BYTES);
            // A disk that is nearly full has no room for it, but perhaps for what is written.
            self.reserved = more.ok().map(|()| begin + RESERVED_BYTES);
        }
        if written >= self.begun + WRITE_BACK_BYTES {
            sys::begin_writing_back(file, self.begun..written);
            self.begun = written;
        }
    }

    /// Nothing follows: gives back what was reserved behind the end.
    pub fn end(&mut self, file: &File) {
        if self.reserved.take().is_some_and(|reserved| reserved > 0) {
            // Another process may have made it shorter.
            let _ = file.metadata().and_then(|metadata| file.set_len(metadata.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileExt, MetadataExt};

    #[test]
    fn a_long_file_has_no_more_blocks_than_it_needs_at_its_end() {
        let file = tempfile::tempfile().unwrap();
        let mut ahead = Ahead::new(&file);
        let is_reserving = ahead.reserved.is_some();
        let piece = vec![7; 1 << 20];
        for number in 0..20 {
            file.write_all_at(&piece, number << 20).unwrap();
            ahead.advance(&file, (number + 1) << 20);
            let has_begun = number + 1 >= MIN_BYTES >> 20;
            assert_eq!(ahead.begun > 0, has_begun);
            assert_eq!(ahead.reserved.is_some_and(|reserved| reserved > 0), is_reserving && has_begun);
        }
        assert_eq!(file.metadata().unwrap().len(), 20 << 20);
        let bytes = || file.metadata().unwrap().blocks() * 512;
        assert!(!is_reserving || bytes() >= RESERVED_BYTES, "{}", bytes());
        ahead.end(&file);
        file.sync_all().unwrap();
        assert_eq!(file.metadata().unwrap().len(), 20 << 20);
        assert!(bytes() < 21 << 20, "{}", bytes());
    }
}
