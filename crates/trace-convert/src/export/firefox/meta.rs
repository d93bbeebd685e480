//! What a profile says of itself: times, categories, schemas, losses, and what is shown first.

use super::thread::Shared;
use super::{VERSION, milliseconds};
use crate::Summary;
use crate::export::threads::Collector;
use crate::json::Json;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::Write;

const IMPORTED_FROM: &str = concat!("trace ", env!("CARGO_PKG_VERSION"));
/// The version of Gecko's own format, which the viewer ignores in processed profiles.
const GECKO_VERSION: u32 = 31;
/// Colours of categories; grey is the one of events without a category.
const COLOURS: [&str; 9] =
    ["blue", "green", "orange", "purple", "yellow", "lightblue", "magenta", "brown", "red"];
/// Threads that are visible at first: those with the most.
const MAX_VISIBLE: usize = 30;

/// The facts of a profile.
pub struct Meta {
    name: String,
    /// The first and the last moment.
    pub times: (u64, u64),
    /// The wall clock at the first moment, in nanoseconds since 1970.
    start_utc: Option<i64>,
    has_samples: bool,
    /// How much is on which thread.
    counts: Vec<(u64, usize)>,
    lost: u64,
    open: u64,
    written: u64,
    skipped: BTreeMap<&'static str, u64>,
}

impl Meta {
    pub fn new(name: &str, collector: &Collector) -> Self {
        let times = collector.times.unwrap_or_default();
        let after = collector.start_ts.map(|start| times.0 as i64 - start as i64);
        Self {
            name: name.to_owned(),
            times,
            start_utc: collector.start_utc.zip(after).map(|(utc, after)| utc.saturating_add(after)),
            has_samples: collector.samples > 0,
            counts: Vec::new(),
            lost: collector.lost,
            open: collector.open,
            written: collector.slices + collector.samples + collector.others,
            skipped: collector.skipped.clone(),
        }
    }

    /// A thread has so many markers and samples.
    pub fn thread(&mut self, place: usize, count: u64) {
        self.counts.push((count, place));
    }

    pub fn write<W: Write>(&self, shared: &Shared, json: &mut Json<W>) {
        json.string_behind("{\"product\":", self.name.as_bytes());
        json.raw(",\"importedFrom\":\"");
        json.raw(IMPORTED_FROM);
        json.integer_behind("\",\"version\":", GECKO_VERSION);
        json.integer_behind(",\"preprocessedProfileVersion\":", VERSION);
        json.raw(",\"interval\":1,\"startTime\":");
        milliseconds(json, self.start_utc.and_then(|utc| u64::try_from(utc).ok()).unwrap_or_default());
        json.raw(",\"profilingStartTime\":0,\"profilingEndTime\":");
        milliseconds(json, self.times.1 - self.times.0);
        json.raw(",\"processType\":0,\"debug\":false,\"stackwalk\":");
        json.raw(if self.has_samples { "1" } else { "0" });
        json.raw(",\"symbolicated\":true,\"symbolicationNotSupported\":true,\"usesOnlyOneStackType\":true");
        json.raw(",\"sourceCodeIsNotOnSearchfox\":true,\"keepProfileThreadOrder\":true");
        json.raw(",\"extensions\":{\"length\":0,\"baseURL\":[],\"id\":[],\"name\":[]}");
        json.raw(",\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\",\"threadCPUDelta\":\"ns\"}");
        json.raw(",\"categories\":[{\"name\":\"Other\",\"color\":\"grey\",\"subcategories\":[\"Other\"]}");
        for (place, category) in shared.categories.list().iter().enumerate() {
            json.string_behind(",{\"name\":", category.as_bytes());
            json.raw(",\"color\":\"");
            json.raw(COLOURS[place % COLOURS.len()]);
            json.raw("\",\"subcategories\":[\"Other\"]}");
        }
        json.raw("],\"markerSchema\":");
        shared.schemas.write_list(json);
        if self.lost > 0 {
            json.raw(
                ",\"extra\":[{\"label\":\"Losses\",\"entries\":[{\"label\":\"Records that are missing\",",
            );
            json.integer_behind("\"format\":\"integer\",\"value\":", self.lost);
            json.raw("}]}]");
        }
        let mut counts: Vec<_> = self.counts.iter().filter(|(count, _)| *count > 0).collect();
        counts.sort_by_key(|(count, place)| (Reverse(*count), *place));
        counts.truncate(MAX_VISIBLE);
        let mut visible: Vec<usize> = counts.iter().map(|(_, place)| *place).collect();
        visible.sort_unstable();
        let list = |places: &[usize]| places.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        json.raw(",\"initialVisibleThreads\":[");
        json.raw(&list(&visible));
        json.raw("],\"initialSelectedThreads\":[");
        json.raw(&list(&counts.first().map(|(_, place)| *place).into_iter().collect::<Vec<_>>()));
        json.raw("]}");
    }

    /// Adds what the profile does not have as it was.
    pub fn summarize(self, summary: &mut Summary, shared: &Shared, dropped_names: u64) {
        summary.events = self.written;
        summary.add_skipped(self.skipped);
        summary.add_remarks([
            ("slices without an end: markers of their begins", self.open),
            ("slices that overlap others: markers, and in no stack", shared.overlapping),
            (
                "markers have arguments as text, because there are too many different sets of them",
                shared.schemas.as_text,
            ),
            (
                "records are missing in the trace: the profile has markers of the category trace:loss",
                self.lost,
            ),
            (
                "stacks beyond those that there is room for: shown without their innermost names",
                shared.dropped_stacks,
            ),
            (
                "names beyond those that there is room for, which have one name in common",
                dropped_names + shared.strings.dropped,
            ),
        ]);
    }
}
