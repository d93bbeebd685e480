//! What is tolerated and what is refused.

mod support;

use support::{Any, H, provider_config, registration, samples, strings, trace_config};
use trace_protocol::controller::*;
use trace_protocol::limits::*;
use trace_protocol::provider::*;
use trace_protocol::registry::*;
use trace_protocol::*;

const ANSWERED: Txid = Txid(9);

/// A body of fields, each a postcard value.
fn body(fields: &[(u16, Vec<u8>)]) -> Vec<u8> {
    postcard::to_allocvec(fields).unwrap()
}

fn value<T: serde::Serialize>(value: T) -> Vec<u8> {
    postcard::to_allocvec(&value).unwrap()
}

fn message(ordinal: u16, txid: Txid, fields: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let header = Header { version: PROTOCOL_VERSION, ordinal, txid };
    [header.encode().to_vec(), body(fields)].concat()
}

/// The fields of an encoded message.
fn fields(bytes: &[u8]) -> Vec<(u16, Vec<u8>)> {
    postcard::from_bytes(&bytes[Header::BYTES..]).unwrap()
}

fn rebuilt(bytes: &[u8], fields: &[(u16, Vec<u8>)]) -> Vec<u8> {
    [bytes[..Header::BYTES].to_vec(), body(fields)].concat()
}

#[test]
fn unknown_fields_are_skipped_in_every_message() {
    for sample in samples() {
        let encoded = sample.message.clone().encode(sample.txid).unwrap();
        let mut extended = fields(&encoded.bytes);
        extended.push((0x7fff, vec![1, 2, 3]));
        extended.push((0xffff, Vec::new()));
        let bytes = rebuilt(&encoded.bytes, &extended);
        let decoded = sample.message.decode_alike(&bytes, encoded.handles);
        assert_eq!(decoded, Ok((sample.txid, sample.message)));
    }
}

/// Ordinals ascend: otherwise a field might be there twice, and each side believe another one.
#[test]
fn fields_out_of_order_or_twice_are_refused() {
    for sample in samples() {
        let encoded = sample.message.clone().encode(sample.txid).unwrap();
        let own = fields(&encoded.bytes);
        let mut reversed = own.clone();
        reversed.reverse();
        let mut twice = own.clone();
        twice.extend(own.last().cloned());
        for wrong in [reversed, twice].into_iter().filter(|wrong| *wrong != own) {
            let bytes = rebuilt(&encoded.bytes, &wrong);
            let decoded = sample.message.decode_alike(&bytes, encoded.handles.clone());
            assert!(matches!(decoded, Err(ProtocolError::NotATable { .. })), "{decoded:?}");
        }
    }
}

#[test]
fn unknown_fields_inside_nested_tables_are_skipped() {
    let encoded = Message::<H>::encode(
        SessionResponse::StopTracing(Ok(StopResult { provider_stats: vec![support::provider_stats()] })),
        ANSWERED,
    )
    .unwrap();
    let mut outer = fields(&encoded.bytes);
    let mut result: Vec<(u16, Vec<u8>)> = postcard::from_bytes(&outer[0].1).unwrap();
    let list: Vec<Vec<u8>> = postcard::from_bytes(&result[0].1).unwrap();
    let mut stats: Vec<(u16, Vec<u8>)> = postcard::from_bytes(&list[0]).unwrap();
    stats.push((999, vec![0xff]));
    result[0].1 = value(vec![body(&stats)]);
    outer[0].1 = body(&result);
    let bytes = rebuilt(&encoded.bytes, &outer);
    let (_, decoded) = <SessionResponse as Message<H>>::decode(&bytes, Vec::new()).unwrap();
    assert_eq!(
        decoded,
        SessionResponse::StopTracing(Ok(StopResult { provider_stats: vec![support::provider_stats()] }))
    );
}

/// Removes each field of a message in turn and collects what the decoder names as missing.
fn missing_fields(sample: Any, txid: Txid) -> Vec<&'static str> {
    let encoded = sample.clone().encode(txid).unwrap();
    let all = fields(&encoded.bytes);
    let mut missing = Vec::new();
    for removed in 0..all.len() {
        let mut rest = all.clone();
        rest.remove(removed);
        let bytes = rebuilt(&encoded.bytes, &rest);
        match sample.decode_alike(&bytes, encoded.handles.clone()) {
            Err(ProtocolError::MissingField { field, .. }) => missing.push(field),
            Ok(_) => {}
            Err(other) => panic!("{other}"),
        }
    }
    missing
}

