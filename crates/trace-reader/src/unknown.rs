//! Counts of what belongs to a later version of the format.

use trace_format::record::{RecordHeader, RecordType};

/// Records and parts of records of later versions, which were skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
}

/// Counts by type. The format has four bits for each type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByType(pub [u64; 16]);

impl ByType {
    /// Counts one.
    pub(crate) fn add(&mut self, number: u64) {
        self.0[(number & 0xf) as usize] += 1;
    }

    /// The total.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The types that occur, with their counts.
    pub fn types(&self) -> impl Iterator<Item = (usize, u64)> {
        self.0.into_iter().enumerate().filter(|(_, count)| *count > 0)
    }
}

impl Unknown {
    /// Counts a record, given its header.
    pub(crate) fn add(&mut self, header: RecordHeader) {
        let bits = |shift: u32| header.0 >> shift & 0xf;
        match header.record_type() {
            Some(RecordType::Metadata) => self.metadata.add(bits(16)),
            Some(RecordType::Scheduling) => self.scheduling.add(bits(60)),
            Some(RecordType::Profiler) => self.profiler.add(bits(16)),
            Some(RecordType::Large) if bits(36) == 0 => self.large_blobs.add(bits(40)),
            Some(RecordType::Large) => self.large.add(bits(36)),
            _ => self.records.add(header.record_type_bits().into()),
        }
    }

    /// The number of records, those of metadata not included.
    #[must_use]
    pub fn record_count(&self) -> u64 {
        let all = [self.records, self.scheduling, self.profiler, self.large, self.large_blobs];
        all.iter().map(ByType::count).sum()
    }

    /// Each kind with its name for people, in the plural.
    pub fn kinds(&self) -> impl Iterator<Item = (&'static str, ByType)> {
        [
            ("records", self.records),
            ("scheduling records", self.scheduling),
            ("profiler records", self.profiler),
            ("large records", self.large),
            ("large blobs", self.large_blobs),
            ("metadata records", self.metadata),
            ("events", self.events),
            ("arguments", self.arguments),
        ]
        .into_iter()
    }
}
