//! The guard behind `async_enter!`.

use crate::record::event::Event;
use crate::record::hot_path::write_event;
use crate::site::Site;
use trace_format::event::EventType;

/// Ends an asynchronous operation when it is dropped, on whatever thread that is, if the site is still on.
#[derive(Debug)]
#[must_use = "the operation ends when this is dropped"]
pub struct AsyncScope {
    site: &'static Site,
    id: u64,
}

impl AsyncScope {
    /// The operation has begun.
    #[doc(hidden)]
    pub const fn new(site: &'static Site, id: u64) -> Self {
        Self { site, id }
    }
}

impl Drop for AsyncScope {
    fn drop(&mut self) {
        if self.site.is_on() {
            let event = Event { event_type: EventType::AsyncEnd, start: None, extra: Some(self.id) };
            write_event(self.site, event, &());
        }
    }
}
