//! `trace view --live`: the page of a recording that is still running.
//!
//! Three threads: one reads the recording and makes updates of it (`feed.rs`), one serves the page and its
//! stream, and the first one waits for signals and for the end. The recording is that of `trace live`: the
//! running one, or `trace record` in a process beside this one.
//= docs/live.md#in-a-browser

mod feed;
mod pages;

use crate::args::viewing::View;
use crate::browser::access::Access;
use crate::browser::attendance::{Attendance, GRACE};
use crate::browser::hub::Hub;
use crate::browser::{ANY_PORT, failed, listen, open_browser, say_forward, server};
use crate::record::live::frames::FollowError;
use crate::record::live::keys::Keys;
use crate::record::live::own::{End, Output, Own};
use crate::record::live::source::{self, Source, Wanted, wait};
use crate::shell::exit::{Failure, NOT_RECORDED};
use crate::shell::stdio::say;
use pages::Pages;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use zx_sim::Socket;

/// How often the recording is looked at.
const INTERVAL: Duration = Duration::from_millis(100);
/// How long to wait for a signal before everything is looked at again.
const WAIT: Duration = Duration::from_millis(500);
/// How long to wait for the rest of a recording that has ended, on a machine that is busy.
const REST_WAIT: Duration = Duration::from_secs(30);
/// How long pages have to take the end before the command ends.
const CLOSE_WAIT: Duration = Duration::from_secs(2);

/// Serves the page of a recording until it is closed, or this is interrupted.
pub fn run(options: &View) -> Result<u8, Failure> {
    if options.input.is_some() {
        return Err(Failure::usage(
            "--live takes no FILE; a command to record comes after --, as in trace view --live -- ./app",
        ));
    }
    if !options.within.selection().is_all() {
        return Err(Failure::usage(
            "--live shows all that is recorded: --name, --process, --thread and times are for a FILE",
        ));
    }
    source::begin_beside(!options.command.is_empty(), INTERVAL)?;
    let keys = Keys::open()?;
    let listener = listen(ANY_PORT)?;
    let address = listener.local_addr().map_err(|error| failed(&error))?;
    let access = Access::new(address).map_err(|error| failed(&error))?;
    let page = trace_report::live::page("recording").map_err(|error| failed(&error))?;
    let arguments = options.of_record();
    let wanted = Wanted {
        arguments: &arguments,
        program: options.program.first().map(String::as_str),
        observes_others: arguments.len() == options.program.len(),
        interval: INTERVAL,
    };
    let (socket, mut own) = match source::begin(&wanted, Output::Same, &keys)? {
        Source::Running(socket) => (socket, None),
        Source::Own(socket, own) => (socket, Some(own)),
        Source::Ended(code) => {
            say!(
                "trace: the recording ended before it could be shown; trace view FILE shows what it recorded"
            );
            return Ok(code);
        }
    };
    let hub = Arc::new(Hub::default());
    let place = access.place();
    let served = serve(listener, Pages::new(access, page, hub.clone()));
    let fed = served.and_then(|server| Feed::begin(socket, hub.clone()).map(|feed| (server, feed)));
    let (server, feed) = match fed {
        Ok(begun) => begun,
        Err(failure) => {
            // The recording is saved all the same.
            if let Some(mut own) = own {
                own.stop();
                own.finish()?;
            }
            return Err(failure);
        }
    };
    say!("trace: {place}");
    say_forward(address.port());
    say!(
        "trace: Ctrl-C {}",
        if own.is_some() {
            "ends the recording and saves it"
        } else {
            "ends this, and the recording goes on"
        }
    );
    let _redirect = open_browser(options, &place);
    let is_quit = watch(&keys, &feed, &server, own.as_mut());
    let code = match own {
        Some(own) => {
            let end = own.finish();
            hub.end(match end {
                Ok(End { is_saved: true, .. }) => "The recording has ended and is saved.",
                _ => "The recording has ended. What is saved is said where trace view was started.",
            });
            end?.code
        }
        None => {
            let problem = feed.problem();
            hub.end(match (&problem, is_quit) {
                (Some(problem), _) => problem,
                (None, true) => "trace view has ended. The recording goes on.",
                (None, false) => "The recording has ended.",
            });
            if let Some(problem) = problem {
                say!("trace: {problem}");
                server.close(&hub);
                return Ok(1);
            }
            0
        }
    };
    // Nothing was recorded if the command could not be run.
    if is_quit || NOT_RECORDED.contains(&code) {
        server.close(&hub);
        return Ok(code);
    }
    let seconds = GRACE.as_secs();
    say!("trace: the recording has ended; this ends {seconds} s after the page was closed, or on Ctrl-C");
    server.attendance.release();
    while !server.has_ended() {
        wait(&[keys.signals(), &server.ended], WAIT);
        if keys.has_signal() {
            server.close(&hub);
            break;
        }
    }
    server.problem().map_or(Ok(code), Err)
}

