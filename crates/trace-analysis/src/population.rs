//! Statistics of a list of values.

/// Statistics of the whole population, not of a sample of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Population {
    /// The number of values.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// The standard deviation.
    pub deviation: f64,
    /// The least value.
    pub min: f64,
    /// The greatest value.
    pub max: f64,
}

impl Population {
    /// The statistics of some values; none of no value.
    //= docs/measure.md#measurements
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let deviation = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(Self { count: values.len(), mean, deviation, min, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/measure.md#measurements
    #[test]
    fn deviations_are_of_the_whole_population() {
        assert_eq!(Population::of(&[]), None);
        let of_four = Population::of(&[2.0, 4.0, 4.0, 6.0]).unwrap();
        assert_eq!((of_four.count, of_four.mean, of_four.min, of_four.max), (4, 4.0, 2.0, 6.0));
        assert_eq!(of_four.deviation, 2_f64.sqrt());
        assert_eq!(Population::of(&[3.5]).unwrap().deviation, 0.0);
    }
}
