//! Damage costs what is damaged, and nothing else.

use super::*;

/// A provider with a string, a thread and some instants, as one part of an archive.
fn part(id: u64, count: u64) -> Vec<u64> {
    let mut words = vec![MAGIC, 0x1_0020 | id << 20 | 1 << 52, u64::from(b'a') + id, 0x21, 1_000_000_000];
    words.extend(string(1, ["zero", "one", "two", "three"][id as usize]));
    words.extend([0x1_0033, id, 10 + id]);
    for time in 1..=count {
        words.extend(instant(1, 1, 1, time));
    }
    words
}

/// Counts the instants with their right name, by provider.
fn names(lines: &[String]) -> [usize; 4] {
    [0, 1, 2, 3].map(|id| {
        let name = ["zero", "one", "two", "three"][id];
        let right = format!("instant {id}/{} \"{name}\" \"{name}\" scope=thread", 10 + id);
        lines.iter().filter(|line| line.contains(&right)).count()
    })
}

#[test]
//= docs/format.md#damage
fn a_header_without_size_costs_the_rest_of_its_part() {
    let mut words = part(1, 100);
    let damaged = words.len() - 100;
    words[damaged] &= !0xfff0;
    let first = words.len() as u64 * 8;
    words.extend(part(2, 100));
    let (lines, warnings) = read(&words);
    assert_eq!(names(&lines), [0, 50, 100, 0]);
    let bytes = first - damaged as u64 * 8;
    assert_eq!(warnings, [warning(damaged as u64 * 8, 1, WarningKind::Damaged(bytes))]);
    assert!(lines.contains(&format!("{:#010x} 1 - damage {bytes} bytes", damaged * 8)));
}

#[test]
//= docs/format.md#damage
fn tables_of_the_damaged_provider_are_forgotten() {
    let mut words = part(2, 1);
    words.extend(part(1, 10));
    let damaged = words.len() - 4;
    words[damaged] &= !0xfff0;
    words.extend([MAGIC, section(2)]);
    words.extend(instant(1, 1, 1, 7));
    words.extend(instant(1, 1, 1, 8));
    words.extend([MAGIC, section(1)]);
    words.extend(instant(1, 1, 1, 9));
    let (lines, warnings) = read(&words);
    // Provider 2 was not current; what it has defined holds.
    assert_eq!(names(&lines), [0, 8, 3, 0]);
    assert_eq!(
        events(&lines).last().unwrap(),
        &"1 0.000000009 instant 0/0 \"<unknown>\" \"<unknown>\" scope=thread"
    );
    assert_eq!(warnings.len(), 4, "{warnings:?}");
}

#[test]
//= docs/format.md#damage
fn a_size_that_swallows_the_next_part_is_noticed() {
    // The last record of a part grows by 8 words: over the next magic number and provider info.
    let mut words = part(1, 10);
    let damaged = words.len() - 2;
    words[damaged] |= 8 << 4;
    let next = words.len() as u64 * 8;
    words.extend(part(2, 10));
    let (lines, warnings) = read(&words);
    assert_eq!(names(&lines), [0, 9, 10, 0]);
    let gap = next - damaged as u64 * 8;
    assert_eq!(warnings, [warning(damaged as u64 * 8, 1, WarningKind::Damaged(gap))]);
}

#[test]
//= docs/format.md#damage
fn a_record_that_became_a_huge_one_costs_its_part() {
    // A kernel object whose type becomes that of large records: its size is then half a GiB.
    let mut words = part(1, 10);
    let damaged = words.len();
    words.extend([0x0000_0180_0402_005f, 7, 0x6e69_616d, 0x1_0028, 8]);
    words.extend(part(2, 150_000).into_iter().skip(1));
    let next = damaged + 5;
    words.extend(part(3, 10));
    let (lines, warnings) = read(&words);
    assert_eq!(names(&lines), [0, 10, 150_000, 10]);
    assert_eq!(
        warnings[0],
        warning(damaged as u64 * 8, 1, WarningKind::Damaged((next - damaged) as u64 * 8))
    );
    assert_eq!(warnings.len(), 1);
}

#[test]
//= docs/format.md#damage
fn malformed_records_in_a_row_are_no_damage() {
    // Strings that reach past their records, unknown records, and a part behind them.
    let mut words = part(1, 1);
    for _ in 0..10 {
        words.extend([0x24 | 9 << 32 | (0x8009 << 48), 5, 0x2c, 1]);
    }
    words.extend(instant(1, 1, 1, 2));
    words.extend(part(2, 1));
    let (lines, warnings) = read(&words);
    assert_eq!(names(&lines), [0, 2, 1, 0]);
    assert_eq!(warnings.len(), 10);
    assert!(warnings.iter().all(|warning| warning.kind.name() == "malformed"));
}

#[test]
//= docs/format.md#damage
fn bytes_that_got_lost_cost_their_part() {
    let mut words = part(1, 100);
    let removed = words.len() * 8 - 100;
    words.extend(part(2, 100));
    let mut trace = bytes(&words);
    trace.drain(removed..removed + 3);
    let (lines, warnings) = read_slice(&trace);
    assert_eq!(names(&lines)[2], 100);
    assert!((90..100).contains(&names(&lines)[1]), "{}", names(&lines)[1]);
    assert_eq!(warnings.iter().filter(|warning| warning.kind.name() == "damaged").count(), 1);
    assert_eq!(read_from(&trace[..]), (lines, warnings));
}

