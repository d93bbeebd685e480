//! The members of a tar archive.

use super::super::ended::End;
use super::ContainerError;
use super::members::{MAX_NAME_BYTES, Member, Members, Packing};
use ::tar::{Archive, Entry, EntryType, PaxExtensions};
use std::fs::File;
use std::io::{BufReader, Read};
use std::sync::Arc;

const WHAT: &str = "tar archive";
const BLOCK_BYTES: u64 = 512;
/// Where all but the oldest archives have a signature.
const SIGNATURE_AT: usize = 257;
/// A longer list of attributes of a member is not looked at.
const MAX_ATTRIBUTES_BYTES: u64 = 64 << 10;

/// Whether a file begins like an archive.
pub(super) fn is_tar(start: &[u8]) -> bool {
    start.get(SIGNATURE_AT..).is_some_and(|rest| rest.starts_with(b"ustar"))
}

pub(super) fn members(file: Arc<File>, end: &End) -> Result<Members, ContainerError> {
    let bad = |error: std::io::Error| ContainerError::Bad { what: WHAT, problem: error.to_string() };
    let mut archive = Archive::new(BufReader::new(&*file));
    let mut members = Members::new(WHAT, file.clone(), end)?;
    let (mut long_name, mut end_of_last) = (None, 0);
    // Entries are taken as they are: names of any length would be read into memory otherwise.
    for entry in archive.entries_with_seek().map_err(bad)?.raw(true) {
        let mut entry = match entry {
            Ok(entry) => entry,
            // What is before the damage can be read.
            Err(error) if !members.list.is_empty() => {
                end.is(std::io::Error::new(error.kind(), bad(error)));
                break;
            }
            Err(error) => return Err(bad(error)),
        };
        end_of_last =
            entry.raw_file_position().saturating_add(entry.size()).div_ceil(BLOCK_BYTES) * BLOCK_BYTES;
        match entry.header().entry_type() {
            EntryType::GNULongName => long_name = text(&mut entry),
            EntryType::XHeader => long_name = pax_name(&mut entry).or(long_name),
            EntryType::Regular | EntryType::Continuous => {
                let own = || String::from_utf8_lossy(&entry.path_bytes()).into_owned();
                let name =
                    long_name.take().filter(|name: &String| name.len() <= MAX_NAME_BYTES).unwrap_or_else(own);
                let (at, length) = (entry.raw_file_position(), entry.size());
                if length > 0 {
                    let name = name.strip_prefix("./").unwrap_or(&name).to_owned();
                    members.push(Member { name, at, length, packing: Packing::Plain })?;
                }
            }
            _ => long_name = None,
        }
    }
    // The archive ends with blocks of zeros.
    if file.metadata()?.len() <= end_of_last {
        members.is_cut_off();
    }
    Ok(members)
}

/// The contents of an entry that is about the next one, without the zero at its end.
fn text(entry: &mut Entry<'_, impl Read>) -> Option<String> {
    let text = bytes(entry)?;
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    Some(String::from_utf8_lossy(&text[..end]).into_owned())
}

fn pax_name(entry: &mut Entry<'_, impl Read>) -> Option<String> {
    let bytes = bytes(entry)?;
    let path = PaxExtensions::new(&bytes).flatten().find(|extension| extension.key_bytes() == b"path");
    path.map(|path| String::from_utf8_lossy(path.value_bytes()).into_owned())
}

fn bytes(entry: &mut Entry<'_, impl Read>) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    (entry.size() <= MAX_ATTRIBUTES_BYTES).then_some(())?;
    entry.take(MAX_ATTRIBUTES_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
