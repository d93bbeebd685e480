//! Encoding and decoding are inverse; arbitrary bytes are answered with a value or an error.

mod support;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use support::{Any, H, samples};
use trace_protocol::categories::{Silent, Unlisted};
use trace_protocol::controller::*;
use trace_protocol::memory::{MemoryDump, MemoryDumpLevel, MemoryDumps};
use trace_protocol::provider::*;
use trace_protocol::registry::*;
use trace_protocol::*;

fn text(limit: usize) -> impl Strategy<Value = String> {
    any::<String>().prop_map(move |text| limits::cut(&text, limit).to_owned())
}

fn categories() -> impl Strategy<Value = Vec<String>> {
    vec(text(limits::MAX_CATEGORY_NAME_BYTES), 0..20)
}

fn mode() -> impl Strategy<Value = BufferingMode> {
    proptest::sample::select(BufferingMode::ALL)
}

fn disposition() -> impl Strategy<Value = BufferDisposition> {
    proptest::sample::select(BufferDisposition::ALL)
}

fn range() -> impl Strategy<Value = VersionRange> {
    (1u16.., any::<u16>()).prop_map(|(min, more)| VersionRange::new(min..=min.saturating_add(more)).unwrap())
}

fn registration() -> impl Strategy<Value = Registration<H>> {
    (
        any::<(u32, u64)>(),
        text(limits::MAX_PROVIDER_NAME_BYTES),
        range(),
        range(),
        text(limits::MAX_TICK_SOURCE_BYTES),
    )
        .prop_map(|((provider, pid), name, protocol, buffer_header, tick_source)| Registration {
            provider,
            pid,
            name,
            protocol,
            buffer_header,
            tick_source,
            dumps_memory: pid % 2 == 0,
            parent: (pid % 3 == 0).then_some(pid >> 1),
            records_alerts: pid % 5 == 0,
            numbers_threads: pid % 7 == 0,
            answers_dumps: pid % 11 == 0,
            backs_buffer: pid % 17 == 0,
            redacts: pid % 19 == 0,
            has_scopes: pid % 23 == 0,
            command_line: (pid % 13 == 0).then(|| "app --verbose".to_owned()),
        })
}

fn level() -> impl Strategy<Value = MemoryDumpLevel> {
    prop_oneof![Just(MemoryDumpLevel::Light), Just(MemoryDumpLevel::Detailed)]
}

fn provider_request() -> impl Strategy<Value = ProviderRequest<H>> {
    prop_oneof![
        (mode(), any::<(u32, u32, u16)>(), categories(), text(limits::MAX_TICK_SOURCE_BYTES), 1u64..)
            .prop_map(|(buffering_mode, (buffer, fifo, version), categories, tick_source, rate)| {
                ProviderRequest::Initialize {
                    config: ProviderConfig {
                        buffering_mode,
                        buffer,
                        fifo,
                        categories,
                        buffer_header_version: version,
                        tick_source,
                        ticks_per_second: rate,
                        process_koid: Some(rate).filter(|rate| rate % 2 == 0),
                        thread_time: rate % 3 == 0,
                        takes_startup: rate % 5 == 0,
                        mirror_markers: rate % 7 == 0,
                        privacy: rate % 11 == 0,
                        scope_bytes: rate % 13,
                        takes_scopes: rate % 17 == 0,
                    },
                }
            }),
        (disposition(), categories()).prop_map(|(buffer_disposition, additional_categories)| {
            ProviderRequest::Start { buffer_disposition, additional_categories }
        }),
        (any::<u64>(), level(), any::<bool>())
            .prop_map(|(dump, level, answers)| ProviderRequest::DumpMemory { dump, level, answers }),
        any::<u32>().prop_map(|namespace| ProviderRequest::UsePidNamespace { namespace }),
        text(limits::MAX_REASON_BYTES).prop_map(|reason| ProviderRequest::Refused { reason }),
    ]
}