#[test]
//= docs/format.md#damage
fn a_trace_in_a_blob_is_no_place_to_resume_at() {
    let inner = bytes(&COMPLETE);
    let mut words = part(1, 1);
    words.push(0x5 | 28 << 4 | 216 << 32 | 1 << 48);
    words.extend(COMPLETE);
    // A record of a later version in front of it: its blob is not searched.
    words.extend([0x2c, 1]);
    words.extend(instant(1, 1, 1, 2));
    assert_eq!(inner.len(), 216);
    let (lines, warnings) = read(&words);
    assert_eq!((names(&lines), warnings), ([0, 2, 0, 0], vec![]));
}

/// A program cannot have a reader take what it has written for records of another program.
#[test]
//= docs/format.md#damage
fn what_a_sound_record_contains_is_no_place_to_resume_at() {
    let forged = [&[MAGIC, section(2)][..], &instant(1, 1, 1, 77), &instant(1, 1, 1, 78)].concat();
    let forged = bytes(&[&forged[..], &instant(1, 1, 1, 79), &instant(1, 1, 1, 80)].concat());
    // Whole words, and others.
    for shift in 0..8 {
        let payload = [&vec![0; shift][..], &forged, &vec![0; 8 - shift]].concat();
        let payload: Vec<u64> =
            payload.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let length = payload.len() as u64;
        let blob = [&[0x5 | (length + 1) << 4 | (8 * length) << 32 | 1 << 48][..], &payload].concat();
        let unknown = [&[0xc | (length + 1) << 4][..], &payload].concat();
        let longer = [&[0x4 | (length + 2) << 4 | 1 << 24 | 1 << 32 | 1 << 48, 9][..], &payload].concat();
        // What contains whole words of that kind is left out by the manager.
        let odd = [vec![0x2c, 1], unknown, longer].into_iter().take(if shift == 0 { 1 } else { 3 });
        for odd in odd {
            let mut words = [part(2, 3), part(1, 3), odd, blob.clone()].concat();
            (4..20).for_each(|time| words.extend(instant(1, 1, 1, time)));
            let (lines, warnings) = read(&words);
            assert_eq!(warnings, [], "{shift}");
            assert_eq!(names(&lines)[2], 3, "{shift}");
            assert!(names(&lines)[1] >= 19, "{shift}");
        }
    }
}

/// The same if the reader cannot look far enough ahead: in front of a blob of a megabyte, and among many
/// records of later versions.
#[test]
//= docs/format.md#damage
fn what_a_sound_record_contains_far_behind_is_no_place_to_resume_at() {
    let forged = [&[MAGIC, section(2)][..], &instant(1, 1, 1, 77), &instant(1, 1, 1, 78)].concat();
    let with_blob = |unknown: &[u64], size: u64| {
        let payload = [&forged[..], &vec![0; size as usize]].concat();
        let length = payload.len() as u64;
        let blob = [&[0x0100_0000_000f | (length + 3) << 4, 0x1_0001, 8 * length][..], &payload].concat();
        let mut words = [&part(2, 3)[..], &part(1, 3), unknown, &blob].concat();
        (4..20).for_each(|time| words.extend(instant(1, 1, 1, time)));
        words
    };
    let many: Vec<u64> = (0..90).flat_map(|_| [&[0xb | 2000 << 4][..], &[7; 1999]].concat()).collect();
    for words in [with_blob(&[0x2c, 1], 1 << 17), with_blob(&many, 4), with_blob(&many[..20_000], 4)] {
        for (lines, warnings) in [read_slice(&bytes(&words)), read_from(&bytes(&words)[..])] {
            assert_eq!((warnings, names(&lines)), (vec![], [0, 19, 3, 0]));
        }
    }
}

/// A provider section is a word in which twenty bits say that: a timestamp in a million has them.
#[test]
//= docs/format.md#damage
fn a_timestamp_that_looks_like_a_provider_is_no_place_to_resume_at() {
    let looks_like_one = section(0x1234_5678);
    // An instant with two words more than are known, and a record of a later version.
    for odd in [vec![0x4 | 5 << 4 | 1 << 24 | 1 << 32 | 1 << 48, 1, 0, 77, 78], vec![0x2c, 1]] {
        let is_event = odd.len() == 5;
        let mut words = part(1, 3);
        words.extend(&odd);
        words.extend(instant(1, 1, 1, 4));
        // Another of these among the records that follow.
        words.extend([0x2c, 1]);
        (5..20).for_each(|time| words.extend(instant(1, 1, 1, time)));
        words.extend(instant(1, 1, 1, looks_like_one));
        (20..30).for_each(|time| words.extend(instant(1, 1, 1, looks_like_one + time)));
        words.extend(part(2, 10));
        let (lines, warnings) = read(&words);
        let expected = [0, 30 + usize::from(is_event), 10, 0];
        assert_eq!((names(&lines), &warnings[..]), (expected, &[][..]), "{odd:x?}");
    }
}

/// Every single-bit flip of an archive of three parts: what stands in the other parts is all there.
#[test]
//= docs/format.md#damage
fn a_flipped_bit_costs_at_most_its_part() {
    let parts = [part(1, 6), part(2, 6), part(3, 6)];
    let words = parts.concat();
    let trace = bytes(&words);
    let (from, to) = (parts[0].len() * 8, (parts[0].len() + parts[1].len()) * 8);
    for place in from..to {
        for bit in 0..8 {
            let mut damaged = trace.clone();
            damaged[place] ^= 1 << bit;
            let (lines, warnings) = read_slice(&damaged);
            let found = names(&lines);
            // A flip in what says whose part it is turns it into one of another provider.
            let is_about_provider = (from..from + 24).contains(&place);
            assert!(found[3] == 6, "byte {place} bit {bit}: {found:?} {warnings:?}");
            assert!(found[1] == 6 || is_about_provider, "byte {place} bit {bit}: {found:?} {warnings:?}");
        }
    }
}
