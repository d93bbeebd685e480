//! Recordings inside one process.
//!
//! Invariant **L1**: the function that pieces of an archive are delivered to may be called on the thread that
//! flushes, with the context that it was given with, until the flush returns.
//= docs/c.md#recordings-inside-one-process
#![allow(unsafe_code)]

use crate::abi::{CStrRef, Out};
use crate::layout;
use core::ffi::c_void;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;
use trace_provider::local::{self, Summary};
use trace_provider::startup::{BufferMode, Options};
use zx_sim::debuglog;

/// `trace_local_flush_callback_t`.
pub type Deliver = unsafe extern "C" fn(context: *mut c_void, bytes: *const u8, size: usize, is_last: bool);

/// `trace_local_summary_t`.
#[repr(C)]
pub struct CSummary {
    events: u64,
    dropped: u64,
}

impl From<Summary> for CSummary {
    fn from(summary: Summary) -> Self {
        Self { events: summary.events, dropped: summary.dropped.unwrap_or(0) }
    }
}

/// `trace_local_options_t`.
#[repr(C)]
pub struct COptions<'a> {
    categories: CStrRef<'a>,
    mode: u32,
    mebibytes: u32,
    thread_time: bool,
}

/// Says on stderr why something is not possible.
fn reported<T>(what: &str, result: io::Result<T>) -> Option<T> {
    let say = |reason: &io::Error| {
        debuglog::write_for_process(&format!("trace: {what}: {reason}"));
    };
    result.inspect_err(say).ok()
}

fn path_of(path: CStrRef<'_>) -> &Path {
    Path::new(OsStr::from_bytes(path.whole_bytes()))
}

/// 0 is all.
fn last(milliseconds: u64) -> Option<Duration> {
    (milliseconds > 0).then(|| Duration::from_millis(milliseconds))
}

fn finish(what: &str, result: io::Result<Summary>, out: Out<'_, CSummary>) -> bool {
    reported(what, result).map(|summary| out.write(summary.into())).is_some()
}

pub extern "C" fn trace_local_start(categories: CStrRef<'_>, mode: u32, mebibytes: u32) -> bool {
    trace_local_start_with(Some(&COptions { categories, mode, mebibytes, thread_time: false }))
}

pub extern "C" fn trace_local_start_with(given: Option<&COptions<'_>>) -> bool {
    let Some(given) = given else { return false };
    layout::set_up();
    let mut options = Options::of(&given.categories.to_string_lossy().unwrap_or_default());
    options.thread_time = given.thread_time;
    options.mode = match given.mode {
        0 => BufferMode::Oneshot,
        1 => BufferMode::Circular,
        _ => BufferMode::Streaming,
    };
    if given.mebibytes > 0 {
        options.buffer_mebibytes = given.mebibytes.into();
    }
    reported("no local recording", local::start(&options)).is_some()
}

pub extern "C" fn trace_local_get_summary(out: Out<'_, CSummary>) -> bool {
    finish("what the local recording has is not known", local::so_far(), out)
}

pub extern "C" fn trace_local_is_recording() -> bool {
    local::is_recording()
}

pub extern "C" fn trace_local_stop() -> bool {
    local::stop()
}

pub extern "C" fn trace_local_flush(
    deliver: Option<Deliver>,
    context: *mut c_void,
    out: Out<'_, CSummary>,
) -> bool {
    let flushed = local::flush(|bytes, is_last| {
        if let Some(deliver) = deliver {
            // SAFETY: L1; the bytes stay for the call.
            unsafe { deliver(context, bytes.as_ptr(), bytes.len(), is_last) };
        }
    });
    finish("the local recording cannot be delivered", flushed, out)
}

pub extern "C" fn trace_local_flush_to_file(path: CStrRef<'_>, out: Out<'_, CSummary>) -> bool {
    finish("the local recording cannot be saved", local::flush_to_file(path_of(path)), out)
}

pub extern "C" fn trace_local_snapshot_to_file(
    path: CStrRef<'_>,
    last_ms: u64,
    out: Out<'_, CSummary>,
) -> bool {
    finish("no snapshot", local::snapshot_to_file(path_of(path), last(last_ms)), out)
}

pub extern "C" fn trace_local_prepare_snapshot(path: CStrRef<'_>, last_ms: u64) {
    local::prepare_snapshot(path_of(path), last(last_ms));
}

pub extern "C" fn trace_local_request_snapshot() {
    local::request_snapshot();
}

pub extern "C" fn trace_local_wait_for_snapshot(timeout_ms: u64) -> bool {
    local::wait_for_snapshot(Duration::from_millis(timeout_ms))
}