fn spec() -> impl Strategy<Value = ProviderSpec> {
    (text(limits::MAX_PROVIDER_NAME_BYTES), option::of(any::<u32>()), categories()).prop_map(
        |(name, buffer_size_megabytes_hint, categories)| ProviderSpec {
            name,
            buffer_size_megabytes_hint,
            categories,
        },
    )
}

fn archive_file() -> impl Strategy<Value = ArchiveFile> {
    let path = text(limits::MAX_PATH_BYTES);
    (path, any::<(u64, u64)>()).prop_map(|(path, (device, inode))| {
        let owner = (inode % 2 == 0).then_some(device as u32);
        ArchiveFile { path, device, inode, owner }
    })
}

fn trace_config() -> impl Strategy<Value = TraceConfig> {
    let dumps = (1_u64.., level())
        .prop_map(|(interval_milliseconds, level)| MemoryDumps { interval_milliseconds, level });
    let numbers = any::<(u32, u64, u64, bool, bool, bool)>();
    let rest = (option::of(dumps), option::of(archive_file()), option::of(any::<u64>()));
    (categories(), numbers, mode(), vec(spec(), 0..4), vec(text(200), 0..5), rest).prop_map(
        |(
            categories,
            numbers,
            mode,
            specs,
            command_line,
            (memory_dumps, file, write_period_milliseconds),
        )| {
            let (size, start_timeout, stop_timeout, defer_transfer, metadata, confirms) = numbers;
            TraceConfig {
                categories,
                buffer_size_megabytes_hint: size,
                start_timeout_milliseconds: start_timeout,
                stop_timeout_milliseconds: stop_timeout,
                buffering_mode: mode,
                provider_specs: specs,
                defer_transfer,
                metadata,
                command_line,
                memory_dumps,
                confirms,
                file,
                write_period_milliseconds,
                keep_ended_bytes: write_period_milliseconds.unwrap_or(64 << 20),
                thread_time: write_period_milliseconds.is_some(),
                wants_untraced: write_period_milliseconds.is_none(),
                wants_known_categories: metadata,
                mirror_markers: defer_transfer,
                privacy: confirms,
                programs: if defer_transfer { vec!["app".to_owned()] } else { Vec::new() },
                user: confirms.then_some(size),
                event_costs: metadata.then_some(EventCosts {
                    instant_picoseconds: 15_300,
                    duration_picoseconds: 38_000,
                    counter_picoseconds: 21_000,
                }),
            }
        },
    )
}

fn known_categories() -> impl Strategy<Value = KnownCategories> {
    let unlisted =
        || (any::<u64>(), vec(text(100), 0..10)).prop_map(|(count, names)| Unlisted { count, names });
    let silent = (vec(any::<u32>(), 0..10), any::<u64>())
        .prop_map(|(providers, beyond_limit)| Silent { providers, beyond_limit });
    (vec((text(100), text(400)), 0..20), unlisted(), unlisted(), silent).prop_map(
        |(list, beyond_limit, too_long, silent)| {
            let listed = list.into_iter().map(|(name, description)| KnownCategory { name, description });
            KnownCategories { listed: listed.collect(), beyond_limit, too_long, silent }
        },
    )
}

fn stats() -> impl Strategy<Value = ProviderStats> {
    (
        any::<(u32, u64)>(),
        text(limits::MAX_PROVIDER_NAME_BYTES),
        option::of(mode()),
        option::of(any::<u32>()),
        vec(option::of(any::<u64>()), 6),
        option::of(0f32..=100.0),
        text(100),
        text(limits::MAX_REASON_BYTES),
    )
        .prop_map(|((id, pid), name, mode, wrapped, counts, percentage, disposition, problem)| {
            ProviderStats {
                id,
                name,
                pid,
                buffering_mode: mode,
                buffer_wrapped_count: wrapped,
                records_dropped: counts[0],
                percentage_durable_buffer_used: percentage,
                non_durable_bytes_written: counts[1],
                events_archived: counts[2],
                bytes_archived: counts[3],
                malformed_records: counts[4],
                records_generated: counts[5],
                losses: counts[0].into_iter().map(|records| Lost { reason: 3, records }).collect(),
                percentage_rolling_buffer_used: percentage,
                buffer_bytes: counts[1],
                needed_rolling_bytes: counts[2],
                needed_durable_bytes: counts[3],
                needed_record_bytes: counts[4],
                recorded_ns: counts[5],
                ended_ticks: counts[0],
                is_out_of_space: id % 2 == 0,
                open_scopes: if id % 3 == 0 { String::new() } else { "thread 7".to_owned() },
                disposition,
                problem,
            }
        })
}

