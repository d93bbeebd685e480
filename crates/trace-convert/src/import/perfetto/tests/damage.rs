//! What cannot be read costs itself only, and is counted.

use super::*;
use prost::encoding::{WireType, encode_key, encode_varint};

/// A field with a length.
fn field(number: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_key(number, WireType::LengthDelimited, &mut bytes);
    encode_varint(payload.len() as u64, &mut bytes);
    bytes.extend_from_slice(payload);
    bytes
}

/// A bundle of CPU 1 with these events.
fn bundle(events: &[Vec<u8>]) -> Vec<u8> {
    let events: Vec<u8> = events.iter().flat_map(|event| field(2, event)).collect();
    field(1, &field(1, &[&[0x08, 1], &events[..]].concat()))
}

fn kernel_event(at: u64, event: FtraceEvent) -> Vec<u8> {
    FtraceEvent { timestamp: Some(at), pid: Some(7), ..event }.encode_to_vec()
}

/// Damage near the beginning leaves what comes before it.
//= docs/import.md#what-is-cut-off
#[test]
fn what_is_before_damage_is_read() {
    let packets: Vec<TracePacket> = (0..4).map(|at| event(at, slice(TYPE_INSTANT, 1, "x"))).collect();
    let whole = trace(&packets);
    for damage in [&[0; 64][..], b"hello world"] {
        let bytes = [&whole[..], damage, &whole].concat();
        assert!(is_perfetto(&bytes, true), "{damage:?}");
        let mut archive = Vec::new();
        let error = import(&bytes[..], &mut archive).unwrap_err();
        let ImportError::Stopped { summary, .. } = error else { panic!("{error}") };
        assert_eq!(summary.events, 4, "{damage:?}");
    }
    // Too little to be certain.
    assert!(!is_perfetto(&[&trace(&packets[..1])[..], b"hello world"].concat(), true));
}

//= docs/import.md#perfetto
//= docs/check.md#problems
#[test]
fn a_kernel_event_that_cannot_be_decoded_costs_itself() {
    let marker = |text: &str| Some(Print { buf: Some(text.to_owned()) });
    let begin = FtraceEvent { print: marker("B|7|work\n"), ..FtraceEvent::default() };
    let end = FtraceEvent { print: marker("E|7\n"), ..FtraceEvent::default() };
    // A time, and a text where the published format has a number.
    let broken = [&[0x08, 15][..], &field(24, &field(1, b"x"))].concat();
    let bytes = bundle(&[kernel_event(10, begin), broken, kernel_event(20, end)]);
    let (found, summary) = imported(&bytes);
    assert_eq!(
        found[found.len() - 2..],
        [r#"0.000000010 begin 7/7 "atrace" "work""#, r#"0.000000020 end 7/7 "atrace" "work""#]
    );
    assert_eq!(summary.skipped, [("kernel events that cannot be decoded".to_owned(), 1)]);
    assert_eq!(summary.unread, 1);
    let [unread] = summary.first_unread.as_slice() else { panic!("{summary:?}") };
    assert_eq!(unread.offset, 0);
    let why = unread.text.strip_prefix("kernel event: ").unwrap();
    assert_eq!(summary.first_warnings, [format!("kernel event at byte 0: {why}")]);
}

/// Both kinds of text: one that the packet's decoder reads, and those of the kernel's events.
//= docs/import.md#perfetto
#[test]
fn a_text_that_is_cut_within_a_character_costs_itself() {
    let name = field(5, b"Audio\xc3");
    let thread = [&[0x08, 5, 0x10, 6][..], &name].concat();
    let descriptor = [&[0x08, 1][..], &field(4, &thread)].concat();
    let named = field(1, &[&[0x50, 1][..], &field(60, &descriptor)].concat());
    let task = [&[0x08, 7][..], &field(3, b"caf\xc3\xa9 \xe2\x82")].concat();
    let renamed = [&[0x08, 5, 0x10, 7][..], &field(236, &task)].concat();
    let bytes = [named, trace(&[event(10, slice(TYPE_INSTANT, 1, "now"))]), bundle(&[renamed])].concat();
    let (found, summary) = imported(&bytes);
    assert_eq!(
        found,
        [
            "- kernel-object thread #6 \"Audio\u{fffd}\" {process=#5}",
            "- kernel-object thread #7 \"café \u{fffd}\" {process=#0}",
            r#"0.000000010 instant 5/6 "a,b" "now" scope=thread"#,
        ]
    );
    assert_eq!((summary.skipped, summary.unread), (Vec::new(), 0));
    assert_eq!(summary.first_warnings, ["2 texts are not UTF-8: U+FFFD replaces invalid bytes"]);
}

//= docs/import.md#perfetto
#[test]
fn what_has_no_place_is_counted_by_its_name() {
    let other = [&[0x08, 5][..], &field(21, &[])].concat();
    let bytes = [field(1, &field(7, &[])), field(1, &field(901, &[])), bundle(&[other])].concat();
    // Nothing else is in this one.
    let error = import(&*bytes, std::io::sink()).unwrap_err();
    let expected = "taken for a Perfetto trace, but nothing in it can be read; \
                    ipi_entry kernel events: 1, packets with field 901: 1, sys_stats packets: 1";
    assert_eq!(error.to_string(), expected);
    let readable = trace(&[event(5, slice(TYPE_INSTANT, 0, "point"))]);
    let (found, summary) = imported(&[readable, bytes].concat());
    assert_eq!(found, ["0.000000005 instant 0/0 \"a,b\" \"point\" scope=global"]);
    let skipped = ["ipi_entry kernel events", "packets with field 901", "sys_stats packets"];
    assert_eq!(summary.skipped, skipped.map(|kind| (kind.to_owned(), 1)));
    assert_eq!(summary.unread, 0);
    for name in ABOUT_THE_TRACE.into_iter().chain(BESIDE) {
        let published = published::fields("TracePacket").iter().any(|(_, published, _)| *published == name);
        assert!(published, "{name}");
    }
}
