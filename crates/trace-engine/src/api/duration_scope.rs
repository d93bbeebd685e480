//! The guard behind `duration!`.

use crate::record::arguments::Values;
use crate::record::event::Event;
use crate::record::hot_path::write_event;
use crate::record::processor_time;
use crate::site::{Site, SiteState};
use crate::thread::registry;
use trace_format::event::EventType;

/// Writes a complete duration when it is dropped, if the site is still on.
#[derive(Debug)]
#[must_use = "the duration ends when this is dropped"]
pub struct DurationScope<V: Values> {
    site: &'static Site,
    start: u64,
    values: V,
}

impl<V: Values> DurationScope<V> {
    /// Begins now, at a site that was found like this.
    #[inline(always)]
    pub fn begin(site: &'static Site, state: SiteState, values: V) -> Self {
        let start = if state.is_fast() { registry::current().stamp() } else { processor_time::begin() };
        Self { site, start, values }
    }
}

impl<V: Values> Drop for DurationScope<V> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.site.is_on() {
            let event =
                Event { event_type: EventType::DurationComplete, start: Some(self.start), extra: None };
            write_event(self.site, event, &self.values);
        }
    }
}
