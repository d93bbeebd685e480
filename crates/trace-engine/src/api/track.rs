//! Tracks: virtual threads with a name and an id of their own.

use crate::api::id::Id;
use crate::record::arguments::Values;
use crate::record::event::Event;
use crate::record::event_writer::VirtualName;
use crate::record::open_scope::{close_on_track, open_on_track};
use crate::record::other_records::write_virtual;
use crate::site::Site;
use crate::sync::{AtomicU64, Ordering};
use crate::thread::registry;
use crate::thread::scope_pages::TrackPlace;
use trace_format::event::EventType;

/// Above the ids of threads, and within the 32 bits that Perfetto's reader keeps.
const FIRST_ID: u64 = 1 << 30;

/// A separate row in viewers, for events that belong to no thread in particular: those of a queue, a
/// connection or a device.
///
/// Two tracks of the same name are two rows. [`track_instant!`](crate::track_instant) and related macros
/// record their events.
#[derive(Debug)]
pub struct Track {
    name: &'static str,
    /// 0 before it is first asked for.
    id: AtomicU64,
}

impl Track {
    /// A track of this name.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { name, id: AtomicU64::new(0) }
    }

    /// What it is called in the trace.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn virtual_name(&self) -> VirtualName<'static> {
        VirtualName { text: self.name, is_literal: true }
    }

    /// Its id among the virtual threads of the process, taken at random when it is first asked for: from 2³⁰
    /// up to 2³¹.
    #[must_use]
    pub fn id(&self) -> u64 {
        let known = self.id.load(Ordering::Relaxed);
        if known != 0 {
            return known;
        }
        let fresh = FIRST_ID | Id::new().0 & (FIRST_ID - 1);
        match self.id.compare_exchange(0, fresh, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => fresh,
            Err(other) => other,
        }
    }
}

/// Writes a complete duration of a track when it is dropped, if the site is still on.
#[derive(Debug)]
#[must_use = "the duration ends when this is dropped"]
pub struct TrackScope<V: Values> {
    site: &'static Site,
    track: &'static Track,
    start: u64,
    /// Where readers find it while it is open.
    place: Option<TrackPlace>,
    values: V,
}

impl<V: Values> TrackScope<V> {
    /// Begins now.
    pub fn begin(site: &'static Site, track: &'static Track, values: V) -> Self {
        let start = registry::current().stamp();
        Self { site, track, start, place: open_on_track(site, start, (track.name, track.id())), values }
    }
}

impl<V: Values> Drop for TrackScope<V> {
    fn drop(&mut self) {
        if self.site.is_on() {
            let event =
                Event { event_type: EventType::DurationComplete, start: Some(self.start), extra: None };
            write_virtual(self.site, (self.track.virtual_name(), self.track.id()), event, &self.values);
            if let Some(place) = self.place {
                close_on_track(place, self.start);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Track;

    #[test]
    fn tracks_of_one_name_are_two() {
        let (one, other) = (Track::new("queue"), Track::new("queue"));
        let id = one.id();
        assert_eq!(one.id(), id, "it stays");
        assert_ne!(other.id(), id);
        assert!((1 << 30..1 << 31).contains(&id));
    }
}
