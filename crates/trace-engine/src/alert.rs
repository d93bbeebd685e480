//! Alerts: names that travel to the manager beside the buffer, which may stop the trace or take a snapshot.

use crate::engine::Lease;
use crate::site::{ON, Site};
use std::sync::Arc;
use trace_format::refs::truncate;

/// Longest name of an alert, in bytes; longer ones are cut where a character ends.
pub const MAX_ALERT_BYTES: usize = 14;

/// Who is told of an alert, on the thread that raises it.
#[derive(Clone)]
pub struct AlertHandler(Arc<dyn Fn(&str) + Send + Sync>);

impl AlertHandler {
    /// A handler that calls a function.
    pub fn new(tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }
}

impl Default for AlertHandler {
    /// Nobody is told.
    fn default() -> Self {
        Self::new(|_| ())
    }
}

impl core::fmt::Debug for AlertHandler {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("AlertHandler")
    }
}

/// Tells the running trace's handler, if the site is still on.
#[doc(hidden)]
pub fn send_alert(site: &Site, name: &str) {
    let lease = Lease::of_thread();
    let context = lease.context().filter(|_| site.load() & ON != 0);
    // It lives longer than the trace: it may take its time.
    let handler = context.map(|context| context.config.alert.clone());
    drop(lease);
    if let Some(AlertHandler(tell)) = handler {
        tell(truncate(name, MAX_ALERT_BYTES));
    }
}
