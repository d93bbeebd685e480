//! Fifty nested durations of steady work, for comparisons of two commands.
//!
//! `fifty [NAME PERCENT]`: rounds of a frame with seven stages of six steps each. The step with the name does
//! so many percent more work.

use std::hint::black_box;
use trace_provider::{DynamicSite, TraceProvider, duration};

const ROUNDS: usize = 30;
const STAGES: usize = 7;
const STEPS: usize = 6;
/// The work of the first step; each further one does a little more.
const WORK: u64 = 3000;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let slow = arguments.next().unwrap_or_default();
    let percent: u64 = arguments.next().map_or(0, |text| text.parse().expect("a number of percent"));
    let _provider = TraceProvider::new("fifty");
    let site = |what: &str, number: usize| DynamicSite::new("fifty", &format!("{what} {number}"), []);
    let stages: Vec<_> = (0..STAGES).map(|stage| site("stage", stage)).collect();
    let steps: Vec<_> = (0..STAGES * STEPS)
        .map(|step| {
            let work = WORK + 50 * step as u64;
            let is_slow = slow == format!("step {step}");
            (site("step", step), if is_slow { work * (100 + percent) / 100 } else { work })
        })
        .collect();
    for _ in 0..ROUNDS {
        duration!("fifty", "frame");
        for (stage, steps) in stages.iter().zip(steps.chunks(STEPS)) {
            let _stage = stage.duration(());
            for (step, work) in steps {
                let _step = step.duration(());
                spin(*work);
            }
        }
    }
}

fn spin(work: u64) {
    let mut state = 1_u64;
    for _ in 0..work {
        state = black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}
