//! Traces inside other files: archives of files, compressed text, pages, text in another encoding.
//!
//! A file is a chain of layers, each of which is recognized by its first bytes. What a layer contains is read
//! as a stream where the format permits; archives and pages, whose members have to be known before one of
//! them is chosen, are copied into an unlinked file first. Nothing in a page is executed.
//!
//! ```text
//! bugs.tar.gz ─▶ gzip ─▶ tar, of its members one is a trace ─▶ trace.json.gz ─▶ gzip ─▶ JSON
//! ```
//!
//! Depth, number of members, and growth from the file to the trace are limited.
//= docs/import.md#containers

mod layer;
mod members;
mod page;
mod tar;
mod text;
mod zip;

use super::ended::{End, Ended};
use super::format::{Format, is_archive};
use super::json;
use layer::{Bounded, Compressed, Outermost};
use members::{Chosen, Members};
use std::io::{self, Chain, Cursor, Read};
use text::{Prefixed, Utf16};
use trace_reader::{FileKind, Plain};

/// How much of a layer is examined to determine its format.
pub const SNIFFED_BYTES: usize = 64 << 10;
/// How many containers may be inside each other.
const MAX_DEPTH: usize = 8;

/// Why what a file contains cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContainerError {
    /// It cannot be read or copied.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// It is damaged, or has what is not supported.
    // prints: bad ZIP archive: it is encrypted
    #[error("bad {what}: {problem}")]
    Bad {
        /// The container.
        what: &'static str,
        /// The error.
        problem: String,
    },
    /// There are too many containers.
    // prints: more than 8 containers inside each other; unpack the outer ones first
    #[error("more than {MAX_DEPTH} containers inside each other; unpack the outer ones first")]
    TooDeep,
    /// There are too many members.
    // prints: the ZIP archive has more than 10000 members
    #[error("the {what} has more than {limit} members")]
    TooMany {
        /// The container.
        what: &'static str,
        /// How many are read.
        limit: usize,
    },
    /// It has several traces.
    // prints: 2 traces in the ZIP archive, of which one has to be chosen: a.json, b.json
    #[error("{count} traces in the {what}, of which one has to be chosen: {names}")]
    Several {
        /// The container.
        what: &'static str,
        /// How many.
        count: usize,
        /// The first of them.
        names: String,
        /// One of them.
        example: String,
    },
    /// It has no trace.
    // prints: no trace in the ZIP archive, which has: a.txt, b.txt
    #[error("no trace in the {what}, which has: {names}")]
    NoTrace {
        /// The container.
        what: &'static str,
        /// What it has instead.
        names: String,
    },
    /// It has no member of this name.
    // prints: no "c.json" in the ZIP archive, which has: a.json, b.json
    #[error("no {wanted:?} in the {what}, which has: {names}")]
    NoMember {
        /// The name.
        wanted: String,
        /// The container.
        what: &'static str,
        /// What it has instead.
        names: String,
    },
    /// The file is no container, and has no members.
    #[error("the file is no archive, from which {wanted:?} could be read")]
    NoContainer {
        /// The name.
        wanted: String,
    },
}

impl ContainerError {
    /// The reason why there is no such trace, if what would have it ends too early.
    fn because_of(self, end: &End) -> Self {
        match self {
            Self::Bad { .. } | Self::NoTrace { .. } | Self::NoMember { .. } => {
                end.reason().map_or(self, Self::Read)
            }
            _ => self,
        }
    }
}

/// A trace, out of its containers.
pub struct Opened {
    /// All of it, decompressed.
    pub input: Box<dyn Read + Send>,
    /// The format of the trace; none for an archive, and for unknown data.
    pub format: Option<Format>,
    /// What has to be said about members that were passed over.
    pub remarks: Vec<String>,
}

/// What the first bytes of a layer, decompressed, show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// No container.
    Bare(Option<Format>),
    /// Compressed, perhaps a second time.
    Compressed,
    Zip,
    Tar,
    /// HTML.
    Page,
    Utf16 {
        is_big_endian: bool,
    },
    /// Text of so many bytes, and compressed text behind it.
    AtraceZ {
        header: usize,
    },
    /// JSON with text of so many bytes before it.
    Prefixed {
        text: usize,
    },
}

