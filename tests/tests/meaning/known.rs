//! What differs between doors and is known to. Every entry is a defect; the list only shrinks.

use super::doors::{Door, Format, Peer, V52, V55};
use super::rows::Class;
use Class::{
    Arrows, Counters, Logs, Names, Operations, Parents, Problems, SelfSums, SelfTimes, Slices, Stacks, Sums,
};
use Door::{Assert, Check, Csv, Export, Folded, Measure, Query, Speedscope, Stats};

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
const VIEWER: &[Door] = &[Export(Format::Chrome, Peer::Viewer), Export(Format::Catapult, Peer::Viewer)];

pub const KNOWN: &[Known] = &[
    Known {
        reason: "an end of another name is no problem, or an overlap; operations pair by their names",
        doors: &[Check],
        classes: &[Problems],
        only: "",
    },
    Known {
        reason: "what overlaps counts as inside; of slices that begin together, another one is outside",
        doors: &[Query, Csv],
        classes: &[Parents, SelfTimes],
        only: "",
    },
    Known {
        reason: "of slices that begin together, another one is outside",
        doors: &[Stats, Assert],
        classes: &[SelfSums],
        only: "",
    },
    Known {
        reason: "a slice has the name of its end; operations of all processes pair with each other",
        doors: &[Measure],
        classes: &[Sums],
        only: "",
    },
    Known { reason: "what overlaps counts as inside", doors: &[Folded], classes: &[Stacks], only: "" },
    Known {
        reason: "of slices that begin together, another one is outside",
        doors: &[Speedscope],
        classes: &[Parents],
        only: "",
    },
    Known {
        reason: "ends have names; what overlaps is cut off; of slices that begin together, another one is \
                 outside; operations of one id share a track, and pair by their names",
        doors: PERFETTO,
        classes: &[Slices, Parents, Operations, Arrows, Problems],
        only: "",
    },
    Known {
        reason: "log records are entries of a clock that the trace does not have",
        doors: PERFETTO,
        classes: &[Logs],
        only: "",
    },
    Known {
        reason: "ends have names; what overlaps is dropped; pairs without length lose their ends; operations \
                 belong to no process",
        doors: CHROME,
        classes: &[Slices, Parents, Operations, Arrows, Problems],
        only: "",
    },
    Known {
        reason: "begins and ends are in the order of the file; operations of all processes pair with each other",
        doors: VIEWER,
        classes: &[Slices, Parents, Operations, Counters, Arrows],
        only: "",
    },
    Known {
        reason: "one of several categories is no match",
        doors: &[Query, Csv, Speedscope],
        classes: &[Slices],
        only: "Z1_category_list.json",
    },
    Known {
        reason: "one of several categories is no match",
        doors: &[Stats, Assert],
        classes: &[Sums],
        only: "Z1_category_list.json",
    },
    Known {
        reason: "operations pair in the order of the file",
        doors: &[Query, Csv],
        classes: &[Operations],
        only: "S1_async_file_order.json",
    },
    Known {
        reason: "operations pair in the order of the file",
        doors: &[Stats, Assert],
        classes: &[Sums],
        only: "S1_async_file_order.json",
    },
    Known {
        reason: "a name of a thread is that of all threads with its number",
        doors: &[Query, Csv],
        classes: &[Names],
        only: "E1_same_tid.json",
    },
    Known {
        reason: "thread 0 is the idle one for the reader",
        doors: PERFETTO,
        classes: &[Names],
        only: "U1_thread0.json",
    },
];
