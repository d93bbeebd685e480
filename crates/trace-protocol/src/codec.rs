//! Values of a table's fields as bytes, in the encoding of the postcard crate.
//!
//! Unsigned integers of more than a byte are in base 128, the least significant digits first, and the top bit
//! of each byte but the last is set; a byte is itself and a truth value is 0 or 1; a number with a fraction
//! is its four bytes, the lowest first. Texts, bytes and lists follow their length; a pair is its two
//! values, one after the other.
//!
//! It is our own code, because every program that is recorded links it: with a library, the compiler of a
//! program's author builds a parser of Rust for it.

/// A value that can be written.
pub(crate) trait Encode {
    /// Appends it.
    fn encode(&self, bytes: &mut Vec<u8>);
}

/// A value that can be read from bytes which live as long as `'a`.
pub(crate) trait Decode<'a>: Sized {
    /// Takes it from the front of `bytes`; none if they do not begin with such a value.
    fn decode(bytes: &mut &'a [u8]) -> Option<Self>;
}

/// A value that takes up all of `bytes`.
pub(crate) fn decode_whole<'a, T: Decode<'a>>(mut bytes: &'a [u8]) -> Option<T> {
    T::decode(&mut bytes).filter(|_| bytes.is_empty())
}

/// The bytes of a value.
pub(crate) fn encode<T: Encode + ?Sized>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode(&mut bytes);
    bytes
}

fn encode_number(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// A number of `bits` bits, in no more bytes than such a number needs.
fn decode_number(bytes: &mut &[u8], bits: u32) -> Option<u64> {
    let mut number = 0;
    for shift in (0..bits).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let digits = u64::from(byte & 0x7f);
        let has_room = bits - shift >= 7 || digits >> (bits - shift) == 0;
        number |= digits << shift;
        if byte & 0x80 == 0 {
            return has_room.then_some(number);
        }
    }
    None
}

macro_rules! numbers {
    ($($number:ty),*) => { $(
        impl Encode for $number {
            fn encode(&self, bytes: &mut Vec<u8>) {
                encode_number(u64::from(*self), bytes);
            }
        }

        impl Decode<'_> for $number {
            fn decode(bytes: &mut &[u8]) -> Option<Self> {
                decode_number(bytes, <$number>::BITS)?.try_into().ok()
            }
        }
    )* };
}

numbers!(u16, u32, u64);

fn decode_byte(bytes: &mut &[u8]) -> Option<u8> {
    let (byte, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(*byte)
}

impl Encode for u8 {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.push(*self);
    }
}

impl Decode<'_> for u8 {
    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        decode_byte(bytes)
    }
}

impl Encode for bool {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(*self));
    }
}

impl Decode<'_> for bool {
    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        match decode_byte(bytes)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Encode for f32 {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }
}

impl Decode<'_> for f32 {
    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let (number, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(f32::from_le_bytes(*number))
    }
}

impl Encode for str {
    fn encode(&self, bytes: &mut Vec<u8>) {
        encode_number(self.len() as u64, bytes);
        bytes.extend_from_slice(self.as_bytes());
    }
}

impl Encode for String {
    fn encode(&self, bytes: &mut Vec<u8>) {
        self.as_str().encode(bytes);
    }
}

impl<'a> Decode<'a> for &'a str {
    fn decode(bytes: &mut &'a [u8]) -> Option<Self> {
        core::str::from_utf8(Decode::decode(bytes)?).ok()
    }
}

impl<'a> Decode<'a> for &'a [u8] {
    fn decode(bytes: &mut &'a [u8]) -> Option<Self> {
        let length = decode_number(bytes, usize::BITS)?.try_into().ok()?;
        let (found, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        Some(found)
    }
}

impl<T: Encode> Encode for [T] {
    fn encode(&self, bytes: &mut Vec<u8>) {
        encode_number(self.len() as u64, bytes);
        self.iter().for_each(|value| value.encode(bytes));
    }
}

