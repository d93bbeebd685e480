//! The least and greatest values of a group and of its pages, and a filter for names.

use crate::tables::Type;
use crate::tables::parquet::BLOOM_NAMES;
use ::parquet::basic::{BoundaryOrder, Type as PhysicalType};
use ::parquet::bloom_filter::Sbbf;
use ::parquet::data_type::ByteArray;
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::ColumnIndexBuilder;
use ::parquet::file::page_index::column_index::ColumnIndexMetaData;
use ::parquet::file::statistics::{Statistics, ValueStatistics};

/// A filter says of one of so many names that are not in the group that it is.
const FILTER_ERRORS: f64 = 0.05;
/// Bytes of a text that are kept; the rest is of no use to those who skip groups.
const TEXT_BYTES: usize = 64;

/// The least and greatest values so far.
pub struct Bounds {
    of: Type,
    numbers: Option<(i64, i64)>,
    texts: Option<(Vec<u8>, Vec<u8>)>,
}

impl Bounds {
    pub fn new(of: Type) -> Self {
        Self { of, numbers: None, texts: None }
    }

    /// Takes numbers, or the bits of doubles, into account; returns the bounds of these.
    pub fn add_numbers(&mut self, values: &[i64]) -> Option<(i64, i64)> {
        // All are compared as numbers with a sign.
        let mask = if self.of == Type::Unsigned { i64::MIN } else { 0 };
        let added = match self.of {
            Type::Double => bounds_of_doubles(values),
            _ => {
                let least = values.iter().map(|value| value ^ mask).min();
                least.zip(values.iter().map(|value| value ^ mask).max())
            }
        };
        self.numbers = match (self.numbers, added) {
            (Some(so_far), Some(added)) if self.of == Type::Double => {
                bounds_of_doubles(&[so_far.0, so_far.1, added.0, added.1])
            }
            (Some(so_far), Some(added)) => Some((so_far.0.min(added.0), so_far.1.max(added.1))),
            (so_far, added) => so_far.or(added),
        };
        added
    }

    /// Takes a text into account.
    #[inline]
    pub fn add_text(&mut self, text: &[u8]) {
        let Some((least, greatest)) = &mut self.texts else {
            self.texts = Some((text.to_vec(), text.to_vec()));
            return;
        };
        if *text < **least {
            least.clear();
            least.extend_from_slice(text);
        } else if *text > **greatest {
            greatest.clear();
            greatest.extend_from_slice(text);
        }
    }

    /// The statistics of a group with so many missing values. The next group begins.
    pub fn take(&mut self, missing: usize) -> Statistics {
        let (numbers, texts) = (self.numbers.take(), self.texts.take());
        let (least, greatest) = (numbers.map(|of| of.0), numbers.map(|of| of.1));
        let missing = Some(missing as u64);
        match self.of {
            Type::Integer => ValueStatistics::new(least, greatest, None, missing, false)
                .with_backwards_compatible_min_max(true)
                .into(),
            Type::Unsigned => {
                let value = |value: i64| value ^ i64::MIN;
                ValueStatistics::new(least.map(value), greatest.map(value), None, missing, false).into()
            }
            Type::Double => {
                let value = |bits: i64| f64::from_bits(bits as u64);
                ValueStatistics::new(least.map(value), greatest.map(value), None, missing, false)
                    .with_backwards_compatible_min_max(true)
                    .into()
            }
            Type::Text => {
                let (least, greatest) = texts.unzip();
                let (least, greatest) = (least.map(shortened), greatest.map(shortened_up));
                let is_exact = |text: &Option<(Vec<u8>, bool)>| text.as_ref().is_some_and(|(_, is)| *is);
                let (least_exact, greatest_exact) = (is_exact(&least), is_exact(&greatest));
                let array = |text: Option<(Vec<u8>, bool)>| text.map(|(text, _)| ByteArray::from(text));
                ValueStatistics::new(array(least), array(greatest), None, missing, false)
                    .with_min_is_exact(least_exact)
                    .with_max_is_exact(greatest_exact)
                    .into()
            }
        }
    }
}

/// Of doubles by their bits, without those that are no number. Zeros are of either sign.
fn bounds_of_doubles(bits: &[i64]) -> Option<(i64, i64)> {
    let numbers = || bits.iter().map(|bits| f64::from_bits(*bits as u64)).filter(|value| !value.is_nan());
    let least = numbers().reduce(f64::min).map(|least| if least == 0.0 { -0.0 } else { least });
    let greatest = numbers().reduce(f64::max).map(|greatest| if greatest == 0.0 { 0.0 } else { greatest });
    Some((least?.to_bits() as i64, greatest?.to_bits() as i64))
}

/// A text that is not greater, and whether it is the same.
fn shortened(mut text: Vec<u8>) -> (Vec<u8>, bool) {
    let is_exact = text.len() <= TEXT_BYTES;
    if !is_exact {
        text.truncate(end_of_character(&text));
    }
    (text, is_exact)
}

/// A text that is not less, and whether it is the same.
fn shortened_up(text: Vec<u8>) -> (Vec<u8>, bool) {
    if text.len() <= TEXT_BYTES {
        return (text, true);
    }
    let short = str::from_utf8(&text[..end_of_character(&text)]).unwrap_or_default();
    // The next greater character of the same length, as far behind as there is one.
    for (at, last) in short.char_indices().rev() {
        let next = char::from_u32(last as u32 + 1).filter(|next| next.len_utf8() == last.len_utf8());
        if let Some(next) = next {
            let mut greater = short[..at].to_owned();
            greater.push(next);
            return (greater.into_bytes(), false);
        }
    }
    (text, true)
}

