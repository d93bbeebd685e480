//! The structures of `trace-client/c_api.h`, field by field: programs were compiled with these layouts.

use core::ffi::c_char;
use trace_client::Report;

/// `trace_client_config_t`.
#[repr(C)]
pub struct CConfig {
    pub categories: *const c_char,
    pub programs: *const c_char,
    pub buffering_mode: u32,
    pub buffer_size_mib: u32,
    pub start_timeout_ms: u32,
    pub stop_timeout_ms: u32,
    pub write_period_ms: u32,
    pub memory_dump_interval_ms: u32,
    /// This and the next three are `bool` in the header: a caller's memory may have any value.
    pub thread_time: u8,
    pub mirror_markers: u8,
    pub is_private: u8,
    pub without_metadata: u8,
    pub max_size_mib: u32,
    pub reserved: [u32; 14],
}

/// `trace_client_snapshot_t`.
#[repr(C)]
pub struct CSnapshot {
    pub program: *const c_char,
    pub last_ms: u64,
    pub reserved: [u64; 4],
}

// As the header's: 104 bytes and 48, where pointers have 8.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<CConfig>() == 104 && size_of::<CSnapshot>() == 48);

/// `trace_client_report_t`.
#[repr(C)]
pub struct CReport {
    pub events: u64,
    pub dropped: u64,
    pub bytes: u64,
    pub is_complete: bool,
}

impl From<&Report> for CReport {
    fn from(report: &Report) -> Self {
        Self {
            events: report.events(),
            dropped: report.dropped(),
            bytes: report.bytes,
            is_complete: report.is_complete(),
        }
    }
}

/// `trace_client_provider_t`.
#[repr(C)]
pub struct CProvider {
    pub name: *const c_char,
    pub pid: u64,
    pub records: u64,
    pub dropped: u64,
    pub fill: f32,
}

/// Bytes of an alert's name, with a NUL.
pub const NAME_BYTES: usize = 16;

/// `trace_client_alert_t`.
#[repr(C)]
pub struct CAlert {
    pub name: [u8; NAME_BYTES],
    pub pid: u64,
}
