//! Formats of traces, and how file names select them.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Formats to record in and to convert to.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Fuchsia's trace format, for the Perfetto UI and this tool
    #[default]
    Fxt,
    /// JSON as Fuchsia's tools write it, for Catapult (chrome://tracing)
    Catapult,
    /// JSON as Chrome writes it, for the Perfetto UI and Catapult
    #[serde(alias = "json")]
    #[value(alias = "json")]
    Chrome,
    /// Perfetto's own format, for the Perfetto UI
    Perfetto,
    /// Stacks of a profile with their number of samples, for tools that draw flame graphs
    Folded,
}

/// Formats to convert to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Target {
    /// Fuchsia's trace format, for the Perfetto UI and this tool
    Fxt,
    /// JSON as Fuchsia's tools write it, for Catapult (chrome://tracing)
    Catapult,
    /// JSON as Chrome writes it, for the Perfetto UI and Catapult
    #[value(alias = "json")]
    Chrome,
    /// Perfetto's own format, for the Perfetto UI
    Perfetto,
    /// Stacks with their number of samples or the time of their slices, for tools that draw flame graphs
    #[value(alias = "collapsed")]
    Folded,
    /// Slices and samples by thread, for speedscope
    Speedscope,
    /// A processed profile, for the Firefox Profiler
    Firefox,
    /// A directory of tables as comma-separated values
    Csv,
    /// A directory of tables as Parquet files, for databases
    Parquet,
}

impl Target {
    /// Its format, if that is one to record in.
    pub fn format(self) -> Option<Format> {
        match self {
            Self::Fxt => Some(Format::Fxt),
            Self::Catapult => Some(Format::Catapult),
            Self::Chrome => Some(Format::Chrome),
            Self::Perfetto => Some(Format::Perfetto),
            Self::Folded => Some(Format::Folded),
            Self::Csv | Self::Parquet | Self::Speedscope | Self::Firefox => None,
        }
    }
}

/// How a file is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// gzip.
    Gzip,
    /// Zstandard.
    Zstd,
}

impl Compression {
    /// What it adds to names of files.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Gzip => ".gz",
            Self::Zstd => ".zst",
        }
    }
}

impl Format {
    /// Whether the output is binary rather than text.
    pub fn is_binary(self) -> bool {
        matches!(self, Format::Fxt | Format::Perfetto)
    }

    /// The suffix of its files.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Fxt => "fxt",
            Self::Catapult | Self::Chrome => "json",
            Self::Perfetto => "pftrace",
            Self::Folded => "folded",
        }
    }
}

/// The format that a file name selects, if it is a known one, and the compression.
pub fn of_name(path: &Path) -> (Option<Format>, Compression) {
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let (name, compression) = if let Some(name) = name.strip_suffix(".gz") {
        (name, Compression::Gzip)
    } else if let Some(name) = name.strip_suffix(".zst") {
        (name, Compression::Zstd)
    } else {
        (name.as_str(), Compression::None)
    };
    let format = match name.rsplit_once('.') {
        Some((_, "fxt")) => Some(Format::Fxt),
        Some((_, "json")) => Some(Format::Chrome),
        Some((_, "pftrace" | "perfetto-trace")) => Some(Format::Perfetto),
        Some((_, "folded" | "collapsed")) => Some(Format::Folded),
        _ => None,
    };
    (format, compression)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_select_formats() {
        let of = |name: &str| of_name(Path::new(name));
        assert_eq!(of("a/trace.fxt"), (Some(Format::Fxt), Compression::None));
        assert_eq!(of("trace.fxt.zst"), (Some(Format::Fxt), Compression::Zstd));
        assert_eq!(of("trace.FXT.GZ"), (Some(Format::Fxt), Compression::Gzip));
        assert_eq!(of("trace.json"), (Some(Format::Chrome), Compression::None));
        assert_eq!(of("trace.json.gz"), (Some(Format::Chrome), Compression::Gzip));
        assert_eq!(of("trace.pftrace"), (Some(Format::Perfetto), Compression::None));
        assert_eq!(of("trace.collapsed"), (Some(Format::Folded), Compression::None));
        assert_eq!(of("trace"), (None, Compression::None));
        assert_eq!(of("trace.zst"), (None, Compression::Zstd));
        assert_eq!(of("json"), (None, Compression::None));
    }

    #[test]
    fn json_is_chromes_dialect() {
        assert_eq!(Format::from_str("json", false), Ok(Format::Chrome));
        assert_eq!(Target::from_str("json", false), Ok(Target::Chrome));
        assert_eq!(Target::from_str("collapsed", false), Ok(Target::Folded));
        assert_eq!(Format::from_str("catapult", false), Ok(Format::Catapult));
        assert_eq!(serde_json::from_str::<Format>("\"json\"").unwrap(), Format::Chrome);
        assert_eq!(serde_json::to_string(&Format::Chrome).unwrap(), "\"chrome\"");
    }
}
