//! Data that a reader has not taken yet.

use crate::sys;
use rustix::fs::{FileType, fstat};
use std::os::fd::AsFd;

/// The number of bytes that were written into a pipe or a connection and not read yet; 0 for everything else.
/// For a socket of this machine it may be more than was written, and is 0 exactly if nothing is left.
#[must_use]
pub fn unread(object: &impl AsFd) -> u64 {
    let Ok(stat) = fstat(object) else { return 0 };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo => rustix::io::ioctl_fionread(object).unwrap_or(0),
        FileType::Socket => sys::unread_by_peer(object).map_or(0, |bytes| bytes as u64),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn what_lies_in_a_pipe_is_unread() {
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        assert_eq!(unread(&writer), 0);
        writer.write_all(&[7; 100]).unwrap();
        assert_eq!(unread(&writer), 100);
        reader.read_exact(&mut [0; 60]).unwrap();
        assert_eq!(unread(&writer), 40);
    }

    #[test]
    fn what_a_connection_has_not_delivered_is_unread() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut writer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut reader, _) = listener.accept().unwrap();
        writer.set_nonblocking(true).unwrap();
        let mut written = 0;
        while let Ok(length) = writer.write(&[7; 1 << 16]) {
            written += length;
        }
        let left = unread(&writer);
        assert!(left > 0 && left <= written as u64, "{left} of {written}");
        writer.set_nonblocking(false).unwrap();
        reader.read_exact(&mut vec![0; written]).unwrap();
        // Until the last of it is acknowledged.
        while unread(&writer) > 0 {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_file_has_no_reader() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 100]).unwrap();
        assert_eq!(unread(&file), 0);
    }
}
