//! Which function does what a command line says.

use crate::args::record::Recording;
use crate::args::values::ConfigFile;
use crate::args::{self, Command};
use crate::background::{list, snapshot, task};
use crate::compare::{ab, assert, check, diff, measure};
use crate::convert::{self, filter};
#[cfg(feature = "query")]
use crate::look::query;
use crate::look::{dump, report, stats, view};
#[cfg(feature = "query")]
use crate::mcp;
use crate::plumbing::{dump_memory, install, manager, time};
use crate::record::{self, doctor, kernel, live, recover};
use crate::settings::Settings;
use crate::shell::exit::Failure;
use crate::shell::json;
use crate::shell::stdio;
use std::process::ExitCode;
use std::sync::Arc;

pub fn run() -> ExitCode {
    args::completion::answer();
    if std::env::args_os().nth(1).is_some_and(|argument| argument == "doctor-provider") {
        doctor::self_trace::provide();
        return ExitCode::SUCCESS;
    }
    stdio::choose_colours();
    trace_archive::output::watch();
    // Exceeding the file size limit is an error like any other.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
    #[cfg(feature = "query")]
    if std::env::args_os().nth(1).is_some_and(|argument| argument == mcp::worker::NAME) {
        let served = mcp::worker::run(std::env::args_os().skip(2));
        return served.map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS);
    }
    let (cli, name) = match args::parsing::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => return args::parsing::refuse(&error),
    };
    if !matches!(
        cli.command,
        Command::Recover(_)
            | Command::Manager(_)
            | Command::Ktrace(_)
            | Command::Completions(_)
            | Command::Man(_)
            | Command::Plumbing
    ) {
        recover::remind();
    }
    let result = match cli.command {
        Command::Plumbing => stdio::print_document(&(args::help::plumbing() + "\n")).map(|()| 0),
        Command::Record(options) if options.print_config => {
            print_config(&options.recording, options.config_file())
        }
        Command::Start(options) if options.record.print_config => {
            print_config(&options.record.recording, options.record.config_file())
        }
        Command::Live(options) if options.print_config => {
            print_config(&options.recording, options.config_file())
        }
        Command::Record(options) => record::run(*options).map_err(Failure::of_record),
        Command::Live(options) => live::run(&options),
        Command::Start(options) => task::start(&options).map(|()| 0),
        Command::Stop(options) => task::stop(&options).map(|()| 0),
        Command::Status(options) => task::status(&options).map(|()| 0),
        Command::Flush(options) => task::flush(&options).map(|()| 0),
        Command::Snapshot(options) => snapshot::run(&options).map(|()| 0),
        Command::ListCategoryGroups(options) => list::category_groups(&options).map(|()| 0),
        Command::Time(options) => time::run(&options).map(|()| 0),
        Command::Measure(options) => measure::run(&options),
        Command::Stats(options) => stats::run(&options),
        Command::Assert(options) => assert::run(&options),
        Command::Ab(options) => ab::run(&options),
        Command::Diff(options) => diff::run(&options).map(|()| 0),
        Command::Doctor(options) => doctor::run(&options).map(|()| 0),
        Command::View(options) if options.live => live::page::run(&options),
        Command::View(options) => view::run(&options).map(|()| 0),
        Command::Report(options) => report::run(&options),
        Command::Completions(options) => install::completions(&options).map(|()| 0),
        Command::Man(options) => install::man(&options).map(|()| 0),
        Command::DumpMemory(options) => dump_memory::run(&options).map(|()| 0),
        Command::ListPrograms(options) => list::providers(&options).map(|()| 0),
        Command::ListCategories(options) => list::categories(&options).map(|()| 0),
        Command::Check(options) => check::run(&options),
        Command::Dump(options) => dump::run(&options),
        Command::Convert(options) => convert::run(&options),
        Command::Filter(options) => filter::run(&options),
        #[cfg(feature = "query")]
        Command::Query(options) => query::run(&options).map(|()| 0),
        #[cfg(feature = "query")]
        Command::Mcp(options) => mcp::run(options).map(|()| 0),
        Command::Recover(options) => recover::run(&options).map(|()| 0),
        Command::Manager(options) => manager::run(&options).map(|()| 0),
        Command::Ktrace(options) => kernel::run(&options).map(|()| 0),
    };
    let printed = json::finish(&name, &result);
    match (result, printed) {
        (Err(failure), _) | (Ok(_), Err(failure)) => failure.report(),
        (Ok(code), Ok(())) => ExitCode::from(code),
    }
}

/// `--print-config`: prints the options that would be used.
fn print_config(recording: &Recording, file: Option<ConfigFile<'_>>) -> Result<u8, Failure> {
    let settings = Settings::resolve(recording.clone(), file)?;
    stdio::print_document(&settings.to_toml()?).map(|()| 0)
}
