//! Pages of the kernel's ring buffer, as `trace_pipe_raw` gives them.
//!
//! ```text
//! | time of the page 8 | commit 8 | events ...                          | count of lost events, if any |
//! event: | delta 27 bits, type_len 5 bits | payload |
//! ```
//= docs/kernel.md#pages

use crate::format;
use std::ops::Range;

/// The layout of a page, as described by the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLayout {
    /// Bytes of a whole page.
    pub size: usize,
    time: usize,
    commit: usize,
    data: usize,
}

/// Length of the valid data, in the commit word.
const LENGTH: u64 = 0x07ff_ffff;
/// The number of lost events follows the data.
const IS_COUNTED: u64 = 1 << 30;
/// Events were lost before this page.
const HAS_LOST: u64 = 1 << 31;
/// Kinds of event headers that are no events.
const PADDING: u32 = 29;
const TIME_EXTENSION: u32 = 30;
const ABSOLUTE_TIME: u32 = 31;
const DELTA_BITS: u32 = 27;
/// Number of bits of an absolute time; the bits above are those of the page's time.
const ABSOLUTE_BITS: u32 = 59;

impl PageLayout {
    /// Reads `events/header_page`; none if it lacks something.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let fields = format::fields(text);
        let field = |name: &str| fields.iter().find(|field| field.name == name).map(|field| field.place);
        let (time, commit, data) = (field("timestamp")?, field("commit")?, field("data")?);
        let layout = Self {
            size: usize::from(data.offset) + usize::from(data.size),
            time: time.offset.into(),
            commit: commit.offset.into(),
            data: data.offset.into(),
        };
        (time.size == 8 && commit.size == 8).then_some(layout)
    }
}

/// The kernel's loss before a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Nothing.
    Nothing,
    /// An unknown number.
    Some,
    /// A known number of events.
    Count(u64),
}

/// A page's events, in order.
#[derive(Clone, Debug)]
pub struct Page<'a> {
    bytes: &'a [u8],
    /// The loss before it.
    pub lost: Lost,
    page_time: u64,
    time: u64,
    at: usize,
    end: usize,
}

/// An event in a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its time, in ticks of the trace clock.
    pub time: u64,
    /// The position of its payload.
    pub payload: Range<usize>,
}

/// The rest of a page is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged;

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

impl<'a> Page<'a> {
    /// Reads a page's head.
    ///
    /// # Errors
    /// The page is too short, or announces more data than it can hold.
    pub fn new(layout: &PageLayout, bytes: &'a [u8]) -> Result<Self, Damaged> {
        let time = u64_at(bytes, layout.time).ok_or(Damaged)?;
        // Some kernels extend the sign of 32 bits.
        let commit = u64_at(bytes, layout.commit).ok_or(Damaged)?;
        let end = layout.data + (commit & LENGTH) as usize;
        let valid = bytes.get(..end).ok_or(Damaged)?;
        let lost = match (commit & HAS_LOST != 0, commit & IS_COUNTED != 0) {
            (false, _) => Lost::Nothing,
            (true, false) => Lost::Some,
            (true, true) => u64_at(bytes, end).map_or(Lost::Some, Lost::Count),
        };
        Ok(Self { bytes: valid, lost, page_time: time, time, at: layout.data, end })
    }

    /// The next event; none at the end.
    ///
    /// # Errors
    /// The bytes here cannot be an event; the rest of the page is lost.
    #[inline]
    pub fn next_entry(&mut self) -> Result<Option<Entry>, Damaged> {
        let entry = self.find_entry();
        if entry.is_err() {
            self.at = self.end;
        }
        entry
    }

    fn find_entry(&mut self) -> Result<Option<Entry>, Damaged> {
        while self.at < self.end {
            let header = u32_at(self.bytes, self.at).ok_or(Damaged)?;
            let (kind, delta) = (header & 31, u64::from(header >> 5));
            let payload = self.at + 4;
            let word = || u32_at(self.bytes, payload).ok_or(Damaged);
            match kind {
                PADDING if delta == 0 => {
                    self.at = self.end;
                }
                PADDING => {
                    self.time = self.time.wrapping_add(delta);
                    self.at = payload + (word()? as usize).max(4);
                }
                TIME_EXTENSION => {
                    self.time = self.time.wrapping_add(delta).wrapping_add(u64::from(word()?) << DELTA_BITS);
                    self.at = payload + 4;
                }
                ABSOLUTE_TIME => {
                    let low = delta | u64::from(word()?) << DELTA_BITS;
                    let mask = (1 << ABSOLUTE_BITS) - 1;
                    self.time = self.page_time & !mask | low & mask;
                    self.at = payload + 4;
                }
                _ => {
                    self.time = self.time.wrapping_add(delta);
                    let range = match kind {
                        0 => payload + 4..payload + (word()? as usize).max(4),
                        words => payload..payload + words as usize * 4,
                    };
                    if range.end > self.end {
                        return Err(Damaged);
                    }
                    self.at = range.end.next_multiple_of(4);
                    return Ok(Some(Entry { time: self.time, payload: range }));
                }
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
