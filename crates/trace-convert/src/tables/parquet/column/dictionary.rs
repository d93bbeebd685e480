//! The distinct values of a column: pages have their numbers, as long as there are not too many.

use super::statistics::Bounds;
use crate::tables::parquet::encoding::{runs, width_of};
use crate::tables::parquet::names::IS_OTHER;
use ::parquet::basic::Encoding;
use std::collections::HashMap;
use std::sync::Arc;

/// Most bytes of a dictionary. With more, the pages that follow have the values themselves.
const DICTIONARY_BYTES: usize = if cfg!(test) { 200 } else { 1 << 20 };
/// Distinct values of a page that are not many, whatever the page has.
const FEW: usize = if cfg!(test) { 16 } else { 1 << 10 };
/// Numbers whose places are known without a search.
const RECENT: usize = 64;

/// Places of values, as a page has them: the bits of each, and runs.
fn places(places: &[u32], values: usize, bytes: &mut Vec<u8>) -> Encoding {
    let width = width_of((values as u64).saturating_sub(1));
    bytes.push(width as u8);
    runs(places, width, bytes);
    Encoding::RLE_DICTIONARY
}

/// Of numbers, or the bits of doubles.
pub struct NumberDictionary {
    values: Vec<i64>,
    places: HashMap<i64, u32, foldhash::fast::RandomState>,
    recent: [(i64, u32); RECENT],
    /// The pages that follow have no places.
    is_full: bool,
    /// There is a page with places.
    is_used: bool,
    of_page: Vec<u32>,
}

impl Default for NumberDictionary {
    fn default() -> Self {
        let (values, places, of_page) = (Vec::new(), HashMap::default(), Vec::new());
        Self { values, places, recent: [(0, u32::MAX); RECENT], is_full: false, is_used: false, of_page }
    }
}

impl NumberDictionary {
    /// Encodes the values of a page.
    pub fn encode(&mut self, values: &[i64], bounds: &mut Bounds, bytes: &mut Vec<u8>) -> Encoding {
        let known = self.values.len();
        self.find(values);
        let new = &self.values[known..];
        // Values that hardly repeat are not worth a dictionary.
        self.is_full |= new.len() >= FEW && new.len() > values.len() / 2;
        // Without values there may be no dictionary.
        if self.is_full || values.is_empty() {
            bounds.add_numbers(values);
            bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
            return Encoding::PLAIN;
        }
        bounds.add_numbers(new);
        self.is_used = true;
        places(&self.of_page, self.values.len(), bytes)
    }

    /// Finds the places of values, if they have any.
    fn find(&mut self, values: &[i64]) {
        self.of_page.clear();
        if self.is_full {
            return;
        }
        let mut last = (0, u32::MAX);
        for value in values {
            if last.0 != *value || last.1 == u32::MAX {
                let slot = (*value as u64 ^ *value as u64 >> 6 ^ *value as u64 >> 52) as usize % RECENT;
                last = self.recent[slot];
                if last.0 != *value || last.1 == u32::MAX {
                    let next = self.values.len() as u32;
                    last = (*value, *self.places.entry(*value).or_insert(next));
                    self.recent[slot] = last;
                    if last.1 == next {
                        if 8 * (self.values.len() + 1) > DICTIONARY_BYTES {
                            self.is_full = true;
                            return;
                        }
                        self.values.push(*value);
                    }
                }
            }
            self.of_page.push(last.1);
        }
    }

    /// The values so far, and their number; none if no page has places. There are none from now on.
    pub fn take(&mut self) -> Option<(Vec<u8>, usize)> {
        let values = std::mem::take(&mut self.values);
        self.places.clear();
        self.recent = [(0, u32::MAX); RECENT];
        self.is_full = false;
        let is_used = std::mem::take(&mut self.is_used);
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        is_used.then(|| (bytes.collect(), values.len()))
    }
}

/// Of names.
#[derive(Default)]
pub struct NameDictionary {
    /// By the number of a name: its place in the dictionary, from 1.
    places: Vec<u32>,
    /// The numbers of names that have a place.
    names: Vec<u32>,
    bytes: Vec<u8>,
    is_full: bool,
    is_used: bool,
    of_page: Vec<u32>,
}

fn plain(name: &[u8], bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&(name.len() as u32).to_le_bytes());
    bytes.extend_from_slice(name);
}

impl NameDictionary {
    /// Encodes the names of a page, and passes on those that are not in the dictionary already.
    pub fn encode(
        &mut self,
        values: &[u32],
        others: &[Box<str>],
        names: &[Arc<str>],
        mut seen: impl FnMut(&[u8]),
        bytes: &mut Vec<u8>,
    ) -> Encoding {
        let name_of = |number: u32| match number & IS_OTHER {
            0 => names.get((number as usize).wrapping_sub(1)).map_or("", |name| name),
            _ => others.get((number & !IS_OTHER) as usize).map_or("", |name| name),
        };
        self.places.resize(names.len() + 1, 0);
        self.of_page.clear();
        self.is_full |= !others.is_empty();
        if !self.is_full && !values.is_empty() {
            for number in values {
                let place = &mut self.places[*number as usize];
                if *place == 0 {
                    let name = name_of(*number).as_bytes();
                    if self.bytes.len() + name.len() + 4 > DICTIONARY_BYTES {
                        self.is_full = true;
                        break;
                    }
                    self.names.push(*number);
                    *place = self.names.len() as u32;
                    plain(name, &mut self.bytes);
                    seen(name);
                }
                self.of_page.push(*place - 1);
            }
        }
        if self.is_full || values.is_empty() {
            for number in values {
                let name = name_of(*number).as_bytes();
                seen(name);
                plain(name, bytes);
            }
            return Encoding::PLAIN;
        }
        self.is_used = true;
        places(&self.of_page, self.names.len(), bytes)
    }

    /// The names so far, and their number; none if no page has places. There are none from now on.
    pub fn take(&mut self) -> Option<(Vec<u8>, usize)> {
        let (names, bytes) = (std::mem::take(&mut self.names), std::mem::take(&mut self.bytes));
        names.iter().for_each(|number| self.places[*number as usize] = 0);
        self.is_full = false;
        std::mem::take(&mut self.is_used).then_some((bytes, names.len()))
    }
}
