//! Chromium's `TraceConfig` in JSON, for a program that records itself.
//= docs/c.md#chromium

use trace_config::chrome::{Chrome, Mode};
use trace_config::tree::Wrong;
use trace_config::{filter, json, position};

/// The largest buffer of a program's own recording.
const MAX_KIBIBYTES: u64 = 64 << 10;

/// What is recorded, and into which buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Entries of a list of categories.
    pub categories: String,
    /// What happens when the buffer is full.
    pub mode: Option<Mode>,
    /// Size of the buffer in kibibytes, at most 64 MiB; 0 if it is not given.
    pub kibibytes: u64,
    /// Whether events are printed.
    pub is_printed: bool,
    /// What is not recorded, with its place.
    pub notes: Vec<String>,
}

/// Reads a text; one that is empty, or an empty object, is the default.
///
/// # Errors
/// What is wrong with it, and where.
pub fn read(text: &str) -> Result<Config, Wrong> {
    let place = |wrong: Wrong| position::describe(text, Some(wrong.at), &wrong.message);
    let trimmed = text.trim();
    if !trimmed.is_empty() && !trimmed.starts_with(['{', '/']) {
        return Err(Wrong::new(0, "expected an object, { ... }"));
    }
    let is_default = trimmed.is_empty() || json::parse(text)?.is_empty();
    let chrome = if is_default { Chrome::default() } else { Chrome::read(text)? };
    let selected = chrome.rules.filter(check)?;
    let mut notes: Vec<String> = chrome.notes.into_iter().map(place).collect();
    for (is_wanted, what) in [
        (chrome.has_kernel, "events of the kernel are recorded by `trace record` alone"),
        (chrome.memory_dumps.is_some(), "reports of memory are recorded by `trace record` alone"),
        (
            chrome.startup_seconds.is_some(),
            "the program itself ends the recording: startup_duration is ignored",
        ),
        (chrome.result_file.is_some(), "the program itself names its file: result_file is ignored"),
    ] {
        notes.extend(is_wanted.then(|| what.to_owned()));
    }
    let kibibytes = chrome.buffer.map_or(0, |(_, kibibytes)| kibibytes);
    if kibibytes > MAX_KIBIBYTES {
        notes.push(format!("a buffer of {kibibytes} KiB is reduced to 64 MiB, the largest size"));
    }
    Ok(Config {
        categories: if selected.is_nothing() { "-*".to_owned() } else { selected.entries(None).join(",") },
        mode: chrome.mode,
        kibibytes: kibibytes.min(MAX_KIBIBYTES),
        is_printed: chrome.to_console.is_some(),
        notes,
    })
}

/// Checks that a program's own recording can select this.
fn check(at: usize, name: &str) -> Result<(), Wrong> {
    filter::check_name(at, name)?;
    let within = name.strip_suffix('*').unwrap_or(name);
    if within.contains(|letter: char| letter == '*' || letter == '"' || letter.is_whitespace()) {
        return Err(Wrong::new(
            at,
            format!("category {name:?} is invalid: no blanks or quotes, and * only at the end"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/c.md#chromium
    #[test]
    fn a_config_is_json_or_wrong() {
        let all = Config {
            categories: "*".to_owned(),
            mode: None,
            kibibytes: 0,
            is_printed: false,
            notes: Vec::new(),
        };
        for text in ["", " \n", "{}"] {
            assert_eq!(read(text), Ok(all.clone()), "{text:?}");
        }
        let text = r#"{"record_mode":"record-continuously","trace_buffer_size_in_kb":2048,
            "included_categories":["app*","disabled-by-default-gpu"],"excluded_categories":["app.verbose"],
            "enable_systrace":true}"#;
        let notes = vec!["events of the kernel are recorded by `trace record` alone".to_owned()];
        let expected = Config {
            categories: "app*,disabled-by-default-gpu,-app.verbose".to_owned(),
            mode: Some(Mode::Continuously),
            kibibytes: 2048,
            notes,
            ..all.clone()
        };
        assert_eq!(read(text), Ok(expected));
        let large = r#"{"trace_buffer_size_in_kb":65537}"#;
        let notes = vec!["a buffer of 65537 KiB is reduced to 64 MiB, the largest size".to_owned()];
        assert_eq!(read(large), Ok(Config { kibibytes: 65536, notes, ..all.clone() }));
        let printed = r#"{"record_mode":"trace-to-console","excluded_categories":["*"]}"#;
        assert_eq!(read(printed), Ok(Config { categories: "-*".to_owned(), is_printed: true, ..all }));
    }

    #[test]
    fn what_is_wrong_has_its_place() {
        for (text, why) in [
            ("app,-db", "expected an object, { ... }"),
            ("*", "expected an object, { ... }"),
            ("[]", "expected an object, { ... }"),
            (r#"{"record_mod":"x"}"#, "unknown key record_mod; did you mean record_mode?"),
            (
                r#"{"included_categories":["a b"]}"#,
                "category \"a b\" is invalid: no blanks or quotes, and * only at the end",
            ),
        ] {
            assert_eq!(read(text).map_err(|wrong| wrong.message), Err(why.to_owned()), "{text}");
        }
        let refused = read(r#"{"enable_argument_filter":true}"#).unwrap_err().message;
        assert!(refused.contains("enable_argument_filter protects what a recording would have"), "{refused}");
    }
}
