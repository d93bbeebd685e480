//! The functions of `trace-client/c_api.h`.
//!
//! Invariants, which the header asks of callers:
//!
//! * **R1** A client or a recording is one that a function returned and that was not freed yet; a function
//!   that frees it is the last that uses it.
//! * **R2** Other pointers are null where the header allows it, else valid for as long as the call takes;
//!   texts end in a NUL, and `error` has room for `error_size` bytes.
#![allow(unsafe_code)]

use crate::abi::{CAlert, CConfig, CProvider, CReport, NAME_BYTES};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use trace_client::{Alert, BufferingMode, Client, Config, Error, Pending, Recording, Report, Tool, problem};

/// `trace_client_provider_callback_t`.
type ProviderCallback = unsafe extern "C" fn(context: *mut c_void, provider: *const CProvider);

/// `trace_client_t`.
pub struct Handle {
    client: Client,
    directory: CString,
}

/// `trace_client_recording_t`.
pub struct RecordingHandle {
    recording: Recording,
    /// Asked for by calls whose time has passed.
    alerts: Mutex<Vec<Pending<Alert>>>,
}

/// Where a function writes why it has failed.
#[derive(Clone, Copy)]
struct Reason {
    to: *mut c_char,
    size: usize,
}

impl Reason {
    /// Writes a text with a NUL behind it, as much of it as there is room for.
    ///
    /// # Safety
    /// R2
    unsafe fn write(self, text: &str) {
        let Some(room) = self.size.checked_sub(1) else { return };
        if self.to.is_null() {
            return;
        }
        let text = &text[..text.floor_char_boundary(room)];
        // SAFETY: R2: there is room for `size` bytes, of which at most `room` and a NUL are written.
        unsafe {
            ptr::copy_nonoverlapping(text.as_ptr(), self.to.cast(), text.len());
            *self.to.add(text.len()) = 0;
        }
    }

    /// The value, or none and the reason.
    ///
    /// # Safety
    /// R2
    unsafe fn take<T>(self, result: Result<T, Error>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                // SAFETY: R2
                unsafe { self.write(&problem(&error).replace('\0', "")) };
                None
            }
        }
    }
}

/// # Safety
/// R2
unsafe fn path_of(text: *const c_char) -> PathBuf {
    // SAFETY: R2
    OsStr::from_bytes(unsafe { CStr::from_ptr(text) }.to_bytes()).into()
}

/// A text without a NUL in it.
fn c_string(bytes: &[u8]) -> CString {
    let bytes: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != 0).collect();
    CString::new(bytes).unwrap_or_default()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Connects to a manager, or starts one.
#[unsafe(no_mangle)]
unsafe extern "C" fn trace_client_open(
    tool: *const c_char,
    directory: *const c_char,
    error: *mut c_char,
    error_size: usize,
) -> *mut Handle {
    // SAFETY: R2
    let tool = if tool.is_null() { Tool::InPath } else { Tool::At(unsafe { path_of(tool) }) };
    let client = if directory.is_null() {
        Client::open_with(tool)
    } else {
        // SAFETY: R2
        Client::open_in(unsafe { path_of(directory) }, tool)
    };
    // SAFETY: R2
    let client = unsafe { Reason { to: error, size: error_size }.take(client.wait()) };
    client.map_or(ptr::null_mut(), |client| {
        let directory = c_string(client.directory().as_os_str().as_bytes());
        Box::into_raw(Box::new(Handle { client, directory }))
    })
}

/// The manager's runtime directory.
#[unsafe(no_mangle)]
unsafe extern "C" fn trace_client_get_directory(client: *const Handle) -> *const c_char {
    // SAFETY: R1
    unsafe { &*client }.directory.as_ptr()
}

/// Calls a function for each program that can be recorded.
#[unsafe(no_mangle)]
unsafe extern "C" fn trace_client_list_providers(
    client: *const Handle,
    callback: ProviderCallback,
    context: *mut c_void,
    error: *mut c_char,
    error_size: usize,
) -> bool {
    // SAFETY: R1
    let listed = unsafe { &*client }.client.providers().wait();
    // SAFETY: R2
    let Some(listed) = (unsafe { Reason { to: error, size: error_size }.take(listed) }) else {
        return false;
    };
    for provider in listed.listed {
        let name = c_string(provider.name.as_bytes());
        let found = CProvider { name: name.as_ptr(), pid: provider.pid, records: 0, dropped: 0, fill: 0.0 };
        // SAFETY: R2: it takes these arguments.
        unsafe { callback(context, &raw const found) };
    }
    true
}

/// Begins a recording.
#[unsafe(no_mangle)]
unsafe extern "C" fn trace_client_record(
    client: *const Handle,
    config: *const CConfig,
    path: *const c_char,
    error: *mut c_char,
    error_size: usize,
) -> *mut RecordingHandle {
    let reason = Reason { to: error, size: error_size };
    // SAFETY: R2
    let config = match unsafe { config.as_ref() } {
        None => Ok(Config::default()),
        // SAFETY: R2
        Some(config) => unsafe { config_of(config) },
    };
    // SAFETY: R2
    let Some(config) = (unsafe { reason.take(config) }) else {
        return ptr::null_mut();
    };
    // SAFETY: R1 and R2
    let (client, path) = unsafe { (&*client, path_of(path)) };
    // SAFETY: R2
    let recording = unsafe { reason.take(client.client.record(config, path).wait()) };
    recording.map_or(ptr::null_mut(), |recording| {
        Box::into_raw(Box::new(RecordingHandle { recording, alerts: Mutex::new(Vec::new()) }))
    })
}

