//! What differs between doors and is known to. Every entry is a defect; the list only shrinks.

use super::doors::{Door, Format, Peer, V52, V55};
use super::rows::Class;
use Class::{Arrows, Counters, Operations, Parents, Slices};
use Door::Export;

/// Classes of which doors do not say what the model says: each of the classes at each of the doors.
pub struct Known {
    pub reason: &'static str,
    pub doors: &'static [Door],
    pub classes: &'static [Class],
    /// If it is not empty: only in traces whose labels begin with it.
    pub only: &'static str,
}

impl Known {
    pub fn has(&self, door: Door, class: Class) -> bool {
        self.doors.contains(&door) && self.classes.contains(&class)
    }

    /// Whether a trace with this label may differ.
    pub fn covers(&self, label: &str) -> bool {
        label.starts_with(self.only)
    }
}

const PERFETTO: &[Door] = &[Export(Format::Perfetto, V52), Export(Format::Perfetto, V55)];
const CHROME: &[Door] = &[Export(Format::Chrome, V52), Export(Format::Chrome, V55)];

pub const KNOWN: &[Known] = &[
    Known {
        reason: "a part of a flow behind a log entry without a wall clock belongs to that",
        doors: PERFETTO,
        classes: &[Arrows],
        only: "",
    },
    Known {
        reason: "slices without length at the end of the one they are in, or behind others of their time, are in \
                 another one, and take flows to them; both are counted",
        doors: CHROME,
        classes: &[Parents, Arrows],
        only: "",
    },
    Known {
        reason: "begins and ends are in the order of the file; operations of all processes pair with each other",
        doors: &[Export(Format::Catapult, Peer::Viewer)],
        classes: &[Slices, Parents, Operations, Counters, Arrows],
        only: "",
    },
];
