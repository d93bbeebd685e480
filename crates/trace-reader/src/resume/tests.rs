use super::*;
use crate::testing::{COMPLETE, bytes};

#[test]
//= docs/format.md#damage
fn a_place_has_several_sound_records_behind_it() {
    let trace = bytes(&COMPLETE);
    assert_eq!(search(&trace, 0, true), Search::Found(0));
    // The magic number may stand anywhere, a provider info only at a whole word.
    let shifted = [&[1, 2, 3][..], &trace].concat();
    assert_eq!(search(&shifted, 0, true), Search::Found(3));
    assert_eq!(search(&trace, 1, true), Search::Found(8));
    assert_eq!(search(&shifted, 4, true), Search::Unknown(shifted.len() - 7));
    // A record of no known type behind it, or one that makes no sense.
    for wrong in [0x1b, 0x11, 0x7] {
        let mut words = COMPLETE;
        words[3] = wrong;
        assert_eq!(search(&bytes(&words[..12]), 0, true), Search::Unknown(89), "{wrong:#x}");
    }
}

#[test]
//= docs/format.md#damage
fn at_the_end_fewer_records_are_enough() {
    let trace = bytes(&COMPLETE);
    assert_eq!(search(&trace[..8], 0, true), Search::Found(0));
    assert_eq!(search(&trace[..8], 0, false), Search::Unknown(0));
    assert_eq!(search(&trace[..24], 0, false), Search::Unknown(0));
    assert_eq!(search(&trace[..56], 0, false), Search::Found(0));
    // Two records and a part of the third say enough, one and a part do not.
    assert_eq!(search(&trace[..30], 0, true), Search::Found(0));
    assert_eq!(search(&trace[..20], 0, true), Search::Unknown(13));
}

#[test]
fn providers_have_no_bits_where_there_must_be_none() {
    assert!(is_provider(0x0040_0000_0011_0020) && is_provider(0x0000_0000_0012_0010));
    for bit in 52..64 {
        assert!(!is_provider(0x12_0010 | 1 << bit));
    }
    for bit in 60..64 {
        assert!(!is_provider(0x11_0010 | 1 << bit));
    }
    // A name of 9 bytes in a record of 2 words, a section of 2 words, other kinds of metadata.
    for word in [0x0090_0000_0011_0020, 0x12_0020, 0x13_0010, 0x10_0010, 0x14_0010] {
        assert!(!is_provider(word), "{word:#x}");
    }
}

#[test]
fn records_lead_to_places() {
    let trace = bytes(&[0x21, 7, 0, 0x14, 0x17, 0x4]);
    for (start, place, expected) in [
        (0, 0, true),
        (0, 16, true),
        (0, 24, true),
        (0, 32, true),
        (0, 8, false),
        (24, 16, false),
        (0, 48, false),
    ] {
        assert_eq!(leads_to(&trace, start, place), expected, "{start} {place}");
    }
}
