//! The members of a ZIP archive.

use super::ContainerError;
use super::members::{MAX_MEMBERS, Member, Members, Packing};
use ::zip::read::ZipFile;
use ::zip::{CompressionMethod, ZipArchive};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;

const WHAT: &str = "ZIP archive";
/// The end of the archive: its fixed part, and the comment behind it at most.
const END_BYTES: usize = 22;
const MAX_COMMENT_BYTES: usize = 0xffff;
const END: [u8; 4] = *b"PK\x05\x06";
/// The list of all members is kept in memory.
const MAX_LIST_BYTES: u32 = 16 << 20;

/// Whether a file begins like an archive, which may be empty.
pub(super) fn is_zip(start: &[u8]) -> bool {
    start.starts_with(b"PK\x03\x04") || start.starts_with(&END)
}

pub(super) fn members(file: Arc<File>) -> Result<Members, ContainerError> {
    check_size(&file)?;
    let bad = |error: &dyn std::fmt::Display| ContainerError::Bad { what: WHAT, problem: error.to_string() };
    let mut archive = ZipArchive::new(BufReader::new(&*file)).map_err(|error| bad(&error))?;
    let mut members = Members::new(WHAT, file.clone());
    for index in 0..archive.len() {
        let member = archive.by_index_raw(index).map_err(|error| bad(&error))?;
        if let Some(member) = described(&member) {
            members.push(member)?;
        }
    }
    Ok(members)
}

/// A member that may be a trace: a file, and no copy of another system's attributes of one.
fn described(member: &ZipFile<'_, impl Read>) -> Option<Member> {
    let name = member.name().to_owned();
    let is_aside = name.starts_with("__MACOSX/");
    if is_aside || !member.is_file() || member.size() == 0 {
        return None;
    }
    let packing = match member.compression() {
        _ if member.encrypted() => Packing::Unsupported("is encrypted"),
        CompressionMethod::Stored => Packing::Plain,
        CompressionMethod::DEFLATE => Packing::Deflate { crc: member.crc32() },
        _ => Packing::Unsupported("is compressed with another method than deflate"),
    };
    Some(Member { name, at: member.data_start()?, length: member.compressed_size(), packing })
}

/// Refuses an archive whose list of members would need too much memory.
fn check_size(mut file: &File) -> Result<(), ContainerError> {
    let length = file.metadata()?.len();
    let tail = length.min((END_BYTES + MAX_COMMENT_BYTES) as u64);
    file.seek(SeekFrom::Start(length - tail))?;
    let mut bytes = Vec::new();
    file.take(tail).read_to_end(&mut bytes)?;
    file.seek(SeekFrom::Start(0))?;
    let is_too_large = |end: &[u8]| {
        let field =
            |at: usize| end.get(at..at + 4).and_then(|field| field.try_into().ok()).map(u32::from_le_bytes);
        let members = field(8).unwrap_or_default() >> 16;
        members as usize > MAX_MEMBERS || field(12).unwrap_or_default() > MAX_LIST_BYTES
    };
    // The reader may take any of them for the end.
    match bytes.windows(END_BYTES).any(|end| end.starts_with(&END) && is_too_large(end)) {
        true => Err(ContainerError::TooMany { what: WHAT, limit: MAX_MEMBERS }),
        false => Ok(()),
    }
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
        let error = members(Arc::new(file)).err().unwrap();
        assert_eq!(error.to_string(), "the ZIP archive has more than 10000 members");
    }
}
