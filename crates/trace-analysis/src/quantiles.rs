//! Percentiles of any number of values, in bounded memory.
//!
//! Few values are kept as they are, and their percentiles are exact. Of more, only the sign, the exponent and
//! the first nine bits of the fraction count: values of 512 classes for each power of two. The percentile is
//! the middle of its class, at most 0.1 % from the value itself.

use trace_model::percentile;

/// So many values are kept as they are.
pub const EXACT: usize = 256;
/// Bits of the fraction that distinguish values.
const FRACTION_BITS: u32 = 9;
/// Classes of one power of two.
const CLASSES: usize = 1 << FRACTION_BITS;
/// Octaves that are found without a search: those of 64 powers of two.
const FOUND: usize = 64;
/// Bits of a value that do not count.
const IGNORED_BITS: u32 = 52 - FRACTION_BITS;

/// The memory for classes of all percentiles together: 4 KiB for each power of two that occurs in one of
/// them.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    left: usize,
}

impl Default for Budget {
    /// 128 MiB.
    fn default() -> Self {
        Self::of_bytes(128 << 20)
    }
}

impl Budget {
    /// A budget of so many bytes.
    #[must_use]
    pub const fn of_bytes(bytes: usize) -> Self {
        Self { left: bytes / (CLASSES * size_of::<u64>()) }
    }
}

/// The classes of one power of two.
#[derive(Clone, Debug)]
struct Octave {
    key: u16,
    counts: Box<[u64; CLASSES]>,
}

/// Values for percentiles.
#[derive(Clone, Debug)]
pub struct Quantiles {
    /// All values, while there are few.
    values: Vec<f64>,
    /// Sorted by key.
    octaves: Vec<Octave>,
    /// Where the last octave with each end of a key was found.
    found: [u8; FOUND],
    count: u64,
    /// Values for which there was no memory.
    missed: u64,
}

impl Default for Quantiles {
    fn default() -> Self {
        Self { values: Vec::new(), octaves: Vec::new(), found: [0; FOUND], count: 0, missed: 0 }
    }
}

/// The bits of a value, in the order of values.
fn ordered(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

fn of_ordered(ordered: u64) -> f64 {
    f64::from_bits(if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered })
}

impl Quantiles {
    /// Adds a value.
    #[inline]
    pub fn push(&mut self, value: f64, budget: &mut Budget) {
        self.count += 1;
        if self.octaves.is_empty() {
            if self.values.len() < EXACT {
                self.values.push(value);
                return;
            }
            for value in std::mem::take(&mut self.values) {
                self.classify(value, budget);
            }
        }
        self.classify(value, budget);
    }

    /// Takes back a value that was added.
    pub fn remove(&mut self, value: f64) {
        let class = (ordered(value) >> IGNORED_BITS) as usize;
        let (key, place) = ((class >> FRACTION_BITS) as u16, class & (CLASSES - 1));
        if let Some(place) = self.values.iter().position(|known| known.to_bits() == value.to_bits()) {
            self.values.swap_remove(place);
        } else if let Ok(found) = self.octaves.binary_search_by_key(&key, |octave| octave.key)
            && self.octaves[found].counts[place] > 0
        {
            self.octaves[found].counts[place] -= 1;
        } else if self.missed > 0 {
            self.missed -= 1;
        } else {
            return;
        }
        self.count -= 1;
    }

    /// Adds the values of another.
    pub fn merge(&mut self, other: &Self, budget: &mut Budget) {
        if other.octaves.is_empty() {
            other.values.iter().for_each(|value| self.push(*value, budget));
            return;
        }
        for value in std::mem::take(&mut self.values) {
            self.classify(value, budget);
        }
        self.count += other.count;
        self.missed += other.missed;
        for octave in &other.octaves {
            let counts = octave.counts.iter();
            match self.octaves.binary_search_by_key(&octave.key, |octave| octave.key) {
                Ok(found) => {
                    self.octaves[found].counts.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
                }
                Err(_) if budget.left == 0 => self.missed += counts.sum::<u64>(),
                Err(found) => {
                    budget.left -= 1;
                    self.octaves.insert(found, octave.clone());
                }
            }
        }
    }

