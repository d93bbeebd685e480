//! One trace of this process: from Initialize to Terminate.

use crate::linux::atrace;
use crate::linux::buffer;
use crate::linux::config;
use crate::linux::startup::{self, Directory, Left, Purpose};
use crate::linux::unrecorded::Unrecorded;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};
use trace_engine::engine::{Engine, SaveRequest};
use trace_engine::{
    AlertHandler, BUFFER_VERSION, BufferMode, Categories, Config, Disposition, Mirror, ThreadKoids,
    WakeHandler, engine,
};
use trace_protocol::fifo::{FIFO_DEPTH, FIFO_VERSION, PACKET_BYTES};
use trace_protocol::provider::ProviderConfig;
use trace_protocol::{BufferDisposition, FifoRequest};
use zx_sim::{Fifo, Handle, PidNamespace, Signals, ThreadNumbers, Vmo};

/// Why a second provider of a process is not recorded.
const OTHER_PROVIDER: &str = ", through another provider";
/// How long a stop waits for threads that are inside an event.
const STOP_WAIT: Duration = Duration::from_secs(1);
/// How soon a packet is tried again that did not fit into the FIFO.
const RESEND_INTERVAL: Duration = Duration::from_millis(2);
/// How often a stream is looked at where no wakes arrive.
const DEAF_INTERVAL: Duration = Duration::from_millis(1);
/// How often the session checks whether all observers have acknowledged a start.
const OBSERVER_INTERVAL: Duration = Duration::from_millis(1);
/// How often the session checks whether there are references to a trace that is to stop.
const REFERENCE_INTERVAL: Duration = Duration::from_millis(1);
/// Packets that wait for room in the FIFO, those of one alert in a row as one; further alerts are dropped.
const MAX_UNSENT: usize = 64;

/// It has the engine, and one end of the FIFO.
#[derive(Debug)]
pub(crate) struct Session {
    /// None while the program still records into a buffer of its own.
    engine: Option<Engine>,
    /// What it goes over to from there.
    prepared: Option<Box<Prepared>>,
    /// The manager takes what was recorded there.
    takes_startup: bool,
    /// With the pages of its open scopes.
    takes_scopes: bool,
    /// The directory of that buffer, once it was left.
    left: Option<Directory>,
    /// The manager's buffer, its size and mode, and the rate of its timestamps.
    #[cfg(feature = "local")]
    buffer: Box<(Vmo, u64, BufferMode, u64)>,
    fifo: Fifo,
    state: State,
    /// Recording has started, which is not reported to the manager yet, as an observer in this process has
    /// not handled it.
    start_is_pending: bool,
    /// Packets of the manager's that said of another half that it is saved.
    wrong_saves: u64,
    /// Packets that did not fit into the FIFO yet, and how often each is to be sent.
    unsent: VecDeque<(FifoRequest, u64)>,
}

/// The manager's buffer, and how to record into it.
#[derive(Debug)]
struct Prepared {
    vmo: Vmo,
    /// Bytes at its end that are for open scopes.
    scope_bytes: u64,
    mode: BufferMode,
    config: Config,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Initialized,
    Started,
    Stopped,
}

impl Session {
    /// Maps the buffer and hands it to the engine. On an error the handles are dropped, which the manager
    /// sees.
    pub fn initialize(
        config: ProviderConfig<Handle>,
        alert: AlertHandler,
        wake: WakeHandler,
        namespace: Option<&PidNamespace>,
    ) -> Result<Self, Unrecorded> {
        if config.buffer_header_version != BUFFER_VERSION {
            return Err(Unrecorded::BufferHeader { found: config.buffer_header_version });
        }
        if !zx_sim::ticks::adopt(&config.tick_source) {
            return Err(Unrecorded::Clock { found: config.tick_source });
        }
        let mode = BufferMode::from(config.buffering_mode);
        let fifo = Fifo::from_handle(config.fifo, PACKET_BYTES, FIFO_DEPTH)?;
        let vmo = Vmo::from_handle(config.buffer).map_err(Unrecorded::Unmappable)?;
        let missing = vmo.size().and_then(|size| Ok(size.saturating_sub(vmo.backed_bytes()?)));
        buffer::check_room(missing.map_err(Unrecorded::Unmappable)?)?;
        let (takes_startup, takes_scopes) = (config.takes_startup, config.takes_scopes);
        let scope_bytes = config.scope_bytes;
        let process = config.process_koid.unwrap_or_else(zx_sim::process_koid);
        let thread_koids = thread_koids(process, namespace.map(PidNamespace::numbers));
        let config = Config {
            process,
            process_name: zx_sim::process_name(),
            ticks_per_second: config.ticks_per_second,
            categories: Categories::Listed(config.categories),
            alert,
            wake,
            thread_time: config.thread_time,
            thread_koids,
            mirror: mirror(config.mirror_markers),
            privacy: config.privacy,
        };
        let mut session = Self {
            engine: None,
            prepared: None,
            takes_startup,
            takes_scopes,
            left: None,
            #[cfg(feature = "local")]
            buffer: {
                let size = vmo.size().map_err(Unrecorded::Unmappable)?.saturating_sub(scope_bytes);
                let vmo = vmo.duplicate().map_err(Unrecorded::Unmappable)?;
                Box::new((vmo, size, mode, config.ticks_per_second))
            },
            fifo,
            state: State::Initialized,
            start_is_pending: false,
            wrong_saves: 0,
            unsent: VecDeque::new(),
        };
        let prepared = Prepared { vmo, scope_bytes, mode, config };
        if startup::is_recording() {
            session.prepared = Some(Box::new(prepared));
        } else {
            session.engine = Some(prepared.initialize()?);
        }
        Ok(session)
    }

