//! Threads of clients and recordings.

use crate::error::{Error, Result};
use std::thread::Builder;

/// Runs a function on a thread of its own, which ends with it.
pub(crate) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<()> {
    let spawned = Builder::new().name(name.to_owned()).spawn(run);
    spawned.map(drop).map_err(|error| Error::Thread(Some(error)))
}
