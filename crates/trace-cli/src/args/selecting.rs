//! Options that select what of a trace a command looks at.
//= docs/selecting.md#selecting

use super::format::Target;
use super::values::Moment;
use crate::args::bad_value::BadValue;
use crate::args::categories::{Groups, scope};
use crate::shell::exit::Failure;
use clap::{Args, ValueEnum};
use std::str::FromStr;
use trace_format::shown::Shown;
use trace_model::{Choice, Selection, selection};

/// By category, and by what [`Within`] has.
#[derive(Clone, Debug, Default, Args)]
pub struct Selecting {
    /// Look only at events of these categories, separated by commas; * stands for any text, -NAME excludes,
    /// and #NAME is a group
    #[arg(long, visible_alias = "categories", value_name = "LIST", value_delimiter = ',')]
    #[arg(allow_hyphen_values = true)]
    pub category: Vec<String>,
    /// Further options.
    #[command(flatten)]
    pub within: Within,
}

/// By name, process, thread and time.
#[derive(Clone, Debug, Default, Args)]
pub struct Within {
    /// Look only at events with this name; * stands for any text, and -NAME excludes. May be repeated, as
    /// --process and --thread
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub name: Vec<String>,
    /// Look only at processes with this name or number
    #[arg(long, value_name = "NAME|PID", allow_hyphen_values = true)]
    pub process: Vec<String>,
    /// Look only at threads with this name or number
    #[arg(long, value_name = "NAME|TID", allow_hyphen_values = true)]
    pub thread: Vec<String>,
    /// Look only at what begins at this time or later: 1.5s or 300ms from the beginning of the trace, @NS as
    /// `ts` of trace query, or 2026-03-01T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub from: Option<When>,
    /// Look only at what begins before this time
    #[arg(long, value_name = "TIME")]
    pub to: Option<When>,
    /// Look only at what begins in this time before the end of the trace
    #[arg(long, value_name = "TIME", conflicts_with_all = ["from", "to"])]
    pub last: Option<Moment>,
}

impl Selecting {
    /// What is selected.
    pub fn selection(&self) -> Result<Selection, Failure> {
        let mut selection = self.within.selection();
        selection.categories = Choice::of(categories(&self.category)?);
        Ok(selection)
    }
}

/// The entries of a list of categories, with the members of groups in place of groups.
//= docs/selecting.md#selecting
pub fn categories(entries: &[String]) -> Result<Vec<String>, Failure> {
    for entry in entries {
        if entry.is_empty() {
            return Err(Failure::usage("--category: a name is empty"));
        }
        let (program, _) = scope(entry.strip_prefix('-').unwrap_or(entry));
        // Behind an asterisk, a slash is one of the name.
        if program.is_some_and(|program| !program.contains('*')) {
            return Err(Failure::usage(format!(
                "--category: {}: PROGRAM/CATEGORY is for recordings; name the process with --process, and write * before \
                 a category that has a slash",
                Shown(entry)
            )));
        }
    }
    let expanded = Groups::built_in().expanded(entries);
    expanded.map_err(|why| Failure::usage(format!("--category: {why}")))
}

impl Within {
    /// What is selected.
    pub fn selection(&self) -> Selection {
        let moment = |when: Option<When>| when.map(|when| when.0);
        Selection {
            categories: Choice::default(),
            names: Choice::of(&self.name),
            processes: Choice::of(&self.process),
            threads: Choice::of(&self.thread),
            from: moment(self.from),
            to: moment(self.to),
            last: self.last.map(|last| last.0),
        }
    }
}

/// A point in time: one from the beginning of a trace, `@` and nanoseconds, or a date with a time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When(pub selection::Moment);

impl FromStr for When {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        if Target::from_str(text, true).is_ok() {
            return Err(format!("it is a time, and a format is --format {text}").into());
        }
        let found = if let Some(nanos) = text.strip_prefix('@') {
            nanos.parse().ok().map(selection::Moment::At)
        } else if text.contains('-') {
            utc(text).map(selection::Moment::Utc)
        } else {
            text.parse::<Moment>().ok().map(|moment| selection::Moment::FromBegin(moment.0))
        };
        found.map(Self).ok_or_else(|| {
            "expected a time from the beginning of the trace, such as 1.5s, 300ms or 20us, @ and nanoseconds \
             of the trace's clock, or a date and time such as 2026-03-01T12:00:00.5Z"
                .into()
        })
    }
}

