//! Texts of columns: those that repeat have numbers, the others stand one after the other.

use super::spill::{Piece, Spill};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

/// Memory for texts with numbers, in bytes; others are long ones.
const MEMORY: usize = 24 << 20;
/// Bytes around a text.
const ENTRY_BYTES: usize = 64;
/// In numbers of texts that stand among the long ones.
const IS_LONG: u32 = 1 << 31;
/// Bytes of a piece of long texts.
const PIECE_BYTES: usize = 1 << 20;
/// Texts whose numbers are found by their addresses.
const RECENT: usize = 256;

/// Texts with numbers, from 1.
#[derive(Debug, Default)]
pub struct Texts {
    numbered: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32, foldhash::fast::RandomState>,
    bytes: usize,
    /// Where those are for which there was no room.
    others: Vec<u64>,
    long: Long,
}

/// The numbers of texts that were met lately, by where they were.
#[derive(Debug)]
pub struct Recent([(usize, u32); RECENT]);

impl Default for Recent {
    fn default() -> Self {
        Self([(0, 0); RECENT])
    }
}

impl Texts {
    /// The number of a text, which gets one.
    #[inline]
    pub fn number(&mut self, text: &str, recent: &mut Recent, spill: &Spill) -> io::Result<u32> {
        let address = text.as_ptr() as usize;
        let slot = &mut recent.0[(address >> 3 ^ address >> 11) % RECENT];
        if slot.0 == address
            && let Some(known) = self.numbered.get(slot.1 as usize - 1)
            && **known == *text
        {
            return Ok(slot.1);
        }
        let number = self.find(text, spill)?;
        if number & IS_LONG == 0 {
            *slot = (address, number);
        }
        Ok(number)
    }

    fn find(&mut self, text: &str, spill: &Spill) -> io::Result<u32> {
        if let Some(number) = self.numbers.get(text) {
            return Ok(*number);
        }
        let bytes = self.bytes + text.len() + ENTRY_BYTES;
        if bytes > MEMORY || self.numbered.len() >= spill.limits.texts {
            self.others.push(self.long.push(text, spill)?);
            return Ok(IS_LONG | (self.others.len() as u32 - 1) & !IS_LONG);
        }
        self.bytes = bytes;
        let text: Arc<str> = text.into();
        self.numbered.push(text.clone());
        let number = self.numbered.len() as u32;
        self.numbers.insert(text, number);
        Ok(number)
    }

    /// The number that a text has; none if it has none, and an error if that cannot be said.
    pub fn known(&self, text: &str) -> Result<Option<u32>, Unnumbered> {
        match self.numbers.get(text) {
            Some(number) => Ok(Some(*number)),
            None if self.others.is_empty() => Ok(None),
            None => Err(Unnumbered),
        }
    }

    /// Whether there were too many texts: equal ones may have different numbers.
    pub const fn has_unnumbered(&self) -> bool {
        !self.others.is_empty()
    }

    /// The text with a number.
    pub fn get<'a>(&'a self, number: u32, spill: &Spill) -> io::Result<Cow<'a, str>> {
        if number & IS_LONG != 0 {
            let at = self.others.get((number & !IS_LONG) as usize);
            return self.long(*at.ok_or_else(missing)?, spill);
        }
        self.numbered.get(number as usize - 1).map(|text| Cow::Borrowed(&**text)).ok_or_else(missing)
    }

    /// The text with a number, if it is in memory.
    #[cfg(feature = "sqlite")]
    pub fn numbered(&self, number: u32) -> Option<&str> {
        self.numbered.get((number as usize).checked_sub(1)?).map(|text| &**text)
    }

    /// Adds a text that is not expected to repeat, and returns its place.
    pub fn push(&mut self, text: &str, spill: &Spill) -> io::Result<u64> {
        self.long.push(text, spill)
    }

    /// The text at a place.
    pub fn long<'a>(&'a self, at: u64, spill: &Spill) -> io::Result<Cow<'a, str>> {
        self.long.get(at, spill)
    }

    /// The places of all numbers in the order of their texts, by number.
    pub fn ranks(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.numbered.len() as u32).collect();
        order.sort_unstable_by(|a, b| self.numbered[*a as usize].cmp(&self.numbered[*b as usize]));
        let mut ranks = vec![0; order.len() + 1];
        (1..).zip(order).for_each(|(rank, number)| ranks[number as usize + 1] = rank);
        ranks
    }
}

/// Texts are too many for numbers: equal ones may have different numbers.
#[derive(Clone, Copy, Debug)]
pub struct Unnumbered;

fn missing() -> io::Error {
    io::Error::other("a column has no such text")
}

#[derive(Debug, Default)]
struct Long {
    pieces: Vec<Piece>,
    open: Vec<u8>,
}

impl Long {
    fn push(&mut self, text: &str, spill: &Spill) -> io::Result<u64> {
        if self.open.len() + text.len() > PIECE_BYTES && !self.open.is_empty() {
            self.pieces.push(spill.keep(std::mem::take(&mut self.open))?);
        }
        let at = (self.pieces.len() as u64) << 32 | self.open.len() as u64;
        let length = u32::try_from(text.len()).map_err(io::Error::other)?;
        self.open.extend(length.to_le_bytes());
        self.open.extend(text.as_bytes());
        Ok(at)
    }

    fn get<'a>(&'a self, at: u64, spill: &Spill) -> io::Result<Cow<'a, str>> {
        let (piece, from) = ((at >> 32) as usize, at as u32 as usize);
        let part = |from: usize, length: usize| -> io::Result<Cow<'a, [u8]>> {
            if piece == self.pieces.len() {
                let part = self.open.get(from..).and_then(|rest| rest.get(..length));
                return part.map(Cow::Borrowed).ok_or_else(missing);
            }
            spill.read(self.pieces.get(piece).ok_or_else(missing)?, from, length)
        };
        let length = part(from, 4)?;
        let length = u32::from_le_bytes(*length.first_chunk().ok_or_else(missing)?);
        match part(from + 4, length as usize)? {
            Cow::Borrowed(bytes) => str::from_utf8(bytes).map(Cow::Borrowed).map_err(io::Error::other),
            Cow::Owned(bytes) => String::from_utf8(bytes).map(Cow::Owned).map_err(io::Error::other),
        }
    }
}
