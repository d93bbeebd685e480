//! Records other programs with the library: `recorder TOOL FILE [COMMAND …]`. Runs the command while it does;
//! without one, it says "recording" and waits for a line, and at the end of its input it ends at once
//! instead.
//! Prints how many events the archive has, and `unchanged` behind that if a file stayed as it was; or, with
//! exit code 1, what has failed. `MAX_SIZE` in its environment limits the archive, in bytes. With
//! `REFUSED`, it first asks for recordings that are refused, and sees whether they leave descriptors.
#![forbid(unsafe_code)]

use std::process::{Command, ExitCode};
use trace_client::{Client, Config, Error, Tool, problem};

fn main() -> ExitCode {
    match record(std::env::args().skip(1)) {
        Ok(text) => println!("{text}"),
        Err(error) => {
            println!("{}", problem(&error));
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn record(mut arguments: impl Iterator<Item = String>) -> Result<String, Error> {
    let tool = arguments.next().expect("the tool");
    let file = arguments.next().expect("the name of a file");
    let tool = if tool.contains('/') { Tool::At(tool.into()) } else { Tool::InPath };
    let client = Client::open_with(tool).wait()?;
    let mut config = Config::default();
    if let Ok(bytes) = std::env::var("MAX_SIZE") {
        config = config.max_size(bytes.parse().expect("a number"));
    }
    let recording = client.record(config, file).wait()?;
    if std::env::var_os("REFUSED").is_some() {
        let numbers = || std::fs::read_dir("/proc/self/fd").expect("/proc").count();
        let refused =
            || client.record(Config::default(), "refused.fxt").wait().expect_err("another one runs");
        refused();
        let before = numbers();
        (0..20).for_each(|_| drop(refused()));
        // What is dropped on another thread is closed soon.
        while numbers() > before {
            std::thread::yield_now();
        }
    }
    match arguments.next() {
        Some(command) => {
            let status = Command::new(command).args(arguments).status().expect("a command");
            assert!(status.success(), "{status}");
        }
        None => {
            println!("recording");
            let Some(Ok(_)) = std::io::stdin().lines().next() else {
                std::process::exit(1);
            };
        }
    }
    let report = recording.stop().wait()?;
    let unchanged = if report.is_unchanged { " unchanged" } else { "" };
    Ok(format!("{}{unchanged}", report.events()))
}