impl Kind {
    pub fn of(start: &[u8], is_whole: bool) -> Self {
        if is_archive(start) {
            return Self::Bare(None);
        }
        if matches!(FileKind::of(start), FileKind::Gzip | FileKind::Zstd) {
            return Self::Compressed;
        }
        if zip::is_zip(start) {
            return Self::Zip;
        }
        if tar::is_tar(start) {
            return Self::Tar;
        }
        if let Some(is_big_endian) = text::utf16_order(start) {
            return Self::Utf16 { is_big_endian };
        }
        if page::is_page(start) {
            return Self::Page;
        }
        if let Some(header) = text::atrace_header(start) {
            return Self::AtraceZ { header };
        }
        match Format::of(start, is_whole)
            .filter(|_| !json::is_odd_list(start) || text::prefix(start).is_none())
        {
            Some(format) => Self::Bare(Some(format)),
            None => text::prefix(start).map_or(Self::Bare(None), |text| Self::Prefixed { text }),
        }
    }
}

/// Whether a file, of which these are the first bytes, is a container, apart from compression of all of it.
#[must_use]
pub fn is_container(start: &[u8], is_whole: bool) -> bool {
    !matches!(Kind::of(start, is_whole), Kind::Bare(_))
}

/// The first bytes of a layer, and all of it.
type Layer<R> = (Vec<u8>, Chain<Cursor<Vec<u8>>, R>);

fn peek<R: Read>(mut input: R) -> io::Result<Layer<R>> {
    let mut start = Vec::new();
    input.by_ref().take(SNIFFED_BYTES as u64).read_to_end(&mut start)?;
    Ok((start.clone(), Cursor::new(start).chain(input)))
}

/// Opens the trace in a file, or the member of this name, whose layers are separated by colons. If the file
/// is cut off or damaged, the input has what can be read, and then fails.
///
/// # Errors
/// The file cannot be read, or has no trace or several.
pub fn open(input: impl Read + Send + 'static, member: Option<&str>) -> Result<Opened, ContainerError> {
    let outermost = Outermost::default();
    let mut input: Box<dyn Read + Send> = Box::new(outermost.counted(input));
    let mut wanted = member.map(str::to_owned);
    let (end, mut remarks) = (End::default(), Vec::new());
    for depth in 0..=MAX_DEPTH {
        let (plain, _) = Plain::open(input)?;
        let (start, mut all) = peek(Ended::new(Bounded::new(plain, &outermost), &end))?;
        let is_whole = start.len() < SNIFFED_BYTES;
        let kind = Kind::of(&start, is_whole);
        input = match kind {
            Kind::Bare(format) => {
                let input = Box::new(all.chain(end));
                return match wanted {
                    Some(wanted) => Err(ContainerError::NoContainer { wanted }),
                    None => Ok(Opened { input, format, remarks }),
                };
            }
            _ if depth == MAX_DEPTH => break,
            Kind::Compressed => Box::new(all),
            Kind::Utf16 { is_big_endian } => Box::new(Utf16::new(all, is_big_endian)),
            Kind::AtraceZ { header } => {
                io::copy(&mut all.by_ref().take(header as u64), &mut io::sink())?;
                Box::new(Bounded::new(Compressed::zlib(all), &outermost))
            }
            Kind::Prefixed { text } => Box::new(Prefixed::new(all, text)),
            Kind::Zip | Kind::Tar | Kind::Page => {
                let copy = layer::copied(&mut all)?;
                let Chosen { input, rest, format, passed_over } = match kind {
                    Kind::Zip => zip::members(copy, &end),
                    Kind::Tar => tar::members(copy, &end),
                    _ => page::members(copy, &end),
                }
                .and_then(|members: Members| members.choose(wanted.as_deref()))
                .map_err(|error| error.because_of(&end))?;
                remarks.extend(passed_over.map(|names| format!("passed over: {names}")));
                if format.is_some() {
                    return Ok(Opened { input: Box::new(input.chain(end)), format, remarks });
                }
                wanted = rest;
                input
            }
        };
    }
    Err(ContainerError::TooDeep)
}

#[cfg(test)]
mod tests;
