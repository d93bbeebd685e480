//! Exact conversion of decimal numbers.

use serde::Deserialize;
use serde_json::value::RawValue;
use trace_linux::hash;

/// Microseconds in decimal, as nanoseconds: rounded to the nearest, half away from zero. None if the text is
/// no number, is negative, or exceeds 64 bits.
//= docs/import.md#times
#[inline]
pub(super) fn nanos(text: &str) -> Option<u64> {
    usual_nanos(text.as_bytes()).or_else(|| other_nanos(text))
}

/// So many digits never exceed 64 bits.
const MAX_DIGITS: usize = 19;

/// Digits, and perhaps a point and up to three more.
#[inline]
fn usual_nanos(text: &[u8]) -> Option<u64> {
    let (whole, fraction) = match text {
        [whole @ .., b'.', a] => (whole, [*a, b'0', b'0']),
        [whole @ .., b'.', a, b] => (whole, [*a, *b, b'0']),
        [whole @ .., b'.', a, b, c] => (whole, [*a, *b, *c]),
        whole => (whole, [b'0'; 3]),
    };
    let add = |sum: u64, byte: &u8| byte.is_ascii_digit().then(|| 10 * sum + u64::from(byte - b'0'));
    if !(1..=MAX_DIGITS - fraction.len()).contains(&whole.len()) {
        return None;
    }
    let whole = whole.iter().try_fold(0, add)?;
    fraction.iter().try_fold(whole, add)
}

/// Any other decimal number.
#[cold]
fn other_nanos(text: &str) -> Option<u64> {
    let decimal = Decimal::parse(text.trim().trim_matches('"'))?;
    let (value, mut rest) = decimal.before(decimal.point + 3)?;
    // Nothing is before the first digit.
    let is_up = decimal.point >= -3 && rest.next().is_some_and(|byte| byte >= b'5');
    value.checked_add(u64::from(is_up))
}

/// A decimal number: its digits, and how many of them are before the point.
struct Decimal<'a> {
    whole: &'a str,
    fraction: &'a str,
    point: i64,
}

impl<'a> Decimal<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() && fraction.is_empty() || !is_digits(whole) || !is_digits(fraction) {
            return None;
        }
        let point = i64::try_from(whole.len()).ok()? + i64::from(exponent);
        Some(Self { whole, fraction, point })
    }

    /// The number that the digits before a point make, and the digits behind it. None if it exceeds 64 bits.
    fn before(&self, point: i64) -> Option<(u64, impl Iterator<Item = u8>)> {
        let mut digits = self.whole.bytes().chain(self.fraction.bytes());
        let mut value: u64 = 0;
        for _ in 0..point.max(0) {
            let digit = match digits.next() {
                Some(byte) => u64::from(byte - b'0'),
                None if value == 0 => break,
                None => 0,
            };
            value = value.checked_mul(10)?.checked_add(digit)?;
        }
        Some((value, digits))
    }

    /// The number, if it is a whole one of 64 bits.
    fn whole(&self) -> Option<u64> {
        let (value, mut rest) = self.before(self.point)?;
        rest.all(|digit| digit == b'0').then_some(value)
    }
}

/// An id: a number, or text that is one; other text by its hash.
//= docs/import.md#ids
#[inline]
pub(super) fn id(raw: &str) -> u64 {
    exact(raw).unwrap_or_else(|| id_of_text(raw))
}

#[cold]
fn id_of_text(raw: &str) -> u64 {
    // As it is without escapes.
    match serde_json::from_str::<String>(raw) {
        Ok(text) if raw.contains('\\') => exact(&text).unwrap_or_else(|| hash(text.as_bytes())),
        _ => hash(raw.trim().trim_matches('"').as_bytes()),
    }
}

/// The id in an object such as `{"local":"0x7"}`: archives pair operations within a process, so this one is
/// used as
/// it is. Ids of all processes have hashes.
//= docs/import.md#ids
pub(super) fn id2(raw: &str) -> u64 {
    #[derive(Deserialize)]
    struct Id2<'a> {
        #[serde(borrow)]
        local: Option<&'a RawValue>,
        #[serde(borrow)]
        global: Option<&'a RawValue>,
    }

    match serde_json::from_str(raw) {
        Ok(Id2 { local: Some(local), global: None }) => id(local.get()),
        Ok(Id2 { local: None, global: Some(global) }) => {
            hash(format!("global {}", id(global.get())).as_bytes())
        }
        _ => id(raw),
    }
}

