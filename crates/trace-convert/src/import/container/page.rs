//! Traces in pages of viewers, found by the attributes of the script elements that they are in, or by the
//! name of the variable that they are assigned to. Scripts are never executed.
//!
//! | page | element | contents |
//! |---|---|---|
//! | `trace2html` | `<script id="viewer-data" type="application/json">` or `text/plain` | base64 of gzip |
//! | systrace | `<script class="trace-data" type="application/text">` | text |
//! | older systrace | `<script>`, in which lines begin with `# tracer:` | text with escaped line ends |
//! | VizTracer | `<script>` with `json_data = {…}` | JSON |
//! | others | `<script type="application/json">` | JSON |
//= docs/import.md#pages

use super::super::BYTE_ORDER_MARK;
use super::super::ended::End;
use super::ContainerError;
use super::members::{Member, Members, Packing};
use memchr::memchr3;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::ops::Range;
use std::sync::Arc;

const WHAT: &str = "page";
/// Types of elements with data rather than a program.
const DATA_TYPES: [&[u8]; 3] = [b"application/json", b"application/text", b"text/plain"];
/// The variable of VizTracer's pages.
const VARIABLE: &[u8] = b"json_data";
/// What the trace in a program of systrace's older pages begins with.
const TRACER: &[u8] = b"# tracer:";
/// A longer tag has no attributes that matter.
const MAX_TAG_BYTES: usize = 4 << 10;
const MAX_NAME_BYTES: usize = 100;
/// What may be before the first tag of a page: where it begins and ends.
const ASIDES: [(&[u8], &[u8]); 2] = [(b"<?xml", b"?>"), (b"<!--", b"-->")];
/// What a page begins with.
const BEGINS: [&[u8]; 9] =
    [b"<!doctype html", b"<html", b"<head", b"<body", b"<title", b"<meta", b"<link", b"<style", b"<script"];
/// Elements whose contents are text, also where they look like tags.
const TEXTS: [&[u8]; 3] = [b"style", b"textarea", b"title"];
/// No name of an element that matters is longer.
const MAX_TAG_NAME_BYTES: usize = 8;
/// How much of some data is examined for its encoding.
const HEAD_BYTES: usize = 64;

/// Whether a file begins like a page.
pub(super) fn is_page(start: &[u8]) -> bool {
    let mut text = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start).trim_ascii_start();
    while let Some((begin, end)) = ASIDES.iter().find(|(begin, _)| text.starts_with(begin)) {
        let Some(at) = memchr::memmem::find(&text[begin.len()..], end) else { return false };
        text = text[begin.len() + at + end.len()..].trim_ascii_start();
    }
    let begins = |tag: &[u8]| {
        let behind = text.get(tag.len()).is_none_or(|byte| !byte.is_ascii_alphanumeric());
        behind && text.get(..tag.len()).is_some_and(|head| head.eq_ignore_ascii_case(tag))
    };
    BEGINS.iter().any(|tag| begins(tag))
}

pub(super) fn members(file: Arc<File>, end: &End) -> Result<Members, ContainerError> {
    let mut members = Members::new(WHAT, file.clone(), end)?;
    let input = BufReader::with_capacity(64 << 10, &*file);
    let mut page = Page { input, at: 0, tag_at: 0, last: [0; 3], is_cut_off: false };
    let mut text: Option<Range<u64>> = None;
    while page.find_tag()? {
        let tag = page.tag()?;
        if tag.is_data {
            let at = page.at;
            let (head, end) = page.data()?;
            let packing = if is_base64(&head) { Packing::Base64 } else { Packing::Plain };
            let name = tag.name.unwrap_or_else(|| "script".to_owned());
            members.push(Member { name, at, length: end - at, packing })?;
        } else if let Some(found) = page.program()? {
            match found {
                Found::Text => {
                    let start = text.map_or(page.tag_at, |text| text.start);
                    text = Some(start..page.contents(b"script")?);
                }
                Found::Value { at, end } => {
                    let name = String::from_utf8_lossy(VARIABLE).into_owned();
                    members.push(Member { name, at, length: end - at, packing: Packing::Plain })?;
                }
            }
        }
    }
    if page.is_cut_off {
        members.is_cut_off();
    }
    if let Some(Range { start, end }) = text {
        // The import of such text finds its lines in the elements.
        let name = "systrace".to_owned();
        members.push(Member { name, at: start, length: end - start, packing: Packing::Page })?;
    }
    Ok(members)
}

