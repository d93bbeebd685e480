//! JSON text, written as it goes, with numbers the way RapidJSON lays them out.

use crate::output::Output;
use std::io::{self, Seek, Write};
use tempfile::SpooledTempFile;
use trace_reader::Value;

/// Number of bytes to collect before they are written.
const FLUSH_BYTES: usize = 64 << 10;

/// Whether text needs no escapes in a string: printable ASCII without quotes and backslashes.
#[inline]
fn is_plain(bytes: &[u8]) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * ONES;
    // In bytes below 0x80, the high bit marks those that are less than `limit`, or equal to `byte`.
    let less = |word: u64, limit: u64| word.wrapping_sub(limit * ONES);
    let special = |word: u64| {
        let quote = less(word ^ (b'"' as u64 * ONES), 1);
        let backslash = less(word ^ (b'\\' as u64 * ONES), 1);
        (word | less(word, 0x20) | quote | backslash) & HIGH
    };
    let (chunks, rest) = bytes.as_chunks::<8>();
    let is_special = |byte: &u8| matches!(byte, 0..0x20 | b'"' | b'\\' | 0x80..);
    chunks.iter().all(|chunk| special(u64::from_le_bytes(*chunk)) == 0) && !rest.iter().any(is_special)
}

/// Whole numbers.
pub(crate) trait Integer {
    /// Whether it is negative, and without that its absolute value.
    fn parts(self) -> (bool, u64);
}

macro_rules! integers {
    ($($unsigned:ty, $signed:ty);*) => {$(
        impl Integer for $unsigned {
            #[inline]
            fn parts(self) -> (bool, u64) {
                (false, self as u64)
            }
        }

        impl Integer for $signed {
            #[inline]
            fn parts(self) -> (bool, u64) {
                (self < 0, self.unsigned_abs() as u64)
            }
        }
    )*};
}

integers!(u8, i8; u16, i16; u32, i32; u64, i64; usize, isize);

/// Collects text and writes it in large pieces.
pub(crate) struct Json<W> {
    output: W,
    text: Output,
}

impl<W: Write> Json<W> {
    pub fn new(output: W) -> Self {
        Self { output, text: Output::default() }
    }

    /// Writes collected text if there is much of it.
    pub fn flush_if_full(&mut self) -> io::Result<()> {
        if self.text.len() < FLUSH_BYTES {
            return Ok(());
        }
        self.output.write_all(self.text.bytes())?;
        self.text.clear();
        Ok(())
    }

    /// Writes all collected text.
    pub fn finish(mut self) -> io::Result<()> {
        self.output.write_all(self.text.bytes())?;
        self.output.flush()
    }

    /// Writes all collected text, and continues.
    pub fn flush(&mut self) -> io::Result<()> {
        self.output.write_all(self.text.bytes())?;
        self.text.clear();
        Ok(())
    }

    /// The output of flushed text.
    pub fn output(&mut self) -> &mut W {
        &mut self.output
    }

    /// Writes all collected text, and returns the output.
    pub fn into_output(mut self) -> io::Result<W> {
        self.flush()?;
        Ok(self.output)
    }

