//! Markers in the form of Android's: code that was instrumented for `Trace.beginSection` and its like is
//! recorded with the kernel's events, by the category `atrace`.
//= docs/kernel.md#markers
//!
//! A marker has a tag, and costs a system call while a recording wants this tag. A program with a provider
//! learns that from the recording; others look once a second for a manager that records markers. Otherwise a
//! marker costs a load and a branch, or a reading of the clock. `TRACE_MARKERS=always` has them written for
//! other software. Where the kernel's file cannot be opened, which takes privileges, they do nothing.
//!
//! ```no_run
//! use trace_provider::atrace;
//!
//! let _section = atrace::section("load");
//! atrace::set_counter("queue", 7);
//! let _drawing = atrace::section_of(atrace::tag::VIEW, "draw");
//! ```

mod managers;
mod wanted;

/// The tags of markers, as in Android. Each is a category, such as `atrace:view`; `atrace` is all of them.
pub mod tag {
    pub use crate::marker_tags::*;
}

use std::fs::File;
use std::io::Write;
use std::sync::OnceLock;
use trace_engine::Mark;
use trace_format::refs::truncate;
pub(super) use wanted::want;
use zx_sim::Guarded;
use zx_sim::guest::beyond_standard;

/// Where it is, first the usual place.
const PLACES: [&str; 2] = ["/sys/kernel/tracing/trace_marker", "/sys/kernel/debug/tracing/trace_marker"];
/// The kernel takes no more at once in all its releases.
const MAX_LINE_BYTES: usize = 1024;

/// The file, unless the program has closed it, or given its number to something else.
fn marker() -> Option<&'static File> {
    static MARKER: OnceLock<Option<Guarded<File>>> = OnceLock::new();
    let open = || PLACES.iter().find_map(|place| File::options().write(true).open(place).ok());
    let ordinary = |file: File| beyond_standard(file.into()).ok().map(File::from);
    MARKER.get_or_init(|| open().and_then(ordinary).and_then(Guarded::new)).as_ref()?.get()
}

/// A line that is put together where no memory has to be taken.
struct Line {
    bytes: [u8; MAX_LINE_BYTES],
    length: usize,
}

impl Line {
    fn new(kind: u8) -> Self {
        let mut line = Self { bytes: [0; MAX_LINE_BYTES], length: 0 };
        let _ = write!(line, "{}|{}", char::from(kind), std::process::id());
        line
    }

    /// A name, cut so that so many bytes are left behind it. A name ends where a line does.
    fn name(&mut self, name: &str, left: usize) -> &mut Self {
        self.part(b'|', name, left)
    }

    /// A part of the line. Where a number comes behind it, readers would take a bar in it for the one before
    /// that.
    fn part(&mut self, separator: u8, name: &str, left: usize) -> &mut Self {
        let room = MAX_LINE_BYTES.saturating_sub(self.length + 1 + left);
        let name = name.lines().next().unwrap_or_default();
        let start = self.length + 1;
        let _ = self.write_all(&[separator]);
        let _ = self.write_all(truncate(name, room).as_bytes());
        let name = self.bytes[..self.length].iter_mut().skip(start);
        name.filter(|byte| left > 0 && **byte == b'|').for_each(|byte| *byte = b'/');
        self
    }

    fn number(&mut self, number: i64) -> &mut Self {
        let _ = write!(self, "|{number}");
        self
    }

