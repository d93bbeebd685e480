//! A small program of three processes, instrumented: what a trace is good for, in a moment.
//!
//! ```text
//!  front end ──frames over pipes──▶ renderer ──reads over a socket──▶ storage
//!            ◀──finished frames───   main, raster-0 … raster-2          a thread for each client
//! ```
//!
//! Record it with `trace record -o demo.fxt -- target/release/examples/demo` and drop the file
//! into the Perfetto UI. Flows lead from a frame's submission through the renderer and its reads of the
//! storage back to its presentation.

mod frontend;
mod message;
mod renderer;
mod storage;
mod work;

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let result = match (arguments.next().as_deref(), arguments.next().map(PathBuf::from)) {
        (None, _) => frontend::run(),
        (Some("renderer"), Some(socket)) => renderer::run(&socket),
        (Some("storage"), Some(socket)) => storage::run(&socket),
        _ => {
            eprintln!("usage: demo");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("demo: {error}");
            ExitCode::FAILURE
        }
    }
}
