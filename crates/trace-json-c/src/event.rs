//! One event as an archive of its own, so that one exporter writes all JSON.

use trace_format::error::EncodeError;
use trace_format::event::Event;
use trace_format::initialization::Initialization;
use trace_format::metadata::MAGIC_WORD;
use trace_format::record::Record;
use trace_format::sink::Sink;
use trace_format::units::TicksPerSecond;

/// The bytes of an archive.
struct Archive(Vec<u8>);

impl Sink for Archive {
    fn word(&mut self, word: u64) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }
}

/// An archive with this event alone.
///
/// # Errors
/// The event is larger than a record.
pub fn archive_of(event: Event<'_>, ticks_per_second: TicksPerSecond) -> Result<Vec<u8>, EncodeError> {
    let mut archive = Archive(Vec::new());
    archive.word(MAGIC_WORD);
    Record::Initialization(Initialization { ticks_per_second }).encode(&mut archive)?;
    Record::Event(event).encode(&mut archive)?;
    Ok(archive.0)
}