/// Waits for the end of the recording; whether the user has asked for it.
fn watch(keys: &Keys, feed: &Feed, server: &Server, mut own: Option<&mut Own>) -> bool {
    let (mut is_quit, mut is_aborted) = (false, false);
    loop {
        wait(&[keys.signals(), &feed.ended, &server.ended], WAIT);
        // A second signal aborts the recording; a server that has failed does not.
        if keys.has_signal() || server.has_ended() && !is_quit {
            is_aborted = is_quit;
            is_quit = true;
            match &mut own {
                Some(own) => own.stop(),
                None => return true,
            }
        }
        let is_over = match &mut own {
            // What it records after its observer was lost is saved all the same.
            Some(own) => own.has_ended(),
            None => feed.is_over(),
        };
        if is_over {
            if !is_aborted {
                feed.wait_for_end(keys);
            }
            return is_quit;
        }
        if feed.is_over() {
            // Its socket stays readable.
            wait(&[keys.signals()], INTERVAL);
        }
    }
}

/// A pair of sockets: the first becomes readable when the second is dropped or written.
fn signal() -> Result<(Socket, Socket), Failure> {
    Socket::pair().map_err(|error| Failure::new(error.to_string()))
}

/// The thread that reads the recording.
struct Feed {
    ended: Socket,
    problem: Arc<Mutex<Option<FollowError>>>,
    thread: JoinHandle<()>,
}

impl Feed {
    fn begin(socket: Socket, hub: Arc<Hub>) -> Result<Self, Failure> {
        let (ended, end) = signal()?;
        let problem: Arc<Mutex<Option<FollowError>>> = Arc::default();
        let found = problem.clone();
        let thread = std::thread::Builder::new().name("trace-live".to_owned());
        let thread = thread.spawn(move || {
            if let Err(error) = feed::read(socket, &hub) {
                *found.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
            let _ = end.write(&[0]);
        });
        let thread = thread.map_err(|error| Failure::new(format!("cannot start a thread: {error}")))?;
        Ok(Self { ended, problem, thread })
    }

    fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits until what the manager has sent is read, so that pages have all of it before the end. Not for a
    /// manager that sends nothing, and not if the user wants the end.
    fn wait_for_end(&self, keys: &Keys) {
        let last = Instant::now() + REST_WAIT;
        while !self.is_over() && Instant::now() < last && !keys.has_signal() {
            wait(&[&self.ended, keys.signals()], WAIT);
        }
    }

    /// Why it has come to an end before the recording did.
    fn problem(&self) -> Option<String> {
        let problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        problem.as_ref().map(|error| trace_archive::problem(error))
    }
}

/// The thread that serves pages.
struct Server {
    attendance: Arc<Attendance>,
    ended: Socket,
    thread: JoinHandle<std::io::Result<()>>,
}

fn serve(listener: std::net::TcpListener, pages: Pages) -> Result<Server, Failure> {
    let attendance = Arc::new(Attendance::new());
    attendance.hold();
    let (ended, end) = signal()?;
    let thread = std::thread::Builder::new().name("trace-pages".to_owned());
    let attending = attendance.clone();
    let thread = thread.spawn(move || {
        let served = server::run(listener, pages, attending);
        let _ = end.write(&[0]);
        served
    });
    let thread = thread.map_err(|error| Failure::new(format!("cannot start a thread: {error}")))?;
    Ok(Server { attendance, ended, thread })
}

impl Server {
    fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Lets pages take what is left, but does not wait for those that do not.
    fn close(&self, hub: &Hub) {
        hub.close();
        self.attendance.end_by(Instant::now() + CLOSE_WAIT);
        wait(&[&self.ended], 2 * CLOSE_WAIT);
    }

    /// Why it has ended, if that was an error.
    fn problem(self) -> Option<Failure> {
        if !self.thread.is_finished() {
            return None;
        }
        self.thread.join().ok()?.err().map(|error| failed(&error))
    }
}
