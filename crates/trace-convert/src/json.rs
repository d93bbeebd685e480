//! JSON text, written as it goes, with numbers the way RapidJSON lays them out.

use std::io::{self, Write};

/// Bytes collected before they are handed on.
const FLUSH_BYTES: usize = 64 << 10;

/// Collects text and hands it on in large pieces.
pub(crate) struct Json<W> {
    output: W,
    text: Vec<u8>,
}

impl<W: Write> Json<W> {
    pub fn new(output: W) -> Self {
        Self { output, text: Vec::with_capacity(2 * FLUSH_BYTES) }
    }

    /// Hands on what was collected if there is much of it.
    pub fn flush_if_full(&mut self) -> io::Result<()> {
        if self.text.len() < FLUSH_BYTES {
            return Ok(());
        }
        self.output.write_all(&self.text)?;
        self.text.clear();
        Ok(())
    }

    /// Hands on everything.
    pub fn finish(mut self) -> io::Result<()> {
        self.output.write_all(&self.text)?;
        self.output.flush()
    }

    /// Text that is JSON already.
    pub fn raw(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
    }

    /// A string: what is not UTF-8 becomes U+FFFD, a character for each ill-formed part.
    pub fn string(&mut self, bytes: &[u8]) {
        self.text.push(b'"');
        for chunk in bytes.utf8_chunks() {
            self.escaped(chunk.valid().as_bytes());
            if !chunk.invalid().is_empty() {
                self.raw("\u{fffd}");
            }
        }
        self.text.push(b'"');
    }

    fn escaped(&mut self, bytes: &[u8]) {
        const HEX: &[u8; 16] = b"0123456789ABCDEF";
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|byte| *byte < 0x20 || *byte == b'"' || *byte == b'\\') {
            let (plain, special) = rest.split_at(at);
            self.text.extend_from_slice(plain);
            let byte = special[0];
            match byte {
                b'"' | b'\\' => self.text.extend_from_slice(&[b'\\', byte]),
                8 => self.raw("\\b"),
                9 => self.raw("\\t"),
                10 => self.raw("\\n"),
                12 => self.raw("\\f"),
                13 => self.raw("\\r"),
                _ => {
                    self.raw("\\u00");
                    self.text.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 0xf)]]);
                }
            }
            rest = &special[1..];
        }
        self.text.extend_from_slice(rest);
    }

    /// An integer with all its digits.
    pub fn integer(&mut self, value: impl itoa::Integer) {
        self.text.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
    }

    /// `0x` and lower-case digits.
    pub fn hex(&mut self, value: u64) {
        let digits = (64 - value.leading_zeros()).div_ceil(4).max(1);
        self.raw("0x");
        for digit in (0..digits).rev() {
            self.text.push(b"0123456789abcdef"[(value >> (4 * digit) & 0xf) as usize]);
        }
    }

    /// The shortest digits that read back as the same number; a string where JSON has no number.
    pub fn double(&mut self, value: f64) {
        if !value.is_finite() {
            return self.raw(match value {
                value if value.is_nan() => "\"NaN\"",
                value if value > 0.0 => "\"Infinity\"",
                _ => "\"-Infinity\"",
            });
        }
        let mut buffer = ryu::Buffer::new();
        let shortest = buffer.format_finite(value);
        let (sign, number) = match shortest.strip_prefix('-') {
            Some(number) => ("-", number),
            None => ("", shortest),
        };
        self.raw(sign);
        let (mantissa, exponent) = number.split_once('e').unwrap_or((number, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        // value = 0.digits × 10^point
        let all = format!("{whole}{fraction}");
        let digits = all.trim_start_matches('0');
        let leading_zeros = (all.len() - digits.len()) as i32;
        let point = whole.len() as i32 - leading_zeros + exponent;
        let digits = digits.trim_end_matches('0');
        self.layout(digits, point);
    }

    fn layout(&mut self, digits: &str, point: i32) {
        let count = digits.len() as i32;
        match point {
            _ if digits.is_empty() => self.raw("0.0"),
            1..=21 if point >= count => {
                self.raw(digits);
                (count..point).for_each(|_| self.text.push(b'0'));
                self.raw(".0");
            }
            1..=21 => {
                let (whole, fraction) = digits.split_at(point as usize);
                self.raw(whole);
                self.raw(".");
                self.raw(fraction);
            }
            -5..=0 => {
                self.raw("0.");
                (point..0).for_each(|_| self.text.push(b'0'));
                self.raw(digits);
            }
            _ => {
                let (first, rest) = digits.split_at(1);
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
}

#[cfg(test)]
mod tests {
    use super::*;

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
            (1.041_666_666_666_666_5, "1.0416666666666665"),
            (f64::NAN, "\"NaN\""),
            (f64::NEG_INFINITY, "\"-Infinity\""),
        ] {
            assert_eq!(written(|json| json.double(value)), text);
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
    fn hexadecimal_has_no_leading_zeros() {
        for (value, text) in
            [(0, "0x0"), (255, "0xff"), (0xdead_beef, "0xdeadbeef"), (u64::MAX, "0xffffffffffffffff")]
        {
            assert_eq!(written(|json| json.hex(value)), text);
        }
    }
}
