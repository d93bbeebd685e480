//! How pages hold numbers: in runs, as packed bits, and as differences.
//!
//! The encodings are those of <https://parquet.apache.org/docs/file-format/data-pages/encodings/>.

/// Values of a group of packed bits.
const GROUP: usize = 8;
/// Differences of a block.
const BLOCK: usize = 128;
/// Differences that have one width.
const MINIBLOCK: usize = 32;

/// How many bits the values up to this one have.
pub const fn width_of(largest: u64) -> u32 {
    u64::BITS - largest.leading_zeros()
}

fn varint(mut value: u64, bytes: &mut Vec<u8>) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Values of so many bits, one behind the other, the lowest bits first.
#[inline]
fn pack(values: impl Iterator<Item = u64>, width: u32, bytes: &mut Vec<u8>) {
    let (mut word, mut used) = (0_u64, 0);
    for value in values {
        word |= value << used;
        used += width;
        if used >= u64::BITS {
            bytes.extend_from_slice(&word.to_le_bytes());
            used -= u64::BITS;
            word = if used == 0 { 0 } else { value >> (width - used) };
        }
    }
    bytes.extend_from_slice(&word.to_le_bytes()[..used.div_ceil(8) as usize]);
}

/// Runs of equal values, and packed bits between them.
pub fn runs<T: Copy + PartialEq + Into<u64>>(values: &[T], width: u32, bytes: &mut Vec<u8>) {
    let mut rest = values;
    // Values before the rest that are in no run.
    let mut packed = 0;
    while let Some((group, behind)) = rest.split_first_chunk::<GROUP>() {
        let first = group[0];
        if group.iter().any(|value| *value != first) {
            packed += GROUP;
            rest = behind;
            continue;
        }
        let length = GROUP + behind.iter().position(|value| *value != first).unwrap_or(behind.len());
        let start = values.len() - rest.len();
        packed_bits(&values[start - packed..start], width, bytes);
        packed = 0;
        run(first.into(), length, width, bytes);
        rest = &rest[length..];
    }
    packed_bits(&values[values.len() - rest.len() - packed..], width, bytes);
}

/// So many equal values.
pub fn run(value: u64, length: usize, width: u32, bytes: &mut Vec<u8>) {
    varint((length as u64) << 1, bytes);
    bytes.extend_from_slice(&value.to_le_bytes()[..width.div_ceil(8) as usize]);
}

/// Packed bits; only behind the last ones there may be room.
fn packed_bits<T: Copy + Into<u64>>(values: &[T], width: u32, bytes: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    let groups = values.len().div_ceil(GROUP);
    varint((groups as u64) << 1 | 1, bytes);
    let room = std::iter::repeat_n(0, GROUP * groups - values.len());
    pack(values.iter().map(|value| (*value).into()).chain(room), width, bytes);
}

/// The first value, and the differences between each and the one before, less the smallest of a block.
pub fn differences(values: &[i64], bytes: &mut Vec<u8>) {
    varint(BLOCK as u64, bytes);
    varint((BLOCK / MINIBLOCK) as u64, bytes);
    varint(values.len() as u64, bytes);
    let zigzag = |value: i64| (value << 1 ^ value >> 63) as u64;
    let Some(first) = values.first() else { return varint(0, bytes) };
    varint(zigzag(*first), bytes);
    let mut before = *first;
    for block in values[1..].chunks(BLOCK) {
        let mut differences = [0_i64; BLOCK];
        for (difference, value) in differences.iter_mut().zip(block) {
            *difference = value.wrapping_sub(before);
            before = *value;
        }
        let differences = &mut differences[..block.len()];
        let least = differences.iter().copied().min().unwrap_or(0);
        varint(zigzag(least), bytes);
        let above = |difference: &i64| difference.wrapping_sub(least) as u64;
        let width = |part: &[i64]| width_of(part.iter().map(above).fold(0, |all, value| all | value)) as u8;
        let mut widths = [0_u8; BLOCK / MINIBLOCK];
        for (of, part) in widths.iter_mut().zip(differences.chunks(MINIBLOCK)) {
            *of = width(part);
        }
        bytes.extend_from_slice(&widths);
        for (width, part) in widths.into_iter().zip(differences.chunks(MINIBLOCK)) {
            let room = std::iter::repeat_n(0, MINIBLOCK - part.len());
            pack(part.iter().map(above).chain(room), width.into(), bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_runs_and_others_packed() {
        let of = |values: &[u32], width| {
            let mut bytes = Vec::new();
            runs(values, width, &mut bytes);
            bytes
        };
        assert!(of(&[], 3).is_empty());
        assert_eq!(of(&[5; 300], 3), [0xd8, 4, 5]);
        assert_eq!(of(&[0; 9], 0), [18]);
        // The example of the specification, and a rest that is not a whole group.
        assert_eq!(of(&[0, 1, 2, 3, 4, 5, 6, 7], 3), [3, 0x88, 0xc6, 0xfa]);
        assert_eq!(of(&[0, 1, 2, 3, 4, 5, 6, 7, 1], 3), [5, 0x88, 0xc6, 0xfa, 1, 0, 0]);
        // A run begins where a group does.
        let values = [vec![1, 2, 3], vec![300; 15], vec![4]].concat();
        let packed = [3, 1, 2 << 1, 3 << 2];
        let found = of(&values, 9);
        assert_eq!((found[0], found.len()), (packed[0], 1 + 9 + 3 + 1 + 9));
        assert_eq!(found[10..13], [20, 44, 1]);
    }

    #[test]
    fn differences_are_those_of_the_specification() {
        let of = |values: &[i64]| {
            let mut bytes = Vec::new();
            differences(values, &mut bytes);
            bytes
        };
        assert_eq!(of(&[]), [0x80, 1, 4, 0, 0]);
        assert_eq!(of(&[-7]), [0x80, 1, 4, 1, 13]);
        assert_eq!(of(&[1, 2, 3, 4, 5]), [0x80, 1, 4, 5, 2, 2, 0, 0, 0, 0]);
        // Differences −2 and 1: the least is −2, the others need 2 bits.
        let head = [0x80, 1, 4, 8, 14, 3, 2, 0, 0, 0];
        assert_eq!(of(&[7, 5, 3, 1, 2, 3, 4, 5]), [&head[..], &[0xc0, 0x3f, 0, 0, 0, 0, 0, 0]].concat());
        // The widest, which wraps.
        assert_eq!(of(&[0, i64::MAX, -1]).len(), 4 + 1 + 10 + 4 + 8 * MINIBLOCK);
    }
}
