//! Values of options, as they are written on the command line and in files.

use super::trigger::Trigger;
use crate::args::bad_value::BadValue;
use clap::ValueEnum;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::ops::RangeInclusive;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;
pub use trace_client::config::MAX_BUFFER_MIB;
use trace_protocol::BufferingMode;
use trace_protocol::limits::{MAX_CATEGORY_NAME_BYTES, MAX_PROVIDER_NAME_BYTES};

/// Levels of zstd: higher ones need a window that not every decoder has.
const ZSTD_LEVELS: RangeInclusive<i32> = -7..=19;

/// A time span: a number of seconds, or one with `ms`, `s`, `m` or `h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

/// A time from the beginning of a trace, in nanoseconds: a number of seconds, or one with `ns`, `us`, `ms`,
/// `s`, `m` or `h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment(pub u64);

/// Mebibytes of a buffer: a number, or one with `MB` or `GB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferSize(pub u32);

/// Bytes of a file: a number of mebibytes, or one with `KB`, `MB`, `GB` or `TB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSize(pub u64);

/// `NAME:SIZE`, split at the last colon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderBufferSize {
    /// The providers' name.
    pub name: String,
    /// Size of their buffers.
    pub size: BufferSize,
}

/// Categories and groups, as requested.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CategoryList(pub Vec<String>);

/// Pieces of a command line, separated by commas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pieces(pub Vec<String>);

/// Whether a trace is compressed, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compress {
    /// It is not.
    No,
    /// With gzip, which Fuchsia's tool uses.
    Gzip,
    /// With zstd, and perhaps a level of it.
    Zstd(Option<i32>),
}

/// How a program uses its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Record until the buffer is full
    #[value(alias = "o", alias = "DISCARD")]
    Oneshot,
    /// Keep the newest events
    #[value(alias = "c", alias = "RING_BUFFER")]
    Circular,
    /// Write events out while recording continues
    #[value(alias = "s")]
    Streaming,
}

impl From<Mode> for BufferingMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Oneshot => Self::Oneshot,
            Mode::Circular => Self::Circular,
            Mode::Streaming => Self::Streaming,
        }
    }
}

impl FromStr for Span {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let factor = match &text[number.len()..] {
            "ms" => Some(1e-3),
            "" | "s" => Some(1.0),
            "m" | "min" => Some(60.0),
            "h" => Some(3600.0),
            _ => None,
        };
        number
            .parse::<f64>()
            .ok()
            .zip(factor)
            .map(|(number, factor)| number * factor)
            .filter(|seconds| *seconds > 0.0)
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .map(Self)
            .ok_or_else(|| "expected a time above 0, such as 10s, 500ms, 1.5 (seconds) or 2m".into())
    }
}

impl FromStr for Moment {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let number = text.trim_end_matches(|letter: char| letter.is_alphabetic());
        let factor: Option<u128> = match &text[number.len()..] {
            "ns" => Some(1),
            "us" | "µs" | "μs" => Some(1000),
            "ms" => Some(1_000_000),
            "" | "s" => Some(1_000_000_000),
            "m" | "min" => Some(60_000_000_000),
            "h" => Some(3_600_000_000_000),
            _ => None,
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // Digits behind the nanoseconds are dropped.
        let fraction = &fraction[..fraction.floor_char_boundary(15)];
        let digits = u128::pow(10, fraction.len() as u32);
        let parts = (is_number(whole) && is_number(fraction))
            .then(|| (whole.parse::<u64>(), fraction.parse::<u128>()));
        parts
            .and_then(|(whole, fraction)| Some((u128::from(whole.ok()?), fraction.ok()?)))
            .zip(factor)
            .map(|((whole, fraction), factor)| whole * factor + fraction * factor / digits)
            .and_then(|nanos| u64::try_from(nanos).ok())
            .map(Self)
            .ok_or_else(|| {
                "expected a time from the beginning of the trace, such as 1.5s, 300ms or 20us".into()
            })
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        if self.0.subsec_nanos() == 0 {
            write!(f, "{}s", self.0.as_secs())
        } else if self.0.subsec_nanos().is_multiple_of(1_000_000) {
            write!(f, "{millis}ms")
        } else {
            write!(f, "{}s", self.0.as_secs_f64())
        }
    }
}

