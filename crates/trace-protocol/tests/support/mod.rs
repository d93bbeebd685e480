//! One sample of every message, shared by the tests of this crate.

#![allow(dead_code)]

use trace_protocol::categories::Unlisted;
use trace_protocol::controller::*;
use trace_protocol::provider::*;
use trace_protocol::registry::*;
use trace_protocol::*;

/// Handles are plain numbers here.
pub type H = u32;

/// A message of any protocol.
#[derive(Debug, Clone, PartialEq)]
pub enum Any {
    RegistryRequest(RegistryRequest<H>),
    RegistryResponse(RegistryResponse),
    ProviderRequest(ProviderRequest<H>),
    ProviderResponse(ProviderResponse<H>),
    ProvisionerRequest(ProvisionerRequest<H>),
    ProvisionerResponse(ProvisionerResponse),
    SessionRequest(SessionRequest),
    SessionResponse(SessionResponse),
}

impl Any {
    pub fn encode(self, txid: Txid) -> Result<Encoded<H>, ProtocolError> {
        match self {
            Any::RegistryRequest(message) => message.encode(txid),
            Any::RegistryResponse(message) => message.encode(txid),
            Any::ProviderRequest(message) => message.encode(txid),
            Any::ProviderResponse(message) => message.encode(txid),
            Any::ProvisionerRequest(message) => message.encode(txid),
            Any::ProvisionerResponse(message) => message.encode(txid),
            Any::SessionRequest(message) => message.encode(txid),
            Any::SessionResponse(message) => message.encode(txid),
        }
    }

    /// Decodes bytes as a message of the same protocol and direction.
    pub fn decode_alike(&self, bytes: &[u8], handles: Vec<H>) -> Result<(Txid, Any), ProtocolError> {
        fn decode<M: Message<H>>(
            bytes: &[u8],
            handles: Vec<H>,
            wrap: fn(M) -> Any,
        ) -> Result<(Txid, Any), ProtocolError> {
            let (txid, message) = M::decode(bytes, handles)?;
            Ok((txid, wrap(message)))
        }
        match self {
            Any::RegistryRequest(_) => decode(bytes, handles, Any::RegistryRequest),
            Any::RegistryResponse(_) => decode(bytes, handles, Any::RegistryResponse),
            Any::ProviderRequest(_) => decode(bytes, handles, Any::ProviderRequest),
            Any::ProviderResponse(_) => decode(bytes, handles, Any::ProviderResponse),
            Any::ProvisionerRequest(_) => decode(bytes, handles, Any::ProvisionerRequest),
            Any::ProvisionerResponse(_) => decode(bytes, handles, Any::ProvisionerResponse),
            Any::SessionRequest(_) => decode(bytes, handles, Any::SessionRequest),
            Any::SessionResponse(_) => decode(bytes, handles, Any::SessionResponse),
        }
    }
}

/// A named sample with its transaction id.
pub struct Sample {
    pub name: &'static str,
    pub txid: Txid,
    pub message: Any,
}

pub fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|&text| text.to_owned()).collect()
}

pub fn registration() -> Registration<H> {
    Registration {
        provider: 11,
        pid: 4242,
        name: "demo".to_owned(),
        protocol: VersionRange::new(1..=2).unwrap(),
        buffer_header: VersionRange::only(1),
        tick_source: "tsc".to_owned(),
        dumps_memory: false,
        parent: None,
        records_alerts: false,
        numbers_threads: false,
        backs_buffer: false,
        redacts: true,
        has_scopes: true,
        answers_dumps: false,
        command_line: None,
    }
}

pub fn alert() -> Alert {
    Alert { name: "stall".to_owned(), provider: "demo".to_owned(), pid: 4242, dropped: 3 }
}

fn task_end(triggered: Option<Triggered>) -> TaskEnd {
    let result = StopResult { provider_stats: vec![provider_stats()] };
    let file = triggered.is_some().then(|| ArchiveFile {
        path: "/home/me/trace.fxt".to_owned(),
        device: 0x803,
        inode: 4711,
        owner: None,
    });
    TaskEnd { options: task_options(), result, triggered, file }
}