/// Where the last whole character that is kept ends.
fn end_of_character(text: &[u8]) -> usize {
    (0..=TEXT_BYTES).rev().find(|at| text.get(*at).is_none_or(|byte| byte & 0xc0 != 0x80)).unwrap_or(0)
}

/// Names of a group, by their hashes.
#[derive(Default)]
pub struct Filter {
    hashes: Option<Sbbf>,
    error: Option<ParquetError>,
}

impl Filter {
    pub fn add(&mut self, name: &[u8]) {
        if self.hashes.is_none() {
            match Sbbf::new_with_ndv_fpp(BLOOM_NAMES, FILTER_ERRORS) {
                Ok(hashes) => self.hashes = Some(hashes),
                Err(error) => self.error = Some(error),
            }
        }
        if let Some(hashes) = &mut self.hashes {
            hashes.insert(name);
        }
    }

    /// The filter of a group, as small as its names allow; without names, one that has none.
    pub fn take(&mut self) -> Result<Sbbf, ParquetError> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let mut hashes = match self.hashes.take() {
            Some(hashes) => hashes,
            None => Sbbf::new_with_ndv_fpp(BLOOM_NAMES, FILTER_ERRORS)?,
        };
        hashes.fold_to_target_fpp(FILTER_ERRORS);
        Ok(hashes)
    }
}

/// The least and greatest values of pages that are in order.
pub struct PageBounds(ColumnIndexBuilder);

impl Default for PageBounds {
    fn default() -> Self {
        let mut pages = ColumnIndexBuilder::new(PhysicalType::INT64);
        pages.set_boundary_order(BoundaryOrder::ASCENDING);
        Self(pages)
    }
}

impl PageBounds {
    /// Adds a page with so many missing values; without bounds, it has no others.
    pub fn add(&mut self, bounds: Option<(i64, i64)>, missing: usize) {
        let bytes = |value: Option<i64>| value.map_or_else(Vec::new, |value| value.to_le_bytes().to_vec());
        let (least, greatest) = bounds.unzip();
        self.0.append(bounds.is_none(), bytes(least), bytes(greatest), missing as i64, None);
    }

    /// Those of a group.
    pub fn take(&mut self) -> Result<ColumnIndexMetaData, ParquetError> {
        std::mem::take(self).0.build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_shortened_to_bounds() {
        let bounds = |texts: &[&str]| {
            let mut bounds = Bounds::new(Type::Text);
            texts.iter().for_each(|text| bounds.add_text(text.as_bytes()));
            let Statistics::ByteArray(found) = bounds.take(3) else { panic!("texts") };
            let text = |array: Option<&ByteArray>| array.map(|array| array.as_utf8().unwrap().to_owned());
            let (least, greatest) = (text(found.min_opt()), text(found.max_opt()));
            (least, greatest, found.min_is_exact(), found.max_is_exact())
        };
        assert_eq!(bounds(&[]), (None, None, false, false));
        assert_eq!(bounds(&["b", "", "c"]), (Some(String::new()), Some("c".to_owned()), true, true));
        let (low, high) = ("a".repeat(63) + "éa", "z".repeat(63) + "éa");
        let expected = ("a".repeat(63), "z".repeat(62) + "{");
        assert_eq!(bounds(&[&high, &low]), (Some(expected.0), Some(expected.1), false, false));
        // There is no greater text of fewer bytes.
        let last = "\u{10ffff}".repeat(17);
        assert_eq!(bounds(&[&last]).1, Some(last));
    }

    #[test]
    fn bounds_are_in_the_order_of_the_type() {
        let bits = |value: f64| value.to_bits() as i64;
        let of = |of: Type, parts: &[&[i64]]| {
            let mut bounds = Bounds::new(of);
            parts.iter().for_each(|values| _ = bounds.add_numbers(values));
            bounds.take(0)
        };
        let numbers = |statistics: Statistics| match statistics {
            Statistics::Int64(of) => (of.min_opt().copied(), of.max_opt().copied()),
            _ => panic!("no numbers"),
        };
        assert_eq!(numbers(of(Type::Integer, &[&[], &[3, -1], &[2]])), (Some(-1), Some(3)));
        assert_eq!(numbers(of(Type::Unsigned, &[&[3, -1], &[2]])), (Some(2), Some(-1)));
        assert_eq!(numbers(of(Type::Unsigned, &[&[]])), (None, None));
        let parts: [&[i64]; 2] = [&[bits(0.5), bits(f64::NAN)], &[bits(-2.0), bits(0.0)]];
        let Statistics::Double(doubles) = of(Type::Double, &parts) else { panic!("no doubles") };
        assert_eq!((doubles.min_opt(), doubles.max_opt()), (Some(&-2.0), Some(&0.5)));
        let Statistics::Double(zeros) = of(Type::Double, &[&[bits(0.0)]]) else { panic!("no doubles") };
        assert!(zeros.min_opt().unwrap().is_sign_negative() && zeros.max_opt().unwrap().is_sign_positive());
    }
}