/// Bytes. `MB` is a million, `MiB` and `M` are 1 048 576, and so on; a bare number is mebibytes, as in
/// Fuchsia.
//= docs/recording.md#sizes
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let (base, power): (u64, u32) = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "kb" => (1000, 1),
        "k" | "kib" => (1024, 1),
        "mb" => (1000, 2),
        "" | "m" | "mib" => (1024, 2),
        "gb" => (1000, 3),
        "g" | "gib" => (1024, 3),
        "tb" => (1000, 4),
        "t" | "tib" => (1024, 4),
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(base.pow(power))
}

impl FromStr for BufferSize {
    type Err = BadValue;

    /// Buffers are whole mebibytes: others are rounded up.
    fn from_str(text: &str) -> Result<Self, BadValue> {
        let is_small = text.contains(['k', 'K']);
        let bytes = bytes(text).filter(|_| !is_small);
        let mebibytes = bytes.and_then(|bytes| u32::try_from(bytes.div_ceil(1 << 20)).ok());
        mebibytes.filter(|size| (1..=MAX_BUFFER_MIB).contains(size)).map(Self).ok_or_else(|| {
            format!("expected a size from 1 to {MAX_BUFFER_MIB} MiB, such as 4 (mebibytes), 64MiB or 1GiB")
                .into()
        })
    }
}

impl fmt::Display for BufferSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}MiB", self.0)
    }
}

impl FromStr for FileSize {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        bytes(text)
            .filter(|size| *size > 0)
            .map(Self)
            .ok_or_else(|| "expected a size above 0, such as 500 (mebibytes), 64KiB or 2GB".into())
    }
}

impl fmt::Display for FileSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("GiB", 1_u64 << 30), ("GB", 1_000_000_000), ("MiB", 1 << 20), ("MB", 1_000_000)];
        let all = units.into_iter().chain([("KiB", 1 << 10), ("KB", 1000)]);
        match all.into_iter().find(|(_, unit)| self.0.is_multiple_of(*unit)) {
            Some((name, unit)) => write!(f, "{}{name}", self.0 / unit),
            // Only sums of sizes are no whole number of mebibytes.
            None => write!(f, "{}KiB", self.0.div_ceil(1 << 10)),
        }
    }
}

impl FromStr for ProviderBufferSize {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let (name, size) = text
            .rsplit_once(':')
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(|| "expected NAME:SIZE, such as app:64MiB".to_owned())?;
        if name.len() > MAX_PROVIDER_NAME_BYTES {
            return Err(
                format!("the name has {} bytes, at most {MAX_PROVIDER_NAME_BYTES}", name.len()).into()
            );
        }
        Ok(Self { name: name.to_owned(), size: size.parse()? })
    }
}

impl fmt::Display for ProviderBufferSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.size)
    }
}

impl FromStr for Compress {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        match text {
            "true" | "gzip" => return Ok(Self::Gzip),
            "false" => return Ok(Self::No),
            "zstd" => return Ok(Self::Zstd(None)),
            _ => {}
        }
        let level = text.strip_prefix("zstd:").and_then(|level| level.parse().ok());
        let level = level.filter(|level| *level != 0 && ZSTD_LEVELS.contains(level));
        level.map(|level| Self::Zstd(Some(level))).ok_or_else(|| {
            let (fastest, smallest) = (ZSTD_LEVELS.start(), ZSTD_LEVELS.end());
            format!(
                "expected gzip, zstd, zstd:LEVEL (from {fastest}, the fastest, to {smallest}), true or false"
            )
            .into()
        })
    }
}

impl fmt::Display for Compress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::No => f.write_str("false"),
            Self::Gzip => f.write_str("gzip"),
            Self::Zstd(None) => f.write_str("zstd"),
            Self::Zstd(Some(level)) => write!(f, "zstd:{level}"),
        }
    }
}

impl FromStr for CategoryList {
    type Err = BadValue;

    /// Blanks and quotes around entries are dropped, and so are empty entries.
    fn from_str(text: &str) -> Result<Self, BadValue> {
        let is_around = |letter: char| {
            letter.is_whitespace() || "\u{201c}\u{201d}\u{201e}\u{2018}\u{2019}".contains(letter)
        };
        let entries: Vec<String> = text
            .split(',')
            .map(|entry| entry.trim_matches(is_around))
            .filter(|entry| !entry.is_empty())
            .map(str::to_owned)
            .collect();
        if entries.is_empty() {
            return Err("no category is named; leave the option out to record all".into());
        }
        entries.iter().try_for_each(|entry| check_category(entry))?;
        Ok(Self(entries))
    }
}