/// Any message with a transaction id that fits it.
fn message() -> impl Strategy<Value = (Txid, Any)> {
    let one_way = prop_oneof![
        registration().prop_map(|r| Any::RegistryRequest(RegistryRequest::RegisterProvider(r))),
        provider_request().prop_map(Any::ProviderRequest),
        (any::<(u32, u32)>(), trace_config()).prop_map(|((session, output), config)| {
            Any::ProvisionerRequest(ProvisionerRequest::InitializeTracing { session, config, output })
        }),
    ]
    .prop_map(|message| (Txid::ONE_WAY, message));
    let two_way = prop_oneof![
        registration().prop_map(|r| Any::RegistryRequest(RegistryRequest::RegisterProviderSynchronously(r))),
        (disposition(), categories()).prop_map(|(buffer_disposition, additional_categories)| {
            Any::SessionRequest(SessionRequest::StartTracing(StartOptions {
                buffer_disposition,
                additional_categories,
            }))
        }),
        vec(stats(), 0..5).prop_map(|provider_stats| Any::SessionResponse(SessionResponse::StopTracing(Ok(
            StopResult { provider_stats }
        )))),
        level().prop_map(|level| Any::ProvisionerRequest(ProvisionerRequest::DumpMemory(level))),
        option::of(any::<(u64, u32, Option<u32>)>()).prop_map(|dump| {
            let dump = dump.map(|(id, providers, written)| MemoryDump { id, providers, written });
            Any::ProvisionerResponse(ProvisionerResponse::DumpMemory(dump))
        }),
        known_categories().prop_map(|known| Any::ProviderResponse(ProviderResponse::KnownCategories(known))),
    ];
    let two_way = (1u32.., two_way).prop_map(|(txid, message)| (Txid(txid), message));
    prop_oneof![one_way, two_way]
}

proptest! {
    #[test]
    fn decoding_undoes_encoding((txid, message) in message()) {
        let encoded = message.clone().encode(txid).unwrap();
        let decoded = message.decode_alike(&encoded.bytes, encoded.handles);
        prop_assert_eq!(decoded, Ok((txid, message)));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..300), handles in vec(any::<u32>(), 0..4)) {
        for sample in samples() {
            let _ = sample.message.decode_alike(&bytes, handles.clone());
            // The same bytes behind the header of a real message reach further.
            let header = sample.message.clone().encode(sample.txid).unwrap().bytes[..8].to_vec();
            let _ = sample.message.decode_alike(&[header, bytes.clone()].concat(), handles.clone());
        }
        let encoded = Encoded { bytes, handles };
        let _ = encoded.unspill(|_, length| Ok::<_, ProtocolError>(vec![0; length]));
    }

    #[test]
    fn a_changed_byte_never_panics((txid, message) in message(), position in any::<prop::sample::Index>(), byte: u8) {
        let encoded = message.clone().encode(txid).unwrap();
        let mut bytes = encoded.bytes;
        let position = position.index(bytes.len());
        bytes[position] = byte;
        let _ = message.decode_alike(&bytes, encoded.handles);
    }

    #[test]
    fn packets_survive_the_journey(packet in any::<[u8; 16]>()) {
        if let Ok(request) = FifoRequest::from_provider(&packet) {
            let again = request.encode().unwrap();
            prop_assert_eq!(FifoRequest::from_provider(&again), Ok(request));
        }
        if let Ok(request) = FifoRequest::from_manager(&packet) {
            prop_assert_eq!(request.encode(), Ok(packet));
        }
    }
}