    /// What is open while the session lasts.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 1] {
        [self.fifo.as_fd()]
    }

    /// Whether it records, or has.
    pub fn has_started(&self) -> bool {
        self.state != State::Initialized
    }

    /// The manager's buffer, its size, the mode and the rate.
    #[cfg(feature = "local")]
    pub fn buffer(&self) -> Option<(Vmo, u64, BufferMode, u64)> {
        let (vmo, size, mode, rate) = &*self.buffer;
        Some((vmo.duplicate().ok()?, *size, *mode, *rate))
    }

    /// The FIFO, to wait for.
    pub fn fifo(&self) -> &Fifo {
        &self.fifo
    }

    /// Starts recording, for the first time or again; the error is the reason why that is not possible. What
    /// the program has recorded into a buffer of its own is handed over before the start is reported.
    pub fn start(
        &mut self,
        disposition: BufferDisposition,
        additional_categories: &[String],
        hand_over: impl FnOnce(HandedOver),
    ) -> Result<(), Unrecorded> {
        let disposition = match disposition {
            BufferDisposition::ClearEntire => Disposition::ClearEntire,
            BufferDisposition::ClearNondurable => Disposition::ClearNondurable,
            BufferDisposition::Retain => Disposition::Retain,
        };
        match self.go_over(additional_categories)? {
            Some(Some(handed_over)) => hand_over(handed_over),
            Some(None) => {}
            None => {
                let engine = self.engine.as_ref().ok_or(Unrecorded::NoBuffer)?;
                engine.start(disposition, additional_categories)?;
            }
        }
        self.state = State::Started;
        atrace::want(true);
        self.start_is_pending = true;
        self.report_start();
        Ok(())
    }

    /// Goes on in the manager's buffer, if the program has recorded into one of its own so far; returns that
    /// if the manager takes it.
    //= docs/protocol.md#what-was-recorded-before
    fn go_over(
        &mut self,
        additional_categories: &[String],
    ) -> Result<Option<Option<HandedOver>>, Unrecorded> {
        let Some(Prepared { vmo, scope_bytes, mode, config }) = self.prepared.as_deref() else {
            return Ok(None);
        };
        let Some(gone_over) = startup::go_over((vmo, *scope_bytes), *mode, config, additional_categories)
        else {
            // It has ended meanwhile.
            self.engine = self.prepared.take().map(|prepared| prepared.initialize()).transpose()?;
            return Ok(None);
        };
        let (engine, left) = gone_over?;
        let has_one_clock = left.ticks_per_second == config.ticks_per_second;
        if let Some(prepared) = self.prepared.take() {
            set_config(prepared.mode, &prepared.config);
        }
        self.engine = Some(engine);
        let Left { directory, mode, is_quiet, purpose, .. } = left;
        if purpose == Purpose::Print {
            directory.delete();
            return Ok(Some(None));
        }
        let may_be_taken = self.takes_startup && has_one_clock && is_quiet;
        let handed_over = may_be_taken.then(|| Vmo::open(&directory.buffer()).ok()).flatten();
        // The engine has left it.
        let handed_over = handed_over.filter(|buffer| self.takes_scopes || startup::drop_scopes(buffer));
        self.left = Some(directory);
        Ok(Some(handed_over.map(|buffer| HandedOver { buffer: buffer.into_handle(), mode })))
    }

    /// Reports the start to the manager, if all observers in this process have handled it.
    fn report_start(&mut self) {
        if self.start_is_pending && !engine::is_start_pending() {
            self.start_is_pending = false;
            self.send(FifoRequest::Started { version: FIFO_VERSION });
        }
    }

    /// Does what is due while recording. When to look again, if not only when something happens; `is_deaf`
    /// where no wakes arrive.
    pub fn service(&mut self, is_deaf: bool) -> Option<Instant> {
        self.report_start();
        let service = self.engine.as_ref().and_then(Engine::service);
        if let Some(SaveRequest { wrapped_count, durable_bytes }) = service.and_then(|service| service.save) {
            self.send(FifoRequest::SaveBuffer { wrapped_count, durable_data_end: durable_bytes });
        }
        self.send_unsent();
        let resend = (!self.unsent.is_empty()).then_some(RESEND_INTERVAL);
        let poll = service.map(|service| match is_deaf {
            true => service.poll_after.min(DEAF_INTERVAL),
            false => service.poll_after,
        });
        let back = self.engine.as_ref().and_then(Engine::back_ahead);
        let look = self.start_is_pending.then_some(OBSERVER_INTERVAL);
        let turn = if self.state == State::Started { trace_engine::engine::turn(false) } else { None };
        [resend, poll, look, back, turn].into_iter().flatten().min().map(|delay| Instant::now() + delay)
    }

    /// Hands over what was recorded so far, in streaming mode.
    pub fn flush(&mut self) {
        // In other modes there is nothing to hand over.
        let _ = self.engine.as_ref().map(Engine::flush);
    }

    /// Reports an alert to the manager.
    pub fn alert(&mut self, name: String) {
        let alert = FifoRequest::Alert { name };
        let has_room = self.unsent.len() < MAX_UNSENT;
        match self.unsent.back_mut() {
            Some((last, times)) if *last == alert => *times += 1,
            _ if has_room => self.send(alert),
            _ => {}
        }
    }

    /// Stops recording and reports that when the buffer is complete.
    pub fn stop(&mut self) {
        if self.state != State::Started || self.engine.is_none() {
            return;
        }
        self.state = State::Stopped;
        atrace::want(false);
        self.start_is_pending = false;
        let deadline = Instant::now() + STOP_WAIT;
        if self.engine.as_ref().is_some_and(|engine| engine.begin_stop().is_ok()) {
            self.serve_references(deadline);
        }
        match self.engine.as_ref().map(|engine| engine.finish_stop(deadline)) {
            Some(Ok(stopped)) if stopped.stragglers == 0 => self.send(FifoRequest::Stopped),
            // The manager's own timeout expires, and it reads the buffer as one that is still being written.
            _ => {}
        }
    }

    /// Waits until there are no references that delay the stop: their owners write what they still have,
    /// which, while streaming, may be more than has room.
    fn serve_references(&mut self, deadline: Instant) {
        let has_references =
            |engine: &Option<Engine>| engine.as_ref().is_some_and(Engine::has_prolonged_refs);
        while has_references(&self.engine) && Instant::now() < deadline {
            let _ = self.service(true);
            let soon = (Instant::now() + REFERENCE_INTERVAL).min(deadline);
            let answered = zx_sim::wait_one(&self.fifo, Signals::READABLE, Some(soon));
            if answered.is_ok() && !self.read_fifo() {
                return;
            }
        }
    }

    /// Reads what the manager sent; false if it broke the protocol or is gone.
    pub fn read_fifo(&mut self) -> bool {
        let mut packet = [0; PACKET_BYTES];
        loop {
            match self.fifo.read(&mut packet) {
                Ok(()) => {}
                Err(error) => return matches!(error, zx_sim::Error::ShouldWait),
            }
            let Ok(FifoRequest::BufferSaved { wrapped_count, durable_data_end }) =
                FifoRequest::from_manager(&packet)
            else {
                return false;
            };
            let saved = SaveRequest { wrapped_count, durable_bytes: durable_data_end };
            if let Some(Err(error)) = self.engine.as_ref().map(|engine| engine.mark_saved(saved)) {
                // Such as the answer to a request from before the buffer was cleared. A manager may send any
                // number of them.
                self.wrong_saves += 1;
                if self.wrong_saves.is_power_of_two() {
                    let text = format!("trace: buffer saved: {error} ({} such)", self.wrong_saves);
                    zx_sim::debuglog::write_for_process(&text);
                }
            }
        }
    }

    fn send(&mut self, request: FifoRequest) {
        self.unsent.push_back((request, 1));
        self.send_unsent();
    }

    /// Sends what there is room for, in order.
    fn send_unsent(&mut self) {
        while let Some((request, times)) = self.unsent.front_mut() {
            let sent = request.encode().map(|packet| self.fifo.write(&packet));
            if matches!(sent, Ok(Err(zx_sim::Error::ShouldWait))) {
                return;
            }
            // Sent; or the manager is gone, which will be noticed; or no packet can say it.
            *times -= 1;
            if *times == 0 {
                self.unsent.pop_front();
            }
        }
    }
}