    #[inline]
    fn classify(&mut self, value: f64, budget: &mut Budget) {
        let class = (ordered(value) >> IGNORED_BITS) as usize;
        let (key, place) = ((class >> FRACTION_BITS) as u16, class & (CLASSES - 1));
        let end = usize::from(key) % FOUND;
        let known = usize::from(self.found[end]);
        if let Some(octave) = self.octaves.get_mut(known).filter(|octave| octave.key == key) {
            octave.counts[place] += 1;
            return;
        }
        let found = match self.octaves.binary_search_by_key(&key, |octave| octave.key) {
            Ok(found) => found,
            Err(_) if budget.left == 0 => {
                self.missed += 1;
                return;
            }
            Err(found) => {
                budget.left -= 1;
                self.octaves.insert(found, Octave { key, counts: Box::new([0; CLASSES]) });
                found
            }
        };
        self.found[end] = u8::try_from(found).unwrap_or(0);
        self.octaves[found].counts[place] += 1;
    }

    /// The least value that at least `percent` of all values do not exceed; none of no value, or where there
    /// was no memory for all of them.
    //= docs/stats.md#percentiles
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        if self.count == 0 || self.missed > 0 {
            return None;
        }
        let rank = percentile::rank(percent, self.count);
        if self.octaves.is_empty() {
            let mut values = self.values.clone();
            values.sort_by(f64::total_cmp);
            return values.get(rank as usize - 1).copied();
        }
        let mut left = rank;
        for octave in &self.octaves {
            for (place, count) in octave.counts.iter().enumerate() {
                if left <= *count {
                    let class = (u64::from(octave.key) << FRACTION_BITS | place as u64) << IGNORED_BITS;
                    let (low, high) = (of_ordered(class), of_ordered(class | ((1 << IGNORED_BITS) - 1)));
                    return Some(match (low.is_infinite(), high.is_infinite()) {
                        (true, _) => low,
                        (_, true) => high,
                        _ => low / 2.0 + high / 2.0,
                    });
                }
                left -= count;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[f64]) -> Quantiles {
        let (mut quantiles, mut budget) = (Quantiles::default(), Budget::default());
        values.iter().for_each(|value| quantiles.push(*value, &mut budget));
        quantiles
    }

    /// By the definition.
    fn expected(values: &[f64], percent: f64) -> f64 {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        let rank = (percent / 100.0 * values.len() as f64).ceil().max(1.0) as usize;
        values[rank - 1]
    }

    //= docs/stats.md#percentiles
    #[test]
    fn few_values_have_exact_percentiles() {
        assert_eq!(of(&[]).percentile(50.0), None);
        let values: Vec<f64> = (1..=100).map(f64::from).rev().collect();
        let quantiles = of(&values);
        for (percent, value) in [(1.0, 1.0), (50.0, 50.0), (50.5, 51.0), (99.0, 99.0), (99.9, 100.0)] {
            assert_eq!(quantiles.percentile(percent), Some(value), "{percent}");
        }
    }

    //= docs/stats.md#percentiles
    #[test]
    fn many_values_have_percentiles_with_three_digits() {
        let values: Vec<f64> = (0..100_000_u64).map(|number| (number * 7919 % 100_000) as f64).collect();
        let quantiles = of(&values);
        for percent in [0.1, 5.0, 50.0, 95.0, 99.0, 99.9, 100.0] {
            let (found, exact) = (quantiles.percentile(percent).unwrap(), expected(&values, percent));
            assert!((found - exact).abs() <= exact / 1000.0, "{percent}: {found}, not {exact}");
        }
        assert_eq!(quantiles.octaves.len(), 18, "zero, and 17 powers of two");
    }

    #[test]
    fn without_memory_there_is_no_percentile() {
        let (mut quantiles, mut budget) = (Quantiles::default(), Budget { left: 1 });
        for _ in 0..300 {
            quantiles.push(5.0, &mut budget);
        }
        assert_eq!(quantiles.percentile(50.0), Some(5.00390625));
        quantiles.push(1000.0, &mut budget);
        assert_eq!(quantiles.percentile(50.0), None);
    }

    proptest! {
        /// In whatever pieces values come, their percentiles are the same.
        #[test]
        fn merging_is_adding(
            pieces in proptest::collection::vec(proptest::collection::vec(-1e6..1e6, 0..600), 1..5),
        ) {
            let (mut merged, mut budget) = (Quantiles::default(), Budget::default());
            pieces.iter().for_each(|piece| merged.merge(&of(piece), &mut budget));
            let all = of(&pieces.concat());
            for percent in [1.0, 50.0, 99.0, 100.0] {
                prop_assert_eq!(merged.percentile(percent), all.percentile(percent));
            }
        }

        //= docs/stats.md#percentiles
        #[test]
        fn percentiles_are_near(
            values in proptest::collection::vec(-1e12..1e12, 1..2000), percent in 0.1..100.0,
        ) {
            let (found, exact) = (of(&values).percentile(percent).unwrap(), expected(&values, percent));
            prop_assert!((found - exact).abs() <= exact.abs() / 1000.0, "{found}, not {exact}");
        }
    }
}