    /// The text that was not written yet.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.text.bytes()
    }

    /// Continues in another buffer, and returns the one with the text that was not written yet.
    pub fn replace(&mut self, buffer: Output) -> Output {
        std::mem::replace(&mut self.text, buffer)
    }

    /// Removes and returns the text that was not written yet.
    pub fn take(&mut self) -> String {
        let bytes = self.text.bytes();
        let text = match str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => String::from_utf8_lossy(bytes).into_owned(),
        };
        self.text.clear();
        text
    }

    /// Text that is JSON already.
    #[inline]
    pub fn raw(&mut self, text: &str) {
        self.written(text.as_bytes());
    }

    /// Bytes that are JSON already.
    #[inline]
    pub fn written(&mut self, text: &[u8]) {
        self.text.slice(text);
    }

    /// The beginning of a block that is JSON already.
    #[inline]
    pub fn block<const N: usize>(&mut self, block: &[u8; N], length: usize) {
        self.text.piece(*block, length);
    }

    #[inline]
    fn byte(&mut self, byte: u8) {
        self.text.piece([byte], 1);
    }

    /// A string: invalid UTF-8 becomes U+FFFD, a character for each ill-formed part.
    #[inline]
    pub fn string(&mut self, bytes: &[u8]) {
        self.byte(b'"');
        if is_plain(bytes) {
            self.text.slice(bytes);
            self.byte(b'"');
            return;
        }
        self.repaired(bytes);
    }

    /// The rest of a string with characters that need escapes.
    fn repaired(&mut self, bytes: &[u8]) {
        for chunk in bytes.utf8_chunks() {
            self.escaped(chunk.valid().as_bytes());
            if !chunk.invalid().is_empty() {
                self.raw("\u{fffd}");
            }
        }
        self.byte(b'"');
    }

    fn escaped(&mut self, bytes: &[u8]) {
        const HEX: &[u8; 16] = b"0123456789ABCDEF";
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|byte| *byte < 0x20 || *byte == b'"' || *byte == b'\\') {
            let (plain, special) = rest.split_at(at);
            self.text.slice(plain);
            let Some((byte, tail)) = special.split_first() else { break };
            match *byte {
                b'"' | b'\\' => self.text.slice(&[b'\\', *byte]),
                8 => self.raw("\\b"),
                9 => self.raw("\\t"),
                10 => self.raw("\\n"),
                12 => self.raw("\\f"),
                13 => self.raw("\\r"),
                byte => {
                    self.raw("\\u00");
                    self.text.slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 0xf)]]);
                }
            }
            rest = tail;
        }
        self.text.slice(rest);
    }

    /// An integer with all its digits.
    #[inline]
    pub fn integer(&mut self, value: impl Integer) {
        let (is_negative, magnitude) = value.parts();
        if is_negative {
            self.byte(b'-');
        }
        self.text.decimal(magnitude);
    }

    /// A string behind text that is JSON already, such as the name of its member.
    #[inline]
    pub fn string_behind(&mut self, before: &str, bytes: &[u8]) {
        self.raw(before);
        self.string(bytes);
    }

    /// The same with an integer.
    #[inline]
    pub fn integer_behind(&mut self, before: &str, value: impl Integer) {
        self.raw(before);
        self.integer(value);
    }

    /// The same with a number of thousandths.
    #[inline]
    pub fn thousandths_behind(&mut self, before: &str, value: u64) {
        self.raw(before);
        self.thousandths(value);
    }

    /// Values with commas between them.
    pub fn list<T>(
        &mut self,
        values: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T),
    ) -> io::Result<()> {
        for (place, value) in values.into_iter().enumerate() {
            self.raw(if place == 0 { "" } else { "," });
            write(self, value);
            self.flush_if_full()?;
        }
        Ok(())
    }

    /// All text of another, which may be in a file.
    pub fn append(&mut self, other: Json<SpooledTempFile>) -> io::Result<()> {
        self.flush()?;
        let mut file = other.into_output()?;
        file.rewind()?;
        io::copy(&mut file, &mut self.output).map(|_| ())
    }

    /// The value of an argument; koids and pointers are text with their type.
    //= docs/catapult.md#arguments
    pub fn value(&mut self, value: &Value<'_>) {
        match value {
            Value::Null | Value::Unknown => self.raw("null"),
            Value::Bool(value) => self.raw(if *value { "true" } else { "false" }),
            Value::Int32(value) => self.integer(*value),
            Value::Uint32(value) => self.integer(*value),
            Value::Int64(value) => self.integer(*value),
            Value::Uint64(value) => self.integer(*value),
            Value::Double(value) => _ = self.double(*value),
            Value::String(value) => self.string(value.as_bytes()),
            Value::Pointer(value) => {
                self.raw("\"");
                self.hex(*value);
                self.raw("\"");
            }
            Value::Koid(koid) => {
                self.raw("\"#");
                self.integer(koid.0);
                self.raw("\"");
            }
            Value::Blob(bytes) => self.base64(bytes),
        }
    }

    /// `0x` and lower-case digits.
    pub fn hex(&mut self, value: u64) {
        let digits = (64 - value.leading_zeros()).div_ceil(4).max(1);
        self.raw("0x");
        for digit in (0..digits).rev() {
            self.byte(b"0123456789abcdef"[(value >> (4 * digit) & 0xf) as usize]);
        }
    }

    /// The shortest digits that read back as the same number; a string if JSON cannot express it. Returns the
    /// written bytes.
    pub fn double(&mut self, value: f64) -> &[u8] {
        let start = self.text.len();
        self.shortest(value);
        self.text.bytes().get(start..).unwrap_or_default()
    }

    fn shortest(&mut self, value: f64) {
        if !value.is_finite() {
            return self.raw(match value {
                value if value.is_nan() => "\"NaN\"",
                value if value > 0.0 => "\"Infinity\"",
                _ => "\"-Infinity\"",
            });
        }
        let mut buffer = zmij::Buffer::new();
        let shortest = buffer.format_finite(value);
        // Without an exponent both formats are the same.
        let Some((mantissa, exponent)) = shortest.split_once('e') else {
            return self.raw(shortest);
        };
        let mantissa = match mantissa.strip_prefix('-') {
            Some(mantissa) => {
                self.raw("-");
                mantissa
            }
            None => mantissa,
        };
        // One digit, and the others behind a point; value = 0.digits × 10^point.
        let (first, rest) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let point = exponent.parse::<i32>().unwrap_or(0) + 1;
        self.layout(first, if rest == "0" { "" } else { rest }, point);
    }

    fn layout(&mut self, first: &str, rest: &str, point: i32) {
        let count = 1 + rest.len() as i32;
        match point {
            1..=21 if point >= count => {
                self.raw(first);
                self.raw(rest);
                (count..point).for_each(|_| self.byte(b'0'));
                self.raw(".0");
            }
            1..=21 => {
                let (whole, fraction) = rest.split_at((point - 1) as usize);
                self.raw(first);
                self.raw(whole);
                self.raw(".");
                self.raw(fraction);
            }
            -5..=0 => {
                self.raw("0.");
                (point..0).for_each(|_| self.byte(b'0'));
                self.raw(first);
                self.raw(rest);
            }
            _ => {
                self.raw(first);
                if !rest.is_empty() {
                    self.raw(".");
                    self.raw(rest);
                }
                self.raw("e");
                self.integer(point - 1);
            }
        }
    }

    /// Removes the last bytes written.
    pub fn take_back(&mut self, bytes: usize) {
        self.text.truncate(self.text.len().saturating_sub(bytes));
    }

    /// A number of thousandths, with up to three digits behind the point.
    pub fn thousandths(&mut self, value: u64) {
        self.integer(value / 1000);
        let thousandths = (value % 1000) as u16;
        let digits = [thousandths / 100, thousandths / 10 % 10, thousandths % 10];
        let zeros = match digits {
            [_, 0, 0] => 2,
            [_, _, 0] => 1,
            _ => 0,
        };
        let [first, second, third] = digits.map(|digit| b'0' + digit as u8);
        self.text.piece([b'.', first, second, third], 4 - zeros);
    }

    /// A string of base64, with padding.
    pub fn base64(&mut self, bytes: &[u8]) {
        self.raw("\"");
        self.base64_group(bytes);
        self.raw("\"");
    }

    /// Characters of base64, padded if the bytes are no multiple of three.
    pub fn base64_group(&mut self, bytes: &[u8]) {
        self.text.base64(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(write: impl Fn(&mut Json<&mut Vec<u8>>)) -> String {
        let mut bytes = Vec::new();
        let mut json = Json::new(&mut bytes);
        write(&mut json);
        json.finish().unwrap();
        String::from_utf8(bytes).unwrap()
    }

    //= docs/catapult.md#numbers
    #[test]
    fn doubles_are_laid_out_as_documented() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (40_000.0, "40000.0"),
            (1.0 / 24.0, "0.041666666666666664"),
            (0.000_001, "0.000001"),
            (1e-7, "1e-7"),
            (1e20, "100000000000000000000.0"),
            (1e21, "1e21"),
            (1.5e-9, "1.5e-9"),
            (-2.5, "-2.5"),
            (-1e-7, "-1e-7"),
            (0.000_012_5, "0.0000125"),
            (0.000_001_25, "0.00000125"),
            (123_456_789_012_345_680_000.0, "123456789012345680000.0"),
            (1.234e300, "1.234e300"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e308"),
            (12_345_678_901_234_567.0, "12345678901234568.0"),
            (500_000.208_333_333_3, "500000.2083333333"),
            (2_592_000_000_000.291_5, "2592000000000.2915"),
            (f64::INFINITY, "\"Infinity\""),
            (1.041_666_666_666_666_5, "1.0416666666666665"),
            (f64::NAN, "\"NaN\""),
            (f64::NEG_INFINITY, "\"-Infinity\""),
        ] {
            assert_eq!(written(|json| _ = json.double(value)), text);
        }
    }

    proptest! {
        #[test]
        fn doubles_have_the_digits_that_ryu_finds(bits in any::<u64>(), micros in 0..1_u64 << 52) {
            for value in [f64::from_bits(bits), micros as f64 / 2399.987654] {
                let text = written(|json| _ = json.double(value));
                let digits = |text: &str| -> String {
                    let mantissa = text.split('e').next().unwrap_or_default().trim_end_matches(".0");
                    mantissa.chars().filter(char::is_ascii_digit).collect()
                };
                if value.is_finite() {
                    prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), value.to_bits());
                    let (own, of_ryu) = (digits(&text), digits(ryu::Buffer::new().format_finite(value)));
                    prop_assert_eq!(own.trim_matches('0'), of_ryu.trim_matches('0'));
                }
            }
        }
    }

    //= docs/catapult.md#strings
    #[test]
    fn strings_are_escaped_and_repaired() {
        for (bytes, text) in [
            (&b"x\"y\\/"[..], "\"x\\\"y\\\\/\""),
            (b"\n\t\r\x08\x0c\x1f", "\"\\n\\t\\r\\b\\f\\u001F\""),
            (b"c\xe2\x82at", "\"c\u{fffd}at\""),
            (b"n\xc1a\x85me", "\"n\u{fffd}a\u{fffd}me\""),
            (b"foo\xb5\xb3", "\"foo\u{fffd}\u{fffd}\""),
            ("grün".as_bytes(), "\"grün\""),
        ] {
            assert_eq!(written(|json| json.string(bytes)), text);
        }
    }

    #[test]
    fn thousandths_are_exact() {
        for (value, text) in [
            (0, "0.0"),
            (1, "0.001"),
            (10, "0.01"),
            (2_500, "2.5"),
            (3_000, "3.0"),
            (1_010, "1.01"),
            (u64::MAX, "18446744073709551.615"),
        ] {
            assert_eq!(written(|json| json.thousandths(value)), text);
        }
    }

    #[test]
    fn bytes_are_base64_with_padding() {
        for (bytes, text) in [
            (&b""[..], "\"\""),
            (&[1], "\"AQ==\""),
            (&[1, 2], "\"AQI=\""),
            (&[1, 2, 3], "\"AQID\""),
            (b"\xfb\xff", "\"+/8=\""),
        ] {
            assert_eq!(written(|json| json.base64(bytes)), text);
        }
    }

    #[test]
    fn hexadecimal_has_no_leading_zeros() {
        for (value, text) in
            [(0, "0x0"), (255, "0xff"), (0xdead_beef, "0xdeadbeef"), (u64::MAX, "0xffffffffffffffff")]
        {
            assert_eq!(written(|json| json.hex(value)), text);
        }
    }
}
