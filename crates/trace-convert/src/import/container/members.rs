//! The members of a container, of which one is chosen.

use super::super::ended::End;
use super::super::format::{Format, is_archive};
use super::super::json;
use super::layer::{Compressed, Part};
use super::{ContainerError, Kind, SNIFFED_BYTES};
use base64::engine::general_purpose::STANDARD;
use base64::read::DecoderReader;
use flate2::Crc;
use foldhash::HashSet;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::sync::Arc;
use trace_format::shown::Shown;
use trace_reader::Plain;

/// How many members are examined.
pub(super) const MAX_MEMBERS: usize = 10_000;
/// No system has longer names.
pub(super) const MAX_NAME_BYTES: usize = 4096;
/// How many names an error lists, and how long each is.
const LISTED_NAMES: usize = 10;
const LISTED_NAME_BYTES: usize = 100;
/// What to do about a member that is not supported.
const UNPACKING: &str = "`7z x` unpacks it";

/// How the bytes of a member are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    Plain,
    /// With the checksum, if it is known.
    Stored {
        crc: Option<u32>,
    },
    /// With the checksum of what is compressed, if it is known.
    Deflate {
        crc: Option<u32>,
    },
    /// With white space between.
    Base64,
    /// As lines in a page, which the import of ftrace's text finds.
    Page,
    /// In a way that is not supported: what is wrong with the member.
    Unsupported(&'static str),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub name: String,
    pub at: u64,
    /// As it is stored.
    pub length: u64,
    pub packing: Packing,
}

pub(super) struct Members {
    what: &'static str,
    file: Arc<File>,
    length: u64,
    end: End,
    pub list: Vec<Member>,
    names: HashSet<String>,
}

/// How much a member looks like a trace.
enum Likeness {
    Trace,
    /// It may be one, or contain one.
    Possible,
    None,
    /// The beginning of the member cannot be read.
    Damaged,
}

/// A member, and the name of the member within it.
pub(super) struct Chosen {
    pub input: Box<dyn Read + Send>,
    pub rest: Option<String>,
    /// The format of the member, where its first bytes do not show it.
    pub format: Option<Format>,
    /// Names of members that were not examined, with the reasons.
    pub passed_over: Option<String>,
}

impl Members {
    pub fn new(what: &'static str, file: Arc<File>, end: &End) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self { what, file, length, end: end.clone(), list: Vec::new(), names: HashSet::default() })
    }

    /// Adds a member. Where a name is there already, the number of the member is behind it.
    pub fn push(&mut self, mut member: Member) -> Result<(), ContainerError> {
        if self.list.len() >= MAX_MEMBERS {
            return Err(ContainerError::TooMany { what: self.what, limit: MAX_MEMBERS });
        }
        if member.at.saturating_add(member.length) > self.length {
            self.is_cut_off();
        }
        while !self.names.insert(member.name.clone()) {
            member.name = format!("{}-{}", member.name, self.list.len() + 1);
        }
        self.list.push(member);
        Ok(())
    }

    /// What is behind the last member, or a part of it, is missing.
    pub fn is_cut_off(&self) {
        self.end.is(io::Error::new(ErrorKind::UnexpectedEof, format!("the {} is cut off", self.what)));
    }

    /// The member of this name, or else the only one that is a trace, or else the only one that may contain
    /// one.
    //= docs/import.md#containers
    pub fn choose(self, wanted: Option<&str>) -> Result<Chosen, ContainerError> {
        if let Some(wanted) = wanted {
            return self.named(wanted);
        }
        let (mut traces, mut others, mut damaged) = (Vec::new(), Vec::new(), Vec::new());
        for member in &self.list {
            match self.likeness(member) {
                Likeness::Trace => traces.push(member),
                Likeness::Possible => others.push(member),
                Likeness::None => {}
                Likeness::Damaged => damaged.push(member),
            }
        }
        let candidates = if traces.is_empty() { others } else { traces };
        match &*candidates {
            [] => match &*damaged {
                // The error of the first one says more than the names of all.
                [first, ..] => self.chosen(first, None),
                [] => Err(ContainerError::NoTrace { what: self.what, names: names(self.list.iter()) }),
            },
            [only] => {
                let is_passed = |member: &&Member| matches!(member.packing, Packing::Unsupported(_));
                let unsupported = self.list.iter().filter(is_passed).map(|member| shown(member, None));
                let damaged = damaged.iter().map(|member| shown(member, Some("is damaged")));
                let passed: Vec<String> = unsupported.chain(damaged).collect();
                let passed_over = (!passed.is_empty()).then(|| list_of(passed.into_iter()));
                Ok(Chosen { passed_over, ..self.chosen(only, None)? })
            }
            [first, ..] => Err(ContainerError::Several {
                what: self.what,
                count: candidates.len(),
                names: names(candidates.iter().copied()),
                example: Shown(&first.name).to_string(),
            }),
        }
    }

