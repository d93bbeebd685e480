//! The engine itself, for programs with a buffer and a handler of their own.
//!
//! Invariant **E1**: handler and buffer are there from initialize until `trace_terminated` was called, and
//! may be used on any thread; the members of the handler's list are functions of these signatures, or null.
//! They may be called with any [`Host`], which is a pointer to a handler that is there.
#![allow(unsafe_code)]

use crate::abi::{self, CStrRef, ERR_BAD_STATE, ERR_INTERNAL, ERR_INVALID_ARGS, ERR_NO_MEMORY, OK, Status};
use crate::dispatcher::{Loop, Shared};
use crate::fork_lock::ForkLock;
use core::ptr::NonNull;
use std::ffi::CString;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trace_engine::engine::{self, Engine, Error, SaveRequest, State};
use trace_engine::{AlertHandler, BufferMode, Categories, Config, Disposition, Region};

/// How long a stop waits for threads inside an event.
const STOP_WAIT: Duration = Duration::from_secs(1);
/// How often the engine checks whether a stop may go on, or observers have acknowledged a start.
const INTERVAL: Duration = Duration::from_millis(1);
/// `ZX_ERR_CANCELED`: the dispatcher was shut down.
const CANCELED: Status = abi::ERR_CANCELED;

/// `trace_handler_ops_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Ops {
    is_category_enabled: Option<extern "C" fn(Host, CStrRef<'_>) -> bool>,
    trace_started: Option<extern "C" fn(Host)>,
    trace_stopped: Option<extern "C" fn(Host, Status)>,
    trace_terminated: Option<extern "C" fn(Host)>,
    notify_buffer_full: Option<extern "C" fn(Host, u32, u64)>,
    send_alert: Option<extern "C" fn(Host, CStrRef<'_>)>,
}

/// `trace_handler_t`.
#[repr(C)]
pub struct Handler {
    ops: *const Ops,
}

/// `trace_handler_t*`: the handler, on any thread. Only C makes one.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Host(NonNull<Handler>);

// SAFETY: a handler may be used on any thread (E1).
unsafe impl Send for Host {}
// SAFETY: a handler may be used on several threads at once (E1), and its own memory is only read.
unsafe impl Sync for Host {}

impl Host {
    fn ops(self) -> Option<Ops> {
        // SAFETY: the handler is there until `trace_terminated` was called, which is the last use of a
        // `Host`, and so is its list, unless that is null. The program does not change them meanwhile (E1).
        unsafe { self.0.as_ref().ops.as_ref() }.copied()
    }

    fn wants(self, category: &[u8]) -> bool {
        let Some(is_enabled) = self.ops().and_then(|ops| ops.is_category_enabled) else {
            return true;
        };
        CString::new(category).is_ok_and(|category| is_enabled(self, category.as_c_str().into()))
    }

    fn alert(self, name: &str) {
        if let (Some(send_alert), Ok(name)) = (self.ops().and_then(|ops| ops.send_alert), CString::new(name))
        {
            send_alert(self, name.as_c_str().into());
        }
    }

    fn started(self) {
        if let Some(report) = self.ops().and_then(|ops| ops.trace_started) {
            report(self);
        }
    }

    fn stopped(self, disposition: Status) {
        if let Some(report) = self.ops().and_then(|ops| ops.trace_stopped) {
            report(self, disposition);
        }
    }

    fn terminated(self) {
        if let Some(report) = self.ops().and_then(|ops| ops.trace_terminated) {
            report(self);
        }
    }

    fn full(self, request: SaveRequest) {
        if let Some(report) = self.ops().and_then(|ops| ops.notify_buffer_full) {
            report(self, request.wrapped_count, request.durable_bytes);
        }
    }
}

/// The trace of this program's own.
struct Hosted {
    engine: Arc<Engine>,
    host: Host,
    dispatcher: Arc<Shared>,
    /// The disposition for `trace_stopped`: the first that is not `OK`.
    disposition: Status,
    /// The trace is to be terminated after the stop.
    is_to_terminate: bool,
}

static HOSTED: ForkLock<Option<Hosted>> = ForkLock::new(None);

fn post(delay: Duration, task: fn()) {
    HOSTED.with(|hosted| {
        if let Some(hosted) = hosted {
            hosted.dispatcher.post(Instant::now() + delay, task);
        }
    });
}

fn engine() -> Option<Arc<Engine>> {
    HOSTED.with(|hosted| hosted.as_ref().map(|hosted| hosted.engine.clone()))
}

fn host() -> Option<Host> {
    HOSTED.with(|hosted| hosted.as_ref().map(|hosted| hosted.host))
}

pub unsafe extern "C" fn trace_engine_initialize(
    dispatcher: Option<&Loop>,
    handler: Option<Host>,
    mode: u32,
    buffer: *mut u8,
    bytes: usize,
) -> Status {
    let mode = match mode {
        0 => BufferMode::Oneshot,
        1 => BufferMode::Circular,
        2 => BufferMode::Streaming,
        _ => return ERR_INVALID_ARGS,
    };
    let (Some(dispatcher), Some(host), false, true) =
        (dispatcher.map(Loop::shared), handler, buffer.is_null(), buffer.addr().is_multiple_of(8))
    else {
        return ERR_INVALID_ARGS;
    };
    crate::layout::set_up();
    crate::library_election::stay_loaded();
    HOSTED.with(|none| {
        if none.is_some() {
            return ERR_BAD_STATE;
        }
        // SAFETY: aligned, by the check above; `bytes` bytes that the program leaves to the engine, on all
        // threads, until `trace_terminated` was called (E1), and the engine drops the region before that.
        let region = unsafe { Region::from_memory(buffer, bytes, Box::new(())) };
        region.clear();
        let rate = trace_provider::ticks_per_second();
        let mut config = Config::new(zx_sim::process_koid(), zx_sim::process_name(), rate);
        config.categories = Categories::Filter(Arc::new(move |category| host.wants(category)));
        config.alert = AlertHandler::new(move |name| host.alert(name));
        match engine::initialize(region, mode, config) {
            Ok(engine) => {
                let engine = Arc::new(engine);
                *none = Some(Hosted { engine, host, dispatcher, disposition: OK, is_to_terminate: false });
                OK
            }
            Err(Error::BadSize(_)) => ERR_INVALID_ARGS,
            Err(_) => ERR_BAD_STATE,
        }
    })
}

pub extern "C" fn trace_engine_start(mode: u32) -> Status {
    let disposition = match mode {
        1 => Disposition::ClearEntire,
        2 => Disposition::ClearNondurable,
        3 => Disposition::Retain,
        _ => return ERR_INVALID_ARGS,
    };
    let begin = |hosted: &mut Hosted| {
        hosted.disposition = OK;
        hosted.engine.clone()
    };
    let Some(engine) = HOSTED.with(|hosted| hosted.as_mut().map(begin)) else {
        return ERR_INTERNAL;
    };
    if engine.start(disposition, &[]).is_err() {
        return ERR_BAD_STATE;
    }
    post(Duration::ZERO, report_start);
    post(Duration::ZERO, service);
    OK
}

/// On the dispatcher: reports that recording has started, once all observers have handled it.
fn report_start() {
    if engine::is_start_pending() && engine::state() == State::Started {
        post(INTERVAL, report_start);
    } else if let Some(host) = host() {
        host.started();
    }
}

/// On the dispatcher: services a stream.
fn service() {
    if let Some(service) = engine().and_then(|engine| engine.service()) {
        if let (Some(host), Some(request)) = (host(), service.save) {
            host.full(request);
        }
        post(service.poll_after, self::service);
    }
}

pub extern "C" fn trace_engine_stop(disposition: Status) {
    stop(disposition);
}

fn stop(disposition: Status) {
    let end = |hosted: &mut Hosted| {
        if hosted.disposition == OK {
            hosted.disposition = disposition;
        }
        hosted.engine.clone()
    };
    let Some(engine) = HOSTED.with(|hosted| hosted.as_mut().map(end)) else {
        return;
    };
    if engine.begin_stop().is_ok() {
        post(Duration::ZERO, finish_stop);
    }
}

/// On the dispatcher: goes on with a stop when there are no references to the trace any more.
fn finish_stop() {
    let Some(engine) = engine() else {
        return;
    };
    if engine.has_prolonged_refs() && !is_abandoned() {
        post(INTERVAL, finish_stop);
        return;
    }
    if engine.finish_stop(Instant::now() + STOP_WAIT).is_err() {
        return;
    }
    let is_lossy = engine.records_refused() > 0;
    let finish = |hosted: &mut Hosted| {
        if is_lossy && hosted.disposition == OK {
            hosted.disposition = ERR_NO_MEMORY;
        }
        (hosted.host, hosted.disposition, hosted.is_to_terminate)
    };
    let found = HOSTED.with(|hosted| hosted.as_mut().map(finish));
    let Some((host, disposition, is_to_terminate)) = found else {
        return;
    };
    host.stopped(disposition);
    if is_to_terminate {
        terminate();
    }
}

/// Whether the dispatcher is being shut down, so that a stop does not wait for references any more.
fn is_abandoned() -> bool {
    let is_abandoned = |hosted: &Hosted| hosted.disposition == CANCELED && hosted.is_to_terminate;
    HOSTED.with(|hosted| hosted.as_ref().is_some_and(is_abandoned))
}

/// Terminates a trace that is not running.
fn terminate() {
    if engine().is_some_and(|engine| engine.terminate(Instant::now() + STOP_WAIT).is_ok())
        && let Some(hosted) = HOSTED.with(Option::take)
    {
        hosted.host.terminated();
    }
}

pub extern "C" fn trace_engine_terminate() {
    if HOSTED.with(|hosted| hosted.as_mut().map(|hosted| hosted.is_to_terminate = true)).is_none() {
        return;
    }
    match engine::state() {
        State::Started => stop(OK),
        State::Stopping => {}
        _ => terminate(),
    }
}

/// Ends the trace of this dispatcher, which is being shut down.
pub fn on_dispatcher_shutdown(dispatcher: &Arc<Shared>) {
    let cancel = |hosted: &mut Hosted| {
        hosted.is_to_terminate = true;
        if hosted.disposition == OK {
            hosted.disposition = CANCELED;
        }
        hosted.engine.clone()
    };
    let own = |hosted: &&mut Hosted| Arc::ptr_eq(&hosted.dispatcher, dispatcher);
    let Some(engine) = HOSTED.with(|hosted| hosted.as_mut().filter(own).map(cancel)) else {
        return;
    };
    let deadline = Instant::now() + STOP_WAIT;
    while engine.has_prolonged_refs() && Instant::now() < deadline {
        std::thread::sleep(INTERVAL);
    }
    let _ = engine.begin_stop();
    match engine::state() {
        State::Stopping => finish_stop(),
        _ => terminate(),
    }
}

pub extern "C" fn trace_engine_mark_buffer_saved(wrapped_count: u32, durable_bytes: u64) -> Status {
    let saved = SaveRequest { wrapped_count, durable_bytes };
    match engine().map(|engine| engine.mark_saved(saved)) {
        Some(Ok(())) => OK,
        Some(Err(_)) | None => ERR_BAD_STATE,
    }
}

pub extern "C" fn trace_engine_flush_buffer() -> Status {
    match engine().map(|engine| engine.flush()) {
        Some(Ok(())) => OK,
        Some(Err(_)) | None => ERR_BAD_STATE,
    }
}