/// A buffer of the program's own that the manager is to archive.
#[derive(Debug)]
pub(crate) struct HandedOver {
    pub buffer: Handle,
    pub mode: BufferMode,
}

impl Prepared {
    /// Hands the manager's buffer to the engine.
    fn initialize(self) -> Result<Engine, Unrecorded> {
        let Self { vmo, scope_bytes, mode, config } = self;
        set_config(mode, &config);
        // A child would have the buffer, as long as that is not the engine's.
        engine::without_forks(|| {
            let region = buffer::region(&vmo, scope_bytes).map_err(Unrecorded::Unmappable)?;
            engine::initialize(region, mode, config).map_err(|error| match error {
                engine::Error::BadState { .. } => Unrecorded::Already { by: OTHER_PROVIDER },
                error => error.into(),
            })
        })
    }
}

/// Has the application find what is recorded.
fn set_config(mode: BufferMode, config: &Config) {
    if let Categories::Listed(categories) = &config.categories {
        config::set_config(Some(config::Config { mode, categories: categories.clone() }));
    }
}

/// How long the manager gets to take what is still to be sent when this process leaves, such as its last
/// alerts.
const LAST_WAIT: Duration = Duration::from_millis(500);

impl Session {
    /// Ends without using or closing a descriptor: the program has closed them.
    pub fn abandon(self) {
        self.end_recording();
        core::mem::forget(self);
    }

