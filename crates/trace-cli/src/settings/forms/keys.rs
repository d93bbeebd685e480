//! The keys of Perfetto's configurations.

use trace_config::chrome::{ARGUMENTS, PROCESSES};
use trace_config::schema::{Expected, Known, WHOLE, idle, key, lacking, many, protecting};

/// Instead of keys that leave out names of packages.
const PACKAGES: &str = "--privacy leaves out texts that are no literals";
/// Instead of keys that leave out parts of the trace.
const PARTS: &str = "trace filter removes categories, processes, arguments and texts afterwards";
/// Values of `lockdown_mode`. The last one keeps programs of other users away.
pub const LOCKDOWN: &[&str] = &["LOCKDOWN_UNCHANGED", "LOCKDOWN_CLEAR", "LOCKDOWN_SET"];
/// Values of `compression_type`.
pub const COMPRESSION: &[&str] = &["COMPRESSION_TYPE_UNSPECIFIED", "COMPRESSION_TYPE_DEFLATE"];
/// Instead of keeping programs of others away.
pub const USERS: &str = "--user records programs of one user";

const BUFFER: &[Known] = &[
    key("size_kb", WHOLE),
    key("fill_policy", Expected::Word(&["UNSPECIFIED", "RING_BUFFER", "DISCARD"])),
    key("name", Expected::Text),
    lacking("transfer_on_clone"),
    lacking("clear_before_clone"),
    idle("experimental_mode"),
];

const TRACK_EVENT: &[Known] = &[
    many("enabled_categories", Expected::Text),
    many("disabled_categories", Expected::Text),
    lacking("enabled_tags"),
    lacking("disabled_tags"),
    idle("disable_incremental_timestamps"),
    idle("timestamp_unit_multiplier"),
    idle("timestamp_unit_multipler"),
    protecting("filter_debug_annotations", ARGUMENTS),
    key("filter_dynamic_event_names", Expected::Truth),
    lacking("enable_thread_time_sampling"),
];

const KPROBE: &[Known] = &[
    key("probe", Expected::Text),
    key(
        "type",
        Expected::Word(&[
            "KPROBE_TYPE_UNKNOWN",
            "KPROBE_TYPE_KPROBE",
            "KPROBE_TYPE_KRETPROBE",
            "KPROBE_TYPE_BOTH",
        ]),
    ),
];

const FTRACE: &[Known] = &[
    many("ftrace_events", Expected::Text),
    many("atrace_categories", Expected::Text),
    many("atrace_apps", Expected::Text),
    key("atrace_userspace_only", Expected::Truth),
    many("kprobe_events", Expected::Message(KPROBE)),
    key("preserve_ftrace_buffer", Expected::Truth),
    lacking("atrace_categories_prefer_sdk"),
    lacking("buffer_size_kb"),
    lacking("drain_buffer_percent"),
    lacking("print_filter"),
    lacking("syscall_events"),
    lacking("enable_function_graph"),
    lacking("function_filters"),
    lacking("function_graph_roots"),
    lacking("function_graph_max_depth"),
    lacking("use_monotonic_raw_clock"),
    lacking("instance_name"),
    lacking("tids_to_trace"),
    lacking("tracefs_options"),
    lacking("tracing_cpumask"),
    idle("buffer_size_lower_bound"),
    idle("drain_period_ms"),
    idle("compact_sched"),
    idle("symbolize_ksyms"),
    idle("ksyms_mem_policy"),
    idle("throttle_rss_stat"),
    idle("denser_generic_event_encoding"),
    idle("disable_generic_events"),
    idle("debug_ftrace_abi"),
    idle("initialize_ksyms_synchronously_for_testing"),
];

const PROCESS_STATS: &[Known] = &[
    key("proc_stats_poll_ms", WHOLE),
    key("scan_smaps_rollup", Expected::Truth),
    lacking("resolve_process_fds"),
    lacking("record_process_age"),
    lacking("record_process_runtime"),
    lacking("record_process_dmabuf_rss"),
    idle("quirks"),
    idle("scan_all_processes_on_start"),
    idle("record_thread_names"),
    idle("proc_stats_cache_ttl_ms"),
];

const SYS_STATS: &[Known] = &[
    key("meminfo_period_ms", WHOLE),
    key("vmstat_period_ms", WHOLE),
    key("stat_period_ms", WHOLE),
    key("diskstat_period_ms", WHOLE),
    key("psi_period_ms", WHOLE),
    lacking("devfreq_period_ms"),
    lacking("cpufreq_period_ms"),
    lacking("buddyinfo_period_ms"),
    lacking("thermal_period_ms"),
    lacking("cpuidle_period_ms"),
    lacking("gpufreq_period_ms"),
    idle("meminfo_counters"),
    idle("vmstat_counters"),
    idle("stat_counters"),
];

const TIMEBASE: &[Known] = &[
    key("frequency", WHOLE),
    lacking("period"),
    lacking("counter"),
    lacking("tracepoint"),
    lacking("raw_event"),
    lacking("modifiers"),
    lacking("poll_period_ms"),
    idle("timestamp_clock"),
    idle("name"),
];

const PERF: &[Known] = &[
    key("timebase", Expected::Message(TIMEBASE)),
    key("sampling_frequency", WHOLE),
    lacking("followers"),
    lacking("target_cpu"),
    lacking("target_pid"),
    lacking("target_cmdline"),
    protecting("exclude_pid", PROCESSES),
    protecting("exclude_cmdline", PROCESSES),
    idle("callstack_sampling"),
    idle("all_cpus"),
    idle("kernel_frames"),
    idle("ring_buffer_read_period_ms"),
    idle("ring_buffer_pages"),
    idle("max_enqueued_footprint_kb"),
    idle("max_daemon_memory_kb"),
    idle("remote_descriptor_timeout_ms"),
    idle("unwind_state_clear_period_ms"),
    idle("additional_cmdline_count"),
    idle("target_installed_by"),
];

