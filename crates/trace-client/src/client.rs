//! A client of the trace manager.

use crate::config::Config;
use crate::connection::{Connection, Providers};
use crate::error::{Error, Result};
use crate::output::Output;
use crate::pending::{Completer, Pending, pending};
use crate::recording::{self, Recording, Report};
use crate::snapshot::Snapshot;
use crate::start::Tool;
use crate::thread::spawn;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use trace_protocol::KnownCategories;
use trace_protocol::memory::{MemoryDump, MemoryDumpLevel};
use trace_protocol::names::RUNTIME_VARIABLE;

/// Something to do on the client's thread.
type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// A connection to the trace manager, with a thread that takes one request after the other. It may be shared
/// between threads. A recording goes on when it is dropped.
#[derive(Debug)]
pub struct Client {
    jobs: Sender<Job>,
    directory: PathBuf,
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
        let directory = directory.into();
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
        let (completer, client) = pending();
        spawn_with("trace-client", completer, move |completer| {
            let mut connection = match connect() {
                Ok(connection) => connection,
                Err(error) => return completer.complete(Err(error)),
            };
            let (jobs, to_do) = channel::<Job>();
            completer.complete(Ok(Self { jobs, directory: connection.directory().to_owned() }));
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
        // The thread takes jobs as long as this exists.
        let _ = self.jobs.send(Box::new(move |connection| completer.complete(work(connection))));
        answer
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
        let (completer, recording) = pending();
        let output = output.into();
        let begin = |connection: &mut Connection| recording::begin(connection, config, output, completer);
        let _ = self.jobs.send(Box::new(begin));
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

/// Runs a function that answers on a thread of its own.
pub(crate) fn spawn_with<T: Send + 'static>(
    name: &str,
    completer: Completer<T>,
    run: impl FnOnce(Completer<T>) + Send + 'static,
) {
    // What failed is known on this side only.
    let slot = std::sync::Arc::new(parking_lot::Mutex::new(Some(completer)));
    let theirs = slot.clone();
    let spawned = spawn(name, move || {
        if let Some(completer) = theirs.lock().take() {
            run(completer);
        }
    });
    if let Err(error) = spawned
        && let Some(completer) = slot.lock().take()
    {
        completer.complete(Err(error));
    }
}
