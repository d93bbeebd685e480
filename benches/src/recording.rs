//! Recordings of the measuring process itself.

use std::time::{Duration, Instant};
use trace_engine::engine::{self, Engine};
use trace_engine::{BufferMode, Config, Disposition, HeapWords, Region};

/// Room of a recording, in bytes.
pub const RECORDING_BYTES: usize = 64 << 20;

/// A recording into memory whose pages are all present.
pub struct Recording(Engine, HeapWords);

impl Recording {
    /// Begins to record.
    ///
    /// # Panics
    /// If another one is under way.
    #[must_use]
    pub fn start() -> Self {
        let (region, words) = Region::on_heap(RECORDING_BYTES);
        let config = Config::new(1, "bench", 1);
        let engine = engine::initialize(region, BufferMode::Oneshot, config).expect("the engine is idle");
        engine.start(Disposition::Retain, &[]).expect("the engine is initialized");
        Self(engine, words)
    }

    /// Ends it.
    ///
    /// # Panics
    /// If it had no room for all records.
    pub fn stop(self) {
        assert_eq!(self.0.records_refused(), 0);
        self.0.terminate(Instant::now() + Duration::from_secs(5)).expect("the engine was started");
        drop(self.1);
    }
}