pub fn provider_config() -> ProviderConfig<H> {
    ProviderConfig {
        buffering_mode: BufferingMode::Oneshot,
        buffer: 21,
        fifo: 22,
        categories: strings(&["app", "net:*"]),
        buffer_header_version: 1,
        tick_source: "tsc".to_owned(),
        ticks_per_second: 2_400_000_000,
        process_koid: None,
        thread_time: false,
        takes_startup: true,
        mirror_markers: false,
        privacy: false,
        scope_bytes: 135_168,
        takes_scopes: true,
    }
}

pub fn trace_config() -> TraceConfig {
    TraceConfig {
        categories: strings(&["app", "net:*"]),
        buffer_size_megabytes_hint: 16,
        start_timeout_milliseconds: 1000,
        stop_timeout_milliseconds: 2000,
        buffering_mode: BufferingMode::Streaming,
        provider_specs: vec![
            ProviderSpec {
                name: "kernel".to_owned(),
                buffer_size_megabytes_hint: Some(32),
                categories: strings(&["kernel:sched"]),
            },
            ProviderSpec {
                name: "plain".to_owned(),
                buffer_size_megabytes_hint: None,
                categories: Vec::new(),
            },
        ],
        defer_transfer: true,
        metadata: false,
        command_line: strings(&["trace", "record", "./app"]),
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
    }
}

/// What the archive is written into is known, and how far.
fn confirmed_config() -> TraceConfig {
    let path = "/home/me/trace.partial.fxt".to_owned();
    let file = Some(ArchiveFile { path, device: 0x803, inode: 4711, owner: None });
    let write_period_milliseconds = Some(1000);
    let keep_ended_bytes = 1 << 20;
    TraceConfig {
        confirms: true,
        file,
        write_period_milliseconds,
        keep_ended_bytes,
        thread_time: true,
        wants_untraced: true,
        wants_known_categories: true,
        event_costs: None,
        mirror_markers: true,
        privacy: true,
        programs: strings(&["demo", "server"]),
        ..TraceConfig::default()
    }
}

pub fn provider_stats() -> ProviderStats {
    ProviderStats {
        id: 3,
        name: "demo".to_owned(),
        pid: 4242,
        buffering_mode: Some(BufferingMode::Oneshot),
        buffer_wrapped_count: Some(0),
        records_dropped: Some(7),
        percentage_durable_buffer_used: Some(12.5),
        non_durable_bytes_written: Some(4096),
        events_archived: Some(100),
        bytes_archived: Some(3200),
        malformed_records: Some(1),
        records_generated: Some(108),
        losses: vec![Lost { reason: 1, records: 5 }, Lost { reason: 6, records: 2 }],
        percentage_rolling_buffer_used: Some(75.0),
        buffer_bytes: Some(4 << 20),
        needed_rolling_bytes: Some(5 << 20),
        needed_durable_bytes: Some(300 << 10),
        needed_record_bytes: Some(200 << 10),
        recorded_ns: Some(1_500_000_000),
        ended_ticks: Some(3_000_000_000),
        disposition: "died".to_owned(),
        problem: "record at byte 64: too long".to_owned(),
        is_out_of_space: false,
        open_scopes: "thread 7 was in request > parse for 20.4 ms".to_owned(),
    }
}

fn task_options() -> TaskOptions {
    TaskOptions {
        duration_ns: Some(10_000_000_000),
        triggers: vec![Trigger { alert: "stall".to_owned(), action: TriggerAction::Terminate }],
        requested_categories: strings(&["#default", "app"]),
        name: "night".to_owned(),
        file: "/home/me/trace.fxt".to_owned(),
    }
}

fn task_request(request: TaskRequest<H>) -> Any {
    Any::ProvisionerRequest(ProvisionerRequest::Task(request))
}

fn task_response(response: TaskResponse) -> Any {
    Any::ProvisionerResponse(ProvisionerResponse::Task(response))
}

fn task_failure(error: TaskError) -> TaskFailure {
    TaskFailure { error, refusal: "the trace manager is in use by pid 7".to_owned().into() }
}

