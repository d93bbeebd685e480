//! `trace live`: what a recording records, while it does.
//!
//! The running recording is observed through the manager. A recording of the command's own is a `trace
//! record` beside it: whatever becomes of the screen, that one is complete.

mod feed;
mod frames;
mod keys;
mod layout;
mod machine;
mod own;
mod screen;
mod table;

use crate::args::live::Live as Options;
use crate::connection::{Connection, NOTHING_RECORDED};
use crate::exit::Failure;
use crate::stdio::{self, say};
use feed::{Feed, Picture};
use keys::{Key, Keys};
use own::Own;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use screen::Screen;
use std::time::Duration;
use trace_protocol::controller::{ObserveError, ObserveOptions, ProvisionerRequest, ProvisionerResponse};
use zx_sim::{Handle, Socket};

/// How often a new recording is looked for until it has begun.
const BEGIN_INTERVAL: Duration = Duration::from_millis(10);
/// How often the end of a new recording is looked for.
const END_INTERVAL: Duration = Duration::from_millis(50);

/// Shows a recording until it ends or the user quits.
pub fn run(options: &Options) -> Result<u8, Failure> {
    if !options.json && !stdio::is_stdout_terminal() {
        return Err(Failure::usage("stdout is not a terminal: --json prints a line for each update"));
    }
    let keys = Keys::open()?;
    let arguments = own::arguments(std::env::args_os(), options.recording.command.len());
    let wants_own = !arguments.is_empty();
    let observed = observe(options)?;
    let mut own = match (&observed, wants_own) {
        (Ok(_), false) => None,
        // The recording that is in its way is named by `trace record`.
        (Ok(_), true) => return own::in_the_way(&arguments),
        (Err(ObserveError::NothingRecorded), _) => Some(Own::begin(&arguments, options.json)?),
        (Err(error), _) => return Err(refused(*error)),
    };
    let socket = match observed {
        Ok(socket) => Some(socket),
        Err(_) => wait_until_it_begins(options, own.as_mut(), &keys)?,
    };
    let Some(socket) = socket else {
        return own.map_or(Ok(0), Own::finish);
    };
    let feed = Feed::begin(socket)?;
    let shown = match options.json {
        true => show_lines(&feed, &keys, own.as_mut()),
        false => show_screen(&feed, &keys, own.as_mut()),
    };
    match own {
        Some(mut own) => {
            // Whatever has become of the screen, the recording is saved.
            if shown.is_err() {
                own.stop();
            }
            let code = own.finish()?;
            shown.map(|_| code)
        }
        None => {
            let end = shown?;
            if let Some(reason) = feed.problem() {
                return Err(Failure::new(reason));
            }
            match end {
                End::Over => say!("trace: the recording has ended"),
                End::Quit if !options.json => say!("trace: the recording goes on"),
                End::Quit => {}
            }
            Ok(0)
        }
    }
}

/// Why nothing is shown any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The user wants no more.
    Quit,
    /// The recording is over.
    Over,
}

/// Asks the manager for what is being recorded.
fn observe(options: &Options) -> Result<Result<Socket, ObserveError>, Failure> {
    let Some(mut connection) = Connection::find()? else {
        return Ok(Err(ObserveError::NothingRecorded));
    };
    let failed = |error: zx_sim::Error| Failure::new(error.to_string());
    let (ours, theirs) = Socket::pair().map_err(failed)?;
    let interval = u64::try_from(options.interval.0.as_millis()).unwrap_or(u64::MAX);
    let wanted =
        ObserveOptions { interval_milliseconds: interval, wants_records: true, ..ObserveOptions::default() };
    let request = ProvisionerRequest::<Handle>::Observe { options: wanted, output: theirs.into_handle() };
    match connection.ask(request)? {
        ProvisionerResponse::Observe(observing) => Ok(observing.result.map(|_| ours)),
        _ => Err(Failure::new("the trace manager answered something else")),
    }
}

fn refused(error: ObserveError) -> Failure {
    Failure::new(match error {
        ObserveError::NothingRecorded => NOTHING_RECORDED,
        ObserveError::Busy => "as many commands watch the recording as the manager serves: end one of them",
        ObserveError::Version => "the trace manager is of another release, which this command cannot watch",
    })
}

/// Waits for the recording that was just begun; none if it has ended before, or the user has quit.
fn wait_until_it_begins(
    options: &Options,
    own: Option<&mut Own>,
    keys: &Keys,
) -> Result<Option<Socket>, Failure> {
    let Some(own) = own else {
        return Ok(None);
    };
    loop {
        match observe(options) {
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
fn wait(sockets: &[&Socket], time: Duration) {
    let mut polled: Vec<PollFd<'_>> =
        sockets.iter().map(|socket| PollFd::new(*socket, PollFlags::IN)).collect();
    let timeout = Timespec::try_from(time).ok();
    // An error is that of an interrupted wait.
    let _ = poll(&mut polled, timeout.as_ref());
}

fn show_lines(feed: &Feed, keys: &Keys, mut own: Option<&mut Own>) -> Result<End, Failure> {
    let mut end = End::Over;
    loop {
        if let Some(picture) = feed.take() {
            stdio::print_document(&format!("{}\n", machine::line(&picture)))?;
        } else if feed.is_over() {
            return Ok(end);
        }
        if keys.has_signal() {
            end = End::Quit;
            match &mut own {
                Some(own) => own.stop(),
                None => return Ok(end),
            }
        }
        wait(&[feed.wake(), keys.signals()], END_INTERVAL.max(Duration::from_millis(500)));
    }
}

fn show_screen(feed: &Feed, keys: &Keys, mut own: Option<&mut Own>) -> Result<End, Failure> {
    let mut screen = Screen::open()?;
    let mut picture: Option<Picture> = None;
    let mut end = End::Over;
    loop {
        let mut has_changed = screen.has_new_size();
        if let Some(new) = feed.take() {
            picture = Some(new);
            has_changed = true;
        } else if feed.is_over() {
            return Ok(end);
        }
        let mut wants_end = keys.has_signal();
        for key in keys.pressed() {
            match key {
                Key::Quit => wants_end = true,
                Key::Next => screen.show_next(picture.as_ref()),
            }
            has_changed = true;
        }
        if wants_end {
            end = End::Quit;
            match &mut own {
                Some(own) => own.stop(),
                None => return Ok(end),
            }
        }
        if has_changed {
            screen.draw(picture.as_ref(), own.as_deref().map(Own::state))?;
        }
        keys.wait(feed.wake());
    }
}
