//! The metrics of one kind, by their keys.

use crate::metric::Metric;
use crate::patient::Patience;
use core::fmt::Write;
use core::sync::atomic::{AtomicUsize, Ordering};
use metrics::Key;
use std::collections::HashMap;
use std::sync::{Arc, RwLock};
use trace_engine::Site;

const CATEGORY: &str = "metrics";
/// Longest name with labels, in bytes.
const MAX_NAME_BYTES: usize = 32_000;

#[derive(Debug)]
struct Shard<M> {
    metrics: RwLock<HashMap<Key, Arc<M>>>,
    patience: Patience,
}

/// See the module. Threads that use different metrics seldom meet at one lock.
#[derive(Debug)]
pub struct Table<M> {
    shards: [Shard<M>; 16],
    count: AtomicUsize,
}

impl<M: Metric> Table<M> {
    pub fn new() -> Self {
        Self {
            shards: core::array::from_fn(|_| Shard {
                metrics: RwLock::default(),
                patience: Patience::default(),
            }),
            count: AtomicUsize::new(0),
        }
    }

    /// A metric; none if there are too many already, or if its name is too long.
    pub fn find(&self, key: &Key, interval_ticks: impl FnOnce() -> u64) -> Option<Arc<M>> {
        let shard = &self.shards[key.get_hash() as usize % self.shards.len()];
        if let Some(known) = shard.patience.wait(|| shard.metrics.try_read())?.get(key) {
            return Some(known.clone());
        }
        if self.count.load(Ordering::Relaxed) >= M::MAX {
            return None;
        }
        let name = name(key);
        if name.len() > MAX_NAME_BYTES {
            return None;
        }
        // Before the lock is taken, as it may wait for a thread that waits for the lock, with forks held off.
        // Of threads that find a new metric at the same time, all but one have made it in vain.
        let site = Site::leaked(CATEGORY, String::leak(name), M::SERIES);
        let new = Arc::new(M::new(site, interval_ticks()));
        let mut shard = shard.patience.wait(|| shard.metrics.try_write())?;
        if let Some(known) = shard.get(key) {
            return Some(known.clone());
        }
        if self.count.fetch_add(1, Ordering::Relaxed) >= M::MAX {
            self.count.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        shard.insert(key.to_retained(), new.clone());
        Some(new)
    }

    pub fn for_each(&self, call: impl Fn(&M)) {
        for shard in &self.shards {
            let Some(shard) = shard.patience.wait(|| shard.metrics.try_read()) else { continue };
            let metrics: Vec<_> = shard.values().cloned().collect();
            drop(shard);
            metrics.iter().for_each(|metric| call(metric));
        }
    }
}

/// The name with the labels, as exporters write them.
fn name(key: &Key) -> String {
    let mut name = key.name().to_owned();
    for (number, label) in key.labels().enumerate() {
        let before = if number == 0 { '{' } else { ',' };
        // A string takes everything.
        let _ = write!(name, "{before}{}={:?}", label.key(), label.value());
    }
    if key.labels().len() > 0 {
        name.push('}');
    }
    name
}
