//! The values of an interval of a histogram, in buckets whose width grows with the value.
//!
//! Bucket 0 has what is below the range. Of each power of two in the range, there are [`PARTS`] buckets of
//! one width.

/// The range, as powers of two.
const FIRST_POWER: i32 = -32;
const END_POWER: i32 = 48;
/// Buckets of each power of two, as a power of two.
const PART_BITS: u32 = 4;
const PARTS: usize = 1 << PART_BITS;
const BUCKETS: usize = 1 + (END_POWER - FIRST_POWER) as usize * PARTS;

/// Bits of the fraction of a double.
const FRACTION_BITS: u32 = 52;
const BIAS: i32 = 1023;

/// Values, counted.
#[derive(Debug)]
pub struct Buckets {
    /// None before the first value.
    counts: Option<Box<[u32]>>,
    count: u64,
    sum: f64,
    min: f64,
    max: f64,
}

/// What is recorded of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    pub count: u64,
    pub min: f64,
    pub mean: f64,
    pub max: f64,
    pub p50: f64,
    pub p99: f64,
}

impl Buckets {
    pub const fn new() -> Self {
        Self { counts: None, count: 0, sum: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY }
    }

    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a finite value so many times.
    pub fn add(&mut self, value: f64, times: u32) {
        let counts = self.counts.get_or_insert_with(|| vec![0; BUCKETS].into());
        let bucket = &mut counts[bucket(value)];
        *bucket = bucket.saturating_add(times);
        self.count += u64::from(times);
        self.sum += value * f64::from(times);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Takes everything out; none if there is nothing.
    pub fn take(&mut self) -> Option<Summary> {
        if self.is_empty() {
            return None;
        }
        let (min, max, count) = (self.min, self.max, self.count);
        // The sum of large values may be infinite, or no number.
        let mean = self.sum / count as f64;
        let mean = if mean.is_nan() { 0.0 } else { mean }.clamp(self.min, self.max);
        let (p50, p99) = (self.quantile(50), self.quantile(99));
        let mut counts = self.counts.take();
        if let Some(counts) = &mut counts {
            counts.fill(0);
        }
        *self = Self { counts, ..Self::new() };
        Some(Summary { count, min, mean, max, p50, p99 })
    }

    /// The middle of the bucket of the value that so many of a hundred do not exceed.
    fn quantile(&self, percent: u128) -> f64 {
        let rank = (u128::from(self.count) * percent).div_ceil(100);
        let mut seen = 0;
        let counts = self.counts.iter().flatten().enumerate();
        let found = counts.skip_while(|(_, count)| {
            seen += u128::from(**count);
            seen < rank
        });
        found
            .map(|(bucket, _)| middle(bucket))
            .next()
            .map_or(self.max, |value| value.clamp(self.min, self.max))
    }
}

/// The bucket of a finite value.
fn bucket(value: f64) -> usize {
    if value < f64::powi(2.0, FIRST_POWER) {
        return 0;
    }
    let bits = value.to_bits();
    let power = (bits >> FRACTION_BITS) as i32 - BIAS;
    let part = (bits >> (FRACTION_BITS - PART_BITS)) as usize & (PARTS - 1);
    (1 + (power - FIRST_POWER) as usize * PARTS + part).min(BUCKETS - 1)
}

/// The middle of a bucket; of bucket 0, below all values.
fn middle(bucket: usize) -> f64 {
    let Some(place) = bucket.checked_sub(1) else { return f64::MIN };
    let power = f64::powi(2.0, FIRST_POWER + (place / PARTS) as i32);
    power * (1.0 + ((place % PARTS) as f64 + 0.5) / PARTS as f64)
}

#[cfg(test)]
mod tests {
    use super::{BUCKETS, Buckets, Summary, bucket, middle};

    #[test]
    fn middles_are_near_their_values() {
        let mut value = f64::powi(2.0, -32);
        let mut last = 0;
        while value < f64::powi(2.0, 48) {
            let place = bucket(value);
            assert!((last..BUCKETS).contains(&place), "{value}");
            assert!((middle(place) - value).abs() <= value / 32.0, "{value}: {}", middle(place));
            assert_eq!(bucket(middle(place)), place, "{value}");
            last = place;
            value *= 1.003;
        }
        assert_eq!(last, BUCKETS - 1);
        assert_eq!([0.0, -0.0, -7.0, 1e-10, f64::MIN].map(bucket), [0; 5]);
        assert_eq!([1e15, f64::MAX].map(bucket), [BUCKETS - 1; 2]);
    }

    #[test]
    fn a_summary_has_the_values_since_the_last_one() {
        let mut buckets = Buckets::new();
        assert_eq!(buckets.take(), None);
        (1..=100).for_each(|value| buckets.add(f64::from(value), 1));
        let summary = Summary { count: 100, min: 1.0, mean: 50.5, max: 100.0, p50: 51.0, p99: 98.0 };
        assert_eq!(buckets.take(), Some(summary));
        assert_eq!(buckets.take(), None);
        buckets.add(-3.0, 2);
        buckets.add(5.0, 1);
        let summary = Summary { count: 3, min: -3.0, mean: -1.0 / 3.0, max: 5.0, p50: -3.0, p99: 5.0 };
        assert_eq!(buckets.take(), Some(summary));
    }

    #[test]
    fn the_mean_of_the_largest_values_is_one_of_them() {
        let mut buckets = Buckets::new();
        buckets.add(f64::MAX, 2);
        assert_eq!(buckets.take().map(|summary| summary.mean), Some(f64::MAX));
        buckets.add(f64::MAX, 2);
        buckets.add(f64::MIN, 2);
        assert_eq!(buckets.take().map(|summary| summary.mean), Some(0.0));
    }
}