#[test]
fn a_missing_field_without_default_is_named() {
    let registry = Any::RegistryRequest(RegistryRequest::RegisterProvider(registration()));
    assert_eq!(
        missing_fields(registry, Txid::ONE_WAY),
        ["pid", "provider name bytes", "protocol versions", "buffer header versions", "tick source bytes"]
    );
    let initialize = Any::ProviderRequest(ProviderRequest::Initialize { config: provider_config() });
    assert_eq!(
        missing_fields(initialize, Txid::ONE_WAY),
        ["buffering_mode", "buffer_header_version", "tick source bytes", "ticks_per_second"]
    );
    let start = Any::ProviderRequest(ProviderRequest::Start {
        buffer_disposition: BufferDisposition::Retain,
        additional_categories: strings(&["x"]),
    });
    assert_eq!(missing_fields(start, Txid::ONE_WAY), ["buffer_disposition"]);
}

#[test]
fn missing_fields_of_a_client_take_their_defaults() {
    let bytes = message(0x0301, Txid::ONE_WAY, &[]);
    let (_, request) = ProvisionerRequest::decode(&bytes, vec![1, 2]).unwrap();
    assert_eq!(
        request,
        ProvisionerRequest::InitializeTracing {
            session: 1,
            config: TraceConfig {
                categories: Vec::new(),
                buffer_size_megabytes_hint: 4,
                start_timeout_milliseconds: 5000,
                stop_timeout_milliseconds: 5000,
                buffering_mode: BufferingMode::Oneshot,
                provider_specs: Vec::new(),
                defer_transfer: false,
                metadata: true,
                command_line: Vec::new(),
                memory_dumps: None,
                confirms: false,
                file: None,
                write_period_milliseconds: None,
                keep_ended_bytes: 64 << 20,
                thread_time: false,
                wants_untraced: false,
                wants_known_categories: false,
                event_costs: None,
                mirror_markers: false,
                privacy: false,
                programs: Vec::new(),
                user: None,
            },
            output: 2,
        }
    );
    let decode = |ordinal| {
        let bytes = message(ordinal, ANSWERED, &[]);
        <SessionRequest as Message<H>>::decode(&bytes, Vec::new()).unwrap()
    };
    assert_eq!(
        decode(0x0401).1,
        SessionRequest::StartTracing(StartOptions {
            buffer_disposition: BufferDisposition::Retain,
            additional_categories: Vec::new()
        })
    );
    assert_eq!(decode(0x0402).1, SessionRequest::StopTracing(StopOptions { write_results: false }));
}

/// A manager that does not know private recordings may not take one for an ordinary one.
//= docs/protocol.md#provisioner
#[test]
fn a_private_recording_has_a_mode_that_earlier_managers_do_not_know() {
    let decode = |mode: u8| {
        let config = body(&[(4, value(mode))]);
        let bytes = message(0x0301, Txid::ONE_WAY, &[(1, config)]);
        match ProvisionerRequest::decode(&bytes, vec![1, 2]) {
            Ok((_, ProvisionerRequest::InitializeTracing { config, .. })) => {
                Some((config.buffering_mode, config.privacy))
            }
            _ => None,
        }
    };
    assert_eq!(decode(2), Some((BufferingMode::Circular, false)));
    assert_eq!(decode(18), Some((BufferingMode::Circular, true)));
    // Of some programs only, which the list names.
    assert_eq!(decode(34), Some((BufferingMode::Circular, false)));
    assert_eq!(decode(50), Some((BufferingMode::Circular, true)));
    // Of one user, whom a field names.
    assert_eq!(decode(66), Some((BufferingMode::Circular, false)));
    assert_eq!([0, 4, 15, 16, 20, 32, 64, 130].map(decode), [None; 8]);
    assert!([18, 34, 66].map(BufferingMode::from_value).iter().all(Result::is_err));
}