fn progress() -> ProviderProgress {
    ProviderProgress {
        id: 3,
        name: "demo".to_owned(),
        pid: 4242,
        records: 1000,
        bytes: 32_000,
        dropped: 2,
        fill: 62.5,
        is_damaged: false,
        held: 0,
    }
}

pub fn known_categories() -> KnownCategories {
    let listed = [("app", "the application"), ("net", "")].map(|(name, description)| KnownCategory {
        name: name.to_owned(),
        description: description.to_owned(),
    });
    KnownCategories { listed: listed.to_vec(), ..KnownCategories::default() }
}

pub fn unlisted_categories() -> KnownCategories {
    KnownCategories {
        beyond_limit: Unlisted { count: 12, names: vec!["zebra".to_owned()] },
        too_long: Unlisted { count: 1, names: vec!["l".repeat(100)] },
        ..known_categories()
    }
}

fn one_way(name: &'static str, message: Any) -> Sample {
    Sample { name, txid: Txid::ONE_WAY, message }
}

fn two_way(name: &'static str, message: Any) -> Sample {
    Sample { name, txid: Txid(0x0102_0304), message }
}

/// One sample of every message, and of both outcomes where there are two.
pub fn samples() -> Vec<Sample> {
    let reason = || "expected tick source tsc, found monotonic".to_owned();
    vec![
        one_way("register_provider", Any::RegistryRequest(RegistryRequest::RegisterProvider(registration()))),
        two_way(
            "register_provider_synchronously",
            Any::RegistryRequest(RegistryRequest::RegisterProviderSynchronously(registration())),
        ),
        two_way("share_registry", Any::RegistryRequest(RegistryRequest::ShareRegistry)),
        two_way(
            "register_provider_through",
            Any::RegistryRequest(RegistryRequest::RegisterProviderThrough(registration(), 12)),
        ),
        two_way(
            "registry_response",
            Any::RegistryResponse(RegistryResponse {
                status: RegistryStatus::Ok,
                started: true,
                manager_version: VersionRange::PROTOCOL,
            }),
        ),
        one_way(
            "initialize",
            Any::ProviderRequest(ProviderRequest::Initialize { config: provider_config() }),
        ),
        one_way(
            "start",
            Any::ProviderRequest(ProviderRequest::Start {
                buffer_disposition: BufferDisposition::ClearEntire,
                additional_categories: strings(&["more"]),
            }),
        ),
        one_way("stop", Any::ProviderRequest(ProviderRequest::Stop)),
        one_way("terminate", Any::ProviderRequest(ProviderRequest::Terminate)),
        one_way(
            "use_pid_namespace",
            Any::ProviderRequest(ProviderRequest::UsePidNamespace { namespace: 31 }),
        ),
        one_way("flush", Any::ProviderRequest(ProviderRequest::Flush)),
        two_way("provider_get_known_categories", Any::ProviderRequest(ProviderRequest::GetKnownCategories)),
        one_way("provider_refused", Any::ProviderRequest(ProviderRequest::Refused { reason: reason() })),
        two_way(
            "provider_known_categories",
            Any::ProviderResponse(ProviderResponse::KnownCategories(known_categories())),
        ),
        one_way(
            "hand_over",
            Any::ProviderResponse(ProviderResponse::HandOver {
                buffer: 33,
                buffering_mode: BufferingMode::Circular,
            }),
        ),
        one_way(
            "initialize_tracing",
            Any::ProvisionerRequest(ProvisionerRequest::InitializeTracing {
                session: 31,
                config: trace_config(),
                output: 32,
            }),
        ),
        one_way(
            "initialize_tracing_confirmed",
            Any::ProvisionerRequest(ProvisionerRequest::InitializeTracing {
                session: 31,
                config: confirmed_config(),
                output: 32,
            }),
        ),
        two_way(
            "start_trace_session",
            Any::ProvisionerRequest(ProvisionerRequest::Task(TaskRequest::Start {
                config: trace_config(),
                options: task_options(),
                file: 34,
            })),
        ),
        two_way("end_trace_session", task_request(TaskRequest::End(100))),
        two_way("abort_trace_session", task_request(TaskRequest::Abort(0))),
        two_way("status", task_request(TaskRequest::Status(0))),
        two_way("flush_trace_session", task_request(TaskRequest::Flush(100))),
        two_way("start_trace_session_ok", task_response(TaskResponse::Start(Ok(100)))),
        two_way(
            "start_trace_session_error",
            task_response(TaskResponse::Start(Err(task_failure(TaskError::AlreadyStarted)))),
        ),
        two_way("end_trace_session_ok", task_response(TaskResponse::End(Ok(task_end(None))))),
        two_way(
            "end_trace_session_triggered",
            task_response(TaskResponse::End(Ok(task_end(Some(Triggered {
                alert: alert(),
                elapsed_ns: 1_500_000_000,
                wall_clock_ns: 1_790_000_000_123_456_789,
            }))))),
        ),
        two_way(
            "end_trace_session_error",
            task_response(TaskResponse::End(Err(task_failure(TaskError::NoSuchTask)))),
        ),
        two_way("abort_trace_session_ok", task_response(TaskResponse::Abort(Ok(())))),
        two_way("flush_trace_session_ok", task_response(TaskResponse::Flush(Ok(())))),
        two_way(
            "status_ok",
            task_response(TaskResponse::Status(Some(Box::new(TaskStatus {
                task: 100,
                options: task_options(),
                elapsed_ns: 1_500_000_000,
                remaining_ns: Some(8_500_000_000),
                config: trace_config(),
                pid: 4242,
                uid: 1000,
                progress: vec![progress()],
                ended: vec![provider_stats()],
                ended_left_out: 2,
                others: vec![101, 103],
            })))),
        ),
        two_way("status_none", task_response(TaskResponse::Status(None))),
        two_way("get_progress", Any::SessionRequest(SessionRequest::GetProgress)),
        two_way("progress", Any::SessionResponse(SessionResponse::Progress(vec![progress()]))),
        two_way("get_providers", Any::ProvisionerRequest(ProvisionerRequest::GetProviders)),
        two_way("get_known_categories", Any::ProvisionerRequest(ProvisionerRequest::GetKnownCategories)),
        two_way(
            "providers",
            Any::ProvisionerResponse(ProvisionerResponse::Providers {
                listed: vec![
                    ProviderInfo {
                        id: 1,
                        pid: 4242,
                        name: "demo".to_owned(),
                        recorded_by: Some(77),
                        recording: Some("\"trace record\" (pid 77)".to_owned()),
                        uid: Some(1000),
                    },
                    ProviderInfo {
                        id: 2,
                        pid: 4242,
                        name: "demo".to_owned(),
                        recorded_by: None,
                        recording: None,
                        uid: None,
                    },
                ],
                left_out: 0,
            }),
        ),
        two_way(
            "known_categories_unlisted",
            Any::ProvisionerResponse(ProvisionerResponse::KnownCategories(unlisted_categories())),
        ),
        one_way(
            "on_known_categories",
            Any::SessionResponse(SessionResponse::OnKnownCategories(known_categories())),
        ),
        one_way(
            "on_untraced",
            Any::SessionResponse(SessionResponse::OnUntraced(Untraced {
                name: "demo".to_owned(),
                pid: 4242,
                reason: "it speaks another protocol".to_owned(),
            })),
        ),
        two_way(
            "known_categories",
            Any::ProvisionerResponse(ProvisionerResponse::KnownCategories(known_categories())),
        ),
        two_way(
            "take_snapshot",
            Any::ProvisionerRequest(ProvisionerRequest::TakeSnapshot { program: None, output: 33 }),
        ),
        two_way(
            "take_snapshot_of_a_program",
            Any::ProvisionerRequest(ProvisionerRequest::TakeSnapshot {
                program: Some("demo".to_owned()),
                output: 33,
            }),
        ),
        two_way("status_of_a_task", task_request(TaskRequest::Status(101))),
        two_way(
            "take_snapshot_ok",
            Any::ProvisionerResponse(ProvisionerResponse::TakeSnapshot(Ok(StopResult {
                provider_stats: vec![provider_stats()],
            }))),
        ),
        two_way(
            "take_snapshot_error",
            Any::ProvisionerResponse(ProvisionerResponse::TakeSnapshot(Err(SnapshotError::Busy))),
        ),
        two_way(
            "observe",
            Any::ProvisionerRequest(ProvisionerRequest::Observe {
                options: ObserveOptions {
                    versions: VersionRange::new(1..=2).unwrap(),
                    interval_milliseconds: 250,
                    wants_records: true,
                    program: Some("demo".to_owned()),
                    open_for_ns: Some(100_000_000),
                },
                output: 34,
            }),
        ),
        two_way(
            "observe_ok",
            Any::ProvisionerResponse(ProvisionerResponse::Observe(Observing {
                result: Ok(1),
                served: VersionRange::only(1),
            })),
        ),
        two_way(
            "observe_error",
            Any::ProvisionerResponse(ProvisionerResponse::Observe(Observing {
                result: Err(ObserveError::Version),
                served: VersionRange::only(1),
            })),
        ),
        one_way(
            "provisioner_refused",
            Any::ProvisionerResponse(ProvisionerResponse::Refused { reason: reason() }),
        ),
        two_way(
            "start_tracing",
            Any::SessionRequest(SessionRequest::StartTracing(StartOptions {
                buffer_disposition: BufferDisposition::ClearNondurable,
                additional_categories: strings(&["more"]),
            })),
        ),
        two_way(
            "stop_tracing",
            Any::SessionRequest(SessionRequest::StopTracing(StopOptions { write_results: true })),
        ),
        two_way("watch_alert", Any::SessionRequest(SessionRequest::WatchAlert)),
        two_way("flush_buffers", Any::SessionRequest(SessionRequest::FlushBuffers)),
        two_way("flush_buffers_ok", Any::SessionResponse(SessionResponse::FlushBuffers(Ok(())))),
        two_way(
            "flush_buffers_error",
            Any::SessionResponse(SessionResponse::FlushBuffers(Err(FlushError::NotStarted))),
        ),
        two_way("start_tracing_ok", Any::SessionResponse(SessionResponse::StartTracing(Ok(())))),
        two_way(
            "start_tracing_error",
            Any::SessionResponse(SessionResponse::StartTracing(Err(StartError::AlreadyStarted))),
        ),
        two_way(
            "stop_tracing_ok",
            Any::SessionResponse(SessionResponse::StopTracing(Ok(StopResult {
                provider_stats: vec![
                    provider_stats(),
                    ProviderStats {
                        id: 4,
                        name: "mute".to_owned(),
                        pid: 4343,
                        disposition: "did not stop".to_owned(),
                        ..ProviderStats::default()
                    },
                ],
            }))),
        ),
        two_way(
            "stop_tracing_error",
            Any::SessionResponse(SessionResponse::StopTracing(Err(StopError::Aborted))),
        ),
        two_way(
            "watch_alert_ok",
            Any::SessionResponse(SessionResponse::WatchAlert(Alert {
                name: "fourteen_chars".to_owned(),
                ..Alert::default()
            })),
        ),
        two_way("watch_alert_after_others", Any::SessionResponse(SessionResponse::WatchAlert(alert()))),
        one_way(
            "on_session_state_change",
            Any::SessionResponse(SessionResponse::OnSessionStateChange(SessionState::Terminating)),
        ),
        one_way(
            "on_waiting",
            Any::SessionResponse(SessionResponse::OnWaiting(strings(&["app (pid 42)", "3 more"]))),
        ),
        one_way("session_refused", Any::SessionResponse(SessionResponse::Refused(reason().into()))),
        one_way(
            "session_refused_by_recorder",
            Any::SessionResponse(SessionResponse::Refused(Refusal {
                recorder: Some(Recorder {
                    pid: Some(4242),
                    started: Some(77_000),
                    uid: 1000,
                    is_task: true,
                    program: Some("demo".to_owned()),
                }),
                limit: Some(16),
                ..Refusal::from(reason())
            })),
        ),
    ]
}
