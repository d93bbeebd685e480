//! `trace manager`: the daemon that programs register with.

use crate::args::Manager;
use crate::connection;
use crate::exit::Failure;
use trace_manager::daemon::{self, Options};

/// Runs the manager in the first runtime directory.
pub fn run(options: &Manager) -> Result<(), Failure> {
    let directories = connection::directories();
    let Some(directory) = directories.first() else {
        return Err(Failure::new("there is no place for a runtime directory"));
    };
    if options.on_demand {
        // Away from the terminal of whoever started it, whose Ctrl-C is not meant for us.
        let _ = rustix::process::setsid();
    }
    daemon::run(Options {
        runtime_dir: directory.clone(),
        on_demand: options.on_demand,
        idle_timeout: options.idle_timeout,
    })
    .map_err(|error| Failure::new(error.to_string()))
}