    fn send(&self) {
        if let Some(mut marker) = marker() {
            let _ = marker.write(&self.bytes[..self.length]);
        }
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let length = bytes.len().min(MAX_LINE_BYTES - self.length);
        self.bytes[self.length..self.length + length].copy_from_slice(&bytes[..length]);
        self.length += length;
        Ok(length)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Bytes of the longest number, and of what is before it.
const NUMBER_BYTES: usize = 21;

/// Whether markers of applications are written: true if their tag is wanted, and the kernel's file could be
/// opened.
#[must_use]
pub fn is_enabled() -> bool {
    is_tag_enabled(tag::APP)
}

/// Whether markers of a tag are written, or of one of several.
//= docs/kernel.md#tags
#[must_use]
pub fn is_tag_enabled(tags: u64) -> bool {
    enabled_tags(tags) != 0
}

/// The tags, of those given, whose markers are written.
#[must_use]
pub fn enabled_tags(tags: u64) -> u64 {
    let enabled = wanted::enabled(tags);
    if enabled != 0 && marker().is_none() { 0 } else { enabled }
}

/// Writes a line, if markers of the tag are wanted: nothing is formatted for others.
#[inline]
fn mark(tag: u64, kind: u8, put: impl FnOnce(&mut Line)) {
    if wanted::enabled(tag) != 0 {
        let mut line = Line::new(kind);
        put(&mut line);
        line.send();
    }
}

/// Begins a section on the calling thread.
pub fn begin_section(name: &str) {
    begin(tag::APP, name);
}

/// Ends the innermost section of the calling thread.
pub fn end_section() {
    end(tag::APP);
}

/// Begins a section of a tag on the calling thread.
//= docs/kernel.md#tags
pub fn begin(tag: u64, name: &str) {
    mark(tag, b'B', |line| {
        line.name(name, 0);
    });
}

/// Ends the innermost section of the calling thread, which [`begin`] began with the same tag.
pub fn end(tag: u64) {
    mark(tag, b'E', |_| {});
}

/// Begins a section that may end on another thread: where [`end_async_section`] has the same name and cookie.
pub fn begin_async_section(name: &str, cookie: i32) {
    begin_async(tag::APP, name, cookie);
}

/// Ends what [`begin_async_section`] began.
pub fn end_async_section(name: &str, cookie: i32) {
    end_async(tag::APP, name, cookie);
}

/// As [`begin_async_section`], for a tag.
pub fn begin_async(tag: u64, name: &str, cookie: i32) {
    mark(tag, b'S', |line| {
        line.name(name, NUMBER_BYTES).number(cookie.into());
    });
}

/// Ends what [`begin_async`] began.
pub fn end_async(tag: u64, name: &str, cookie: i32) {
    mark(tag, b'F', |line| {
        line.name(name, NUMBER_BYTES).number(cookie.into());
    });
}

/// Gives a counter of this process a value.
pub fn set_counter(name: &str, value: i64) {
    counter(tag::APP, name, value);
}

/// As [`set_counter`], for a tag.
pub fn counter(tag: u64, name: &str, value: i64) {
    mark(tag, b'C', |line| {
        line.name(name, NUMBER_BYTES).number(value);
    });
}

/// Marks an instant on the calling thread.
pub fn instant(name: &str) {
    instant_of(tag::APP, name);
}

/// As [`instant`], for a tag.
pub fn instant_of(tag: u64, name: &str) {
    mark(tag, b'I', |line| {
        line.name(name, 0);
    });
}

/// Writes a mark of an event, for recordings that have events mirrored.
//= docs/kernel.md#mirrored-events
pub(super) fn mirror(mark: &Mark<'_>) {
    let name = |kind, name: &[u8], left| {
        let mut line = Line::new(kind);
        line.name(valid(name), left);
        line
    };
    let numbered = |kind, text: &[u8], number| {
        let mut line = name(kind, text, NUMBER_BYTES);
        line.number(number);
        line
    };
    let line = match *mark {
        Mark::Begin(text) => name(b'B', text, 0),
        Mark::End => Line::new(b'E'),
        Mark::AsyncBegin(text, id) => numbered(b'S', text, id as i64),
        Mark::AsyncEnd(text, id) => numbered(b'F', text, id as i64),
        Mark::Instant(text) => name(b'I', text, 0),
        Mark::Counter(text, None, value) => numbered(b'C', text, value),
        Mark::Counter(text, Some(series), value) => {
            let mut line = name(b'C', text, MAX_LINE_BYTES / 2);
            line.part(b' ', valid(series), NUMBER_BYTES).number(value);
            line
        }
    };
    line.send();
}

/// The text, up to what is no UTF-8: this may run in the handler of a signal, which must not allocate.
fn valid(text: &[u8]) -> &str {
    let bad = core::str::from_utf8(text).err().map_or(text.len(), |error| error.valid_up_to());
    core::str::from_utf8(&text[..bad]).unwrap_or_default()
}

/// Whether events can be mirrored. On the provider's thread, which has a table of descriptors of its own: the
/// file is opened by the first thread of the program that needs it.
pub(super) fn can_mirror() -> bool {
    PLACES.iter().any(|place| File::options().write(true).open(place).is_ok())
}

/// A section until it is dropped.
#[must_use = "the section ends when this is dropped"]
#[derive(Debug)]
pub struct Section {
    tag: u64,
}

/// Begins a section on the calling thread, which ends when the returned value is dropped.
pub fn section(name: &str) -> Section {
    section_of(tag::APP, name)
}

/// As [`section`], for a tag.
pub fn section_of(tag: u64, name: &str) -> Section {
    begin(tag, name);
    Section { tag }
}

impl Drop for Section {
    fn drop(&mut self) {
        end(self.tag);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(line: &Line) -> String {
        let pid = format!("|{}", std::process::id());
        String::from_utf8_lossy(&line.bytes[..line.length]).replacen(&pid, "|PID", 1)
    }

    //= docs/kernel.md#markers
    #[test]
    fn lines_are_androids() {
        assert_eq!(text(Line::new(b'B').name("load|all", 0)), "B|PID|load|all");
        assert_eq!(text(&Line::new(b'E')), "E|PID");
        assert_eq!(text(Line::new(b'C').name("queue", NUMBER_BYTES).number(-7)), "C|PID|queue|-7");
        assert_eq!(text(Line::new(b'S').name("job\nof two", NUMBER_BYTES).number(12)), "S|PID|job|12");
        assert_eq!(
            text(Line::new(b'C').name("a|b", NUMBER_BYTES).part(b' ', "c|", 1).number(3)),
            "C|PID|a/b c/|3"
        );
        assert_eq!([&b"whole"[..], b"cut\xffoff", b""].map(valid), ["whole", "cut", ""]);
    }

    #[test]
    fn a_long_name_is_cut_before_what_is_behind_it() {
        let mut line = Line::new(b'C');
        let length = line.name(&"é".repeat(1000), NUMBER_BYTES).number(i64::MIN).length;
        assert!(length <= MAX_LINE_BYTES);
        let text = text(&line);
        assert!(text.ends_with("é|-9223372036854775808"), "{text}");
    }
}
