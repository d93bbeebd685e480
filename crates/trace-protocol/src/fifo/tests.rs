use super::*;

/// The examples of docs/protocol.md, byte for byte.
const STARTED_BYTES: Packet = [1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const SAVE_BUFFER_BYTES: Packet = [2, 0, 0, 0, 3, 0, 0, 0, 0x40, 1, 0, 0, 0, 0, 0, 0];
const STOPPED_BYTES: Packet = [3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const ALERT_BYTES: Packet = *b"\x04\x00gpu_hang\0\0\0\0\0\0";
const LONG_ALERT_BYTES: Packet = *b"\x04\x00fourteen_chars";
const BUFFER_SAVED_BYTES: Packet = [0, 1, 0, 0, 3, 0, 0, 0, 0x40, 1, 0, 0, 0, 0, 0, 0];

fn alert_of(name: &str) -> FifoRequest {
    FifoRequest::Alert { name: name.to_owned() }
}

//= docs/protocol.md#fifo-packets
#[test]
fn packets_of_a_provider_have_the_documented_bytes() {
    let cases = [
        (FifoRequest::Started { version: 1 }, STARTED_BYTES),
        (FifoRequest::SaveBuffer { wrapped_count: 3, durable_data_end: 0x140 }, SAVE_BUFFER_BYTES),
        (FifoRequest::Stopped, STOPPED_BYTES),
        (alert_of("gpu_hang"), ALERT_BYTES),
        (alert_of("fourteen_chars"), LONG_ALERT_BYTES),
    ];
    for (request, bytes) in cases {
        assert_eq!(request.encode(), Ok(bytes));
        assert_eq!(FifoRequest::from_provider(&bytes), Ok(request));
    }
}

#[test]
fn the_packet_of_the_manager_has_the_documented_bytes() {
    let request = FifoRequest::BufferSaved { wrapped_count: 3, durable_data_end: 0x140 };
    assert_eq!(request.encode(), Ok(BUFFER_SAVED_BYTES));
    assert_eq!(FifoRequest::from_manager(&BUFFER_SAVED_BYTES), Ok(request));
}

#[test]
fn the_manager_need_not_repeat_the_durable_end() {
    let mut bytes = BUFFER_SAVED_BYTES;
    bytes[8..].fill(0);
    assert_eq!(
        FifoRequest::from_manager(&bytes),
        Ok(FifoRequest::BufferSaved { wrapped_count: 3, durable_data_end: 0 })
    );
}

/// `packet` with one byte changed.
fn with(mut packet: Packet, offset: usize, byte: u8) -> Packet {
    packet[offset] = byte;
    packet
}

#[test]
fn data16_is_zero_in_every_packet_but_alert() {
    for (packet, request) in
        [(STARTED_BYTES, 1), (SAVE_BUFFER_BYTES, 2), (STOPPED_BYTES, 3), (BUFFER_SAVED_BYTES, 0x100)]
    {
        let refused = Err(PacketError::Data16 { request, found: 1 });
        assert_eq!(FifoRequest::from_provider(&with(packet, 2, 1)), refused);
        assert_eq!(FifoRequest::from_manager(&with(packet, 2, 1)), refused);
        let refused = Err(PacketError::Data16 { request, found: 0x8000 });
        assert_eq!(FifoRequest::from_provider(&with(packet, 3, 0x80)), refused);
    }
}

#[test]
fn started_names_version_one_and_nothing_else() {
    for found in [0, 2, 0x0101, u32::MAX] {
        let mut packet = STARTED_BYTES;
        packet[4..8].copy_from_slice(&found.to_le_bytes());
        assert_eq!(FifoRequest::from_provider(&packet), Err(PacketError::Version { found }));
    }
    for offset in 8..16 {
        assert_eq!(
            FifoRequest::from_provider(&with(STARTED_BYTES, offset, 1)),
            Err(PacketError::Unused { request: 1, field: "data64", found: 1 << (8 * (offset - 8)) })
        );
    }
}

#[test]
fn stopped_carries_nothing() {
    for offset in 4..16 {
        let (field, first) = if offset < 8 { ("data32", 4) } else { ("data64", 8) };
        assert_eq!(
            FifoRequest::from_provider(&with(STOPPED_BYTES, offset, 1)),
            Err(PacketError::Unused { request: 3, field, found: 1 << (8 * (offset - first)) })
        );
    }
}

#[test]
fn each_side_refuses_unknown_requests_and_its_own() {
    for request in [0x0000u16, 0x0005, 0x0077, 0x0100, 0x0101, 0xffff] {
        let mut packet = STOPPED_BYTES;
        packet[..2].copy_from_slice(&request.to_le_bytes());
        assert_eq!(FifoRequest::from_provider(&packet), Err(PacketError::Unknown { request }));
    }
    for packet in [STARTED_BYTES, SAVE_BUFFER_BYTES, STOPPED_BYTES] {
        let request = u16::from(packet[0]);
        assert_eq!(FifoRequest::from_manager(&packet), Err(PacketError::Unknown { request }));
    }
    assert!(FifoRequest::from_manager(&ALERT_BYTES).is_err());
}

#[test]
fn an_alert_name_ends_at_its_first_zero() {
    let packet = *b"\x04\x00ab\0cdefghijklm";
    assert_eq!(FifoRequest::from_provider(&packet), Ok(alert_of("ab")));
    let empty = *b"\x04\x00\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    assert_eq!(FifoRequest::from_provider(&empty), Ok(alert_of("")));
}

#[test]
fn an_alert_name_keeps_its_length_when_it_is_not_text() {
    let packet = *b"\x04\x00\xff\xc3\xa4\xe2\x82ok\0\0\0\0\0\0\0";
    assert_eq!(FifoRequest::from_provider(&packet), Ok(alert_of("?ä??ok")));
}

#[test]
fn an_alert_name_that_does_not_fit_is_refused_locally() {
    assert_eq!(alert_of("fifteen_chars__").encode(), Err(PacketError::AlertName { found: 15 }));
    assert_eq!(alert_of("a\0b").encode(), Err(PacketError::AlertName { found: 3 }));
}

#[test]
fn errors_name_what_was_expected() {
    let request = 0x77;
    let cases = [
        (PacketError::Data16 { request, found: 3 }, "fifo packet 0x0077: expected data16 0, found 0x0003"),
        (PacketError::Version { found: 9 }, "fifo packet started: expected version 1, found 9"),
        (PacketError::Unknown { request }, "fifo packet 0x0077: no such request from this side"),
    ];
    for (error, text) in cases {
        assert_eq!(error.to_string(), text);
    }
}
