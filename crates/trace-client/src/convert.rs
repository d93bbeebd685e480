//! Archives in other formats.
//= docs/recording.md#where-the-trace-goes

mod encoder;

use crate::compressor::Manner;
use crate::destination::Written;
use crate::format::{Compression, Format};
pub use encoder::Encoder;
use std::io::{Read, Seek, Write};
use std::num::NonZero;
use trace_archive::output::Bounded;
pub use trace_convert::catapult::Container;
use trace_convert::catapult::{self, Dialect};
use trace_convert::{ConvertError, Filter, Jobs, Odd, OddFinder, Summary, folded, perfetto, seekable};
use trace_reader::ReadError;
use trace_reader::tail::{Tail, TailError};

/// The target of a conversion.
#[derive(Default)]
pub struct Job<'a> {
    /// The format.
    pub to: Format,
    /// The compression of the result.
    pub compression: Compression,
    /// The level of zstd; none for the default.
    pub level: Option<i32>,
    /// The container of Chrome's events.
    pub container: Container,
    /// Which events are converted.
    pub filter: Filter,
    /// Where Catapult's events of the system go.
    pub system_output: Option<&'a mut dyn Write>,
    /// How many threads convert.
    pub jobs: Jobs,
    /// What folded stacks begin with.
    pub roots: folded::Roots,
}

impl Job<'_> {
    /// A job that converts everything, with all processors.
    #[must_use]
    pub fn new(to: Format, compression: Compression) -> Self {
        Self { to, compression, jobs: jobs(None), ..Self::default() }
    }
}

/// So many threads, or as many as there are processors.
#[must_use]
pub fn jobs(threads: Option<u16>) -> Jobs {
    let processors = || std::thread::available_parallelism().map_or(1, NonZero::get);
    Jobs::of_threads(threads.map_or_else(processors, usize::from))
}

/// The result of a conversion.
#[derive(Default)]
pub struct Converted {
    /// None for a copy, which skips nothing.
    pub summary: Option<Summary>,
    /// Events in a copy.
    pub copied: u64,
    /// Why a copy does not have the rest of the input.
    pub stopped: Option<ReadError>,
}

impl Written<'_> {
    /// What it is written through.
    pub fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::File(file) => *file,
            Self::Stream(stream) => *stream,
        }
    }
}

/// What finds slices that readers of a format would misunderstand in the order of their records.
#[must_use]
pub fn odd_finder(to: Format) -> Option<OddFinder> {
    match to {
        Format::Perfetto => Some(OddFinder::default()),
        Format::Chrome => Some(catapult::Options::finder()),
        Format::Fxt | Format::Catapult | Format::Folded => None,
    }
}

/// Converts an archive, which is opened for each time that it is read. A file that turns out to need it is
/// written a second time; for a stream, the archive is looked at before.
///
/// # Errors
/// It cannot be opened, read or written.
pub fn convert<R: Read, E>(
    mut job: Job<'_>,
    mut output: Written<'_>,
    mut open: impl FnMut() -> Result<R, E>,
    failed: impl Fn(ConvertError) -> E,
) -> Result<Converted, E> {
    let mut odd = None;
    if let (Written::Stream(_), Some(finder)) = (&output, odd_finder(job.to)) {
        odd = Some(Odd::find(open()?, finder).map_err(|error| failed(error.into()))?);
    }
    loop {
        let converted = match &mut output {
            Written::File(file) => {
                convert_once(&mut open()?, &mut job, odd.take(), &mut Bounded::new(&mut **file))
            }
            Written::Stream(stream) => convert_once(&mut open()?, &mut job, odd.take(), stream),
        };
        match (converted, &mut output) {
            (Err(ConvertError::Odd(found)), Written::File(file)) => {
                odd = Some(*found);
                let emptied = file.rewind().and_then(|()| file.set_len(0));
                emptied.map_err(|error| failed(ConvertError::Write(error)))?;
            }
            (converted, _) => return converted.map_err(failed),
        }
    }
}

fn convert_once(
    archive: &mut dyn Read,
    job: &mut Job<'_>,
    odd: Option<Odd>,
    output: &mut dyn Write,
) -> Result<Converted, ConvertError> {
    let manner =
        Manner { level: job.level.unwrap_or(seekable::DEFAULT_LEVEL), has_records: job.to == Format::Fxt };
    let mut encoder = Encoder::new(job.compression, manner, output).map_err(ConvertError::Write)?;
    let filter = job.filter.clone();
    let dialect = match job.to {
        Format::Fxt | Format::Perfetto | Format::Folded => None,
        Format::Catapult => Some(Dialect::Fuchsia),
        Format::Chrome => Some(Dialect::Chrome(job.container)),
    };
    let mut converted = Converted::default();
    match dialect {
        None if job.to == Format::Perfetto => {
            let options = perfetto::Options { filter, jobs: job.jobs, odd };
            converted.summary = Some(perfetto::convert_with(archive, &mut encoder, options)?);
        }
        None if job.to == Format::Folded => {
            converted.summary = Some(folded::convert(archive, &mut encoder, job.filter.clone(), job.roots)?);
        }
        Some(dialect) => {
            let system_output = job.system_output.as_deref_mut().map(|output| output as &mut dyn Write);
            let options =
                catapult::Options { dialect, filter, system_output, jobs: job.jobs, own: None, odd };
            converted.summary = Some(catapult::convert_with(archive, &mut encoder, options)?);
        }
        None => {
            // A copy of everything.
            let copied = Tail::default().copy(archive, &mut encoder).map_err(|error| match error {
                TailError::Write(error) => ConvertError::Write(error),
                TailError::Read(error) => ConvertError::Read(error),
            })?;
            converted.copied = copied.coverage.iter().map(|coverage| coverage.events).sum();
            converted.stopped = copied.stopped;
        }
    }
    encoder.finish().map_err(ConvertError::Write)?;
    Ok(converted)
}
