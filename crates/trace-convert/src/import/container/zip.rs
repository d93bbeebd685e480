//! The members of a ZIP archive.

use super::super::ended::End;
use super::ContainerError;
use super::layer::Part;
use super::members::{MAX_MEMBERS, MAX_NAME_BYTES, Member, Members, Packing};
use ::zip::read::ZipFile;
use ::zip::result::ZipError;
use ::zip::{CompressionMethod, ZipArchive};
use flate2::bufread::DeflateDecoder;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::sync::Arc;

const WHAT: &str = "ZIP archive";
/// The end of the archive: its fixed part, and the comment behind it at most.
const END_BYTES: usize = 22;
const MAX_COMMENT_BYTES: usize = 0xffff;
const END: [u8; 4] = *b"PK\x05\x06";
/// What is before each member: its fixed part.
const HEADER: [u8; 4] = *b"PK\x03\x04";
const HEADER_BYTES: usize = 30;
/// Flags of a member: its checksum and sizes are behind it.
const ENCRYPTED: u16 = 1;
const SIZES_BEHIND: u16 = 8;
/// Methods of compression.
const STORED: u16 = 0;
const DEFLATED: u16 = 8;
/// The tag of sizes of 8 bytes.
const LARGE_SIZES: [u8; 2] = [1, 0];
/// The list of all members is kept in memory.
const MAX_LIST_BYTES: u32 = 16 << 20;

/// Whether a file begins like an archive, which may be empty.
pub(super) fn is_zip(start: &[u8]) -> bool {
    start.starts_with(&HEADER) || start.starts_with(&END)
}

pub(super) fn members(file: Arc<File>, end: &End) -> Result<Members, ContainerError> {
    let count = checked_count(&file)?;
    let mut members = Members::new(WHAT, file.clone(), end)?;
    let listed = ZipArchive::new(BufReader::new(&*file)).and_then(|archive| match archive.offset() {
        0 => Ok(archive),
        // It is the list of another archive, in a member of this one.
        _ => Err(ZipError::InvalidArchive("no list of its members".into())),
    });
    match listed {
        Ok(mut archive) if archive.len() == count => {
            for index in 0..archive.len() {
                match archive.by_index_raw(index) {
                    Ok(member) => described(&member).map_or(Ok(()), |member| members.push(member))?,
                    Err(error) => end.is(io::Error::other(bad(&error))),
                }
            }
        }
        // The library knows the last one of several members of one name.
        Ok(_) => unlisted(&file, &mut members)?,
        Err(error) => {
            unlisted(&file, &mut members)?;
            if members.list.is_empty() {
                return Err(bad(&error));
            }
            let problem = "the ZIP archive is cut off, or the list of its members is damaged";
            end.is(io::Error::new(ErrorKind::UnexpectedEof, problem));
        }
    }
    Ok(members)
}

fn bad(error: &ZipError) -> ContainerError {
    ContainerError::Bad { what: WHAT, problem: error.to_string() }
}

/// A member that may be a trace.
fn described(member: &ZipFile<'_, impl Read>) -> Option<Member> {
    let name = member.name().to_owned();
    let is_trace = member.is_file() && member.size() > 0 && !is_aside(&name);
    let method = match member.compression() {
        CompressionMethod::Stored => STORED,
        CompressionMethod::DEFLATE => DEFLATED,
        _ => u16::MAX,
    };
    let packing = packing(method, member.encrypted(), Some(member.crc32()));
    is_trace.then_some(Member { name, at: member.data_start()?, length: member.compressed_size(), packing })
}

/// Whether a member is a directory, or a copy of another system's attributes of a file.
fn is_aside(name: &str) -> bool {
    name.ends_with('/') || name.starts_with("__MACOSX/")
}

fn packing(method: u16, is_encrypted: bool, crc: Option<u32>) -> Packing {
    match method {
        _ if is_encrypted => Packing::Unsupported("is encrypted"),
        STORED => Packing::Stored { crc },
        DEFLATED => Packing::Deflate { crc },
        _ => Packing::Unsupported("is compressed with another method than deflate"),
    }
}

/// The members of an archive without a list, by the header before each of them, up to one whose end is not
/// known. Each byte is decompressed once, to find where such a member ends.
fn unlisted(file: &Arc<File>, members: &mut Members) -> Result<(), ContainerError> {
    let mut at = 0;
    while let Some(Header { flags, method, crc, packed, name, start }) = Header::read(file, at)? {
        let is_encrypted = flags & ENCRYPTED != 0;
        let (mut length, mut crc) = (packed, Some(crc));
        let mut next = packed.and_then(|packed| start.checked_add(packed));
        if flags & SIZES_BEHIND != 0 {
            let is_readable = method == DEFLATED && !is_encrypted;
            length = if is_readable { deflated_length(file, start)? } else { None };
            (next, crc) = match length {
                Some(length) => behind(file, start + length)?,
                None => (None, None),
            };
        }
        if length != Some(0) && !is_aside(&name) {
            let packing = match length {
                None if method != DEFLATED && !is_encrypted => Packing::Unsupported("has no size before it"),
                _ => packing(method, is_encrypted, crc),
            };
            let length = length.unwrap_or(file.metadata()?.len().saturating_sub(start));
            members.push(Member { name, at: start, length, packing })?;
        }
        let Some(next) = next.filter(|next| i64::try_from(*next).is_ok()) else { break };
        at = next;
    }
    Ok(())
}