/// Nanoseconds since 1970 of a time as RFC 3339 writes it. Digits behind the nanoseconds are dropped.
fn utc(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let (time, offset) = match time.strip_suffix(['Z', 'z']) {
        Some(time) => (time, 0),
        None => {
            let (time, offset) = time.split_at_checked(time.len().checked_sub(6)?)?;
            let (sign, offset) = (offset.get(..1)?, offset.get(1..)?);
            let [hours, minutes] = numbers(offset, ':', [(2, 0..=23), (2, 0..=59)])?;
            let seconds = hours * 3600 + minutes * 60;
            let seconds = match sign {
                "+" => seconds,
                "-" => -seconds,
                _ => return None,
            };
            (time, seconds)
        }
    };
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [year, month, day] = numbers(date, '-', [(4, 1..=9999), (2, 1..=12), (2, 1..=31)])?;
    let [hours, minutes, seconds] = numbers(time, ':', [(2, 0..=23), (2, 0..=59), (2, 0..=60)])?;
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let nanos: i64 = format!("{fraction:0<9.9}").parse().ok()?;
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let february = 28 + i64::from(is_leap(year));
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let before = lengths.get(..month as usize - 1)?;
    if day > lengths[month as usize - 1] {
        return None;
    }
    let years = year - 1;
    // Day 719162 of the first year's calendar is the first one of 1970.
    let days =
        years * 365 + years / 4 - years / 100 + years / 400 + before.iter().sum::<i64>() + day - 1 - 719_162;
    let seconds = days * 86_400 + hours * 3600 + minutes * 60 + seconds - offset;
    seconds.checked_mul(1_000_000_000)?.checked_add(nanos)
}

/// Numbers with so many digits each, and in these ranges.
fn numbers<const N: usize>(
    text: &str,
    separator: char,
    expected: [(usize, std::ops::RangeInclusive<i64>); N],
) -> Option<[i64; N]> {
    let parts: Vec<&str> = text.split(separator).collect();
    let parts: [&str; N] = parts.try_into().ok()?;
    let mut found = [0; N];
    for ((found, part), (digits, range)) in found.iter_mut().zip(parts).zip(expected) {
        let is_number = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
        *found = part.parse().ok().filter(|number| is_number && range.contains(number))?;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use selection::Moment::{At, FromBegin, Utc};

    //= docs/selecting.md#times
    #[test]
    fn times_are_from_the_begin_of_the_clock_or_of_the_day() {
        for (text, expected) in [
            ("1.5s", FromBegin(1_500_000_000)),
            ("300ms", FromBegin(300_000_000)),
            ("2", FromBegin(2_000_000_000)),
            ("@0", At(0)),
            ("@18446744073709551615", At(u64::MAX)),
            ("1970-01-01T00:00:00Z", Utc(0)),
            ("1969-12-31T23:59:59.999999999Z", Utc(-1)),
            ("1970-01-01t01:30:00.5+01:30", Utc(500_000_000)),
            ("1969-12-31 18:00:00-06:00", Utc(0)),
            ("2000-02-29T12:34:56.123456789987Z", Utc(951_827_696_123_456_789)),
            ("2026-03-01T00:00:00Z", Utc(1_772_323_200_000_000_000)),
        ] {
            assert_eq!(text.parse(), Ok(When(expected)), "{text}");
        }
        for text in [
            "",
            "@",
            "@-1",
            "@1.5",
            "x",
            "-1s",
            "2026-03-01",
            "2026-03-01T12:00Z",
            "2026-03-01T12:00:00",
            "2026-02-29T12:00:00Z",
            "2026-13-01T12:00:00Z",
            "2026-03-01T24:00:00Z",
            "2026-03-01T12:00:00.Z",
            "2026-03-01T12:00:00+1:00",
            "2026-03-01T12:00:00*01:00",
            "26-03-01T12:00:00Z",
            "2026-03-01T12:00:00é",
            "9999-03-01T12:00:00Z",
        ] {
            let why = text.parse::<When>().unwrap_err().to_string();
            assert!(why.starts_with("expected a time from the beginning of the trace"), "{text}: {why}");
        }
    }

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        selecting: Selecting,
        file: String,
    }

    fn parsed(arguments: &[&str]) -> Result<Selection, String> {
        let parsed = Command::try_parse_from([&["trace"], arguments, &["file"]].concat());
        let command = parsed.map_err(|error| error.to_string())?;
        assert_eq!(command.file, "file");
        command.selecting.selection().map_err(|failure| failure.text)
    }

    //= docs/selecting.md#selecting
    #[test]
    fn lists_add_up_and_hyphens_are_values() {
        let found =
            parsed(&["--categories", "a,-b", "--category=c", "--name", "-x", "--thread", "-1,2"]).unwrap();
        let expected = Selection {
            categories: Choice::of(["a", "-b", "c"]),
            names: Choice::of(["-x"]),
            threads: Choice::of(["-1,2"]),
            ..Selection::default()
        };
        assert_eq!(found, expected);
        assert!(parsed(&[]).unwrap().is_all());
        let group = parsed(&["--category", "#default,-net"]).unwrap().categories;
        let members = Groups::built_in().get("default").unwrap().to_vec();
        assert_eq!(group, Choice::of(members.into_iter().chain(["-net".to_owned()])));
        assert_eq!(
            parsed(&["--category", "-#all"]),
            Err("--category: no category group found for #all; there are #default".to_owned())
        );
        for entry in ["app/net", "-app/net", "app/#default"] {
            let why = parsed(&["--category", entry]).unwrap_err();
            assert!(
                why.starts_with(&format!("--category: {entry}: PROGRAM/CATEGORY is for recordings")),
                "{why}"
            );
        }
        for entry in ["*app/net", "-*app/net", "kernel:uprobe:/bin/app:0x10"] {
            assert_eq!(parsed(&["--category", entry]).unwrap().categories, Choice::of([entry]));
        }
        assert!(parsed(&["--last", "1s", "--from", "2s"]).unwrap_err().contains("cannot be used with"));
    }
}
