//! Numbers and texts as bytes: seven bits in each byte, the lowest first.

/// Appends a number.
pub fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a number with a sign, which is the lowest bit.
pub fn put_signed(out: &mut Vec<u8>, number: i64) {
    put_number(out, (number << 1 ^ number >> 63) as u64);
}

/// Appends a text behind its length.
pub fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put_number(out, text.len() as u64);
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_are_short() {
        for (number, bytes) in [(0, 1), (127, 1), (128, 2), (16_383, 2), (16_384, 3), (u64::MAX, 10)] {
            let mut out = Vec::new();
            put_number(&mut out, number);
            assert_eq!(out.len(), bytes, "{number}");
        }
        let mut out = Vec::new();
        [0, -1, 1, i64::MIN].iter().for_each(|number| put_signed(&mut out, *number));
        assert_eq!(out[..3], [0, 1, 2]);
        assert_eq!(out.len(), 13);
    }
}