fn is_base64(head: &[u8]) -> bool {
    let mut dense = head.iter().filter(|byte| !byte.is_ascii_whitespace()).peekable();
    dense.peek().is_some()
        && dense.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='))
}

/// What is known of an element.
struct Tag {
    is_data: bool,
    name: Option<String>,
}

impl Tag {
    /// By its attributes.
    fn of(attributes: &[u8]) -> Self {
        let is_type = |value: &[u8]| DATA_TYPES.iter().any(|data| value.eq_ignore_ascii_case(data));
        let is_data = attribute(attributes, b"type").is_some_and(is_type);
        let name = attribute(attributes, b"id").or_else(|| attribute(attributes, b"class"));
        let name =
            name.map(|name| String::from_utf8_lossy(&name[..name.len().min(MAX_NAME_BYTES)]).into_owned());
        Self { is_data, name: name.filter(|name| !name.is_empty()) }
    }
}

/// The value of an attribute of a tag.
fn attribute<'a>(mut rest: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    loop {
        rest = rest.trim_ascii_start();
        let length = rest.iter().take_while(|byte| !byte.is_ascii_whitespace() && **byte != b'=').count();
        let (name, behind) = rest.split_at(length);
        let behind = behind.trim_ascii_start();
        let (value, next) = match behind.strip_prefix(b"=").map(<[u8]>::trim_ascii_start) {
            Some([quote @ (b'"' | b'\''), text @ ..]) => {
                let end = text.iter().position(|byte| byte == quote)?;
                (&text[..end], &text[end + 1..])
            }
            Some(text) => {
                let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
                text.split_at(end)
            }
            None if name.is_empty() => return None,
            None => (&[][..], behind),
        };
        if name.eq_ignore_ascii_case(wanted) {
            return Some(value);
        }
        rest = next;
    }
}

/// What is found in a program.
enum Found {
    /// Lines of systrace.
    Text,
    /// The value of the variable.
    Value { at: u64, end: u64 },
}

/// A page that is read once.
struct Page<R> {
    input: R,
    /// How much of it was consumed, and the last bytes of that.
    at: u64,
    /// Where the last tag begins.
    tag_at: u64,
    last: [u8; 3],
    /// It ends within an element.
    is_cut_off: bool,
}

impl<R: BufRead> Page<R> {
    /// Consumes bytes that were read.
    fn pass(&mut self, length: usize) -> io::Result<()> {
        for byte in &self.input.fill_buf()?[length.saturating_sub(3)..length] {
            self.last = [self.last[1], self.last[2], *byte];
        }
        self.input.consume(length);
        self.at += length as u64;
        Ok(())
    }

    fn peek(&mut self) -> io::Result<Option<u8>> {
        Ok(self.input.fill_buf()?.first().copied())
    }

    fn next(&mut self) -> io::Result<Option<u8>> {
        let next = self.peek()?;
        self.pass(usize::from(next.is_some()))?;
        Ok(next)
    }

