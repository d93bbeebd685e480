//! The functions of `trace-client/c_api.h`.
//!
//! Invariants, which the header asks of callers:
//!
//! * **R1** A client or a recording is one that a function returned and that was not freed yet; a function
//!   that frees it is the last that uses it.
//! * **R2** Other pointers are null where the header allows it, else valid for as long as the call takes;
//!   texts end in a NUL, and `error` has room for `error_size` bytes.
#![allow(unsafe_code)]

use crate::abi::{CAlert, CConfig, CProvider, CReport, CSnapshot, NAME_BYTES};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use std::borrow::Cow;
use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use trace_client::{
    Alert, BufferingMode, Client, Config, Error, MemoryDumpLevel, Pending, Recording, Report, Snapshot, Tool,
    problem,
};

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

/// A text, or none.
///
/// # Safety
/// R2
unsafe fn text_of<'a>(text: *const c_char) -> Option<Cow<'a, str>> {
    // SAFETY: R2
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy())
}

/// # Safety
/// R2
unsafe fn config_of(config: &CConfig) -> Result<Config, Error> {
    let refused = |why: &str| Error::Start(why.to_owned().into());
    if config.reserved != [0; 14] {
        return Err(refused("the configuration was not zeroed, or has fields of a later version"));
    }
    // SAFETY: R2
    let categories = unsafe { text_of(config.categories) };
    let mut made = categories.map_or_else(Config::default, |list| Config::of(&list));
    // SAFETY: R2
    if let Some(programs) = unsafe { text_of(config.programs) } {
        let mut names = programs.split(',').map(str::trim).filter(|name| !name.is_empty()).peekable();
        names.peek().ok_or_else(|| refused("no program is named"))?;
        made = names.fold(made, Config::program);
    }
    if config.buffering_mode != 0 {
        let mode = u8::try_from(config.buffering_mode).ok();
        let mode = mode.and_then(|mode| BufferingMode::from_value(mode).ok());
        let wrong = || refused(&format!("there is no buffering mode {}", config.buffering_mode));
        made = made.mode(mode.ok_or_else(wrong)?);
    }
    if config.buffer_size_mib != 0 {
        made = made.buffer_size_mib(config.buffer_size_mib);
    }
    let set = |milliseconds: u32| (milliseconds != 0).then(|| Duration::from_millis(milliseconds.into()));
    if let Some(wait) = set(config.start_timeout_ms) {
        made = made.start_timeout(wait);
    }
    if let Some(wait) = set(config.stop_timeout_ms) {
        made = made.stop_timeout(wait);
    }
    if let Some(period) = set(config.write_period_ms) {
        made = made.write_period(period);
    }
    if let Some(interval) = set(config.memory_dump_interval_ms) {
        made = made.memory_dumps(interval, MemoryDumpLevel::Detailed);
    }
    if config.thread_time != 0 {
        made = made.thread_time();
    }
    if config.mirror_markers != 0 {
        made = made.mirror_markers();
    }
    if config.is_private != 0 {
        made = made.private();
    }
    if config.without_metadata != 0 {
        made = made.without_metadata();
    }
    if config.max_size_mib != 0 {
        made = made.max_size(u64::from(config.max_size_mib) << 20);
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
    // Another thread that has them, or had them when this process was forked, is not waited for.
    let asked = recording.alerts.try_lock().ok().and_then(|mut alerts| alerts.pop());
    let mut asked = asked.unwrap_or_else(|| recording.recording.alert());
    let wait = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
    let answer = match wait.and_then(|wait| Instant::now().checked_add(wait)) {
        None => Some(asked.wait()),
        Some(deadline) => match asked.wait_until(deadline) {
            Some(answer) => Some(answer),
            None => {
                // The next call gets it; so it does of one that is dropped.
                if let Ok(mut alerts) = recording.alerts.try_lock() {
                    alerts.push(asked);
                }
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
unsafe extern "C" fn trace_client_take_snapshot(
    client: *const Handle,
    snapshot: *const CSnapshot,
    path: *const c_char,
    report: *mut CReport,
    error: *mut c_char,
    error_size: usize,
) -> bool {
    let reason = Reason { to: error, size: error_size };
    // SAFETY: R2
    let snapshot = match unsafe { snapshot.as_ref() } {
        None => Ok(Snapshot::default()),
        // SAFETY: R2
        Some(snapshot) => unsafe { snapshot_of(snapshot) },
    };
    // SAFETY: R2
    let Some(snapshot) = (unsafe { reason.take(snapshot) }) else {
        return false;
    };
    // SAFETY: R1 and R2
    let (client, path) = unsafe { (&*client, path_of(path)) };
    // SAFETY: R2
    unsafe { finish(client.client.snapshot(snapshot, path).wait(), report, reason) }
}

/// # Safety
/// R2
unsafe fn snapshot_of(snapshot: &CSnapshot) -> Result<Snapshot, Error> {
    if snapshot.reserved != [0; 4] {
        let why = "it was not zeroed, or has fields of a later version";
        return Err(Error::Snapshot(io::Error::new(io::ErrorKind::InvalidInput, why)));
    }
    // SAFETY: R2
    let program = unsafe { text_of(snapshot.program) };
    let made = program.map_or_else(Snapshot::default, |program| Snapshot::of(&program));
    Ok(match snapshot.last_ms {
        0 => made,
        last => made.last(Duration::from_millis(last)),
    })
}

/// Frees a client.
#[unsafe(no_mangle)]
unsafe extern "C" fn trace_client_close(client: *mut Handle) {
    if !client.is_null() {
        // SAFETY: R1: it came from `Box::into_raw`, and is not used any more.
        drop(unsafe { Box::from_raw(client) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: CConfig = CConfig {
        categories: ptr::null(),
        programs: ptr::null(),
        buffering_mode: 0,
        buffer_size_mib: 0,
        start_timeout_ms: 0,
        stop_timeout_ms: 0,
        write_period_ms: 0,
        memory_dump_interval_ms: 0,
        thread_time: 0,
        mirror_markers: 0,
        is_private: 0,
        without_metadata: 0,
        max_size_mib: 0,
        reserved: [0; 14],
    };

    fn config(config: &CConfig) -> Result<Config, String> {
        // SAFETY: R2: the texts are constants.
        unsafe { config_of(config) }.map_err(|error| error.to_string())
    }

    //= docs/client.md#from-c
    #[test]
    fn each_field_of_a_configuration_is_one_setting() {
        let time = |milliseconds| Duration::from_millis(milliseconds);
        let (categories, programs) = (c"a, -b".as_ptr(), c"one, two,".as_ptr());
        let plain = Config::default;
        assert_eq!(config(&NONE), Ok(plain()));
        let pairs = [
            (CConfig { categories, ..NONE }, Config::of("a,-b")),
            (CConfig { programs, ..NONE }, plain().program("one").program("two")),
            (CConfig { buffering_mode: 2, ..NONE }, plain().mode(BufferingMode::Circular)),
            (CConfig { buffer_size_mib: 7, ..NONE }, plain().buffer_size_mib(7)),
            (CConfig { start_timeout_ms: 1, ..NONE }, plain().start_timeout(time(1))),
            (CConfig { stop_timeout_ms: 2, ..NONE }, plain().stop_timeout(time(2))),
            (CConfig { write_period_ms: 3, ..NONE }, plain().write_period(time(3))),
            (
                CConfig { memory_dump_interval_ms: 4, ..NONE },
                plain().memory_dumps(time(4), MemoryDumpLevel::Detailed),
            ),
            (CConfig { thread_time: 1, ..NONE }, plain().thread_time()),
            (CConfig { mirror_markers: 255, ..NONE }, plain().mirror_markers()),
            (CConfig { is_private: 1, ..NONE }, plain().private()),
            (CConfig { without_metadata: 1, ..NONE }, plain().without_metadata()),
            (CConfig { max_size_mib: 3, ..NONE }, plain().max_size(3 << 20)),
        ];
        for (number, (given, expected)) in pairs.iter().enumerate() {
            assert_eq!(config(given).as_ref(), Ok(expected), "{number}");
            assert_ne!(*expected, plain(), "{number}");
        }
    }

    //= docs/client.md#from-c
    #[test]
    fn fields_of_later_versions_and_empty_lists_are_refused() {
        let mut later = NONE;
        later.reserved[13] = 1;
        assert!(config(&later).unwrap_err().contains("fields of a later version"));
        let nameless = CConfig { programs: c" ,".as_ptr(), ..NONE };
        assert!(config(&nameless).unwrap_err().ends_with("no program is named"));
        let mut snapshot = CSnapshot { program: c"app".as_ptr(), last_ms: 5, reserved: [0; 4] };
        // SAFETY: R2: the texts are constants.
        let made = |snapshot: &CSnapshot| unsafe { snapshot_of(snapshot) };
        assert_eq!(made(&snapshot).unwrap(), Snapshot::of("app").last(Duration::from_millis(5)));
        snapshot.reserved[3] = 1;
        assert!(problem(&made(&snapshot).unwrap_err()).contains("fields of a later version"));
    }
}
