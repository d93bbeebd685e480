//! `trace manager`: the daemon that programs register with.

use crate::args::Manager;
use crate::connection;
use crate::connection::own_manager;
use crate::shell::exit::Failure;
use crate::shell::signals;
use rustix::fs::Mode;
use std::path::Path;
use std::time::Duration;
use trace_client::start::ALREADY_RUNNING;
use trace_manager::daemon::{self, Options};

/// How long a manager that a command has started waits for the next one.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs the manager in the first runtime directory; root's, in the system's.
pub fn run(options: &Manager) -> Result<(), Failure> {
    options.parent.map(signals::end_with).transpose()?;
    connection::check_named()?;
    let directories = connection::directories();
    let (Some(first), Some(last)) = (directories.first(), directories.last()) else {
        return Err(Failure::new("no directory is suitable as runtime directory"));
    };
    let is_root = rustix::process::geteuid().is_root();
    if options.all_users && !is_root {
        return Err(Failure::new("only a manager that root starts can serve all users"));
    }
    // The system's directory comes after root's own, unless one was named.
    let is_for_all_users = options.all_users || (is_root && !options.on_demand && first != last);
    let directory = if is_for_all_users { last } else { first };
    // It may leave its working directory.
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let (directory, first) = (&absolute(directory), &absolute(first));
    if options.on_demand {
        // Away from the terminal of the process that started it, whose Ctrl-C is not meant for the manager.
        let _ = rustix::process::setsid();
    }
    // Other users have to access files in its directory, whatever the umask of the shell.
    rustix::process::umask(Mode::WGRP | Mode::WOTH);
    let usual = own_manager::usual_directory(directory).filter(|_| options.on_demand);
    let ended = daemon::run(Options {
        runtime_dir: directory.clone(),
        // Where other users have no access, and in memory if possible.
        buffers_dir: usual.or((directory != first).then_some(first)).map(Path::to_owned),
        is_for_all_users,
        leaves_with_its_recording: usual.is_some(),
        on_demand: options.on_demand,
        idle_timeout: options.idle_timeout.map(|span| span.0).or(options.on_demand.then_some(IDLE_TIMEOUT)),
    });
    if usual.is_some() {
        own_manager::remove(directory);
    }
    ended.map_err(|error| match error {
        daemon::Error::AlreadyRunning { .. } => Failure::with_code(ALREADY_RUNNING, error.to_string()),
        error => Failure::new(error.to_string()),
    })
}