    fn named(&self, wanted: &str) -> Result<Chosen, ContainerError> {
        let whole = self.list.iter().find(|member| member.name == wanted).map(|member| (member, None));
        let within = || {
            let rest_of =
                |member: &Member| wanted.strip_prefix(&*member.name)?.strip_prefix(':').map(str::to_owned);
            self.list.iter().find_map(|member| Some((member, Some(rest_of(member)?))))
        };
        let Some((member, rest)) = whole.or_else(within) else {
            let (what, wanted) = (self.what, wanted.to_owned());
            return Err(ContainerError::NoMember { wanted, what, names: names(self.list.iter()) });
        };
        self.chosen(member, rest)
    }

    fn chosen(&self, member: &Member, rest: Option<String>) -> Result<Chosen, ContainerError> {
        let format = (member.packing == Packing::Page).then_some(Format::Ftrace);
        Ok(Chosen { input: self.open(member)?, rest, format, passed_over: None })
    }

    /// Whether a member is a trace, by its first bytes; damage behind them is met when it is read.
    fn likeness(&self, member: &Member) -> Likeness {
        if member.packing == Packing::Page {
            return Likeness::Possible;
        }
        let Ok(input) = self.open(member) else { return Likeness::None };
        let (mut packed, mut start) = (Vec::new(), Vec::new());
        let is_read = input.take(SNIFFED_BYTES as u64).read_to_end(&mut packed).is_ok();
        // An element of a page may be anything.
        let mut is_damaged = !is_read && member.packing != Packing::Base64;
        if let Ok((plain, _)) = Plain::open(&*packed) {
            let inflated = plain.take(SNIFFED_BYTES as u64).read_to_end(&mut start);
            // Only of a member that is whole here: others end too early.
            is_damaged |= inflated.is_err() && packed.len() < SNIFFED_BYTES;
        }
        let is_whole = packed.len().max(start.len()) < SNIFFED_BYTES;
        match Kind::of(&start, is_whole) {
            Kind::Bare(Some(Format::Json)) if json::has_trace(&start) => Likeness::Trace,
            Kind::Bare(Some(Format::Json) | None) if is_damaged => Likeness::Damaged,
            // The events of the member may come later.
            Kind::Bare(Some(Format::Json)) if !is_whole => Likeness::Possible,
            Kind::Bare(Some(Format::Json)) => Likeness::None,
            Kind::Bare(None) if !is_archive(&start) => Likeness::None,
            Kind::Bare(_) => Likeness::Trace,
            _ => Likeness::Possible,
        }
    }

    fn open(&self, member: &Member) -> Result<Box<dyn Read + Send>, ContainerError> {
        let part = Part::new(&self.file, member.at, member.length);
        Ok(match member.packing {
            Packing::Plain | Packing::Page => Box::new(part),
            Packing::Stored { crc } => Box::new(Checked::new(part, crc)),
            Packing::Deflate { crc } => {
                Box::new(Checked::new(Compressed::deflate(BufReader::new(part)), crc))
            }
            Packing::Base64 => Box::new(DecoderReader::new(Dense(BufReader::new(part)), &STANDARD)),
            Packing::Unsupported(why) => {
                let problem = format!("{} {why}; {UNPACKING}", Shown(&member.name));
                return Err(ContainerError::Bad { what: self.what, problem });
            }
        })
    }
}

/// The first names, for an error.
fn names<'a>(members: impl ExactSizeIterator<Item = &'a Member>) -> String {
    list_of(members.map(|member| shown(member, None)))
}

/// The name of a member, and why it is not read.
fn shown(member: &Member, why: Option<&str>) -> String {
    let name = &member.name;
    let name = Shown(&name[..name.floor_char_boundary(LISTED_NAME_BYTES)]);
    match (&member.packing, why) {
        (Packing::Unsupported(why), _) => format!("{name} ({why}; {UNPACKING})"),
        (_, Some(why)) => format!("{name} ({why})"),
        _ => name.to_string(),
    }
}

fn list_of(members: impl ExactSizeIterator<Item = String>) -> String {
    let count = members.len();
    let names: Vec<String> = members.take(LISTED_NAMES).collect();
    match count.saturating_sub(names.len()) {
        0 if names.is_empty() => "nothing".to_owned(),
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// Data whose checksum is compared at its end.
struct Checked<R> {
    input: R,
    crc: Crc,
    expected: Option<u32>,
}

impl<R> Checked<R> {
    fn new(input: R, expected: Option<u32>) -> Self {
        Self { input, crc: Crc::new(), expected }
    }
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(to)?;
        self.crc.update(&to[..read]);
        if read == 0 && !to.is_empty() && self.expected.is_some_and(|crc| crc != self.crc.sum()) {
            return Err(io::Error::new(ErrorKind::InvalidData, "bad ZIP data: wrong checksum"));
        }
        Ok(read)
    }
}

/// Text without its white space.
struct Dense<R>(R);

impl<R: Read> Read for Dense<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.0.read(to)?;
            let mut kept = 0;
            for at in 0..read {
                if !to[at].is_ascii_whitespace() {
                    to[kept] = to[at];
                    kept += 1;
                }
            }
            if kept > 0 || read == 0 {
                return Ok(kept);
            }
        }
    }
}
