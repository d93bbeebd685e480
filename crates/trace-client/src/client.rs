//! A client of the trace manager.

use crate::config::Config;
use crate::connection::{Connection, Providers};
use crate::error::{Error, Result};
use crate::output::Output;
use crate::pending::{Pending, of_parent, pending};
use crate::recording::{self, Recording, Report};
use crate::snapshot::Snapshot;
use crate::start::Tool;
use crate::thread::spawn_with;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use trace_protocol::KnownCategories;
use trace_protocol::memory::{MemoryDump, MemoryDumpLevel};
use trace_protocol::names::RUNTIME_VARIABLE;
use zx_sim::guest::children::{generation, install};

/// Something to do on the client's thread.
type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// A connection to the trace manager, with a thread that takes one request after the other. It may be shared
/// between threads. A recording goes on when it is dropped.
#[derive(Debug)]
pub struct Client {
    /// None while it is dropped.
    jobs: Option<Sender<Job>>,
    directory: PathBuf,
    /// The process that has the thread: a forked child has not.
    process: u32,
}

impl Client {
    /// Connects to the manager that runs, or starts one: the first `trace` in PATH. It ends by itself when it
    /// is not needed any more.
    ///
    /// # Errors
    /// As of [`Connection::open`].
    pub fn open() -> Pending<Self> {
        Self::open_with(Tool::InPath)
    }

    /// The same with another executable.
    ///
    /// # Errors
    /// As of [`Connection::open`].
    pub fn open_with(tool: Tool) -> Pending<Self> {
        Self::over(move || Connection::open(&tool))
    }

    /// The same in a runtime directory of the caller's, which is made if it does not exist: no other program
    /// records there.
    ///
    /// # Errors
    /// As of [`Connection::open_in`].
    pub fn open_in(directory: impl Into<PathBuf>, tool: Tool) -> Pending<Self> {
        // The program may change its directory meanwhile.
        let directory = directory.into();
        let directory = std::path::absolute(&directory).unwrap_or(directory);
        Self::over(move || Connection::open_in(&directory, &tool))
    }

    /// Connects to the manager that runs.
    ///
    /// # Errors
    /// As of [`Connection::find`], or [`Error::NoManager`].
    pub fn find() -> Pending<Self> {
        Self::over(|| Connection::find()?.ok_or(Error::NoManager))
    }

    fn over(connect: impl FnOnce() -> Result<Connection> + Send + 'static) -> Pending<Self> {
        install();
        let (completer, client) = pending();
        spawn_with("trace-client", Vec::new(), completer, move |completer, _| {
            let mut connection = match connect() {
                Ok(connection) => connection,
                Err(error) => return completer.complete(Err(error)),
            };
            let (jobs, to_do) = channel::<Job>();
            let directory = connection.directory().to_owned();
            completer.complete(Ok(Self { jobs: Some(jobs), directory, process: generation() }));
            to_do.into_iter().for_each(|job| job(&mut connection));
        });
        client
    }

    /// The manager's runtime directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What a program has to have in its environment to find the manager, for
    /// [`Command::envs`](std::process::Command::envs).
    #[must_use]
    pub fn environment(&self) -> [(&'static str, PathBuf); 1] {
        [(RUNTIME_VARIABLE, self.directory.clone())]
    }

    /// Does something on the client's thread.
    fn request<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T> + Send + 'static,
    ) -> Pending<T> {
        let (completer, answer) = pending();
        self.send(Box::new(move |connection| completer.complete(work(connection))));
        answer
    }

    fn send(&self, job: Job) {
        // The thread takes jobs as long as this exists.
        if let Some(jobs) = self.jobs.as_ref().filter(|_| self.is_own()) {
            let _ = jobs.send(job);
        }
    }

    fn is_own(&self) -> bool {
        self.process == generation()
    }

    /// The programs that can be recorded. A manager that was just started is given up to 500 ms to learn of
    /// them.
    ///
    /// # Errors
    /// As of [`Connection::ask`].
    pub fn providers(&self) -> Pending<Providers> {
        self.request(Connection::settled_providers)
    }

    /// The categories that running programs know.
    ///
    /// # Errors
    /// As of [`Connection::ask`].
    pub fn known_categories(&self) -> Pending<KnownCategories> {
        self.request(Connection::known_categories)
    }

    /// Begins to record: programs that run are recording when this is answered, or have not answered in time,
    /// and those that start from now on are recorded from their first event.
    ///
    /// # Errors
    /// [`Error::Start`] if something else is being recorded, [`Error::Output`] if the file cannot be made,
    /// and as of [`Connection::ask`].
    pub fn record(&self, config: Config, output: impl Into<Output>) -> Pending<Recording> {
        if !self.is_own() {
            return of_parent();
        }
        let (turn, its_turn) = channel::<Sender<()>>();
        let recording = recording::begin(self.directory.clone(), config, output.into(), its_turn);
        // Behind what was asked for before, and ahead of what follows.
        self.send(Box::new(move |_| {
            let (begun, has_begun) = channel();
            if turn.send(begun).is_ok() {
                let _ = has_begun.recv();
            }
        }));
        recording
    }

    /// Copies the buffers of what is being recorded, by this client or another. It goes on.
    ///
    /// # Errors
    /// As of [`Connection::snapshot`] and [`Taken::write`](crate::snapshot::Taken::write), or
    /// [`Error::Output`] if the file cannot be made.
    pub fn snapshot(&self, snapshot: Snapshot, output: impl Into<Output>) -> Pending<Report> {
        let output = output.into();
        self.request(move |connection| recording::snapshot(connection, &snapshot, output))
    }

    /// Has the programs of all running recordings write down what they use memory for.
    ///
    /// # Errors
    /// As of [`Connection::dump_memory`].
    pub fn dump_memory(&self, level: MemoryDumpLevel) -> Pending<MemoryDump> {
        self.request(move |connection| connection.dump_memory(level))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if !self.is_own() {
            // A thread of the parent's may have had it locked.
            std::mem::forget(self.jobs.take());
        }
    }
}
