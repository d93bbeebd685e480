//! `trace completions` and `trace man`: what an installation has beside the program, from the same
//! definitions.

use crate::args::{Cli, Completions, Man};
use crate::exit::Failure;
use crate::stdio::{print_document, say};
use clap::CommandFactory;

/// Prints a completion script.
pub fn completions(options: &Completions) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), &options.name, &mut script);
    print_document(&String::from_utf8_lossy(&script))
}

/// Writes a page for the tool and one for each command.
pub fn man(options: &Man) -> Result<(), Failure> {
    let directory = &options.directory;
    let failed =
        |error: std::io::Error| Failure::new(format!("cannot write into {}: {error}", directory.display()));
    std::fs::create_dir_all(directory).map_err(failed)?;
    clap_mangen::generate_to(Cli::command().name(options.name.clone()), directory).map_err(failed)?;
    say!("trace: manual pages in {}", directory.display());
    Ok(())
}