/// # Safety
/// R2
unsafe fn config_of(config: &CConfig) -> Result<Config, Error> {
    let mut made = if config.categories.is_null() {
        Config::default()
    } else {
        // SAFETY: R2
        Config::of(&unsafe { CStr::from_ptr(config.categories) }.to_string_lossy())
    };
    let milliseconds = |count: u32| Duration::from_millis(count.into());
    if config.buffering_mode != 0 {
        let mode = u8::try_from(config.buffering_mode).ok();
        let mode = mode.and_then(|mode| BufferingMode::from_value(mode).ok());
        let wrong = || Error::Start(format!("there is no buffering mode {}", config.buffering_mode));
        made = made.mode(mode.ok_or_else(wrong)?);
    }
    if config.buffer_size_mib != 0 {
        made = made.buffer_size_mib(config.buffer_size_mib);
    }
    if config.start_timeout_ms != 0 {
        made = made.start_timeout(milliseconds(config.start_timeout_ms));
    }
    if config.stop_timeout_ms != 0 {
        made = made.stop_timeout(milliseconds(config.stop_timeout_ms));
    }
    Ok(made)
}

/// Writes what was recorded, if that is wanted.
///
/// # Safety
/// R2
unsafe fn finish(result: Result<Report, Error>, report: *mut CReport, reason: Reason) -> bool {
    // SAFETY: R2
    let Some(found) = (unsafe { reason.take(result) }) else {
        return false;
    };
    if !report.is_null() {
        // SAFETY: R2
        unsafe { report.write(CReport::from(&found)) };
    }
    true
}

/// Ends a recording.
#[unsafe(no_mangle)]
unsafe extern "C" fn trace_client_stop(
    recording: *mut RecordingHandle,
    report: *mut CReport,
    error: *mut c_char,
    error_size: usize,
) -> bool {
    // SAFETY: R1: it came from `Box::into_raw`, and is not used any more.
    let RecordingHandle { recording, .. } = *unsafe { Box::from_raw(recording) };
    // SAFETY: R2
    unsafe { finish(recording.stop().wait(), report, Reason { to: error, size: error_size }) }
}

/// Has programs hand over what they have.
#[unsafe(no_mangle)]
unsafe extern "C" fn trace_client_flush(
    recording: *const RecordingHandle,
    error: *mut c_char,
    error_size: usize,
) -> bool {
    // SAFETY: R1
    let flushed = unsafe { &*recording }.recording.flush().wait();
    // SAFETY: R2
    unsafe { Reason { to: error, size: error_size }.take(flushed) }.is_some()
}

/// Calls a function for each program that takes part.
#[unsafe(no_mangle)]
unsafe extern "C" fn trace_client_get_progress(
    recording: *const RecordingHandle,
    callback: ProviderCallback,
    context: *mut c_void,
    error: *mut c_char,
    error_size: usize,
) -> bool {
    // SAFETY: R1
    let progress = unsafe { &*recording }.recording.progress().wait();
    // SAFETY: R2
    let Some(progress) = (unsafe { Reason { to: error, size: error_size }.take(progress) }) else {
        return false;
    };
    for provider in progress {
        let name = c_string(provider.name.as_bytes());
        let found = CProvider {
            name: name.as_ptr(),
            pid: provider.pid,
            records: provider.records,
            dropped: provider.dropped,
            fill: provider.fill,
        };
        // SAFETY: R2: it takes these arguments.
        unsafe { callback(context, &raw const found) };
    }
    true
}

/// Waits for an alert.
#[unsafe(no_mangle)]
unsafe extern "C" fn trace_client_wait_for_alert(
    recording: *const RecordingHandle,
    timeout_ms: i64,
    alert: *mut CAlert,
    error: *mut c_char,
    error_size: usize,
) -> c_int {
    // SAFETY: R1
    let recording = unsafe { &*recording };
    let asked = lock(&recording.alerts).pop();
    let mut asked = asked.unwrap_or_else(|| recording.recording.alert());
    let wait = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
    let answer = match wait.and_then(|wait| Instant::now().checked_add(wait)) {
        None => Some(asked.wait()),
        Some(deadline) => match asked.wait_until(deadline) {
            Some(answer) => Some(answer),
            None => {
                // The next call gets it.
                lock(&recording.alerts).push(asked);
                None
            }
        },
    };
    let Some(answer) = answer else { return 0 };
    // SAFETY: R2
    let Some(found) = (unsafe { Reason { to: error, size: error_size }.take(answer) }) else {
        return -1;
    };
    let mut name = [0; NAME_BYTES];
    let text = &found.name[..found.name.floor_char_boundary(NAME_BYTES - 1)];
    name[..text.len()].copy_from_slice(text.as_bytes());
    // SAFETY: R2
    unsafe { alert.write(CAlert { name, pid: found.pid }) };
    1
}

/// Copies the buffers of what is being recorded.
#[unsafe(no_mangle)]
unsafe extern "C" fn trace_client_snapshot(
    client: *const Handle,
    path: *const c_char,
    report: *mut CReport,
    error: *mut c_char,
    error_size: usize,
) -> bool {
    // SAFETY: R1 and R2
    let (client, path) = unsafe { (&*client, path_of(path)) };
    // SAFETY: R2
    unsafe { finish(client.client.snapshot(path).wait(), report, Reason { to: error, size: error_size }) }
}

/// Frees a client.
#[unsafe(no_mangle)]
unsafe extern "C" fn trace_client_close(client: *mut Handle) {
    if !client.is_null() {
        // SAFETY: R1: it came from `Box::into_raw`, and is not used any more.
        drop(unsafe { Box::from_raw(client) });
    }
}
