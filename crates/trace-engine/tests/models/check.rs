//! Plays a model through, in every interleaving.

use crate::sync::{Arc, thread};

/// Which of two actors begins.
#[derive(Clone, Copy)]
pub enum Order {
    /// The first, on the model's own thread.
    First,
    /// The second.
    Second,
}

impl Order {
    /// What two actors do at the same time.
    pub fn play<W: Send + Sync + 'static, A: Send + 'static, B: Send + 'static>(
        self,
        world: &Arc<W>,
        first: impl FnOnce(&W) -> A + Send + 'static,
        second: impl FnOnce(&W) -> B + Send + 'static,
    ) -> (A, B) {
        let other = world.clone();
        match self {
            Self::First => {
                let second = thread::spawn(move || second(&other));
                let first = first(world);
                (first, second.join().unwrap())
            }
            Self::Second => {
                let first = thread::spawn(move || first(&other));
                let second = second(world);
                (first.join().unwrap(), second)
            }
        }
    }
}

/// Plays a model through, with so many switches between threads that could both go on, and with either actor
/// first: loom goes on from a run in which one of them is through before the other begins, and looks only at
/// the last access to each atomic for what else may happen. A thread that loads a word before it exchanges it
/// hides the loads of others.
pub fn check(preemptions: usize, model: impl Fn(Order) + Copy + Sync + Send + 'static) {
    for order in [Order::First, Order::Second] {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions);
        // An event of the engine is hundreds of steps.
        builder.max_branches = 50_000;
        builder.check(move || model(order));
    }
}
