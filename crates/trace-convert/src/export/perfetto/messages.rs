//! The few messages of Perfetto's trace format that are written or read, with the published numbers of their
//! fields.
#![allow(missing_docs, reason = "the names are the format's own")]

use prost::Message;

/// Clears the interned data of this sequence.
pub const SEQ_INCREMENTAL_STATE_CLEARED: u32 = 1;
/// Refers to interned data.
pub const SEQ_NEEDS_INCREMENTAL_STATE: u32 = 2;
pub const TYPE_SLICE_BEGIN: i32 = 1;
pub const TYPE_SLICE_END: i32 = 2;
pub const TYPE_INSTANT: i32 = 3;
pub const TYPE_COUNTER: i32 = 4;
pub const SIBLING_MERGE_BEHAVIOR_NONE: i32 = 2;
pub const CLOCK_REALTIME: u32 = 1;
pub const CLOCK_MONOTONIC: u32 = 3;
pub const CLOCK_BOOTTIME: u32 = 6;
pub const LOG_PRIO_INFO: i32 = 4;
pub const CPU_MODE_KERNEL: i32 = 1;
pub const CPU_MODE_USER: i32 = 2;

/// Declares messages: of each field its number, its name, its type, and how it is encoded.
macro_rules! messages {
    ($(
        $(#[$of_message:meta])*
        $message:ident { $($(#[$of_field:meta])* $field:ident: $type:ty = $number:tt [$($encoding:tt)+];)+ }
    )+) => {
        $(
            $(#[$of_message])*
            #[derive(Clone, PartialEq, Message)]
            pub struct $message {
                $($(#[$of_field])* #[prost($($encoding)+, tag = $number)] pub $field: $type,)+
            }
        )+
    };
}

messages! {
    TracePacket {
        ftrace_events: Option<Box<FtraceEventBundle>> = 1 [message, optional, boxed];
        clock_snapshot: Option<ClockSnapshot> = 6 [message, optional];
        timestamp: Option<u64> = 8 [uint64, optional];
        trusted_packet_sequence_id: Option<u32> = 10 [uint32, optional];
        track_event: Option<TrackEvent> = 11 [message, optional];
        interned_data: Option<Box<InternedData>> = 12 [message, optional, boxed];
        sequence_flags: Option<u32> = 13 [uint32, optional];
        android_log: Option<Box<AndroidLogPacket>> = 39 [message, optional, boxed];
        track_descriptor: Option<Box<TrackDescriptor>> = 60 [message, optional, boxed];
        process_tree: Option<Box<ProcessTree>> = 2 [message, optional, boxed];
        incremental_state_cleared: Option<bool> = 41 [bool, optional];
        previous_packet_dropped: Option<u32> = 42 [uint32, optional];
        process_descriptor: Option<ProcessDescriptor> = 43 [message, optional];
        thread_descriptor: Option<ThreadDescriptor> = 44 [message, optional];
        trigger: Option<Trigger> = 46 [message, optional];
        compressed_packets: Option<Vec<u8>> = 50 [bytes = "vec", optional];
        timestamp_clock_id: Option<u32> = 58 [uint32, optional];
        trace_packet_defaults: Option<TracePacketDefaults> = 59 [message, optional];
        perf_sample: Option<Box<PerfSample>> = 66 [message, optional, boxed];
        clone_snapshot_trigger: Option<Trigger> = 113 [message, optional];
    }

    Trigger {
        trigger_name: Option<String> = 1 [string, optional];
        producer_name: Option<String> = 2 [string, optional];
        trusted_producer_uid: Option<i32> = 3 [int32, optional];
    }

    ClockSnapshot {
        clocks: Vec<Clock> = 1 [message, repeated];
        primary_trace_clock: Option<u32> = 2 [uint32, optional];
    }

    Clock {
        clock_id: Option<u32> = 1 [uint32, optional];
        timestamp: Option<u64> = 2 [uint64, optional];
        is_incremental: Option<bool> = 3 [bool, optional];
        unit_multiplier_ns: Option<u64> = 4 [uint64, optional];
    }

    TrackDescriptor {
        uuid: Option<u64> = 1 [uint64, optional];
        name: Option<String> = 2 [string, optional];
        process: Option<ProcessDescriptor> = 3 [message, optional];
        thread: Option<ThreadDescriptor> = 4 [message, optional];
        parent_uuid: Option<u64> = 5 [uint64, optional];
        counter: Option<CounterDescriptor> = 8 [message, optional];
        static_name: Option<String> = 10 [string, optional];
        sibling_merge_behavior: Option<i32> = 15 [int32, optional];
    }

    ProcessDescriptor {
        pid: Option<i32> = 1 [int32, optional];
        process_name: Option<String> = 6 [string, optional];
    }

    ThreadDescriptor {
        pid: Option<i32> = 1 [int32, optional];
        tid: Option<i64> = 2 [int64, optional];
        thread_name: Option<String> = 5 [string, optional];
        reference_timestamp_us: Option<i64> = 6 [int64, optional];
        reference_thread_time_us: Option<i64> = 7 [int64, optional];
        reference_thread_instruction_count: Option<i64> = 8 [int64, optional];
    }

    CounterDescriptor {
        kind: Option<i32> = 1 [int32, optional];
        unit_multiplier: Option<i64> = 4 [int64, optional];
        is_incremental: Option<bool> = 5 [bool, optional];
    }

    TrackEvent {
        // The published format is older than packed lists.
        category_iids: Vec<u64> = 3 [uint64, repeated, packed = "false"];
        debug_annotations: Vec<DebugAnnotation> = 4 [message, repeated];
        legacy_event: Option<LegacyEvent> = 6 [message, optional];
        kind: Option<i32> = 9 [int32, optional];
        name_iid: Option<u64> = 10 [uint64, optional];
        track_uuid: Option<u64> = 11 [uint64, optional];
        counter_value: Option<i64> = 30 [int64, optional];
        double_counter_value: Option<f64> = 44 [double, optional];
        timestamp_delta_us: Option<i64> = 1 [int64, optional];
        thread_time_delta_us: Option<i64> = 2 [int64, optional];
        thread_instruction_count_delta: Option<i64> = 8 [int64, optional];
        extra_counter_values: Vec<i64> = 12 [int64, repeated, packed = "false"];
        timestamp_absolute_us: Option<i64> = 16 [int64, optional];
        thread_time_absolute_us: Option<i64> = 17 [int64, optional];
        thread_instruction_count_absolute: Option<i64> = 20 [int64, optional];
        categories: Vec<String> = 22 [string, repeated];
        name: Option<String> = 23 [string, optional];
        extra_counter_track_uuids: Vec<u64> = 31 [uint64, repeated, packed = "false"];
        flow_ids_old: Vec<u64> = 36 [uint64, repeated, packed = "false"];
        terminating_flow_ids_old: Vec<u64> = 42 [uint64, repeated, packed = "false"];
        extra_double_counter_track_uuids: Vec<u64> = 45 [uint64, repeated, packed = "false"];
        extra_double_counter_values: Vec<f64> = 46 [double, repeated, packed = "false"];
        flow_ids: Vec<u64> = 47 [fixed64, repeated, packed = "false"];
        terminating_flow_ids: Vec<u64> = 48 [fixed64, repeated, packed = "false"];
    }

    /// The older kind of event, with a phase.
    LegacyEvent {
        phase: Option<i32> = 2 [int32, optional];
        unscoped_id: Option<u64> = 6 [uint64, optional];
        bind_to_enclosing: Option<bool> = 12 [bool, optional];
        name_iid: Option<u64> = 1 [uint64, optional];
        duration_us: Option<i64> = 3 [int64, optional];
        id_scope: Option<String> = 7 [string, optional];
        bind_id: Option<u64> = 8 [uint64, optional];
        local_id: Option<u64> = 10 [uint64, optional];
        global_id: Option<u64> = 11 [uint64, optional];
        flow_direction: Option<i32> = 13 [int32, optional];
        instant_event_scope: Option<i32> = 14 [int32, optional];
        pid_override: Option<i32> = 18 [int32, optional];
        tid_override: Option<i32> = 19 [int32, optional];
    }

    DebugAnnotation {
        name_iid: Option<u64> = 1 [uint64, optional];
        bool_value: Option<bool> = 2 [bool, optional];
        uint_value: Option<u64> = 3 [uint64, optional];
        int_value: Option<i64> = 4 [int64, optional];
        double_value: Option<f64> = 5 [double, optional];
        string_value: Option<String> = 6 [string, optional];
        pointer_value: Option<u64> = 7 [uint64, optional];
        legacy_json_value: Option<String> = 9 [string, optional];
        name: Option<String> = 10 [string, optional];
        dict_entries: Vec<DebugAnnotation> = 11 [message, repeated];
        array_values: Vec<DebugAnnotation> = 12 [message, repeated];
        string_value_iid: Option<u64> = 17 [uint64, optional];
    }

    InternedData {
        event_categories: Vec<InternedName> = 1 [message, repeated];
        event_names: Vec<InternedName> = 2 [message, repeated];
        debug_annotation_names: Vec<InternedName> = 3 [message, repeated];
        debug_annotation_string_values: Vec<InternedText> = 29 [message, repeated];
        function_names: Vec<InternedString> = 5 [message, repeated];
        frames: Vec<Frame> = 6 [message, repeated];
        callstacks: Vec<Callstack> = 7 [message, repeated];
        build_ids: Vec<InternedString> = 16 [message, repeated];
        mapping_paths: Vec<InternedString> = 17 [message, repeated];
        mappings: Vec<Mapping> = 19 [message, repeated];
    }

    InternedString {
        iid: Option<u64> = 1 [uint64, optional];
        str: Option<Vec<u8>> = 2 [bytes = "vec", optional];
    }

    Frame {
        iid: Option<u64> = 1 [uint64, optional];
        function_name_id: Option<u64> = 2 [uint64, optional];
        mapping_id: Option<u64> = 3 [uint64, optional];
        rel_pc: Option<u64> = 4 [uint64, optional];
    }

    Callstack {
        iid: Option<u64> = 1 [uint64, optional];
        /// The outermost first.
        frame_ids: Vec<u64> = 2 [uint64, repeated, packed = "false"];
    }

    Mapping {
        iid: Option<u64> = 1 [uint64, optional];
        build_id: Option<u64> = 2 [uint64, optional];
        start: Option<u64> = 4 [uint64, optional];
        end: Option<u64> = 5 [uint64, optional];
        path_string_ids: Vec<u64> = 7 [uint64, repeated, packed = "false"];
    }

    PerfSample {
        cpu: Option<u32> = 1 [uint32, optional];
        pid: Option<u32> = 2 [uint32, optional];
        tid: Option<u32> = 3 [uint32, optional];
        callstack_iid: Option<u64> = 4 [uint64, optional];
        cpu_mode: Option<i32> = 5 [int32, optional];
    }

    InternedName {
        iid: Option<u64> = 1 [uint64, optional];
        name: Option<String> = 2 [string, optional];
    }

    AndroidLogPacket {
        events: Vec<LogEvent> = 1 [message, repeated];
    }

    LogEvent {
        pid: Option<i32> = 2 [int32, optional];
        tid: Option<i32> = 3 [int32, optional];
        timestamp: Option<u64> = 5 [uint64, optional];
        tag: Option<String> = 6 [string, optional];
        prio: Option<i32> = 7 [int32, optional];
        message: Option<String> = 8 [string, optional];
    }

    FtraceEventBundle {
        cpu: Option<u32> = 1 [uint32, optional];
        event: Vec<FtraceEvent> = 2 [message, repeated];
        lost_events: Option<bool> = 3 [bool, optional];
        compact_sched: Option<CompactSched> = 4 [message, optional];
        ftrace_clock: Option<i32> = 5 [int32, optional];
    }

    /// A bundle without its events.
    FtraceBundleHead {
        cpu: Option<u32> = 1 [uint32, optional];
        lost_events: Option<bool> = 3 [bool, optional];
        compact_sched: Option<CompactSched> = 4 [message, optional];
        ftrace_clock: Option<i32> = 5 [int32, optional];
    }

    FtraceEvent {
        timestamp: Option<u64> = 1 [uint64, optional];
        pid: Option<u32> = 2 [uint32, optional];
        common_flags: Option<u32> = 5 [uint32, optional];
        sched_switch: Option<SchedSwitch> = 4 [message, optional];
        sched_waking: Option<SchedWaking> = 20 [message, optional];
        print: Option<Print> = 3 [message, optional];
        cpu_frequency: Option<PowerState> = 11 [message, optional];
        cpu_idle: Option<PowerState> = 13 [message, optional];
        sched_wakeup: Option<SchedWaking> = 17 [message, optional];
        softirq_entry: Option<SoftirqEntry> = 24 [message, optional];
        softirq_exit: Option<SoftirqEntry> = 25 [message, optional];
        irq_handler_entry: Option<IrqHandlerEntry> = 36 [message, optional];
        irq_handler_exit: Option<IrqHandlerExit> = 37 [message, optional];
        sched_wakeup_new: Option<SchedWaking> = 114 [message, optional];
        task_newtask: Option<TaskNewtask> = 235 [message, optional];
        task_rename: Option<TaskRename> = 236 [message, optional];
        sys_enter: Option<SysEnter> = 329 [message, optional];
        sys_exit: Option<SysExit> = 330 [message, optional];
    }

    SchedSwitch {
        prev_comm: Option<String> = 1 [string, optional];
        prev_pid: Option<i32> = 2 [int32, optional];
        prev_prio: Option<i32> = 3 [int32, optional];
        prev_state: Option<i64> = 4 [int64, optional];
        next_comm: Option<String> = 5 [string, optional];
        next_pid: Option<i32> = 6 [int32, optional];
        next_prio: Option<i32> = 7 [int32, optional];
    }

    SchedWaking {
        comm: Option<String> = 1 [string, optional];
        pid: Option<i32> = 2 [int32, optional];
        prio: Option<i32> = 3 [int32, optional];
        success: Option<i32> = 4 [int32, optional];
        target_cpu: Option<i32> = 5 [int32, optional];
    }

    TracePacketDefaults {
        track_event_defaults: Option<TrackEventDefaults> = 11 [message, optional];
        timestamp_clock_id: Option<u32> = 58 [uint32, optional];
    }

    TrackEventDefaults {
        track_uuid: Option<u64> = 11 [uint64, optional];
        extra_counter_track_uuids: Vec<u64> = 31 [uint64, repeated, packed = "false"];
        extra_double_counter_track_uuids: Vec<u64> = 45 [uint64, repeated, packed = "false"];
    }

    InternedText {
        iid: Option<u64> = 1 [uint64, optional];
        str: Option<String> = 2 [string, optional];
    }

    ProcessTree {
        processes: Vec<Process> = 1 [message, repeated];
        threads: Vec<TreeThread> = 2 [message, repeated];
    }

    Process {
        pid: Option<i32> = 1 [int32, optional];
        cmdline: Vec<String> = 3 [string, repeated];
    }

    TreeThread {
        tid: Option<i32> = 1 [int32, optional];
        name: Option<String> = 2 [string, optional];
        tgid: Option<i32> = 3 [int32, optional];
    }

    Print {
        buf: Option<String> = 2 [string, optional];
    }

    PowerState {
        state: Option<u32> = 1 [uint32, optional];
        cpu_id: Option<u32> = 2 [uint32, optional];
    }

    SoftirqEntry {
        vec: Option<u32> = 1 [uint32, optional];
    }

    IrqHandlerEntry {
        irq: Option<i32> = 1 [int32, optional];
        name: Option<String> = 2 [string, optional];
    }

    IrqHandlerExit {
        irq: Option<i32> = 1 [int32, optional];
        ret: Option<i32> = 2 [int32, optional];
    }

    SysEnter {
        id: Option<i64> = 1 [int64, optional];
    }

    SysExit {
        id: Option<i64> = 1 [int64, optional];
        ret: Option<i64> = 2 [int64, optional];
    }

    TaskNewtask {
        pid: Option<i32> = 1 [int32, optional];
        comm: Option<String> = 2 [string, optional];
        clone_flags: Option<u64> = 3 [uint64, optional];
    }

    TaskRename {
        pid: Option<i32> = 1 [int32, optional];
        newcomm: Option<String> = 3 [string, optional];
    }

    /// Context switches and wakeups in columns.
    CompactSched {
        switch_timestamp: Vec<u64> = 1 [uint64, repeated];
        switch_prev_state: Vec<i64> = 2 [int64, repeated];
        switch_next_pid: Vec<i32> = 3 [int32, repeated];
        switch_next_prio: Vec<i32> = 4 [int32, repeated];
        intern_table: Vec<String> = 5 [string, repeated];
        switch_next_comm_index: Vec<u32> = 6 [uint32, repeated];
        waking_timestamp: Vec<u64> = 7 [uint64, repeated];
        waking_pid: Vec<i32> = 8 [int32, repeated];
        waking_target_cpu: Vec<i32> = 9 [int32, repeated];
        waking_prio: Vec<i32> = 10 [int32, repeated];
        waking_comm_index: Vec<u32> = 11 [uint32, repeated];
        waking_common_flags: Vec<u32> = 12 [uint32, repeated];
    }
}