    fn end_recording(&self) {
        // Without one, the program goes on to record into its own buffer.
        if let Some(engine) = &self.engine {
            let _ = engine.terminate(Instant::now() + STOP_WAIT);
            config::set_config(None);
            atrace::want(false);
        }
    }

    /// Sends the rest, as far as the manager takes it in time.
    fn send_last(&mut self) {
        let deadline = Instant::now() + LAST_WAIT;
        self.send_unsent();
        while !self.unsent.is_empty() && Instant::now() < deadline {
            std::thread::sleep(RESEND_INTERVAL);
            self.send_unsent();
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stop();
        self.send_last();
        self.left.iter().for_each(Directory::delete_if_empty);
        self.end_recording();
    }
}

/// What writes marks of events for the kernel, if a recording asks for it.
//= docs/kernel.md#mirrored-events
fn mirror(is_wanted: bool) -> Option<Mirror> {
    if is_wanted && !atrace::can_mirror() {
        zx_sim::debuglog::write_for_process(
            "trace: events are not mirrored: this program cannot write to trace_marker in \
             /sys/kernel/tracing",
        );
    }
    (is_wanted && atrace::can_mirror()).then_some(atrace::mirror)
}

/// By which numbers the threads of this process are recorded, which has this number for the manager.
//= docs/protocol.md#pid-namespaces
fn thread_koids(process: u64, numbers: Option<ThreadNumbers>) -> ThreadKoids {
    let own = zx_sim::process_koid();
    if process == own && numbers.is_none() {
        return ThreadKoids::default();
    }
    ThreadKoids::new(move |thread| {
        let number = numbers.as_ref().and_then(|numbers| numbers.of(thread));
        number.map_or_else(|| number_of_its_own(own, process, thread), u64::from)
    })
}

/// A thread's number where its number for the manager cannot be found out. The first thread has that of its
/// process; of others with equal numbers in their namespaces each has another process.
fn number_of_its_own(own: u64, process: u64, thread: u32) -> u64 {
    let thread = u64::from(thread);
    if thread == own { process } else { process << 32 | thread }
}

#[cfg(test)]
mod tests {
    use super::number_of_its_own;

    //= docs/protocol.md#pid-namespaces
    #[test]
    fn threads_of_two_processes_have_different_numbers() {
        let first = [1, 2, 3].map(|thread| number_of_its_own(1, 4000, thread));
        let second = [1, 2, 3].map(|thread| number_of_its_own(1, 4001, thread));
        assert_eq!((first[0], second[0]), (4000, 4001));
        assert!(first.iter().all(|number| !second.contains(number)));
        // No process or thread of the manager's namespace has such a number.
        assert!(first[1..].iter().all(|number| *number > u64::from(u32::MAX)));
    }
}