#[test]
fn a_provider_spec_without_name_is_skipped() {
    let specs = vec![body(&[(2, value(8u32))]), body(&[(1, value("named"))])];
    let config = body(&[(5, value(specs))]);
    let bytes = message(0x0301, Txid::ONE_WAY, &[(1, config)]);
    let (_, request) = ProvisionerRequest::decode(&bytes, vec![1, 2]).unwrap();
    let ProvisionerRequest::InitializeTracing { config, .. } = request else {
        panic!("{request:?}");
    };
    assert_eq!(
        config.provider_specs,
        [ProviderSpec { name: "named".to_owned(), buffer_size_megabytes_hint: None, categories: Vec::new() }]
    );
}

#[test]
fn enums_are_strict() {
    for mode in [0u8, 4, 7, 255] {
        let mut table = fields(
            &ProviderRequest::Initialize { config: provider_config() }.encode(Txid::ONE_WAY).unwrap().bytes,
        );
        table[0].1 = value(mode);
        let bytes = message(0x0201, Txid::ONE_WAY, &table);
        assert_eq!(
            ProviderRequest::decode(&bytes, vec![1, 2]).unwrap_err(),
            ProtocolError::InvalidValue {
                field: "BufferingMode",
                expected: "one of Oneshot=1 Circular=2 Streaming=3",
                found: u64::from(mode)
            }
        );
    }
    for disposition in [0u8, 4] {
        let bytes = message(0x0401, ANSWERED, &[(1, value(disposition))]);
        assert_eq!(
            <SessionRequest as Message<H>>::decode(&bytes, Vec::new()).unwrap_err(),
            ProtocolError::InvalidValue {
                field: "BufferDisposition",
                expected: "one of ClearEntire=1 ClearNondurable=2 Retain=3",
                found: u64::from(disposition)
            }
        );
    }
    for (ordinal, field) in [(0x0401, "StartError"), (0x0402, "StopError")] {
        let bytes = message(ordinal, ANSWERED, &[(1, value(5u8))]);
        let error = <SessionResponse as Message<H>>::decode(&bytes, Vec::new()).unwrap_err();
        assert!(
            matches!(error, ProtocolError::InvalidValue { field: found, found: 5, .. } if found == field),
            "{error}"
        );
    }
    let numbers = |all: &[SessionState]| all.iter().map(|state| state.value()).collect::<Vec<_>>();
    assert_eq!(numbers(SessionState::ALL), [1, 2, 3, 4, 5, 6, 7]);
    assert!(SessionState::from_value(0).is_err());
    assert!(SessionState::from_value(8).is_err());
}

#[test]
fn another_version_is_refused_by_name() {
    for sample in samples() {
        let encoded = sample.message.clone().encode(sample.txid).unwrap();
        for version in [0u16, 2, 0xffff] {
            let mut bytes = encoded.bytes.clone();
            bytes[..2].copy_from_slice(&version.to_le_bytes());
            let decoded = sample.message.decode_alike(&bytes, encoded.handles.clone());
            let any_version = matches!(
                sample.message,
                Any::RegistryRequest(_)
                    | Any::RegistryResponse(_)
                    | Any::ProviderRequest(ProviderRequest::Refused { .. })
                    | Any::ProvisionerResponse(ProvisionerResponse::Refused { .. })
                    | Any::SessionResponse(SessionResponse::Refused(_))
            );
            if any_version {
                assert_eq!(decoded, Ok((sample.txid, sample.message.clone())));
            } else {
                assert_eq!(
                    decoded,
                    Err(ProtocolError::Version { oldest: 1, newest: 1, found: version }),
                    "{}",
                    sample.name
                );
            }
        }
    }
}

#[test]
fn another_number_of_handles_is_refused() {
    for sample in samples() {
        let encoded = sample.message.clone().encode(sample.txid).unwrap();
        let expected = encoded.handles.len();
        for found in (0..4).filter(|found| *found != expected) {
            let handles = vec![7; found];
            let error = sample.message.decode_alike(&encoded.bytes, handles).unwrap_err();
            assert!(
                matches!(error, ProtocolError::HandleCount { expected: e, found: f, .. } if (e, f) == (expected, found)),
                "{}: {error}",
                sample.name
            );
        }
    }
}

