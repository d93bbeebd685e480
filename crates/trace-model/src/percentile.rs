//! Percentiles of values that are known one by one.
//= docs/stats.md#percentiles

/// Which of so many sorted values is a percentile, counted from 1: the first that at least `percent` of them
/// do not exceed.
///
/// ```
/// use trace_model::percentile;
///
/// let ranks = [(50.0, 3), (99.9, 1000), (7.0, 100), (100.0, 5)];
/// assert_eq!(ranks.map(|(percent, count)| percentile::rank(percent, count)), [2, 999, 7, 5]);
/// ```
#[must_use]
pub fn rank(percent: f64, count: u64) -> u64 {
    // A little less: a product of doubles may be a little above a whole number.
    const HUNDREDTH: f64 = 0.009_999_999_999_99;

    ((percent * count as f64 * HUNDREDTH).ceil() as u64).clamp(1, count.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_whole_numbers() {
        for count in (1..=300).chain([999, 1000, 3000, 20_000, 1_000_000, 8 << 20]) {
            for tenths in 10..=1000_u64 {
                let expected = (tenths * count).div_ceil(1000).max(1);
                assert_eq!(rank(tenths as f64 / 10.0, count), expected, "{tenths} tenths of {count}");
            }
        }
    }
}
