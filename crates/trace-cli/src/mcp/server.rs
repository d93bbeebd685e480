//! The server: one thread that waits for everything at once.
//!
//! It never blocks in a read or a write, so that pings and cancellations are answered while a call runs, and
//! a signal ends it even if the client has stopped reading. Until the client reads again, nothing of it is
//! read.

use super::error::CallError;
use super::jail::Jail;
use super::lines::{Line, Lines};
use super::protocol::{Call, Protocol, Refused, Step};
use super::record::Recording;
use super::tools::{OVERVIEW, RECORD};
use super::worker::Worker;
use crate::shell::exit::Failure;
use crate::shell::signals;
use crate::shell::stdio::{Stdout, closed_is_enough};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Bytes for the client above which nothing of it is read.
const WAITING_BYTES: usize = 64 << 10;
/// Bytes of one write, for which a pipe has room if it has any.
const CHUNK_BYTES: usize = 4096;
/// Bytes of one read.
const READ_BYTES: usize = 64 << 10;
/// Most bytes of an error.
const ERROR_BYTES: usize = 1000;

/// A call that the worker runs.
struct Running {
    number: u64,
    deadline: Instant,
}

/// A call that waits for the worker.
struct Waiting {
    number: u64,
    tool: String,
    arguments: Value,
    note: Option<String>,
}

/// The server.
pub struct Server {
    jail: Jail,
    limit: Duration,
    protocol: Protocol,
    input: Lines,
    /// The client has closed its end.
    is_over: bool,
    output: Vec<u8>,
    worker: Worker,
    running: Option<Running>,
    waiting: VecDeque<Waiting>,
    recording: Option<Recording>,
    recordings: VecDeque<Call>,
}

/// What is ready.
#[derive(Debug, Default)]
struct Ready {
    signal: bool,
    input: bool,
    output: bool,
    is_output_closed: bool,
    worker: bool,
    recording: bool,
    messages: bool,
}

impl Server {
    /// A server of files in a jail, each call of which may take so long.
    pub fn new(jail: Jail, limit: Duration, protocol: Protocol) -> Self {
        let directories = jail.paths().map(ToOwned::to_owned).collect();
        Self {
            jail,
            limit,
            protocol,
            input: Lines::default(),
            is_over: false,
            output: Vec::new(),
            worker: Worker::new(directories),
            running: None,
            waiting: VecDeque::new(),
            recording: None,
            recordings: VecDeque::new(),
        }
    }