#[test]
fn transaction_ids_fit_the_message() {
    for sample in samples() {
        let wrong = if sample.txid == Txid::ONE_WAY { ANSWERED } else { Txid::ONE_WAY };
        let error = sample.message.clone().encode(wrong).unwrap_err();
        assert!(matches!(error, ProtocolError::Transaction { .. }), "{error}");
        let encoded = sample.message.clone().encode(sample.txid).unwrap();
        let mut bytes = encoded.bytes;
        bytes[4..8].copy_from_slice(&wrong.0.to_le_bytes());
        let error = sample.message.decode_alike(&bytes, encoded.handles).unwrap_err();
        assert!(matches!(error, ProtocolError::Transaction { .. }), "{error}");
    }
}

#[test]
fn a_message_of_another_protocol_is_unknown() {
    // Tasks are asked for on the provisioner channel.
    let protocol_of = |encoded: &Encoded<H>| if encoded.bytes[3] == 5 { 3 } else { encoded.bytes[3] };
    let samples = samples();
    for sample in &samples {
        let encoded = sample.message.clone().encode(sample.txid).unwrap();
        for other in &samples {
            let other_encoded = other.message.clone().encode(other.txid).unwrap();
            if protocol_of(&other_encoded) == protocol_of(&encoded) {
                continue;
            }
            let error = other.message.decode_alike(&encoded.bytes, encoded.handles.clone()).unwrap_err();
            assert!(
                matches!(error, ProtocolError::UnknownMethod { .. }),
                "{} as {}: {error}",
                sample.name,
                other.name
            );
        }
    }
    assert_eq!(
        ProviderRequest::<H>::decode(&message(0x0299, Txid::ONE_WAY, &[]), Vec::new()),
        Err(ProtocolError::UnknownMethod { protocol: "provider request", ordinal: 0x0299 })
    );
}

#[test]
fn bytes_that_end_early_or_late_are_refused() {
    for sample in samples() {
        let encoded = sample.message.clone().encode(sample.txid).unwrap();
        for cut in 0..encoded.bytes.len() {
            let decoded = sample.message.decode_alike(&encoded.bytes[..cut], encoded.handles.clone());
            assert!(decoded.is_err(), "{} cut at {cut}", sample.name);
        }
        let mut longer = encoded.bytes.clone();
        longer.push(0);
        let decoded = sample.message.decode_alike(&longer, encoded.handles);
        assert!(matches!(decoded, Err(ProtocolError::NotATable { .. })), "{}", sample.name);
    }
    assert_eq!(Header::decode(&[0; 7]), Err(ProtocolError::TooShort { expected: 8, found: 7 }));
}

/// Encodes `make(size)` at the limit and one over; decodes both, the latter from bytes built without the
/// check.
fn check_limit(limit: usize, make: impl Fn(usize) -> Any, forge: impl Fn(usize) -> Vec<u8>, txid: Txid) {
    let at_limit = make(limit);
    let encoded = at_limit.clone().encode(txid).unwrap();
    assert_eq!(encoded.bytes, forge(limit));
    let decoded = at_limit.decode_alike(&encoded.bytes, encoded.handles.clone());
    assert_eq!(decoded, Ok((txid, at_limit)));

    let over = make(limit + 1);
    let refused = |error: &ProtocolError| matches!(*error, ProtocolError::Limit { limit: l, found: f, .. } if (l, f) == (limit, limit + 1));
    let error = over.clone().encode(txid).unwrap_err();
    assert!(refused(&error), "{error}");
    let error = over.decode_alike(&forge(limit + 1), encoded.handles).unwrap_err();
    assert!(refused(&error), "{error}");
}

/// The bytes of `sample` with one field replaced.
fn forged(sample: Any, txid: Txid, ordinal: u16, bytes: Vec<u8>) -> Vec<u8> {
    let encoded = sample.encode(txid).unwrap().bytes;
    let mut table = fields(&encoded);
    table.retain(|(found, _)| *found != ordinal);
    table.push((ordinal, bytes));
    table.sort_by_key(|(ordinal, _)| *ordinal);
    rebuilt(&encoded, &table)
}

