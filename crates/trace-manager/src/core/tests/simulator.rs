//! Random schedules in virtual time: providers register, start, stop, die, lie and stall, the output and
//! buffers fail, the client does what comes to its mind. Then faults end, and the core must come to rest.
//!
//! A failing seed is printed; `SIM_SEED=<n> cargo test -p trace-manager simulator` runs it alone, and
//! `SIM_SEEDS=<n>` so many instead of the usual ones.

mod ledger;
mod random;
mod world;

use world::World;

const SEEDS: u64 = 100_000;

fn run(seed: u64) {
    let mut world = World::new(seed);
    world.run_with_faults();
    world.heal();
    world.run_cleanly();
}

/// Prints the seed when the test unwinds.
struct PrintOnPanic(u64);

impl Drop for PrintOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failing seed: SIM_SEED={}", self.0);
        }
    }
}

#[test]
fn random_schedules_come_to_rest() {
    let seeds = match std::env::var("SIM_SEED") {
        Ok(seed) => {
            let seed = seed.parse().expect("SIM_SEED is a number");
            seed..=seed
        }
        Err(_) => {
            let seeds =
                std::env::var("SIM_SEEDS").ok().map(|seeds| seeds.parse().expect("SIM_SEEDS is a number"));
            1..=seeds.unwrap_or(SEEDS)
        }
    };
    for seed in seeds {
        let printer = PrintOnPanic(seed);
        run(seed);
        drop(printer);
    }
}

/// The schedules reach what they are meant to reach; otherwise the test above shows nothing.
#[test]
fn the_schedules_reach_every_corner() {
    let mut reached = ledger::Reached::default();
    for seed in 1..=1000 {
        let mut world = World::new(seed);
        world.run_with_faults();
        world.heal();
        reached.add(&world.reached());
    }
    for (corner, count) in reached.counts() {
        assert!(count >= 10, "{corner}: {count} times");
    }
}
