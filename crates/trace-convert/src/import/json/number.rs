//! Exact conversion of decimal numbers.

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
    let text = text.trim().trim_matches('"');
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() && fraction.is_empty() || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    // The digits, and how many of them are before the point of the nanoseconds.
    let point = i64::try_from(whole.len()).ok()? + 3 + i64::from(exponent);
    let mut value: u64 = 0;
    let mut digits = whole.bytes().chain(fraction.bytes());
    for _ in 0..point.max(0) {
        let digit = digits.next().map_or(0, |byte| u64::from(byte - b'0'));
        value = value.checked_mul(10)?.checked_add(digit)?;
    }
    let is_up = point >= 0 && digits.next().is_some_and(|byte| byte >= b'5');
    value.checked_add(u64::from(is_up))
}

/// An id: a number, or text with a decimal or hexadecimal number; other text by its hash. A number with
/// decimal places is hashed, too.
//= docs/import.md#ids
#[inline]
pub(super) fn id(text: &str) -> u64 {
    let add = |sum: u64, byte: u8| byte.is_ascii_digit().then(|| 10 * sum + u64::from(byte - b'0'));
    let is_short = (1..=MAX_DIGITS).contains(&text.len());
    let number = if is_short { text.bytes().try_fold(0, add) } else { None };
    number.unwrap_or_else(|| other_id(text))
}

#[cold]
fn other_id(text: &str) -> u64 {
    let plain = text.trim().trim_matches('"');
    let parsed = match plain.strip_prefix("0x").or_else(|| plain.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => plain.parse::<u64>().ok().or_else(|| plain.parse::<i64>().ok().map(|value| value as u64)),
    };
    parsed.unwrap_or_else(|| hash(plain.as_bytes()))
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
                prop_assert_eq!(id(&text), other_id(&text));
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
        ] {
            assert_eq!(id(text), expected, "{text}");
        }
        assert_eq!(id("\"request A\""), hash(b"request A"));
        assert_ne!(id("\"a\""), id("\"b\""));
    }
}