/// Makes names and descriptions of known categories.
type PairsOfSize = fn(usize) -> Vec<(String, String)>;

fn many(count: usize) -> Vec<String> {
    (0..count).map(|index| format!("c{index}")).collect()
}

#[test]
fn provider_names_have_at_most_100_bytes() {
    let make = |size: usize| {
        Any::RegistryRequest(RegistryRequest::RegisterProvider(Registration {
            name: "n".repeat(size),
            ..registration()
        }))
    };
    check_limit(
        MAX_PROVIDER_NAME_BYTES,
        make,
        |size| forged(make(1), Txid::ONE_WAY, 2, value("n".repeat(size))),
        Txid::ONE_WAY,
    );
    assert_eq!(MAX_PROVIDER_NAME_BYTES, 100);
    // Bytes count, not characters.
    let umlauts = RegistryRequest::RegisterProvider(Registration { name: "ä".repeat(51), ..registration() });
    assert_eq!(
        umlauts.encode(Txid::ONE_WAY),
        Err(ProtocolError::Limit { field: "provider name bytes", limit: 100, found: 102 })
    );
}

#[test]
fn tick_sources_have_at_most_32_bytes() {
    let make = |size: usize| {
        Any::RegistryRequest(RegistryRequest::RegisterProvider(Registration {
            tick_source: "t".repeat(size),
            ..registration()
        }))
    };
    check_limit(
        MAX_TICK_SOURCE_BYTES,
        make,
        |size| forged(make(1), Txid::ONE_WAY, 5, value("t".repeat(size))),
        Txid::ONE_WAY,
    );
}

#[test]
fn a_list_has_at_most_5000_categories_of_100_bytes() {
    let make = |categories: Vec<String>| {
        Any::ProviderRequest(ProviderRequest::Initialize {
            config: ProviderConfig { categories, ..provider_config() },
        })
    };
    let forge = |categories: Vec<String>| forged(make(many(1)), Txid::ONE_WAY, 2, value(categories));
    check_limit(MAX_CATEGORIES, |size| make(many(size)), |size| forge(many(size)), Txid::ONE_WAY);
    let one = |size: usize| vec!["c".repeat(size)];
    check_limit(MAX_CATEGORY_NAME_BYTES, |size| make(one(size)), |size| forge(one(size)), Txid::ONE_WAY);
    assert_eq!((MAX_CATEGORIES, MAX_CATEGORY_NAME_BYTES), (5000, 100));
}

#[test]
fn known_categories_are_limited_in_number_and_length() {
    let make = |list: Vec<(String, String)>| {
        let listed =
            list.into_iter().map(|(name, description)| KnownCategory { name, description }).collect();
        let known = KnownCategories { listed, ..KnownCategories::default() };
        Any::ProviderResponse(ProviderResponse::KnownCategories(known))
    };
    let forge = |list: Vec<(String, String)>| message(0x0205, ANSWERED, &[(1, value(list))]);
    let lists: [(usize, PairsOfSize); 3] = [
        (MAX_KNOWN_CATEGORIES, |size| many(size).into_iter().map(|n| (n, String::new())).collect()),
        (MAX_CATEGORY_NAME_BYTES, |size| vec![("n".repeat(size), String::new())]),
        (MAX_CATEGORY_DESCRIPTION_BYTES, |size| vec![("n".to_owned(), "d".repeat(size))]),
    ];
    assert_eq!(lists.map(|(limit, _)| limit), [5000, 100, 400]);
    for (limit, list) in lists {
        check_limit(limit, |size| make(list(size)), |size| forge(list(size)), ANSWERED);
    }
}

