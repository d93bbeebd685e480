//! `trace completions` and `trace man`: files of an installation beside the program, generated from the same
//! definitions.

mod manual;

use crate::args::completion;
use crate::args::parsing::described;
use crate::args::{Completions, Man};
use crate::shell::exit::Failure;
use crate::shell::stdio::{print_document, say};
use clap::Command;
use std::path::Path;

/// Prints a completion script.
pub fn completions(options: &Completions) -> Result<(), Failure> {
    let script = completion::script(&options.shell.to_string(), &options.name);
    let script = script.map_err(|error| Failure::new(format!("{}: {error}", options.shell)))?;
    print_document(&String::from_utf8_lossy(&script))
}

/// Writes a page for the tool and one for each command.
pub fn man(options: &Man) -> Result<(), Failure> {
    let directory = &options.directory;
    let failed =
        |error: std::io::Error| Failure::new(format!("cannot write into {}: {error}", directory.display()));
    std::fs::create_dir_all(directory).map_err(failed)?;
    let mut command = described().name(options.name.clone()).bin_name(options.name.clone());
    command.build();
    write_page(&command, &options.name, directory).map_err(failed)?;
    for command in
        command.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help")
    {
        let title = format!("{}-{}", options.name, command.get_name());
        write_page(command, &title, directory).map_err(failed)?;
    }
    say!("trace: manual pages in {}", directory.display());
    Ok(())
}

fn write_page(command: &Command, title: &str, directory: &Path) -> std::io::Result<()> {
    let text = manual::page(command, title)?;
    // An empty date is no argument to the generator, which would make the next one the date.
    let text = String::from_utf8_lossy(&text).replacen(" 1  \"trace ", " 1 \"\" \"trace ", 1);
    std::fs::write(directory.join(format!("{title}.1")), text)
}
