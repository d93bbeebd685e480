//! A counter's values, as many as there are pixels.

use std::collections::BTreeMap;

/// Values at one pixel.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bucket {
    last_at: u64,
    last: f64,
    least: f64,
    most: f64,
}

/// Values of a series in the window, and the last one before it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Buckets {
    before: Option<(u64, f64)>,
    buckets: BTreeMap<u16, Bucket>,
}

impl Buckets {
    /// Adds a value: at a pixel, or before the window.
    pub fn add(&mut self, at: u64, pixel: Option<u16>, value: f64) {
        let Some(pixel) = pixel else {
            if self.before.is_none_or(|(before, _)| before <= at) {
                self.before = Some((at, value));
            }
            return;
        };
        let new = Bucket { last_at: at, last: value, least: value, most: value };
        let bucket = self.buckets.entry(pixel).or_insert(new);
        if bucket.last_at <= at {
            (bucket.last_at, bucket.last) = (at, value);
        }
        (bucket.least, bucket.most) = (bucket.least.min(value), bucket.most.max(value));
    }

    /// The smallest and the largest value.
    pub fn range(&self) -> Option<(f64, f64)> {
        let before = self.before.map(|(_, value)| (value, value));
        let all = self.buckets.values().map(|bucket| (bucket.least, bucket.most)).chain(before);
        all.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// The last value.
    pub fn last(&self) -> Option<f64> {
        let last = self.buckets.values().next_back().map(|bucket| bucket.last);
        last.or(self.before.map(|(_, value)| value))
    }

    /// The line of the values up to a width: places and values, as steps.
    pub fn line(&self, width: f64) -> Vec<(f64, f64)> {
        let mut line = Vec::new();
        let mut value = self.before.map(|(_, value)| value);
        if let Some(value) = value {
            line.push((0.0, value));
        }
        for (pixel, bucket) in &self.buckets {
            let at = f64::from(*pixel);
            let extremes = [bucket.least, bucket.most];
            line.extend(value.map(|value| (at, value)));
            // What is between the last values of two pixels is a line from the least to the most.
            if bucket.least < bucket.last || bucket.most > bucket.last {
                line.extend(extremes.map(|value| (at, value)));
            }
            line.push((at, bucket.last));
            value = Some(bucket.last);
        }
        line.extend(value.map(|value| (width, value)));
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_steps_with_their_extremes() {
        let mut buckets = Buckets::default();
        for (at, pixel, value) in [
            (1, None, 9.0),
            (3, None, 2.0),
            (2, None, 8.0),
            (10, Some(5), 4.0),
            (12, Some(5), 3.0),
            (11, Some(5), 7.0),
            (20, Some(9), 1.0),
        ] {
            buckets.add(at, pixel, value);
        }
        let line =
            [(0.0, 2.0), (5.0, 2.0), (5.0, 3.0), (5.0, 7.0), (5.0, 3.0), (9.0, 3.0), (9.0, 1.0), (20.0, 1.0)];
        assert_eq!(buckets.line(20.0), line);
        assert_eq!((buckets.range(), buckets.last()), (Some((1.0, 7.0)), Some(1.0)));
        assert_eq!((Buckets::default().range(), Buckets::default().line(1.0)), (None, Vec::new()));
    }
}