#[test]
fn at_most_10_000_providers_are_listed() {
    let make = |size: usize| {
        let listed = (0..size)
            .map(|id| ProviderInfo {
                id: u32::try_from(id).unwrap(),
                pid: 1,
                name: "p".to_owned(),
                recorded_by: None,
                recording: None,
                uid: None,
            })
            .collect();
        Any::ProvisionerResponse(ProvisionerResponse::Providers { listed, left_out: 0 })
    };
    let infos = |ids: std::ops::Range<usize>| -> Vec<Vec<u8>> {
        let ids = ids.map(|id| u32::try_from(id).unwrap());
        ids.map(|id| body(&[(1, value(id)), (2, value(1u64)), (3, value("p"))])).collect()
    };
    let forge =
        |size: usize| message(0x0302, ANSWERED, &[(1, value(infos(0..100))), (2, value(infos(100..size)))]);
    check_limit(MAX_LISTED_PROVIDERS, make, forge, ANSWERED);
    assert_eq!((MAX_PROVIDERS, MAX_LISTED_PROVIDERS), (100, 10_000));
    // Releases before take no more than 100 in the first list.
    let too_many = message(0x0302, ANSWERED, &[(1, value(infos(0..101)))]);
    let decoded = <ProvisionerResponse as Message<H>>::decode(&too_many, Vec::new());
    assert!(matches!(decoded, Err(ProtocolError::Limit { limit: 100, found: 101, .. })), "{decoded:?}");
}

#[test]
fn alert_names_have_at_most_14_bytes() {
    check_limit(
        MAX_ALERT_NAME_BYTES,
        |size| {
            Any::SessionResponse(SessionResponse::WatchAlert(Alert {
                name: "a".repeat(size),
                ..Alert::default()
            }))
        },
        |size| message(0x0403, ANSWERED, &[(1, value("a".repeat(size)))]),
        ANSWERED,
    );
}

#[test]
fn a_command_line_has_at_most_32000_bytes() {
    let make = |size: usize| {
        Any::ProvisionerRequest(ProvisionerRequest::InitializeTracing {
            session: 1,
            config: TraceConfig {
                command_line: vec!["x".repeat(10_000), "y".repeat(size - 10_000)],
                ..trace_config()
            },
            output: 2,
        })
    };
    let forge = |size: usize| {
        let bytes = make(10_001).encode(Txid::ONE_WAY).unwrap().bytes;
        let mut config: Vec<(u16, Vec<u8>)> = postcard::from_bytes(&fields(&bytes)[0].1).unwrap();
        config.retain(|(ordinal, _)| *ordinal != 102);
        config.push((102, value(["x".repeat(10_000), "y".repeat(size - 10_000)].to_vec())));
        rebuilt(&bytes, &[(1, body(&config))])
    };
    check_limit(MAX_COMMAND_LINE_BYTES, make, forge, Txid::ONE_WAY);
}

#[test]
fn a_rate_of_zero_is_refused() {
    let refused =
        Err(ProtocolError::InvalidValue { field: "ticks_per_second", expected: "1 or more", found: 0 });
    let initialize = |ticks_per_second| ProviderRequest::Initialize {
        config: ProviderConfig { ticks_per_second, ..provider_config() },
    };
    assert_eq!(initialize(0).encode(Txid::ONE_WAY), refused);
    let sample = Any::ProviderRequest(initialize(1));
    let bytes = forged(sample, Txid::ONE_WAY, 5, value(0u64));
    assert_eq!(ProviderRequest::decode(&bytes, vec![1, 2]).map(drop), refused.map(drop));
}

#[test]
fn an_empty_version_range_is_refused() {
    let sample = Any::RegistryRequest(RegistryRequest::RegisterProvider(registration()));
    let empty = RegistryRequest::RegisterProvider(Registration {
        protocol: VersionRange { min: 2, max: 1 },
        ..registration()
    });
    assert_eq!(empty.encode(Txid::ONE_WAY), Err(ProtocolError::VersionRange { min: 2, max: 1 }));
    let bytes = forged(sample.clone(), Txid::ONE_WAY, 3, value((2u16, 1u16)));
    assert_eq!(sample.decode_alike(&bytes, vec![1]), Err(ProtocolError::VersionRange { min: 2, max: 1 }));
}

#[test]
fn a_long_reason_is_cut_at_a_character() {
    let reason = format!("{}ä", "r".repeat(999));
    let refused = ProviderRequest::<H>::Refused { reason };
    let encoded = refused.encode(Txid::ONE_WAY).unwrap();
    let (_, decoded) = ProviderRequest::<H>::decode(&encoded.bytes, Vec::new()).unwrap();
    assert_eq!(decoded, ProviderRequest::Refused { reason: "r".repeat(999) });
}
