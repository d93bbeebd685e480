//! Where a live picture comes from: the running recording, or one of the command's own beside it.

use super::keys::Keys;
use super::own::{self, Output, Own};
use crate::connection::{Connection, NOTHING_RECORDED};
use crate::exit::Failure;
use crate::own_manager;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::ffi::OsString;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use trace_protocol::controller::{ObserveError, ObserveOptions, ProvisionerRequest, ProvisionerResponse};
use zx_sim::{Handle, Socket};

/// How often a new recording is looked for until it has begun.
const BEGIN_INTERVAL: Duration = Duration::from_millis(10);

/// What is observed.
pub enum Source {
    /// The recording that was running.
    Running(Socket),
    /// A recording of the command's own.
    Own(Socket, Own),
    /// Nothing: the command's own recording has ended before, with this exit code.
    Ended(u8),
}

/// Observes the running recording, or begins one with these arguments of `trace record`, or with none if
/// nothing is being recorded.
pub fn begin(
    arguments: &[OsString],
    interval: Duration,
    output: Output,
    keys: &Keys,
) -> Result<Source, Failure> {
    let mut own = match (observe(interval)?, arguments.is_empty()) {
        (Ok(socket), true) => return Ok(Source::Running(socket)),
        // The recording that is in its way is named by `trace record`.
        (Ok(_), false) => return own::in_the_way(arguments).map(Source::Ended),
        (Err(ObserveError::NothingRecorded), _) => Own::begin(arguments, output)?,
        (Err(error), _) => return Err(refused(error)),
    };
    match wait_until_it_begins(interval, &mut own, keys)? {
        Some(socket) => Ok(Source::Own(socket, own)),
        None => own.finish().map(|end| Source::Ended(end.code)),
    }
}

/// Where something is being recorded, a recorded command gets a manager of its own: executes this program
/// again with it. To be called before anything handles signals.
//= docs/recording.md#several-recordings-at-once
pub fn begin_beside(has_command: bool, interval: Duration) -> Result<(), Failure> {
    if !has_command {
        return Ok(());
    }
    match observe(interval)? {
        Ok(_) | Err(ObserveError::Busy) => {}
        Err(ObserveError::NothingRecorded | ObserveError::Version) => return Ok(()),
    }
    Err(own_manager::record_with_one("another recording is running", &AtomicBool::new(false)))
}

/// Asks the manager for what is being recorded.
fn observe(interval: Duration) -> Result<Result<Socket, ObserveError>, Failure> {
    let Some(mut connection) = Connection::find()? else {
        return Ok(Err(ObserveError::NothingRecorded));
    };
    let failed = |error: zx_sim::Error| Failure::new(error.to_string());
    let (ours, theirs) = Socket::pair().map_err(failed)?;
    let interval = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
    let wanted =
        ObserveOptions { interval_milliseconds: interval, wants_records: true, ..ObserveOptions::default() };
    let request = ProvisionerRequest::<Handle>::Observe { options: wanted, output: theirs.into_handle() };
    match connection.ask(request)? {
        ProvisionerResponse::Observe(observing) => Ok(observing.result.map(|_| ours)),
        _ => Err(Failure::new("the trace manager answered something else")),
    }
}

/// Observes the recording that runs.
pub fn observe_running(interval: Duration) -> Result<Socket, Failure> {
    observe(interval)?.map_err(refused)
}

fn refused(error: ObserveError) -> Failure {
    Failure::new(match error {
        ObserveError::NothingRecorded => NOTHING_RECORDED,
        ObserveError::Busy => "as many commands watch the recording as the manager serves: end one of them",
        ObserveError::Version => "the trace manager is of another release, which this command cannot watch",
    })
}

/// Waits for the recording that was just begun; none if it has ended before, or the user has quit.
fn wait_until_it_begins(interval: Duration, own: &mut Own, keys: &Keys) -> Result<Option<Socket>, Failure> {
    loop {
        match observe(interval) {
            Ok(Ok(socket)) => return Ok(Some(socket)),
            Ok(Err(ObserveError::NothingRecorded)) | Err(_) => {}
            Ok(Err(error)) => {
                own.stop();
                return Err(refused(error));
            }
        }
        wait(&[keys.signals()], BEGIN_INTERVAL);
        if own.has_ended() {
            return Ok(None);
        }
        if keys.has_signal() {
            own.stop();
        }
    }
}

/// Waits until one of the sockets is readable, or a time has passed.
pub fn wait(sockets: &[&Socket], time: Duration) {
    let mut polled: Vec<PollFd<'_>> =
        sockets.iter().map(|socket| PollFd::new(*socket, PollFlags::IN)).collect();
    let timeout = Timespec::try_from(time).ok();
    // An error is that of an interrupted wait.
    let _ = poll(&mut polled, timeout.as_ref());
}