impl<T: Encode> Encode for Vec<T> {
    fn encode(&self, bytes: &mut Vec<u8>) {
        self.as_slice().encode(bytes);
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for Vec<T> {
    fn decode(bytes: &mut &'a [u8]) -> Option<Self> {
        let count = decode_number(bytes, usize::BITS)?;
        // Each takes a byte at least: no memory is taken for what cannot be there.
        if count > bytes.len() as u64 {
            return None;
        }
        (0..count).map(|_| T::decode(bytes)).collect()
    }
}

impl<T: Encode, U: Encode> Encode for (T, U) {
    fn encode(&self, bytes: &mut Vec<u8>) {
        self.0.encode(bytes);
        self.1.encode(bytes);
    }
}

impl<'a, T: Decode<'a>, U: Decode<'a>> Decode<'a> for (T, U) {
    fn decode(bytes: &mut &'a [u8]) -> Option<Self> {
        Some((T::decode(bytes)?, U::decode(bytes)?))
    }
}

impl<T: Encode + ?Sized> Encode for &T {
    fn encode(&self, bytes: &mut Vec<u8>) {
        (*self).encode(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What the crate makes of bytes: the value, and how many of them it took.
    fn of_postcard<'a, T: serde::Deserialize<'a>>(bytes: &'a [u8]) -> Option<(T, usize)> {
        let (value, rest) = postcard::take_from_bytes(bytes).ok()?;
        Some((value, bytes.len() - rest.len()))
    }

    fn of_ours<'a, T: Decode<'a>>(bytes: &'a [u8]) -> Option<(T, usize)> {
        let mut rest = bytes;
        let value = T::decode(&mut rest)?;
        Some((value, bytes.len() - rest.len()))
    }

    /// Compares both, and requires that a value's own bytes are read back.
    macro_rules! compare {
        ($bytes:expr, $($t:ty),*) => { $(
            let found = of_ours::<$t>($bytes);
            prop_assert_eq!(&found, &of_postcard::<$t>($bytes));
            if let Some((value, _)) = found {
                let bytes = encode(&value);
                prop_assert_eq!(&bytes, &postcard::to_allocvec(&value).unwrap());
                prop_assert_eq!(decode_whole::<$t>(&bytes), Some(value));
            }
        )* };
    }

    proptest! {
        /// Whatever the bytes are, they are or are not a value as in postcard's own code.
        #[test]
        fn any_bytes_are_what_postcard_reads(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0..3_u8, Just(0x80), Just(0xff)], 0..24)
        ) {
            compare!(&bytes, u8, u16, u32, u64, bool, &str, &[u8], (u16, u64));
            compare!(&bytes, Vec<(u16, &[u8])>, Vec<&str>, Vec<(&str, &str)>, Vec<u8>);
        }

        #[test]
        fn any_value_has_the_bytes_of_postcard(
            numbers in any::<(u8, u16, u32, u64)>(), truth: bool, fraction: f32, text: String,
            pairs: Vec<(u16, String)>,
        ) {
            prop_assert_eq!(encode(&numbers.0), postcard::to_allocvec(&numbers.0).unwrap());
            prop_assert_eq!(encode(&numbers.1), postcard::to_allocvec(&numbers.1).unwrap());
            prop_assert_eq!(encode(&numbers.2), postcard::to_allocvec(&numbers.2).unwrap());
            prop_assert_eq!(encode(&numbers.3), postcard::to_allocvec(&numbers.3).unwrap());
            prop_assert_eq!(encode(&truth), postcard::to_allocvec(&truth).unwrap());
            prop_assert_eq!(encode(&fraction), postcard::to_allocvec(&fraction).unwrap());
            prop_assert_eq!(encode(&text), postcard::to_allocvec(&text).unwrap());
            prop_assert_eq!(encode(&pairs), postcard::to_allocvec(&pairs).unwrap());
            prop_assert_eq!(decode_whole::<u64>(&encode(&numbers.3)), Some(numbers.3));
            let bits = decode_whole::<f32>(&encode(&fraction)).map(f32::to_bits);
            prop_assert_eq!(bits, Some(fraction.to_bits()));
        }
    }

    #[test]
    fn a_number_takes_no_more_bytes_than_it_may() {
        assert_eq!(decode_whole::<u16>(&[0xff, 0xff, 0x03]), Some(u16::MAX));
        assert_eq!(decode_whole::<u16>(&[0xff, 0xff, 0x04]), None);
        assert_eq!(decode_whole::<u16>(&[0x80, 0x80, 0x80, 0]), None);
        assert_eq!(
            decode_whole::<u64>(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
            Some(u64::MAX)
        );
        assert_eq!(decode_whole::<u64>(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]), None);
    }
}
