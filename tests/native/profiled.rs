//! A program that is always in the same place, compiled as releases are: without frame pointers.

use std::hint::black_box;

#[inline(never)]
fn innermost(count: u64) -> u64 {
    (0..count).fold(0, |sum, number| black_box(sum + number))
}

#[inline(never)]
fn between(numbers: &[u64]) -> u64 {
    numbers.iter().map(|number| innermost(*number)).sum::<u64>() + 1
}

struct Outer(Vec<u64>);

impl Outer {
    #[inline(never)]
    fn run(&self) -> u64 {
        between(&self.0) + 1
    }
}

fn main() {
    let outer = Outer(vec![20_000; 4]);
    // A fixed amount of work: on a busy machine a fixed time would have few samples.
    for _ in 0..8000 {
        black_box(outer.run());
    }
}
