//! The text form of protocol buffers: a parser of its syntax, which knows no field.

use trace_config::tree::{Field, Kind, Value, Wrong};

/// Messages in messages, at most.
const MAX_DEPTH: usize = 64;
/// What a message between brackets, or none, ends with.
type End = Option<char>;

/// Reads the fields of a whole text.
pub fn parse(text: &str) -> Result<Vec<Field>, Wrong> {
    Parser { text, at: 0, depth: 0 }.fields(None)
}

/// The offset of the first thing that is neither white space nor a comment.
pub fn skip(text: &str, mut at: usize) -> usize {
    loop {
        let rest = &text[at..];
        let blank = rest.len() - rest.trim_start().len();
        at += blank;
        if !rest[blank..].starts_with('#') {
            return at;
        }
        at += rest[blank..].find('\n').unwrap_or(rest.len() - blank);
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn fields(&mut self, end: End) -> Result<Vec<Field>, Wrong> {
        let begin = self.at;
        let mut fields = Vec::new();
        loop {
            match (self.peek(), end) {
                (None, None) => return Ok(fields),
                (None, Some(end)) => {
                    let message = format!("the text ends inside of these fields: {end} is missing");
                    return Err(Wrong::new(begin.saturating_sub(1), message));
                }
                (Some(found), Some(end)) if found == end => {
                    self.at += 1;
                    return Ok(fields);
                }
                _ => fields.push(self.field()?),
            }
            // Separators are optional, and at most one.
            if matches!(self.peek(), Some(',' | ';')) {
                self.at += 1;
            }
        }
    }

    fn field(&mut self) -> Result<Field, Wrong> {
        self.skip();
        let at = self.at;
        let name = match self.peek() {
            Some('[') => {
                let end = self.text[at..].find(']').map(|length| at + length + 1);
                let end = end.ok_or_else(|| Wrong::new(at, "] is missing"))?;
                self.at = end;
                self.text[at..end].to_owned()
            }
            _ => match self.name() {
                Some(name) => name,
                None => return Err(self.unexpected("the name of a field")),
            },
        };
        let value = match self.peek() {
            Some(':') => {
                self.at += 1;
                self.value()?
            }
            Some('{' | '<') => self.one()?,
            _ => {
                let shown = trace_format::shown::Shown(&name).to_string();
                return Err(self.unexpected(&format!("`:` or `{{` after {shown}")));
            }
        };
        Ok(Field { at, name, value })
    }

    /// A value or a list.
    fn value(&mut self) -> Result<Value, Wrong> {
        if self.peek() != Some('[') {
            return self.one();
        }
        let at = self.at;
        self.at += 1;
        let mut list = Vec::new();
        if self.peek() == Some(']') {
            self.at += 1;
            return Ok(Value { at, kind: Kind::List(list) });
        }
        loop {
            list.push(self.one()?);
            match self.peek() {
                Some(',') => self.at += 1,
                Some(']') => {
                    self.at += 1;
                    return Ok(Value { at, kind: Kind::List(list) });
                }
                _ => return Err(self.unexpected("`,` or `]`")),
            }
        }
    }

    /// A value that is no list.
    fn one(&mut self) -> Result<Value, Wrong> {
        let peeked = self.peek();
        let at = self.at;
        let kind = match peeked {
            Some(open @ ('{' | '<')) => {
                if self.depth == MAX_DEPTH {
                    return Err(Wrong::new(at, format!("fields are nested deeper than {MAX_DEPTH}")));
                }
                self.at += 1;
                self.depth += 1;
                let fields = self.fields(Some(if open == '{' { '}' } else { '>' }))?;
                self.depth -= 1;
                Kind::Message(fields)
            }
            Some('"' | '\'') => Kind::Text(self.texts()?),
            Some('-' | '.' | '0'..='9') => Kind::Number(self.number()?),
            _ => match self.name() {
                Some(word) => Kind::Word(word),
                None => return Err(self.unexpected("a value")),
            },
        };
        Ok(Value { at, kind })
    }

    /// Texts in quotes that follow each other are one.
    fn texts(&mut self) -> Result<Vec<u8>, Wrong> {
        let mut bytes = Vec::new();
        while let Some(quote @ ('"' | '\'')) = self.peek() {
            let begin = self.at;
            self.at += 1;
            loop {
                let at = self.at;
                let Some(found) = self.next() else {
                    return Err(Wrong::new(begin, "the text in quotes does not end"));
                };
                match found {
                    '\n' => return Err(Wrong::new(begin, "the text in quotes does not end in its line")),
                    '\\' => self.escape(at, &mut bytes)?,
                    found if found == quote => break,
                    found => bytes.extend_from_slice(found.encode_utf8(&mut [0; 4]).as_bytes()),
                }
            }
        }
        Ok(bytes)
    }

    /// What follows a backslash.
    fn escape(&mut self, at: usize, bytes: &mut Vec<u8>) -> Result<(), Wrong> {
        let simple = match self.next() {
            Some('n') => b'\n',
            Some('t') => b'\t',
            Some('r') => b'\r',
            Some('a') => 7,
            Some('b') => 8,
            Some('f') => 12,
            Some('v') => 11,
            Some(same @ ('\\' | '\'' | '"' | '?')) => same as u8,
            Some('x' | 'X') => self
                .digits(16, 2)
                .and_then(|byte| u8::try_from(byte).ok())
                .ok_or_else(|| Wrong::new(at, "expected one or two hexadecimal digits after \\x"))?,
            Some('0'..='7') => {
                self.at -= 1;
                let byte = self.digits(8, 3).and_then(|byte| u8::try_from(byte).ok());
                byte.ok_or_else(|| Wrong::new(at, "an octal escape goes up to \\377"))?
            }
            Some(kind @ ('u' | 'U')) => {
                let length = if kind == 'u' { 4 } else { 8 };
                let begin = self.at;
                let code = self.digits(16, length).filter(|_| self.at == begin + length);
                let found = code.and_then(char::from_u32);
                let wrong = || Wrong::new(at, format!("\\{kind} needs {length} digits of a character"));
                bytes.extend_from_slice(found.ok_or_else(wrong)?.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            _ => return Err(Wrong::new(at, "unknown escape after \\")),
        };
        bytes.push(simple);
        Ok(())
    }

    fn digits(&mut self, radix: u32, most: usize) -> Option<u32> {
        let rest = &self.text[self.at..];
        let length = rest.chars().take(most).take_while(|digit| digit.is_digit(radix)).count();
        self.at += length;
        u32::from_str_radix(&rest[..length], radix).ok()
    }

    fn number(&mut self) -> Result<String, Wrong> {
        let at = self.at;
        let mut sign = "";
        if self.peek() == Some('-') {
            self.at += 1;
            self.skip();
            sign = "-";
        }
        let rest = &self.text[self.at..];
        let mut before = ' ';
        let mut is_part = |letter: &char| {
            let is_sign_of_exponent = matches!((before, letter), ('e' | 'E', '+' | '-'));
            before = *letter;
            is_sign_of_exponent || letter.is_ascii_alphanumeric() || *letter == '.'
        };
        let digits: String = rest.chars().take_while(|letter| is_part(letter)).collect();
        self.at += digits.len();
        let is_number = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
            Some(digits) => u64::from_str_radix(digits, 16).is_ok(),
            None if digits.starts_with(|letter: char| letter.is_ascii_digit() || letter == '.') => {
                digits.strip_suffix(['f', 'F']).unwrap_or(&digits).parse::<f64>().is_ok()
            }
            None => ["inf", "infinity", "nan"].contains(&digits.to_ascii_lowercase().as_str()),
        };
        if is_number {
            return Ok(format!("{sign}{digits}"));
        }
        let shown = format!("{sign}{digits}");
        Err(Wrong::new(at, format!("{} is no number", trace_format::shown::Shown(&shown))))
    }

    /// A name at this place.
    fn name(&mut self) -> Option<String> {
        let rest = &self.text[self.at..];
        let is_part = |letter: &char| letter.is_ascii_alphanumeric() || *letter == '_';
        let length = rest.chars().take_while(is_part).count();
        self.at += length;
        (length > 0).then(|| rest[..length].to_owned())
    }

    fn skip(&mut self) {
        self.at = skip(self.text, self.at);
    }

    fn peek(&mut self) -> Option<char> {
        self.skip();
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.text[self.at..].chars().next()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn unexpected(&mut self, expected: &str) -> Wrong {
        let found = match self.peek() {
            Some(found) => format!("{found:?}"),
            None => "the end of the text".to_owned(),
        };
        Wrong::new(self.at, format!("expected {expected}, found {found}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(fields: &[Field]) -> String {
        let value = |value: &Value| match &value.kind {
            Kind::Text(text) => format!("{:?}", String::from_utf8_lossy(text)),
            Kind::Number(text) | Kind::Word(text) => text.clone(),
            Kind::List(list) => format!("{:?}", list.iter().map(ToString::to_string).collect::<Vec<_>>()),
            Kind::Message(fields) => format!("{{{}}}", shown(fields)),
        };
        let field = |field: &Field| format!("{}={}", field.name, value(&field.value));
        fields.iter().map(field).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn all_ways_to_write_a_message_are_read() {
        let text = "# first\na: 1, b: -2; c { d: TRUE # behind\n } e: <f: 'x' \"y\">;\ng: [1, 0x2], h: [] i<>\n\
            j: [{k: 1}, <l: 2>] m: 1.5e-3f n: - 4 [ext.name] { o: inf }";
        let fields = parse(text).unwrap();
        let expected = "a=1 b=-2 c={d=TRUE} e={f=\"xy\"} g=[\"1\", \"0x2\"] h=[] i={} \
            j=[\"fields in braces\", \"fields in braces\"] m=1.5e-3f n=-4 [ext.name]={o=inf}";
        assert_eq!(shown(&fields), expected);
        assert_eq!((fields[1].at, fields[1].value.at), (14, 17));
        assert_eq!(parse(" # nothing").unwrap(), []);
    }

    #[test]
    fn escapes_are_those_of_c() {
        let text = |text: &str| match parse(text).unwrap().remove(0).value.kind {
            Kind::Text(bytes) => bytes,
            other => panic!("{other:?}"),
        };
        assert_eq!(text(r#"a: "\n\t\r\a\b\f\v\\\'\"\?""#), b"\n\t\r\x07\x08\x0c\x0b\\'\"?");
        assert_eq!(text(r#"a: "\x41\101\0\377\u00e4\U0001f600#""#), b"A\x41\0\xff\xc3\xa4\xf0\x9f\x98\x80#");
    }

    #[test]
    fn errors_have_the_offset_and_what_was_expected() {
        for (text, at, message) in [
            ("a", 1, "expected `:` or `{` after a, found the end of the text"),
            ("a 1", 2, "expected `:` or `{` after a, found '1'"),
            ("a:", 2, "expected a value, found the end of the text"),
            ("a: }", 3, "expected a value, found '}'"),
            ("a: 1 }", 5, "expected the name of a field, found '}'"),
            ("a: 1,, b: 2", 5, "expected the name of a field, found ','"),
            ("a {\n b: 1", 2, "the text ends inside of these fields: } is missing"),
            ("a { b: 1 >", 9, "expected the name of a field, found '>'"),
            ("a: 'x", 3, "the text in quotes does not end"),
            ("a: 'x\n'", 3, "the text in quotes does not end in its line"),
            ("a: 'x\\q'", 5, "unknown escape after \\"),
            ("a: '\\400'", 4, "an octal escape goes up to \\377"),
            ("a: '\\xg'", 4, "expected one or two hexadecimal digits after \\x"),
            ("a: '\\ud800'", 4, "\\u needs 4 digits of a character"),
            ("a: 12kB", 3, "12kB is no number"),
            ("a: -", 3, "- is no number"),
            ("a: [1 2]", 6, "expected `,` or `]`, found '2'"),
            ("a: [1,]", 6, "expected a value, found ']'"),
            ("[a: 1", 0, "] is missing"),
            ("\u{e4}: 1", 0, "expected the name of a field, found '\u{e4}'"),
        ] {
            assert_eq!(parse(text), Err(Wrong::new(at, message)), "{text}");
        }
        let deep = "a {".repeat(65);
        assert_eq!(parse(&deep), Err(Wrong::new(194, "fields are nested deeper than 64")));
    }
}