impl fmt::Display for CategoryList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

impl FromStr for Pieces {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.split(',').map(str::to_owned).collect()))
    }
}

/// `name`, `name*`, `#group`, `provider/name`, and each with a `-` before it.
fn check_category(entry: &str) -> Result<(), BadValue> {
    let wanted = entry.strip_prefix('-').unwrap_or(entry);
    let (_, scoped) = crate::args::categories::scope(wanted);
    let name = scoped.strip_prefix('#').unwrap_or(scoped);
    let name = name.strip_suffix('*').unwrap_or(name);
    let is_wrong = |letter: char| letter == '*' || letter == '"' || letter.is_whitespace();
    if scoped.is_empty() || wanted.starts_with('/') || name.contains(is_wrong) {
        return Err(
            format!("category {entry:?} is invalid: no blanks or quotes, and * only at the end").into()
        );
    }
    if scoped.len() > MAX_CATEGORY_NAME_BYTES {
        let found = scoped.len();
        return Err(format!(
            "category {entry:?} has {found} bytes, at most {MAX_CATEGORY_NAME_BYTES} are possible"
        )
        .into());
    }
    Ok(())
}

/// Text, a number or a truth value, in a file.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text, a number, true or false")]
enum Scalar {
    Text(String),
    Integer(i64),
    Float(f64),
    Truth(bool),
}

impl Scalar {
    fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Integer(number) => number.to_string(),
            Self::Float(number) => number.to_string(),
            Self::Truth(truth) => truth.to_string(),
        }
    }
}

/// Files use the same texts as the command line.
macro_rules! as_text {
    ($($name:ty)+) => {
        $(
            impl<'de> Deserialize<'de> for $name {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    Scalar::deserialize(deserializer)?.into_text().parse().map_err(D::Error::custom)
                }
            }

            impl Serialize for $name {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    serializer.collect_str(self)
                }
            }
        )+
    };
}

as_text! { Span BufferSize FileSize ProviderBufferSize Trigger Compress }

/// One text with commas, or a list.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text, or a list of texts")]
enum TextOrList {
    Text(String),
    List(Vec<String>),
}

impl<'de> Deserialize<'de> for CategoryList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match TextOrList::deserialize(deserializer)? {
            TextOrList::Text(text) => text,
            TextOrList::List(list) => list.join(","),
        };
        text.parse().map_err(D::Error::custom)
    }
}

impl Serialize for CategoryList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Mode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        <Self as ValueEnum>::from_str(&text, true)
            .map_err(|_| D::Error::custom(format!("{text:?}, expected oneshot, circular or streaming")))
    }
}

impl Serialize for Mode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = self.to_possible_value();
        serializer.serialize_str(value.as_ref().map_or("", |value| value.get_name()))
    }
}

/// The file that `--config` names.
#[derive(Clone, Copy, Debug)]
pub struct ConfigFile<'a> {
    /// Its path; `-` is stdin.
    pub path: &'a Path,
    /// Whether it is in Perfetto's text form, whatever it looks like.
    pub is_text_proto: bool,
}

