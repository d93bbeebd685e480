//! Where a live picture comes from: the running recording, or one of the command's own beside it.

use super::keys::Keys;
use super::own::{self, Output, Own};
use crate::connection::own_manager;
use crate::connection::{self, NOTHING_RECORDED, SEVERAL_RECORDED};
use crate::shell::exit::Failure;
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

/// What is wanted.
pub struct Wanted<'a> {
    /// The arguments of `trace record`, if a recording is begun.
    pub arguments: &'a [OsString],
    /// A program of the recording.
    pub program: Option<&'a str>,
    /// A recording that runs is observed; otherwise it is in the way of another.
    pub observes_others: bool,
    /// The interval between updates.
    pub interval: Duration,
}

/// Observes a running recording, or begins one if nothing is being recorded.
pub fn begin(wanted: &Wanted<'_>, output: Output, keys: &Keys) -> Result<Source, Failure> {
    let Wanted { arguments, program, interval, .. } = *wanted;
    let mut own = match (observe(&records(interval, program))?, wanted.observes_others) {
        (Ok(socket), true) => return Ok(Source::Running(socket)),
        // The recording that is in its way is named by `trace record`.
        (Ok(_), false) => return own::in_the_way(arguments).map(Source::Ended),
        (Err(ObserveError::NothingRecorded), _) => Own::begin(arguments, output)?,
        (Err(error), _) => return Err(refused(error)),
    };
    match wait_until_it_begins(wanted, &mut own, keys)? {
        Some(socket) => Ok(Source::Own(socket, own)),
        None => own.finish().map(|end| Source::Ended(end.code)),
    }
}

/// Where something is being recorded, a recorded command gets a manager of its own: executes this program
/// again with it. To be called before anything handles signals.
//= docs/recording.md#a-manager-of-a-recordings-own
pub fn begin_beside(has_command: bool, interval: Duration) -> Result<(), Failure> {
    if !has_command {
        return Ok(());
    }
    match observe(&records(interval, None))? {
        Ok(_) | Err(ObserveError::Busy | ObserveError::Several) => {}
        Err(ObserveError::NothingRecorded | ObserveError::Version) => return Ok(()),
    }
    Err(own_manager::record_with_one("another recording is running", &AtomicBool::new(false)))
}

/// Asks the manager for what is being recorded of a program, or at all.
fn observe(options: &ObserveOptions) -> Result<Result<Socket, ObserveError>, Failure> {
    let Some(mut connection) = connection::find()? else {
        return Ok(Err(ObserveError::NothingRecorded));
    };
    let failed = |error: zx_sim::Error| Failure::new(error.to_string());
    let (ours, theirs) = Socket::pair().map_err(failed)?;
    let (options, output) = (options.clone(), theirs.into_handle());
    let request = ProvisionerRequest::<Handle>::Observe { options, output };
    match connection.ask(request)? {
        ProvisionerResponse::Observe(observing) => Ok(observing.result.map(|_| ours)),
        _ => Err(Failure::new("the trace manager answered something else")),
    }
}

/// The records of what is recorded, at an interval.
pub fn records(interval: Duration, program: Option<&str>) -> ObserveOptions {
    ObserveOptions {
        interval_milliseconds: u64::try_from(interval.as_millis()).unwrap_or(u64::MAX),
        wants_records: true,
        program: program.map(str::to_owned),
        ..ObserveOptions::default()
    }
}

/// Observes the recording that runs, or that of a program.
pub fn observe_running(options: &ObserveOptions) -> Result<Socket, Failure> {
    observe(options)?.map_err(refused)
}

fn refused(error: ObserveError) -> Failure {
    Failure::new(match error {
        ObserveError::NothingRecorded => return Failure::nothing_recorded(NOTHING_RECORDED),
        ObserveError::Busy => "as many commands watch the recording as the manager serves: end one of them",
        ObserveError::Several => return Failure::usage(SEVERAL_RECORDED),
        ObserveError::Version => "the trace manager is of another release, which this command cannot watch",
    })
}

/// Waits for the recording that was just begun; none if it has ended before, or the user has quit.
fn wait_until_it_begins(wanted: &Wanted<'_>, own: &mut Own, keys: &Keys) -> Result<Option<Socket>, Failure> {
    loop {
        match observe(&records(wanted.interval, wanted.program)) {
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
