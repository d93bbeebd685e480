//! The structures of `trace-client/c_api.h`, field by field: programs were compiled with these layouts.

use core::ffi::c_char;
use trace_client::Report;

/// `trace_client_config_t`.
#[repr(C)]
pub struct CConfig {
    pub categories: *const c_char,
    pub buffering_mode: u32,
    pub buffer_size_mib: u32,
    pub start_timeout_ms: u32,
    pub stop_timeout_ms: u32,
}

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
