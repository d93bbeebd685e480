//! Messages too long for a channel travel in a VMO.

use trace_protocol::limits::{MAX_MESSAGE_BYTES, MAX_SPILLED_BYTES};
use trace_protocol::provider::ProviderResponse;
use trace_protocol::{Encoded, Header, KnownCategories, KnownCategory, Message, ProtocolError, Txid};

/// A handle of these tests: the content of a VMO.
type Vmo = Vec<u8>;

fn known(count: usize, description_bytes: usize) -> ProviderResponse<Vmo> {
    let listed = (0..count)
        .map(|index| KnownCategory {
            name: format!("{index:0>100}"),
            description: "d".repeat(description_bytes),
        })
        .collect();
    ProviderResponse::KnownCategories(KnownCategories { listed, ..KnownCategories::default() })
}

fn store(bytes: &[u8]) -> Result<Vmo, ProtocolError> {
    Ok(bytes.to_vec())
}

fn load(vmo: Vmo, length: usize) -> Result<Vec<u8>, ProtocolError> {
    Ok(vmo.into_iter().take(length).collect())
}

fn spilled() -> Encoded<Vmo> {
    known(5000, 400).encode(Txid(5)).unwrap().spill(store).unwrap()
}

#[test]
fn the_longest_list_survives_the_journey() {
    let encoded = spilled();
    assert_eq!(encoded.bytes.len(), 16);
    assert_eq!(encoded.handles.len(), 1);
    let length = u64::try_from(encoded.handles[0].len()).unwrap();
    assert_eq!(encoded.bytes, [&[1, 0, 0x05, 0x82, 5, 0, 0, 0][..], &length.to_le_bytes()[..]].concat());

    let delivered = encoded.unspill(load).unwrap();

    assert_eq!(delivered.handles.len(), 0);
    let decoded = ProviderResponse::decode(&delivered.bytes, delivered.handles);
    assert_eq!(decoded, Ok((Txid(5), known(5000, 400))));
}

#[test]
fn a_message_that_fits_stays_in_the_channel() {
    // One known category costs its two strings and their lengths.
    let fits = |description_bytes| {
        let bytes = known(128, description_bytes).encode(Txid(5)).unwrap();
        let spilled: Encoded<Vmo> = bytes.clone().spill(store).unwrap();
        (bytes.bytes.len(), spilled == bytes, spilled)
    };
    let (length, unchanged, encoded) = fits(400);
    assert!(length <= MAX_MESSAGE_BYTES, "{length}");
    assert!(unchanged);
    assert_eq!(encoded.clone().unspill(load).unwrap(), encoded);

    // Exactly at the limit, and one byte beyond it.
    for (length, spills) in [(MAX_MESSAGE_BYTES, false), (MAX_MESSAGE_BYTES + 1, true)] {
        let encoded = Encoded { bytes: vec![1; length], handles: Vec::new() };
        let spilled = encoded.spill(store).unwrap();
        assert_eq!(spilled.handles.len(), usize::from(spills));
    }
}

#[test]
fn a_stub_that_lies_is_refused() {
    let without_handle = Encoded { handles: Vec::new(), ..spilled() };
    assert_eq!(
        without_handle.unspill(load),
        Err(ProtocolError::HandleCount { method: "message in a vmo", expected: 1, found: 0 })
    );

    let mut too_long = spilled();
    let announced = MAX_SPILLED_BYTES + 1;
    too_long.bytes[8..].copy_from_slice(&u64::try_from(announced).unwrap().to_le_bytes());
    assert_eq!(
        too_long.unspill(|_, _| -> Result<_, ProtocolError> { panic!("nothing is read") }),
        Err(ProtocolError::TooLong { limit: MAX_SPILLED_BYTES, found: announced })
    );

    let mut short = spilled();
    let found = short.handles[0].len() - 1;
    short.handles[0].truncate(found);
    assert_eq!(short.unspill(load), Err(ProtocolError::SpilledMismatch { expected: found + 1, found }));

    let mut other_message = spilled();
    other_message.handles[0][4] = 6;
    assert!(matches!(other_message.unspill(load), Err(ProtocolError::SpilledMismatch { .. })));

    let mut cut = spilled();
    cut.bytes.truncate(15);
    assert_eq!(cut.unspill(load), Err(ProtocolError::TooShort { expected: 16, found: 15 }));
}

#[test]
fn a_stub_is_no_message_by_itself() {
    let encoded = spilled();
    assert_eq!(
        ProviderResponse::decode(&encoded.bytes, encoded.handles),
        Err(ProtocolError::UnknownMethod { protocol: "provider response", ordinal: 0x8205 })
    );
}

#[test]
fn a_failing_store_or_load_is_reported() {
    let encoded = known(5000, 400).encode(Txid(5)).unwrap();
    let error = encoded.spill(|_| Err::<Vmo, _>("no room"));
    assert_eq!(error, Err("no room"));
    let failure = ProtocolError::Unloadable { reason: "no memory".to_owned() };
    assert_eq!(spilled().unspill(|_, _| Err("no memory")), Err(failure));
    assert_eq!(Header::BYTES, 8);
}
