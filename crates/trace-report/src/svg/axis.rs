//! Where the marks of the time axis are, and their texts.

/// Units of time, in nanoseconds.
const UNITS: [(u64, &str); 4] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "µs"), (1, "ns")];
/// About how many marks an axis has.
const MARKS: u64 = 10;

/// A number of nanoseconds in a unit, with at most so many digits behind the point, rounded.
fn in_unit(nanos: u64, unit: u64, name: &str, digits: u32) -> String {
    let scale = 10_u128.pow(digits);
    let value = (u128::from(nanos) * scale + u128::from(unit / 2)) / u128::from(unit);
    let (whole, rest) = (value / scale, value % scale);
    if rest == 0 {
        return format!("{whole} {name}");
    }
    let rest = format!("{rest:0width$}", width = digits as usize);
    format!("{whole}.{} {name}", rest.trim_end_matches('0'))
}

/// The marks of a window: multiples of 1, 2 or 5 times a power of ten, and their texts.
pub fn marks(from: u64, to: u64) -> Vec<(u64, String)> {
    let step = step((to - from) / MARKS);
    let (unit, name) = UNITS.iter().find(|(unit, _)| to >= *unit).unwrap_or(&UNITS[3]);
    // As many digits as the steps need.
    let digits = (0..=9).find(|digits| (step * 10_u64.pow(*digits)).is_multiple_of(*unit)).unwrap_or(9);
    let first = from.div_ceil(step) * step;
    let mut marks = Vec::new();
    let mut at = first;
    while at <= to {
        marks.push((at, in_unit(at, *unit, name, digits)));
        let Some(next) = at.checked_add(step) else { break };
        at = next;
    }
    marks
}

/// The next number that is 1, 2 or 5 times a power of ten.
fn step(least: u64) -> u64 {
    let mut power = 1_u64;
    loop {
        for factor in [1, 2, 5] {
            let Some(step) = power.checked_mul(factor) else { return u64::MAX };
            if step >= least {
                return step;
            }
        }
        let Some(next) = power.checked_mul(10) else { return u64::MAX };
        power = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_told_apart() {
        let texts =
            |from, to| marks(from, to).into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(", ");
        assert_eq!(
            texts(0, 100),
            "0 ns, 10 ns, 20 ns, 30 ns, 40 ns, 50 ns, 60 ns, 70 ns, 80 ns, 90 ns, 100 ns"
        );
        assert_eq!(
            texts(1_000_100, 1_001_000),
            "1.0001 ms, 1.0002 ms, 1.0003 ms, 1.0004 ms, 1.0005 ms, 1.0006 ms, 1.0007 ms, 1.0008 ms, 1.0009 ms, 1.001 ms"
        );
        assert_eq!(texts(0, 1), "0 ns, 1 ns");
        assert_eq!(texts(0, 16_700_000), "0 ms, 2 ms, 4 ms, 6 ms, 8 ms, 10 ms, 12 ms, 14 ms, 16 ms");
        assert!(marks(0, u64::MAX).len() < 12);
    }
}