    /// Consumes a text, or as much of it as is there, of which the first byte is not in the rest of it.
    fn take(&mut self, text: &[u8]) -> io::Result<bool> {
        for byte in text {
            match self.peek()? {
                Some(next) if next.eq_ignore_ascii_case(byte) => self.pass(1)?,
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Consumes what is before one of these bytes; none at the end.
    fn find(&mut self, [one, two, three]: [u8; 3]) -> io::Result<Option<u8>> {
        loop {
            let bytes = self.input.fill_buf()?;
            if bytes.is_empty() {
                return Ok(None);
            }
            let at = memchr3(one, two, three, bytes);
            let found = at.map(|at| bytes[at]);
            let length = at.unwrap_or(bytes.len());
            self.pass(length)?;
            if found.is_some() {
                return Ok(found);
            }
        }
    }

    /// Consumes everything up to the end of the name in the next tag of a script; false at the end.
    fn find_tag(&mut self) -> io::Result<bool> {
        while self.find([b'<'; 3])?.is_some() {
            self.tag_at = self.at;
            self.pass(1)?;
            if self.take(b"!--")? {
                self.comment()?;
                continue;
            }
            let mut name = Vec::new();
            while name.len() <= MAX_TAG_NAME_BYTES
                && let Some(letter) = self.peek()?.filter(u8::is_ascii_alphabetic)
            {
                name.push(letter.to_ascii_lowercase());
                self.pass(1)?;
            }
            if !matches!(self.peek()?, Some(b'>' | b'/' | b' ' | b'\t' | b'\r' | b'\n')) {
                continue;
            }
            if name == b"script" {
                return Ok(true);
            }
            if TEXTS.contains(&&*name) {
                self.contents(&name)?;
            }
        }
        Ok(false)
    }

    /// Consumes the rest of a comment.
    fn comment(&mut self) -> io::Result<()> {
        while self.find([b'>'; 3])?.is_some() {
            let is_end = self.last.ends_with(b"--") || self.last == *b"--!";
            self.pass(1)?;
            if is_end {
                break;
            }
        }
        Ok(())
    }

    /// Consumes the rest of a tag.
    fn tag(&mut self) -> io::Result<Tag> {
        let (mut attributes, mut quote) = (Vec::new(), None);
        while let Some(byte) = self.next()? {
            match (byte, quote) {
                (b'>', None) => break,
                (b'"' | b'\'', None) => quote = Some(byte),
                (_, Some(open)) if open == byte => quote = None,
                _ => {}
            }
            if attributes.len() < MAX_TAG_BYTES {
                attributes.push(byte);
            }
        }
        Ok(Tag::of(&attributes))
    }

    /// Consumes the contents of a script and the beginning of its end; what they begin with, and where they
    /// end.
    fn data(&mut self) -> io::Result<(Vec<u8>, u64)> {
        let mut head = Vec::new();
        while head.len() < HEAD_BYTES
            && let Some(byte) = self.peek()?.filter(|byte| *byte != b'<')
        {
            head.push(byte);
            self.pass(1)?;
        }
        Ok((head, self.contents(b"script")?))
    }

    /// Consumes the contents of an element, and the beginning of its end; where they end.
    fn contents(&mut self, name: &[u8]) -> io::Result<u64> {
        let tag = [b"</", name].concat();
        while self.find([b'<'; 3])?.is_some() {
            let end = self.at;
            if self.take(&tag)? {
                return Ok(end);
            }
        }
        self.is_cut_off = true;
        Ok(self.at)
    }

    /// Consumes a program, or a part of it in which a trace is found.
    fn program(&mut self) -> io::Result<Option<Found>> {
        while let Some(next) = self.find([b'<', VARIABLE[0], TRACER[0]])? {
            let begins_line = self.last[2] == b'\n';
            // Each of them consumes a byte at least.
            match next {
                b'<' if self.take(b"</script")? => return Ok(None),
                b'#' if self.take(TRACER)? && begins_line => return Ok(Some(Found::Text)),
                b'j' if self.take(VARIABLE)? => {
                    if let Some(found) = self.assigned()? {
                        return Ok(Some(found));
                    }
                }
                _ => {}
            }
        }
        self.is_cut_off = true;
        Ok(None)
    }

    /// The object or list that is assigned to a variable, if one is.
    fn assigned(&mut self) -> io::Result<Option<Found>> {
        self.pass_space()?;
        if !self.take(b"=")? {
            return Ok(None);
        }
        self.pass_space()?;
        let at = self.at;
        let (mut depth, mut is_in_string) = (0_u64, false);
        loop {
            match (self.peek()?, is_in_string) {
                (Some(b'"'), _) => is_in_string = !is_in_string,
                (Some(b'\\'), true) => self.pass(1)?,
                (Some(b'{' | b'['), false) => depth += 1,
                (Some(b'}' | b']'), false) => depth = depth.saturating_sub(1),
                (Some(_), _) => {}
                (None, _) => {
                    self.is_cut_off = true;
                    return Ok((depth > 0).then_some(Found::Value { at, end: self.at }));
                }
            }
            if depth == 0 && self.at == at {
                return Ok(None);
            }
            self.next()?;
            if depth == 0 {
                return Ok(Some(Found::Value { at, end: self.at }));
            }
        }
    }

    fn pass_space(&mut self) -> io::Result<()> {
        while self.peek()?.is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.pass(1)?;
        }
        Ok(())
    }
}
