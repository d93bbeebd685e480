//! Moves one provider's buffer into the archive, a batch at a time.

use super::archive;
use std::io;
use trace_format::buffer::BufferMode;
use trace_format::units::{ProviderId, TicksPerSecond};
use trace_protocol::BufferingMode;
use trace_protocol::controller::ProviderStats;
use trace_reader::buffer::{Activity, BufferError, BufferReader, Source};
use zx_sim::Vmo;

/// A VMO that is read with `pread`: whatever its provider does to the file, a read is at worst short.
pub(super) struct VmoSource(pub Vmo);

impl Source for VmoSource {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(offset, bytes).map_err(io::Error::other)
    }
}

/// A transfer under way.
pub(super) struct Transfer {
    id: ProviderId,
    name: String,
    reader: Option<BufferReader<VmoSource>>,
    is_begun: bool,
    /// Why the buffer could not be read to its end.
    problem: String,
}

impl Transfer {
    pub fn new(
        id: ProviderId,
        name: &str,
        vmo: Vmo,
        size: u64,
        rate: TicksPerSecond,
        activity: Activity,
    ) -> Self {
        let mut transfer =
            Self { id, name: name.to_owned(), reader: None, is_begun: false, problem: String::new() };
        match BufferReader::open(VmoSource(vmo), size, BufferMode::Oneshot, rate, activity) {
            Ok(reader) => transfer.reader = Some(reader),
            Err(error) => transfer.fail(&error),
        }
        transfer
    }

    /// Appends the next batch to `out`; true when the transfer is finished.
    pub fn poll(&mut self, out: &mut Vec<u8>) -> bool {
        if !self.is_begun {
            self.is_begun = true;
            archive::provider_info(self.id, &self.name, out);
            if self.reader.as_ref().is_some_and(|reader| reader.header().records_dropped > 0) {
                archive::buffer_filled_up(self.id, out);
            }
        }
        let Some(reader) = &mut self.reader else {
            return true;
        };
        match reader.read_batch(out) {
            Ok(true) => return false,
            Ok(false) => {}
            Err(error) => self.fail(&error),
        }
        true
    }

    fn fail(&mut self, error: &BufferError) {
        self.problem = match std::error::Error::source(error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
    }

    /// What was found. Who the provider is and what became of it is for others to say.
    pub fn into_stats(self) -> ProviderStats {
        let mut stats = ProviderStats { problem: self.problem, ..ProviderStats::default() };
        let Some(reader) = &self.reader else {
            return stats;
        };
        let (header, findings) = (reader.header(), reader.findings());
        stats.buffering_mode = Some(BufferingMode::Oneshot);
        stats.buffer_wrapped_count = Some(header.wrapped_count);
        stats.percentage_durable_buffer_used =
            Some(100.0 * header.durable_data_end as f32 / header.layout.durable_bytes as f32);
        stats.non_durable_bytes_written = Some(findings.rolling_bytes);
        stats.events_archived = Some(findings.events);
        stats.bytes_archived = Some(findings.bytes);
        stats.malformed_records = Some(findings.bad_records);
        stats.records_dropped = reader
            .losses()
            .ok()
            .map(|losses| losses.iter().fold(0, |sum: u64, (_, loss)| sum.saturating_add(loss.count)));
        if stats.problem.is_empty()
            && let Some(bad) = findings.first_bad.first()
        {
            stats.problem = format!(
                "{} invalid records were left out, the first in the {} region at byte {}: {}",
                findings.bad_records, bad.region, bad.offset, bad.fault
            );
        }
        stats
    }
}