const CHROME: &[Known] = &[
    key("trace_config", Expected::Text),
    key("privacy_filtering_enabled", Expected::Truth),
    protecting("event_package_name_filter_enabled", PACKAGES),
    idle("convert_to_legacy_json"),
    idle("client_priority"),
    idle("json_agent_label_filter"),
];

const DATA_SOURCE_CONFIG: &[Known] = &[
    key("name", Expected::Text),
    key("target_buffer", WHOLE),
    key("target_buffer_name", Expected::Text),
    key("track_event_config", Expected::Message(TRACK_EVENT)),
    key("ftrace_config", Expected::Message(FTRACE)),
    key("process_stats_config", Expected::Message(PROCESS_STATS)),
    key("sys_stats_config", Expected::Message(SYS_STATS)),
    key("perf_event_config", Expected::Message(PERF)),
    key("chrome_config", Expected::Message(CHROME)),
    lacking("interceptor_config"),
    lacking("legacy_config"),
    lacking("protovm_config"),
    // Set by the service, or for data sources that are named themselves.
    idle("trace_duration_ms"),
    idle("prefer_suspend_clock_for_duration"),
    idle("stop_timeout_ms"),
    idle("enable_extra_guardrails"),
    idle("session_initiator"),
    idle("tracing_session_id"),
    idle("buffer_exhausted_policy"),
    idle("priority_boost"),
    idle("inode_file_config"),
    idle("heapprofd_config"),
    idle("java_hprof_config"),
    idle("android_power_config"),
    idle("android_log_config"),
    idle("gpu_counter_config"),
    idle("android_game_intervention_list_config"),
    idle("packages_list_config"),
    idle("vulkan_memory_config"),
    idle("android_polled_state_config"),
    idle("android_system_property_config"),
    idle("statsd_tracing_config"),
    idle("system_info_config"),
    idle("frozen_ftrace_config"),
    idle("v8_config"),
    idle("network_packet_trace_config"),
    idle("surfaceflinger_layers_config"),
    idle("surfaceflinger_transactions_config"),
    idle("android_sdk_sysprop_guard_config"),
    idle("etw_config"),
    idle("protolog_config"),
    idle("android_input_event_config"),
    idle("pixel_modem_config"),
    idle("windowmanager_config"),
    idle("chromium_system_metrics"),
    idle("kernel_wakelocks_config"),
    idle("gpu_renderstages_config"),
    idle("chromium_histogram_samples"),
    idle("app_wakelocks_config"),
    idle("cpu_per_uid_config"),
    idle("user_list_config"),
    idle("inputmethod_config"),
    idle("journald_config"),
    idle("for_testing"),
];

const DATA_SOURCE: &[Known] = &[
    key("config", Expected::Message(DATA_SOURCE_CONFIG)),
    many("producer_name_filter", Expected::Text),
    lacking("producer_name_regex_filter"),
    lacking("machine_name_filter"),
];

const TRIGGER: &[Known] = &[
    key("name", Expected::Text),
    lacking("producer_name_regex"),
    key("stop_delay_ms", WHOLE),
    lacking("max_per_24_h"),
    lacking("skip_probability"),
];

const TRIGGER_CONFIG: &[Known] = &[
    key("trigger_mode", Expected::Word(&["UNSPECIFIED", "START_TRACING", "STOP_TRACING", "CLONE_SNAPSHOT"])),
    many("triggers", Expected::Message(TRIGGER)),
    key("use_clone_snapshot_if_available", Expected::Truth),
    lacking("trigger_timeout_ms"),
];

const PRODUCER: &[Known] =
    &[key("producer_name", Expected::Text), key("shm_size_kb", WHOLE), idle("page_size_kb")];

/// Those at the top.
pub const CONFIG: &[Known] = &[
    many("buffers", Expected::Message(BUFFER)),
    many("data_sources", Expected::Message(DATA_SOURCE)),
    key("duration_ms", WHOLE),
    key("write_into_file", Expected::Truth),
    key("output_path", Expected::Text),
    key("file_write_period_ms", WHOLE),
    key("flush_period_ms", WHOLE),
    key("max_file_size_bytes", Expected::Whole(u64::MAX)),
    key("data_source_stop_timeout_ms", WHOLE),
    key("trigger_config", Expected::Message(TRIGGER_CONFIG)),
    lacking("builtin_data_sources"),
    lacking("prefer_suspend_clock_for_duration"),
    lacking("enable_extra_guardrails"),
    key("lockdown_mode", Expected::Word(LOCKDOWN)),
    many("producers", Expected::Message(PRODUCER)),
    lacking("statsd_metadata"),
    lacking("guardrail_overrides"),
    lacking("deferred_start"),
    lacking("notify_traceur"),
    lacking("bugreport_score"),
    lacking("bugreport_filename"),
    lacking("activate_triggers"),
    lacking("incremental_state_config"),
    key("compression_type", Expected::Word(COMPRESSION)),
    lacking("incident_report_config"),
    lacking("statsd_logging"),
    protecting("trace_filter", PARTS),
    lacking("android_report_config"),
    lacking("cmd_trace_start_delay"),
    lacking("session_semaphores"),
    lacking("priority_boost"),
    lacking("exclusive_prio"),
    lacking("trace_all_machines"),
    idle("flush_timeout_ms"),
    idle("no_flush_before_write_into_file"),
    idle("write_flush_mode"),
    idle("fflush_post_write"),
    idle("allow_user_build_tracing"),
    idle("unique_session_name"),
    idle("trace_uuid_msb"),
    idle("trace_uuid_lsb"),
];