/// What is before a member.
struct Header {
    flags: u16,
    method: u16,
    crc: u32,
    packed: Option<u64>,
    name: String,
    /// Where the member begins.
    start: u64,
}

impl Header {
    /// None if there is no header here, or not all of it.
    fn read(file: &Arc<File>, at: u64) -> io::Result<Option<Self>> {
        let fixed = bytes(file, at, HEADER_BYTES)?;
        if fixed.len() < HEADER_BYTES || !fixed.starts_with(&HEADER) {
            return Ok(None);
        }
        let short = |at: usize| u16::from_le_bytes([fixed[at], fixed[at + 1]]);
        let long = |at: usize| u32::from(short(at)) | u32::from(short(at + 2)) << 16;
        let (name, extra) = (usize::from(short(26)), usize::from(short(28)));
        let variable = bytes(file, at + HEADER_BYTES as u64, name + extra)?;
        if variable.len() < name + extra {
            return Ok(None);
        }
        let packed = match long(18) {
            u32::MAX => large_size(&variable[name..]),
            packed => Some(packed.into()),
        };
        let start = at + (HEADER_BYTES + name + extra) as u64;
        let name = String::from_utf8_lossy(&variable[..name.min(MAX_NAME_BYTES)]).into_owned();
        Ok(Some(Self { flags: short(6), method: short(8), crc: long(14), packed, name, start }))
    }
}

/// The compressed size of a member for which its field is too small.
fn large_size(mut extra: &[u8]) -> Option<u64> {
    while let [tag @ .., length_low, length_high] = extra.get(..4)? {
        let length = usize::from(u16::from_le_bytes([*length_low, *length_high]));
        let field = extra.get(4..4 + length)?;
        if *tag == LARGE_SIZES {
            // The other size is before it.
            return Some(u64::from_le_bytes(field.get(8..16)?.try_into().ok()?));
        }
        extra = &extra[4 + length..];
    }
    None
}

/// How long deflated data is; none if it has no end.
fn deflated_length(file: &Arc<File>, at: u64) -> io::Result<Option<u64>> {
    let mut decoder = DeflateDecoder::new(BufReader::new(Part::new(file, at, u64::MAX - at)));
    let mut to = vec![0; 64 << 10];
    loop {
        match decoder.read(&mut to) {
            Ok(0) => return Ok(Some(decoder.total_in())),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::UnexpectedEof) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Where the sizes behind a member end, and its checksum; none if something else is there.
fn behind(file: &Arc<File>, at: u64) -> io::Result<(Option<u64>, Option<u32>)> {
    let bytes = bytes(file, at, 28)?;
    // Sizes have 4 or 8 bytes each. The signature before the checksum may be missing.
    for length in [12, 16, 20, 24] {
        let is_next = |next: &[u8]| next.starts_with(&HEADER) || next.starts_with(b"PK\x01\x02");
        if bytes.get(length..).is_some_and(|rest| rest.is_empty() || is_next(rest)) {
            let crc = bytes.strip_prefix(b"PK\x07\x08").unwrap_or(&bytes).first_chunk().copied();
            return Ok((Some(at + length as u64), crc.map(u32::from_le_bytes)));
        }
    }
    Ok((None, None))
}

/// So many bytes of a file, or those that are there.
fn bytes(file: &Arc<File>, at: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Part::new(file, at, length as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// How many members an archive has. It is refused if their list would need too much memory.
fn checked_count(mut file: &File) -> Result<usize, ContainerError> {
    let length = file.metadata()?.len();
    let tail = length.min((END_BYTES + MAX_COMMENT_BYTES) as u64);
    file.seek(SeekFrom::Start(length - tail))?;
    let mut bytes = Vec::new();
    file.take(tail).read_to_end(&mut bytes)?;
    file.seek(SeekFrom::Start(0))?;
    let mut count = 0;
    // The reader may take any of them for the end.
    for end in bytes.windows(END_BYTES).filter(|end| end.starts_with(&END)) {
        count = usize::from(u16::from_le_bytes([end[10], end[11]]));
        let list = u32::from_le_bytes([end[12], end[13], end[14], end[15]]);
        if count > MAX_MEMBERS || list > MAX_LIST_BYTES {
            return Err(ContainerError::TooMany { what: WHAT, limit: MAX_MEMBERS });
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_with_too_many_members_is_refused_before_they_are_listed() {
        let mut file = tempfile::tempfile().unwrap();
        let mut end = [0; END_BYTES];
        end[..4].copy_from_slice(&END);
        end[10..12].copy_from_slice(&10_001_u16.to_le_bytes());
        std::io::Write::write_all(&mut file, &end).unwrap();
        let error = members(Arc::new(file), &End::default()).err().unwrap();
        assert_eq!(error.to_string(), "the ZIP archive has more than 10000 members");
    }
}