/// A whole number: in decimal, also with a decimal point and an exponent, or as text, in decimal or with
/// `0x`. None
/// if there are other decimals, or if it exceeds 64 bits.
//= docs/import.md#ids
#[inline]
pub(super) fn exact(raw: &str) -> Option<u64> {
    let add = |sum: u64, byte: u8| byte.is_ascii_digit().then(|| 10 * sum + u64::from(byte - b'0'));
    let is_short = (1..=MAX_DIGITS).contains(&raw.len());
    let number = if is_short { raw.bytes().try_fold(0, add) } else { None };
    number.or_else(|| other_exact(raw))
}

#[cold]
fn other_exact(raw: &str) -> Option<u64> {
    let raw = raw.trim();
    let plain = raw.trim_matches('"');
    if let Some(digits) = plain.strip_prefix("0x").or_else(|| plain.strip_prefix("0X")) {
        return u64::from_str_radix(digits, 16).ok();
    }
    // Text such as 12e5 is the begin of a hash rather than a number.
    if plain.len() < raw.len() && plain.contains(['e', 'E']) {
        return None;
    }
    let (is_negative, magnitude) = plain.strip_prefix('-').map_or((false, plain), |plain| (true, plain));
    let value = Decimal::parse(magnitude)?.whole()?;
    if !is_negative {
        return Some(value);
    }
    0_i64.checked_sub_unsigned(value).map(i64::cast_unsigned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    //= docs/import.md#times
    #[test]
    fn times_are_exact() {
        for (text, expected) in [
            ("0", Some(0)),
            ("1", Some(1000)),
            ("1.5", Some(1500)),
            ("52227822672.068", Some(52_227_822_672_068)),
            ("\"2194525525\"", Some(2_194_525_525_000)),
            ("0.0005", Some(1)),
            ("0.00049", Some(0)),
            ("1124610290919.2798", Some(1_124_610_290_919_280)),
            ("18446744073709551.615", Some(u64::MAX)),
            ("18446744073709551.616", None),
            ("1.5e3", Some(1_500_000)),
            ("15E-1", Some(1500)),
            ("1e-9", Some(0)),
            (".5", Some(500)),
            ("-1", None),
            ("x", None),
            ("", None),
            ("1.2.3", None),
        ] {
            assert_eq!(nanos(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn usual_numbers_are_as_exact_as_others(text in "[0-9]{0,20}(\\.[0-9]{0,4})?", other in ".{0,6}") {
            for text in [text, other] {
                prop_assert_eq!(nanos(&text), other_nanos(&text));
                prop_assert_eq!(exact(&text), other_exact(&text));
            }
        }
    }

    //= docs/import.md#ids
    #[test]
    fn ids_keep_their_value_where_they_have_one() {
        for (text, expected) in [
            ("7", 7),
            ("\"0xff\"", 255),
            ("\"9223372036854775809\"", 9_223_372_036_854_775_809),
            ("\"0x8000000000000001\"", 9_223_372_036_854_775_809),
            ("-1", u64::MAX),
            ("1.0", 1),
            ("1e3", 1000),
            ("12.50E1", 125),
            ("-2.0", u64::MAX - 1),
            ("1200e-2", 12),
            ("0.0", 0),
            ("0e2147483647", 0),
            ("0e-2147483648", 0),
            ("\"7.0\"", 7),
            ("9007199254740993.0", 9_007_199_254_740_993),
            ("18446744073709551615", u64::MAX),
            ("1.8446744073709551615e19", u64::MAX),
        ] {
            assert_eq!(id(text), expected, "{text}");
        }
        assert_eq!(id("\"request A\""), hash(b"request A"));
        assert_ne!(id("\"a\""), id("\"b\""));
        assert_eq!([id(r#""a\/b""#), id(r#""\u0037""#)], [id(r#""a/b""#), 7]);
        for text in
            ["1.5", "\"12e5\"", "18446744073709551616", "-9223372036854775809", "1e20", "-", ".", "", "e"]
        {
            assert_eq!(exact(text), None, "{text}");
        }
    }

    //= docs/import.md#ids
    #[test]
    fn ids_in_objects_count_by_value() {
        for text in ["{\"local\":\"0x7\"}", "{ \"local\": 7 }", "{\"local\":\"7\"}", "{\"local\":7.0}"] {
            assert_eq!(id2(text), 7, "{text}");
        }
        let global = hash(b"global 7");
        for text in ["{\"global\":\"0x7\"}", "{\"global\" : 7}"] {
            assert_eq!(id2(text), global, "{text}");
        }
        assert_eq!(id2("\"0x7\""), 7);
    }
}
