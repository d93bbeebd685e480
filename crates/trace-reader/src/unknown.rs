//! Counts of what belongs to a later version of the format.

use std::collections::BTreeMap;
use trace_format::record::{RecordHeader, RecordType};

/// Records and parts of records of later versions, which were skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unknown {
    /// Records of types that have no meaning yet.
    pub records: ByType,
    /// Scheduling records, by their event type.
    pub scheduling: ByType,
    /// Profiler records, by their kind.
    pub profiler: ByType,
    /// Large records, by their large type.
    pub large: ByType,
    /// Large blobs, by their format.
    pub large_blobs: ByType,
    /// Metadata records.
    pub metadata: ByType,
    /// Events, of which the common part was read.
    pub events: ByType,
    /// Arguments.
    pub arguments: ByType,
    /// Blobs, which are not skipped: only what is in them is not known.
    pub blobs: ByType,
}

/// Counts by type. The format has at most eight bits for a type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByType(pub BTreeMap<u8, u64>);

impl ByType {
    /// Counts one.
    pub(crate) fn add(&mut self, number: u8) {
        *self.0.entry(number).or_default() += 1;
    }

    /// The total.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.values().sum()
    }

    /// The types that occur, with their counts.
    pub fn types(&self) -> impl Iterator<Item = (u8, u64)> {
        self.0.iter().map(|(number, count)| (*number, *count))
    }
}

impl Unknown {
    /// Counts a record, given its header.
    pub(crate) fn add(&mut self, header: RecordHeader) {
        let bits = |shift: u32| (header.0 >> shift & 0xf) as u8;
        match header.record_type() {
            Some(RecordType::Metadata) => self.metadata.add(bits(16)),
            Some(RecordType::Scheduling) => self.scheduling.add(bits(60)),
            Some(RecordType::Profiler) => self.profiler.add(bits(16)),
            Some(RecordType::Large) if bits(36) == 0 => self.large_blobs.add(bits(40)),
            Some(RecordType::Large) => self.large.add(bits(36)),
            _ => self.records.add(header.record_type_bits()),
        }
    }

    /// The number of records, those of metadata not included.
    #[must_use]
    pub fn record_count(&self) -> u64 {
        let all = [&self.records, &self.scheduling, &self.profiler, &self.large, &self.large_blobs];
        all.into_iter().map(ByType::count).sum()
    }

    /// Each kind that is skipped with its name for people, in the plural.
    pub fn skipped(&self) -> impl Iterator<Item = (&'static str, &ByType)> {
        [
            ("records", &self.records),
            ("scheduling records", &self.scheduling),
            ("profiler records", &self.profiler),
            ("large records", &self.large),
            ("large blobs", &self.large_blobs),
            ("metadata records", &self.metadata),
            ("events", &self.events),
            ("arguments", &self.arguments),
        ]
        .into_iter()
    }
}
