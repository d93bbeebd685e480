//! What the measurements share: many short runs of an operation beside a floor in the same run, and a table
//! of ratios.
#![forbid(unsafe_code)]

pub mod archive;
pub mod callgrind;
pub mod large;
pub mod recording;

use std::time::Instant;

/// One operation's cost over many runs, in nanoseconds for each time it was done.
#[derive(Clone, Debug)]
pub struct Cost {
    /// What was measured.
    pub name: &'static str,
    nanos: Vec<f64>,
}

impl Cost {
    /// Nothing measured yet.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self { name, nanos: Vec::new() }
    }

    /// Measures one run of `times` operations.
    pub fn measure(&mut self, times: u64, run: impl FnOnce(u64)) {
        let begin = Instant::now();
        run(times);
        self.nanos.push(begin.elapsed().as_nanos() as f64 / times as f64);
    }

    /// Adds a run that was measured elsewhere.
    pub fn push(&mut self, nanos: f64) {
        self.nanos.push(nanos);
    }

    /// The fastest run.
    #[must_use]
    pub fn minimum(&self) -> f64 {
        self.nanos.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The run in the middle.
    #[must_use]
    pub fn median(&self) -> f64 {
        let mut sorted = self.nanos.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

/// A table of costs with their ratios to the first.
#[must_use]
pub fn table(costs: &[Cost]) -> String {
    let mut text = String::from("| what | minimum ns | median ns | ratio of medians |\n|---|---|---|---|\n");
    let floor = costs.first().map_or(f64::NAN, Cost::median);
    for cost in costs {
        let (minimum, median) = (cost.minimum(), cost.median());
        text.push_str(&format!("| {} | {minimum:.2} | {median:.2} | {:.2} |\n", cost.name, median / floor));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_minimum_median_and_ratio() {
        let mut floor = Cost::new("floor");
        let mut other = Cost::new("other");
        [3.0, 2.0, 4.0].into_iter().for_each(|nanos| floor.push(nanos));
        [6.0, 9.0, 7.5].into_iter().for_each(|nanos| other.push(nanos));
        let text = table(&[floor, other]);
        assert!(text.ends_with("| floor | 2.00 | 3.00 | 1.00 |\n| other | 6.00 | 7.50 | 2.50 |\n"), "{text}");
    }
}