impl<'a> From<&'a Path> for ConfigFile<'a> {
    fn from(path: &'a Path) -> Self {
        Self { path, is_text_proto: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong<T: FromStr<Err = BadValue>>(text: &str) -> String {
        text.parse::<T>().err().unwrap_or_else(|| panic!("{text:?} was taken")).to_string()
    }

    //= docs/svg.md#the-command
    #[test]
    fn moments_are_exact_to_the_nanosecond() {
        for (text, nanos) in [
            ("0", 0),
            ("1.5", 1_500_000_000),
            ("0.000000001s", 1),
            ("7ns", 7),
            ("20us", 20_000),
            ("20.5µs", 20_500),
            ("300ms", 300_000_000),
            ("12345678.901234567", 12_345_678_901_234_567),
            ("2m", 120_000_000_000),
            ("1h", 3_600_000_000_000),
            ("0.1234567890123456789ns", 0),
        ] {
            assert_eq!(text.parse(), Ok(Moment(nanos)), "{text}");
        }
        for text in
            ["", "-1", "x", "1.", ".5", "1e3", "5 s", "5d", "ms", "99999999999999999999", "9999999h", "1.5é"]
        {
            assert!(wrong::<Moment>(text).starts_with("expected a time from the beginning"), "{text}");
        }
    }

    #[test]
    fn spans_are_seconds_unless_they_say_otherwise() {
        for (text, millis, shown) in [
            ("5", 5000, "5s"),
            ("0.5", 500, "500ms"),
            ("500ms", 500, "500ms"),
            ("10s", 10_000, "10s"),
            ("2m", 120_000, "120s"),
            ("1.5min", 90_000, "90s"),
            ("1h", 3_600_000, "3600s"),
        ] {
            let span: Span = text.parse().unwrap();
            assert_eq!((span.0.as_millis(), span.to_string().as_str()), (millis, shown), "{text}");
            assert_eq!(span.to_string().parse(), Ok(span));
        }
        for text in ["", "0", "-1", "x", "inf", "NaN", "1e300", "5 s", "5d", "ms"] {
            assert!(wrong::<Span>(text).starts_with("expected a time above 0"), "{text}");
        }
    }

    #[test]
    fn buffer_sizes_are_mebibytes() {
        for (text, expected) in [("1", 1), ("64", 64), ("64MiB", 64), ("3m", 3), ("4g", 4096), ("1GiB", 1024)]
        {
            assert_eq!(text.parse(), Ok(BufferSize(expected)), "{text}");
        }
        // Ten to the sixth, and rounded up.
        assert_eq!(("64MB".parse(), "4GB".parse()), (Ok(BufferSize(62)), Ok(BufferSize(3815))));
        for text in ["", "0", "MB", "-1", "1.5", "4097", "5GB", "1kB", "1 MB", "99999999999"] {
            let expected = "expected a size from 1 to 4096 MiB, such as 4 (mebibytes), 64MiB or 1GiB";
            assert_eq!(wrong::<BufferSize>(text), expected, "{text}");
        }
    }

    //= docs/recording.md#sizes
    #[test]
    fn units_mean_what_they_say() {
        for (text, expected, shown) in [
            ("1", 1 << 20, "1MiB"),
            ("64KB", 64_000, "64KB"),
            ("64KiB", 64 << 10, "64KiB"),
            ("2GB", 2_000_000_000, "2GB"),
            ("2GiB", 2 << 30, "2GiB"),
            ("1t", 1 << 40, "1024GiB"),
            ("1500MB", 1_500_000_000, "1500MB"),
        ] {
            assert_eq!(text.parse(), Ok(FileSize(expected)), "{text}");
            assert_eq!(FileSize(expected).to_string(), shown);
            assert_eq!(shown.parse(), Ok(FileSize(expected)), "{text}");
        }
        for text in ["", "0", "KB", "1.5", "99999999999999TB"] {
            assert!(wrong::<FileSize>(text).starts_with("expected a size above 0"), "{text}");
        }
    }

    #[test]
    fn names_with_colons_are_split_at_the_last() {
        let size: ProviderBufferSize = "a:b:64MiB".parse().unwrap();
        assert_eq!((size.name.as_str(), size.size.0), ("a:b", 64));
        for text in ["", "app", ":4"] {
            assert_eq!(wrong::<ProviderBufferSize>(text), "expected NAME:SIZE, such as app:64MiB");
        }
        assert!(wrong::<ProviderBufferSize>("app:x").starts_with("expected a size from 1"));
        assert!(wrong::<ProviderBufferSize>(&format!("{}:4", "x".repeat(101))).contains("101 bytes"));
    }

    #[test]
    fn categories_are_cleaned_and_checked() {
        let list = |text: &str| text.parse::<CategoryList>().unwrap().0;
        assert_eq!(list(" a, b:c* ,,"), ["a", "b:c*"]);
        assert_eq!(list("*,#default,app/x*,-noisy,-app/y"), ["*", "#default", "app/x*", "-noisy", "-app/y"]);
        assert_eq!(list("\u{201c}gfx\u{201d}"), ["gfx"]);
        for text in ["a b", "a*b", "\"a\"", "a**", "app/", "/x", "#g*x"] {
            assert!(wrong::<CategoryList>(text).contains("is invalid"), "{text}");
        }
        assert!(wrong::<CategoryList>(" , ").starts_with("no category is named"));
        assert!(wrong::<CategoryList>(&"x".repeat(101)).contains("101 bytes"));
    }
}
