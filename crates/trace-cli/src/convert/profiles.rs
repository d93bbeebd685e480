//! Formats of profilers, which have a stack or a timeline for each thread: their documents need all of a
//! trace before its first line, so that it is read several times.

use super::{Converted, Opened, Problem};
use crate::args::format::{Compression, Target};
use crate::args::{Convert, Stacks};
use crate::files::input;
use std::io::Write;
use std::path::Path;
use trace_client::compressor::Manner;
use trace_client::convert::Encoder;
use trace_convert::folded::{Roots, convert_slices};
use trace_convert::{Filter, firefox, seekable, speedscope};

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Speedscope's file.
    Speedscope,
    /// The Firefox Profiler's processed profile.
    Firefox,
    /// Folded stacks of slices.
    Slices(Roots),
}

impl Profile {
    /// What was asked for, if it is one of these.
    pub fn of(options: &Convert, is_folded: bool) -> Option<Self> {
        match options.format {
            Some(Target::Speedscope) => Some(Self::Speedscope),
            Some(Target::Firefox) => Some(Self::Firefox),
            _ if is_folded && options.stacks == Stacks::Slices => Some(Self::Slices(roots(options))),
            _ => None,
        }
    }

    /// The suffix of its files.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Speedscope => "speedscope.json",
            Self::Firefox => "firefox.json",
            Self::Slices(_) => "folded",
        }
    }

    /// What `--format` calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Speedscope => "speedscope",
            Self::Firefox => "firefox",
            Self::Slices(_) => "folded",
        }
    }

    /// What cannot express something.
    pub fn shown(self) -> &'static str {
        match self {
            Self::Speedscope => "speedscope's format",
            Self::Firefox => "the Firefox Profiler's format",
            Self::Slices(_) => "folded stacks",
        }
    }

    /// Why there is nothing in it.
    pub fn nothing(self) -> &'static str {
        match self {
            Self::Speedscope | Self::Firefox => "the trace has no slices and no samples",
            Self::Slices(_) => "the trace has no slices of threads",
        }
    }
}

/// What folded stacks begin with.
pub fn roots(options: &Convert) -> Roots {
    if options.by_thread { Roots::Threads } else { Roots::Processes }
}

/// Converts a trace.
pub(super) fn convert(
    input: &Path,
    opened: Option<Opened>,
    to: Profile,
    compression: Compression,
    filter: Filter,
    output: &mut dyn Write,
) -> Result<Converted, Problem> {
    let again = || input::open(input).and_then(|file| input::again(file, input, "converting"));
    let (mut trace, import) = opened.map_or_else(again, Ok).map_err(Problem::Failure)?;
    if let Some(name) = input.file_name().filter(|_| !input::is_stdin(input)) {
        trace.name = name.to_string_lossy().into_owned();
    }
    let manner = Manner { level: seekable::DEFAULT_LEVEL, has_records: false };
    let mut encoder = Encoder::new(compression, manner, output).map_err(Problem::of_write)?;
    let summary = match to {
        Profile::Speedscope => speedscope::convert(trace, &mut encoder, filter),
        Profile::Firefox => firefox::convert(trace, &mut encoder, filter),
        Profile::Slices(roots) => convert_slices(trace, &mut encoder, filter, roots),
    };
    let summary = summary.map_err(|error| Problem::of_conversion(input, error))?;
    encoder.finish().map_err(Problem::of_write)?;
    Ok(Converted { summary: Some(summary), copied: 0, import, stopped: None })
}
