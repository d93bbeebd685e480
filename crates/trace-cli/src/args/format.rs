//! Formats to convert to.

use clap::ValueEnum;
pub use trace_client::format::{Compression, Format, of_name};

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

#[cfg(test)]
mod tests {
    use super::*;

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
