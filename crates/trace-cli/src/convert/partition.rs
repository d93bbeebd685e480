//! Where the tables of a trace are among those of many: `TABLE/date=/host=/trace=/`, which databases read as
//! one table with three columns more.
//= docs/tables.md#many-traces

use crate::files::input;
use crate::files::output::Folder;
use crate::shell::percent::encoded;
use std::io;
use std::path::{Path, PathBuf};
use trace_convert::ConvertError;
use trace_convert::tables::{TABLES, Trace, origin};

/// The value of a column that is missing, as Hive spells it.
const NONE: &str = "__HIVE_DEFAULT_PARTITION__";
/// The table that is complete last.
const LAST: &str = "traces";
/// The file in the innermost directory.
const FILE: &str = "0.parquet";
/// A name of a directory has at most 255 bytes, with the column and `=` before the value.
const MAX_NAME_BYTES: usize = 200;
const NANOS_PER_DAY: u64 = 86_400_000_000_000;

/// A directory for each table, in the order of `TABLES`.
pub struct Partition {
    folders: Vec<(&'static str, Folder)>,
}

impl Partition {
    /// Makes the directories of a trace.
    pub fn create(root: &Path, input: &Path, trace: &mut Trace) -> Result<Self, ConvertError> {
        let archive = (trace.open)().map_err(ConvertError::Write)?;
        let origin = origin(archive)?;
        let date = origin.start_utc.map(date);
        let name = (!input::is_stdin(input)).then(|| stem(input));
        let value = |text: Option<String>| text.map_or_else(|| NONE.to_owned(), |text| escaped(&text));
        let path = format!("date={}/host={}/trace={}", value(date), value(origin.host), value(name));
        let mut partition = Self { folders: Vec::new() };
        for table in TABLES {
            let folder = Folder::create(&root.join(table.name).join(&path)).map_err(ConvertError::Write)?;
            partition.folders.push((table.name, folder));
        }
        Ok(partition)
    }

    /// The file of a table.
    pub fn file(&self, table: &str) -> io::Result<std::fs::File> {
        let folder = self.folders.iter().find(|(name, _)| *name == table);
        folder.ok_or(io::ErrorKind::NotFound)?.1.file(FILE)
    }

    /// Gives the files their names, one after the other; those of a trace of the same name, host and day are
    /// replaced. The last one is that of `traces`: a new trace that has a row there has its other rows, too.
    pub fn finish(mut self) -> io::Result<()> {
        let mut folders = std::mem::take(&mut self.folders);
        folders.sort_by_key(|(name, _)| *name == LAST);
        let named = |name: &str, error: &io::Error| io::Error::new(error.kind(), format!("{name}: {error}"));
        folders
            .into_iter()
            .try_for_each(|(name, folder)| folder.finish().map_err(|error| named(name, &error)))
    }
}

/// Removes what was made, unless it is finished: first what is in a directory that an earlier one has made.
impl Drop for Partition {
    fn drop(&mut self) {
        while self.folders.pop().is_some() {}
    }
}

/// A file's name without what its format and compression add to it.
fn stem(path: &Path) -> String {
    let plain = super::plain_name(path);
    let stem: PathBuf = plain.file_stem().map_or_else(|| plain.clone(), PathBuf::from);
    stem.to_string_lossy().into_owned()
}

/// Characters that have a meaning in names of such directories are written as `%` and two digits.
fn escaped(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '+' | '@');
    let mut escaped = encoded(text, is_plain);
    shorten(&mut escaped);
    if escaped.trim_matches('.').is_empty() { NONE.to_owned() } else { escaped }
}

/// Names of directories have a limit; those beyond it keep a hash of what is cut.
fn shorten(name: &mut String) {
    if name.len() <= MAX_NAME_BYTES {
        return;
    }
    // FNV-1a, so that all releases and machines compute the same.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let end = format!("+{hash:016x}");
    while name.len() > MAX_NAME_BYTES - end.len() {
        name.pop();
    }
    name.push_str(&end);
}

/// The date of a time in nanoseconds since 1970, in UTC.
fn date(nanos: u64) -> String {
    let mut days = nanos / NANOS_PER_DAY;
    let is_leap = |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}", days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (days, expected) in [
            (0, "1970-01-01"),
            (58, "1970-02-28"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (11_322, "2000-12-31"),
            (20_781, "2026-11-24"),
        ] {
            assert_eq!(date(days * NANOS_PER_DAY), expected);
            assert_eq!(date(days * NANOS_PER_DAY + NANOS_PER_DAY - 1), expected);
        }
        assert_eq!(date(u64::MAX), "2554-07-21");
    }

    #[test]
    fn names_of_directories_have_no_characters_with_a_meaning() {
        assert_eq!(escaped("web-1.example"), "web-1.example");
        assert_eq!(escaped("a=b/../c é"), "a%3Db%2F..%2Fc%20é");
        assert_eq!(escaped(".."), NONE);
        assert_eq!(escaped(""), NONE);
        let long = [escaped(&"é".repeat(300)), escaped(&"é".repeat(301))];
        assert_eq!(long.each_ref().map(String::len), [199, 199]);
        assert_ne!(long[0], long[1]);
        assert_eq!(stem(Path::new("runs/a.b.fxt.zst")), "a.b");
    }
}
