//! Sizes, fields, and texts that are not UTF-8.

use super::*;
use crate::export::perfetto::published::tests::declared;
use message::{DebugAnnotation, InternedName, InternedText, TracePacket, TrackEvent};
use prost::Message;

#[test]
fn the_decoded_size_counts_what_is_small_on_the_wire() {
    assert!(size_of::<InternedName>() <= size_of::<message::InternedString>());
    assert!(size_of::<InternedText>() <= size_of::<message::InternedString>());
    let annotation = |dict_entries| DebugAnnotation { dict_entries, ..DebugAnnotation::default() };
    let event = TrackEvent {
        debug_annotations: vec![annotation(vec![annotation(Vec::new()); 10]); 3],
        categories: vec!["ab".to_owned(); 7],
        flow_ids: vec![1, 2],
        ..TrackEvent::default()
    };
    let packet = TracePacket { track_event: Some(event), ..TracePacket::default() };
    let bytes = packet.encode_to_vec();
    let expected = 33 * size_of::<DebugAnnotation>() + 7 * (size_of::<String>() + 2) + 2 * 8;
    assert_eq!(decoded_bytes(&bytes, &PACKET, MAX_DEPTH), expected);
    // What nothing reads takes nothing: field 5 with three bytes.
    assert_eq!(decoded_bytes(&[0x2a, 3, 1, 2, 3], &PACKET, MAX_DEPTH), 0);
}

#[test]
fn fields_end_at_the_first_that_is_malformed() {
    let bytes = [0x0a, 2, 7, 8, 0x10, 0x80, 0x01, 0x1a, 9, 1];
    assert_eq!(Fields::of(&bytes).collect::<Vec<_>>(), [(1, Some(&[7_u8, 8][..])), (2, None)]);
}

/// Each text, each list and each message with those in it is in the tables: what is not there is neither
/// counted nor mended.
fn compare(message: &str, kinds: Kinds, left_out: &[u32], problems: &mut Vec<String>, depth: usize) {
    let declared = declared();
    let (_, fields) = declared.iter().find(|(name, _)| *name == message).unwrap();
    for field in fields.iter().filter(|field| !left_out.contains(&field.number)) {
        let kind = kinds.iter().find(|(number, _)| *number == field.number).map(|(_, kind)| kind);
        match (field.kind, kind) {
            ("string", Some(Kind::Text)) | ("bytes", Some(Kind::Bytes)) => {}
            ("message", Some(Kind::Message(_, _))) if depth == 0 => {}
            ("message", kind) => {
                let inner = if let Some(Kind::Message(_, inner)) = kind { *inner } else { &[] };
                compare(field.message, inner, &[], problems, depth - 1);
                let is_in_table =
                    matches!(kind, Some(Kind::Message(size, _)) if !field.is_repeated || *size > 0);
                if field.is_repeated && !is_in_table {
                    problems.push(format!("{message}.{}", field.name));
                }
            }
            (_, Some(Kind::Numbers)) if field.is_repeated => {}
            (_, None) if !field.is_repeated && !["string", "bytes"].contains(&field.kind) => {}
            _ => problems.push(format!("{message}.{}", field.name)),
        }
    }
    for (number, _) in kinds {
        if !fields.iter().any(|field| field.number == *number) {
            problems.push(format!("{message} has no field {number}"));
        }
    }
}

#[test]
fn the_tables_have_every_text_and_every_list() {
    let mut problems = Vec::new();
    // The kernel's events are decoded one by one.
    compare("TracePacket", &PACKET, &[1], &mut problems, 4);
    compare("FtraceBundleHead", &BUNDLE, &[], &mut problems, 4);
    compare("FtraceEvent", &super::EVENT, &[], &mut problems, 4);
    assert_eq!(problems, Vec::<String>::new());
}

//= docs/import.md#perfetto
#[test]
fn texts_that_are_not_utf_8_have_replacement_characters() {
    let mut bytes = Vec::new();
    // A descriptor of a track with a name, and a thread with a name that is cut within a character.
    put(5, b"Aud\xc3", &mut bytes);
    let thread = std::mem::take(&mut bytes);
    put(2, b"whole", &mut bytes);
    put(4, &thread, &mut bytes);
    let descriptor = std::mem::take(&mut bytes);
    bytes.extend([0x40, 7]);
    put(60, &descriptor, &mut bytes);
    let mut packet = TracePacket::default();
    let texts = super::packet(&bytes, &mut packet).unwrap();
    let descriptor = packet.track_descriptor.take().unwrap();
    assert_eq!(descriptor.thread.unwrap().thread_name.as_deref(), Some("Aud\u{fffd}"));
    assert_eq!((packet.timestamp, descriptor.name.as_deref(), texts), (Some(7), Some("whole"), 1));
    // What is malformed besides stays so.
    bytes.extend([0x40, 0x80]);
    assert!(super::packet(&bytes, &mut packet).is_err());
}
