//! The configuration of the running trace, and the categories that the application describes.

use crate::linux::callbacks;
use crate::linux::lock::Mutex;
use std::sync::{Arc, OnceLock};
use trace_engine::{BufferMode, engine};
use trace_protocol::KnownCategory;
use zx_sim::ticks::Clock;

/// The configuration of the trace that this process takes part in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// What happens when the buffer is full.
    pub mode: BufferMode,
    /// The categories, as the client wrote them; none means all.
    pub categories: Vec<String>,
}

static CONFIG: Mutex<Option<Config>> = Mutex::new(None);

pub(crate) fn set_config(config: Option<Config>) {
    // A child would find the lock taken.
    engine::without_forks(|| *CONFIG.lock() = config);
}

/// The configuration of the running trace; `None` while no trace is running.
#[must_use]
pub fn config() -> Option<Config> {
    engine::without_forks(|| CONFIG.lock().clone())
}

/// Name and description of a category.
pub type Category = (String, String);

type Describe = Arc<dyn Fn() -> Vec<Category> + Send + Sync>;

static DESCRIBE: Mutex<Option<Describe>> = Mutex::new(None);

pub(crate) fn set_describe(describe: Describe) {
    // A child would find the lock taken, as below.
    engine::without_forks(|| *DESCRIBE.lock() = Some(describe));
    callbacks::want();
}

/// The categories that the application describes, each once.
pub(crate) fn described_categories() -> Vec<KnownCategory> {
    let describe = engine::without_forks(|| DESCRIBE.lock().clone());
    let all = describe.and_then(|describe| callbacks::run(move || describe())).unwrap_or_default();
    let mut described: Vec<KnownCategory> = Vec::new();
    for (name, description) in all {
        if let Err(place) = described.binary_search_by(|known| known.name.cmp(&name)) {
            described.insert(place, KnownCategory { name, description });
        }
    }
    described
}

/// Ticks of the trace clock per second: the rate that the processes of this machine share, or, if there is
/// none yet, the one that this process determines.
#[must_use]
pub fn ticks_per_second() -> u64 {
    static RATE: OnceLock<u64> = OnceLock::new();
    *RATE.get_or_init(|| {
        // Only of the first one, as anyone may hold the lock of one that is not this user's.
        let directories = crate::linux::manager::places();
        let agreed = directories.first().and_then(|first| Clock::agreed(first, &directories).ok());
        agreed.unwrap_or_else(Clock::measure).ticks_per_second
    })
}
