//! Formats of traces, and how file names select them.
//= docs/recording.md#where-the-trace-goes

use std::path::Path;

/// Formats to record in and to convert to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "args", derive(serde::Deserialize, serde::Serialize, clap::ValueEnum))]
#[cfg_attr(feature = "args", serde(rename_all = "kebab-case"))]
pub enum Format {
    /// Fuchsia's trace format, for the Perfetto UI and this tool
    #[default]
    Fxt,
    /// JSON as Fuchsia's tools write it, for Catapult (chrome://tracing)
    Catapult,
    /// JSON as Chrome writes it, for the Perfetto UI and Catapult
    #[cfg_attr(feature = "args", serde(alias = "json"), value(alias = "json"))]
    Chrome,
    /// Perfetto's own format, for the Perfetto UI
    Perfetto,
    /// Stacks of a profile with their number of samples, for tools that draw flame graphs
    Folded,
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
    #[must_use]
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
    #[must_use]
    pub fn is_binary(self) -> bool {
        matches!(self, Self::Fxt | Self::Perfetto)
    }

    /// The suffix of its files.
    #[must_use]
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
#[must_use]
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

/// The ending of a file's name, if it selects no format.
#[must_use]
pub fn unknown_ending(path: &Path) -> Option<String> {
    let (format, compression) = of_name(path);
    let name = match compression {
        Compression::None => path.to_owned(),
        Compression::Gzip | Compression::Zstd => path.with_extension(""),
    };
    let ending = name.extension().filter(|_| format.is_none());
    ending.map(|ending| format!(".{}", ending.to_string_lossy()))
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
    fn other_endings_select_nothing() {
        let of = |name: &str| unknown_ending(Path::new(name));
        assert_eq!([of("a.bin"), of("a.b.gz")], [Some(".bin".to_owned()), Some(".b".to_owned())]);
        assert_eq!([of("a"), of("a.zst"), of("a.fxt"), of("a.json.gz"), of(".fxt")], [const { None }; 5]);
    }
}
