//! What an observer is sent, taken apart.

use crate::Archive;
use trace_protocol::controller::observer::FRAME_HEADER_BYTES;
use trace_protocol::controller::{Counts, FrameKind};

/// The frames of a stream, as far as they are whole.
#[derive(Debug, Default)]
pub struct Observed {
    /// All records, one after the other.
    pub records: Vec<u8>,
    /// The counts of each update.
    pub counts: Vec<Counts>,
    /// Bytes of records that had come before each of them.
    pub places: Vec<usize>,
    /// The end has come.
    pub is_over: bool,
}

impl Observed {
    /// Takes apart what came through a socket.
    ///
    /// # Panics
    /// If it makes no sense.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let mut observed = Self::default();
        let mut rest = bytes;
        while let Some((header, behind)) = rest.split_first_chunk::<FRAME_HEADER_BYTES>() {
            let (kind, length) = FrameKind::of_header(*header).expect("a frame");
            let Some((contents, behind)) = behind.split_at_checked(length) else { break };
            assert!(!observed.is_over, "a frame behind the end");
            match kind {
                FrameKind::Records => observed.records.extend_from_slice(contents),
                FrameKind::Counts => {
                    observed.counts.push(Counts::decode(contents).expect("counts"));
                    observed.places.push(observed.records.len());
                }
                FrameKind::End => observed.is_over = true,
                FrameKind::OpenScopes => {}
                FrameKind::Unknown(kind) => panic!("a frame of kind {kind}"),
            }
            rest = behind;
        }
        observed
    }

    /// The records as an archive; every frame of them begins like one.
    #[must_use]
    pub fn archive(&self) -> Archive {
        if self.records.is_empty() { Archive::default() } else { Archive::of_bytes(&self.records) }
    }

    /// The last that was said of a provider of this name.
    #[must_use]
    pub fn last(&self, name: &str) -> Option<trace_protocol::controller::ObservedProvider> {
        let of = |counts: &Counts| counts.providers.iter().find(|found| found.progress.name == name).cloned();
        self.counts.iter().rev().find_map(of)
    }
}
