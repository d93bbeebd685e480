//! Lines that programs write into the kernel's buffer, as Android's tracing does.
//= docs/import.md#markers

use crate::records::hash;
use trace_format::argument::ArgumentValue;

#[derive(Debug, PartialEq)]
pub(crate) enum Marker<'a> {
    /// `B|tgid|name`
    Begin { tgid: u32, name: &'a [u8] },
    /// `E` or `E|tgid`
    End { tgid: Option<u32> },
    /// `C|tgid|name|value`
    Counter { tgid: u32, name: &'a [u8], value: ArgumentValue<'a> },
    /// `S|tgid|name|cookie`, or with a track `G|tgid|track|name|cookie`
    AsyncBegin { tgid: u32, track: &'a [u8], name: &'a [u8], cookie: &'a [u8] },
    /// `F|tgid|name|cookie`, or with a track `H|tgid|track|cookie` and `H|tgid|track|name|cookie`
    AsyncEnd { tgid: u32, track: &'a [u8], name: &'a [u8], cookie: &'a [u8] },
    /// `I|tgid|name`, or with a track `N|tgid|track|name`
    Instant { tgid: u32, track: Option<&'a [u8]>, name: &'a [u8] },
}

/// The owner of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Thread,
    Process,
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// Splits at the last bar.
fn last(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().rposition(|byte| *byte == b'|')?;
    Some((&bytes[..at], &bytes[at + 1..]))
}

/// Splits at the first bar.
fn first(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|byte| *byte == b'|')?;
    Some((&bytes[..at], &bytes[at + 1..]))
}

fn value(bytes: &[u8]) -> Option<ArgumentValue<'_>> {
    let text = text(bytes)?;
    let whole = text.parse().map(ArgumentValue::Int64).ok();
    whole.or_else(|| text.parse().map(ArgumentValue::Double).ok())
}

impl<'a> Marker<'a> {
    /// None if it is some other text.
    pub(crate) fn parse(line: &'a [u8]) -> Option<Self> {
        let (kind, rest) = first(line).unwrap_or((line, b""));
        let (tgid, rest) = first(rest).unwrap_or((rest, b""));
        let tgid = || text(tgid)?.parse::<u32>().ok();
        Some(match kind {
            b"B" => Self::Begin { tgid: tgid()?, name: rest },
            b"E" => Self::End { tgid: tgid() },
            b"C" => {
                let tgid = tgid()?;
                let (name, end) = last(rest)?;
                match (value(end), last(name)) {
                    (Some(value), _) => Self::Counter { tgid, name, value },
                    // The category behind the value carries no information.
                    (None, Some((name, before))) => Self::Counter { tgid, name, value: value(before)? },
                    (None, None) => return None,
                }
            }
            b"S" | b"F" => {
                let (name, cookie) = last(rest)?;
                let (tgid, track) = (tgid()?, name);
                match kind {
                    b"S" => Self::AsyncBegin { tgid, track, name, cookie },
                    _ => Self::AsyncEnd { tgid, track, name, cookie },
                }
            }
            b"G" => {
                let (track, rest) = first(rest)?;
                let (name, cookie) = last(rest)?;
                Self::AsyncBegin { tgid: tgid()?, track, name, cookie }
            }
            b"H" => {
                let (track, rest) = first(rest)?;
                let (name, cookie) = last(rest).unwrap_or((b"", rest));
                Self::AsyncEnd { tgid: tgid()?, track, name, cookie }
            }
            b"I" => Self::Instant { tgid: tgid()?, track: None, name: rest },
            b"N" => {
                let (track, name) = first(rest)?;
                Self::Instant { tgid: tgid()?, track: Some(track), name }
            }
            _ => return None,
        })
    }

    pub(crate) fn tgid(&self) -> Option<u32> {
        match *self {
            Self::End { tgid } => tgid,
            Self::Begin { tgid, .. }
            | Self::Counter { tgid, .. }
            | Self::AsyncBegin { tgid, .. }
            | Self::AsyncEnd { tgid, .. }
            | Self::Instant { tgid, .. } => Some(tgid),
        }
    }

    pub(crate) fn tgid_mut(&mut self) -> Option<&mut u32> {
        match self {
            Self::End { tgid } => tgid.as_mut(),
            Self::Begin { tgid, .. }
            | Self::Counter { tgid, .. }
            | Self::AsyncBegin { tgid, .. }
            | Self::AsyncEnd { tgid, .. }
            | Self::Instant { tgid, .. } => Some(tgid),
        }
    }

    pub(crate) fn scope(&self) -> Scope {
        match self {
            Self::Begin { .. } | Self::End { .. } | Self::Instant { .. } => Scope::Thread,
            Self::Counter { .. } | Self::AsyncBegin { .. } | Self::AsyncEnd { .. } => Scope::Process,
        }
    }

    /// An operation's id: its cookie is unique only within its process and track.
    pub(crate) fn id(&self) -> u64 {
        match *self {
            Self::AsyncBegin { tgid, track, cookie, .. } | Self::AsyncEnd { tgid, track, cookie, .. } => {
                hash(&[&tgid.to_le_bytes(), track, b"|", cookie].concat())
            }
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/import.md#markers
    #[test]
    fn every_kind_of_marker_is_read() {
        let parse = |line: &'static str| Marker::parse(line.as_bytes());
        assert_eq!(parse("B|7|a|b"), Some(Marker::Begin { tgid: 7, name: b"a|b" }));
        assert_eq!(parse("B|7|"), Some(Marker::Begin { tgid: 7, name: b"" }));
        assert_eq!(parse("E"), Some(Marker::End { tgid: None }));
        assert_eq!(parse("E|7"), Some(Marker::End { tgid: Some(7) }));
        let counter = |value| Some(Marker::Counter { tgid: 7, name: b"q|r", value });
        assert_eq!(parse("C|7|q|r|-3"), counter(ArgumentValue::Int64(-3)));
        assert_eq!(parse("C|7|q|r|-3|app"), counter(ArgumentValue::Int64(-3)));
        assert_eq!(parse("C|7|q|r|0.5"), counter(ArgumentValue::Double(0.5)));
        let begin = Marker::AsyncBegin { tgid: 7, track: b"job", name: b"job", cookie: b"12" };
        assert_eq!(parse("S|7|job|12").as_ref(), Some(&begin));
        let end = Marker::AsyncEnd { tgid: 7, track: b"job", name: b"job", cookie: b"12" };
        assert_eq!(parse("F|7|job|12").as_ref(), Some(&end));
        assert_eq!(begin.id(), end.id());
        let begin = Marker::AsyncBegin { tgid: 7, track: b"lane", name: b"job", cookie: b"12" };
        assert_eq!(parse("G|7|lane|job|12").as_ref(), Some(&begin));
        let end = Marker::AsyncEnd { tgid: 7, track: b"lane", name: b"", cookie: b"12" };
        assert_eq!(parse("H|7|lane|12").as_ref(), Some(&end));
        assert_eq!(begin.id(), end.id());
        let end = Marker::AsyncEnd { tgid: 7, track: b"lane", name: b"job", cookie: b"12" };
        assert_eq!(parse("H|7|lane|job|12"), Some(end));
        assert_eq!(parse("I|7|now"), Some(Marker::Instant { tgid: 7, track: None, name: b"now" }));
        assert_eq!(
            parse("N|7|lane|now"),
            Some(Marker::Instant { tgid: 7, track: Some(b"lane"), name: b"now" })
        );
        for other in ["hello", "B|x|name", "C|7|name", "C|7|name|high", "S|7|name", "N|7|name", ""] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