    /// Serves until the client closes its end and has its answers, or a signal comes.
    pub fn run(mut self) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::new(format!("cannot wait for signals: {error}"));
        let (signals, sender) = UnixStream::pair().map_err(failed)?;
        for signal in signals::ending() {
            let sender = sender.try_clone().map_err(failed)?;
            signal_hook::low_level::pipe::register(signal, sender).map_err(failed)?;
        }
        loop {
            self.begin();
            if self.is_over && self.running.is_none() && self.recording.is_none() && self.output.is_empty() {
                return Ok(());
            }
            let ready = self.wait(&signals)?;
            if ready.signal || ready.is_output_closed {
                return Ok(());
            }
            if ready.output
                && let Err(error) = self.write()
            {
                return closed_is_enough(Err(error));
            }
            if ready.worker
                && let Some(result) = self.worker.read()
            {
                self.complete(result);
            }
            if ready.messages
                && let Some(recording) = &mut self.recording
            {
                recording.read();
            }
            if ready.recording
                && let Some(recording) = self.recording.take()
            {
                self.recorded(recording);
            }
            self.press();
            if ready.input {
                self.read()?;
            }
        }
    }

    /// Begins calls that wait, if nothing else runs.
    fn begin(&mut self) {
        while self.running.is_none()
            && let Some(Waiting { number, tool, arguments, note }) = self.waiting.pop_front()
        {
            let request = json!({"tool": tool, "arguments": arguments, "note": note});
            match self.worker.ask(&request) {
                Ok(()) => self.running = Some(Running { number, deadline: Instant::now() + self.limit }),
                Err(why) => self.answer(number, Err(why)),
            }
        }
        while self.recording.is_none()
            && let Some(call) = self.recordings.pop_front()
        {
            match Recording::start(&self.jail, call.number, &call.arguments) {
                Ok(recording) => self.recording = Some(recording),
                Err(why) => self.answer(call.number, Err(why)),
            }
        }
    }

    fn wait(&self, signals: &UnixStream) -> Result<Ready, Failure> {
        let (stdin, stdout) = (io::stdin(), Stdout);
        let mut waits = vec![
            PollFd::new(signals, PollFlags::IN),
            PollFd::new(&stdout, if self.output.is_empty() { PollFlags::empty() } else { PollFlags::OUT }),
        ];
        let input = Some(stdin.as_fd()).filter(|_| !self.is_over && self.output.len() < WAITING_BYTES);
        let worker = self.worker.output().filter(|_| self.running.is_some());
        let recording = self.recording.as_ref();
        let inputs = [input, worker, recording.map(Recording::end), recording.and_then(Recording::messages)];
        let places = inputs.map(|input| {
            input.map(|input| {
                waits.push(PollFd::from_borrowed_fd(input, PollFlags::IN));
                waits.len() - 1
            })
        });
        let deadlines =
            [self.running.as_ref().map(|running| running.deadline), recording.map(Recording::deadline)];
        let next = deadlines.into_iter().flatten().min();
        let timeout = next.map(|next| {
            let left = next.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() }
        });
        match poll(&mut waits, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Ready::default()),
            Err(error) => return Err(Failure::new(format!("cannot wait: {error}"))),
        }
        let is_ready = |place: Option<usize>| place.is_some_and(|place| !waits[place].revents().is_empty());
        let of_output = waits[1].revents();
        let is_output_closed = of_output.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL);
        Ok(Ready {
            signal: is_ready(Some(0)),
            input: is_ready(places[0]),
            output: of_output.contains(PollFlags::OUT),
            is_output_closed,
            worker: is_ready(places[1]),
            recording: is_ready(places[2]),
            messages: is_ready(places[3]),
        })
    }

    /// Reads some of the client's lines.
    fn read(&mut self) -> Result<(), Failure> {
        let mut chunk = vec![0; READ_BYTES];
        let lines = match rustix::io::read(io::stdin().as_fd(), &mut chunk) {
            Err(Errno::INTR | Errno::AGAIN) => return Ok(()),
            Err(error) => return Err(Failure::new(format!("cannot read stdin: {error}"))),
            Ok(0) => {
                self.is_over = true;
                self.input.finish().into_iter().collect()
            }
            Ok(length) => self.input.push(&chunk[..length]),
        };
        lines.iter().for_each(|line| self.line(line));
        if self.is_over {
            // A recording may go on for minutes.
            for call in std::mem::take(&mut self.recordings) {
                self.answer(call.number, Err(CallError::Closed));
            }
            if let Some(recording) = &mut self.recording {
                recording.stop();
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &Line) {
        for step in self.protocol.line(line) {
            match step {
                Step::Send(line) => self.send(&line),
                Step::Call(call) if call.tool == RECORD => self.recordings.push_back(call),
                Step::Call(Call { number, tool, arguments }) => {
                    self.waiting.push_back(Waiting { number, tool, arguments: arguments.into(), note: None });
                }
                Step::Cancel(number) => self.cancel(number),
            }
        }
    }

    fn cancel(&mut self, number: u64) {
        self.waiting.retain(|waiting| waiting.number != number);
        self.recordings.retain(|call| call.number != number);
        if self.running.as_ref().is_some_and(|running| running.number == number) {
            self.running = None;
            self.worker.kill();
        }
        if let Some(recording) = self.recording.as_mut().filter(|recording| recording.number == number) {
            recording.stop();
        }
    }

    /// The worker has a result.
    fn complete(&mut self, result: Result<String, CallError>) {
        if let Some(Running { number, .. }) = self.running.take() {
            self.answer(number, result);
        }
    }

    /// A recording is over: its trace is described as by `overview`.
    fn recorded(&mut self, recording: Recording) {
        let (number, path) = (recording.number, recording.path.clone());
        match recording.finish() {
            Ok(printed) => {
                let (tool, arguments) = (OVERVIEW.to_owned(), json!({"trace": path}));
                self.waiting.push_back(Waiting { number, tool, arguments, note: Some(printed) });
            }
            Err(why) => self.answer(number, Err(why)),
        }
    }

    /// Ends what has taken too long.
    fn press(&mut self) {
        let now = Instant::now();
        if let Some(running) = self.running.take_if(|running| running.deadline <= now) {
            self.worker.kill();
            self.answer(running.number, Err(CallError::TooLong { limit: self.limit }));
        }
        if let Some(recording) = self.recording.as_mut().filter(|recording| recording.deadline() <= now) {
            recording.press();
        }
    }

    fn answer(&mut self, number: u64, result: Result<String, CallError>) {
        let result =
            result.map_err(|why| Refused(super::answer::shown_within(&why.to_string(), ERROR_BYTES)));
        if let Some(line) = self.protocol.finish(number, result) {
            self.send(&line);
        }
    }

    fn send(&mut self, line: &str) {
        self.output.extend_from_slice(line.as_bytes());
        self.output.push(b'\n');
    }

    /// Writes as much as there is room for.
    fn write(&mut self) -> io::Result<()> {
        let length = self.output.len().min(CHUNK_BYTES);
        let written = Stdout.write(&self.output[..length])?;
        self.output.drain(..written);
        Ok(())
    }
}
