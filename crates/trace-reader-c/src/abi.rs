//! The structures of `trace-reader/c_api.h`, field by field. Fields are only ever added at the end of
//! [`Record`] and [`Argument`] keeps its size, because programs were compiled with these layouts.

use core::ptr;
use trace_reader::Text;

/// `trace_reader_text_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CText {
    pub data: *const u8,
    pub length: usize,
}

impl CText {
    pub const EMPTY: Self = Self { data: c"".as_ptr().cast(), length: 0 };

    pub const fn of(bytes: &[u8]) -> Self {
        // A pointer that C may read a byte from, even for an empty text.
        if bytes.is_empty() { Self::EMPTY } else { Self { data: bytes.as_ptr(), length: bytes.len() } }
    }
}

impl From<Text<'_>> for CText {
    fn from(text: Text<'_>) -> Self {
        Self::of(text.0)
    }
}

/// The union within `trace_reader_argument_t`. All fields start at its beginning; its size is that of `text`.
#[repr(C)]
#[derive(Clone, Copy)]
pub union CValue {
    pub number: u64,
    pub signed_number: i64,
    pub real: f64,
    pub text: CText,
}

/// `trace_reader_argument_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CArgument {
    pub name: CText,
    pub argument_type: u32,
    pub value: CValue,
}

/// `trace_reader_record_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Record {
    pub kind: u32,
    pub subtype: u32,
    pub offset: u64,
    pub provider: u32,
    pub has_time: bool,
    pub provider_name: CText,
    pub ticks: u64,
    pub nanos: u64,
    pub end_ticks: u64,
    pub end_nanos: u64,
    pub ticks_per_second: u64,
    pub process: u64,
    pub thread: u64,
    pub category: CText,
    pub name: CText,
    pub id: u64,
    pub value: u64,
    pub arguments: *const CArgument,
    pub num_arguments: usize,
    pub payload: CText,
    pub payload_bytes: u64,
    pub cpu: u32,
    pub outgoing_state: u32,
    pub outgoing_process: u64,
    pub outgoing_thread: u64,
    pub outgoing_priority: u32,
    pub incoming_priority: u32,
    pub module_start: u64,
    pub module_length: u64,
    pub module_linked_at: u64,
    pub frames: *const u64,
    pub num_frames: usize,
}

impl Record {
    /// Of no kind, with everything empty.
    pub const EMPTY: Self = Self {
        kind: 0,
        subtype: 0,
        offset: 0,
        provider: 0,
        has_time: false,
        provider_name: CText::EMPTY,
        ticks: 0,
        nanos: 0,
        end_ticks: 0,
        end_nanos: 0,
        ticks_per_second: 0,
        process: 0,
        thread: 0,
        category: CText::EMPTY,
        name: CText::EMPTY,
        id: 0,
        value: 0,
        arguments: ptr::null(),
        num_arguments: 0,
        payload: CText::EMPTY,
        payload_bytes: 0,
        cpu: 0,
        outgoing_state: 0,
        outgoing_process: 0,
        outgoing_thread: 0,
        outgoing_priority: 0,
        incoming_priority: 0,
        module_start: 0,
        module_length: 0,
        module_linked_at: 0,
        frames: ptr::null(),
        num_frames: 0,
    };
}

/// Kinds of records, as the header numbers them.
pub mod kind {
    pub const MAGIC: u32 = 1;
    pub const PROVIDER_INFO: u32 = 2;
    pub const PROVIDER_SECTION: u32 = 3;
    pub const PROVIDER_EVENT: u32 = 4;
    pub const INITIALIZATION: u32 = 5;
    pub const STRING: u32 = 6;
    pub const THREAD: u32 = 7;
    pub const EVENT: u32 = 8;
    pub const BLOB: u32 = 9;
    pub const USERSPACE_OBJECT: u32 = 10;
    pub const KERNEL_OBJECT: u32 = 11;
    pub const SCHEDULING: u32 = 12;
    pub const LOG: u32 = 13;
    pub const PROFILER: u32 = 14;
    pub const LARGE_BLOB: u32 = 15;
    pub const LARGE_BLOB_PART: u32 = 16;
    pub const LOSS: u32 = 17;
    pub const LEDGER: u32 = 18;
    pub const UNKNOWN: u32 = 19;
    pub const MALFORMED: u32 = 20;
    pub const DAMAGE: u32 = 21;
    pub const FUNCTION: u32 = 22;
}
