//! Whether the options of a recording make sense together, and with what the command does.

use super::Settings;
use super::spec_file::SpecFile;
use crate::args::format::Format;
use crate::args::record::Recording;
use crate::args::trigger::{Action, Condition};
use crate::args::values::Compress;
use crate::shell::exit::Failure;
use std::path::Path;

/// Of every recording: options that exclude each other.
pub fn of_all(
    recording: &Recording,
    spec: Option<&SpecFile>,
    report: &mut dyn FnMut(&str),
) -> Result<(), Failure> {
    let refuse = |text: &str| Err(Failure::usage(text));
    let is = |option: Option<bool>| option == Some(true);
    if recording.command.is_empty() {
        let options = [
            ("--detach", recording.detach),
            ("--decouple", recording.decouple),
            ("--manager-fd", recording.manager_fd),
        ];
        if let Some((option, _)) = options.into_iter().find(|(_, value)| is(*value)) {
            return refuse(&format!("{option} needs a command"));
        }
        if !recording.append_args.is_empty() {
            return refuse("--append-args needs a command to append to");
        }
    }
    if let Some(name) = &recording.environment_name {
        report(&format!("--environment-name {name} is ignored: a command runs in the caller's environment"));
    }
    let conditions = recording.trigger.iter().map(|trigger| trigger.condition.to_string());
    let mut conditions: Vec<String> = conditions.collect();
    conditions.sort_unstable();
    if let Some(twice) = conditions.windows(2).find(|pair| pair[0] == pair[1]) {
        return refuse(&format!("--trigger: multiple trigger options for {:?}", twice[0]));
    }
    // A file of options may have it, too.
    if recording.benchmark_results_file.as_deref() == Some(Path::new("-")) {
        return refuse("--benchmark-results-file: the results cannot be written to stdout");
    }
    let has_measurements = spec.is_some_and(|spec| !spec.measure.is_empty());
    if recording.benchmark_results_file.is_some() && !has_measurements {
        return refuse("--benchmark-results-file needs a --spec-file with measurements");
    }
    if is(recording.privacy) && recording.profile.is_some() {
        return refuse(
            "--profile records the names of files and functions, which --privacy leaves out: give one of them",
        );
    }
    Ok(())
}

/// Of a command whose trace and whose document both go to stdout.
pub fn of_json(is_json: bool, output: Option<&Path>) -> Result<(), Failure> {
    match is_json && output == Some(Path::new("-")) {
        true => Err(Failure::usage("--json: the trace goes to stdout already")),
        false => Ok(()),
    }
}

/// Of a recording that is written to stdout.
pub fn of_stdout(recording: &Recording, is_json: bool) -> Result<(), Failure> {
    let what = if recording.trigger.iter().any(|trigger| trigger.is_snapshot()) {
        "--trigger: snapshots are named after the trace's file, and stdout has no name"
    } else if recording.stats == Some(true) {
        "--stats: the trace goes to stdout; give it to trace stats -"
    } else if recording.report == Some(true) {
        "--report: the trace goes to stdout; give it to trace report -"
    } else if is_json {
        "--json: the trace goes to stdout already"
    } else {
        return Ok(());
    };
    Err(Failure::usage(what))
}

/// Of a recording in the background; `compress` is what its command line says, for files may ask for it.
pub fn of_background(settings: &Settings, compress: Option<Compress>) -> Result<(), Failure> {
    let asked = &settings.recording;
    let refuse = |text: &str| Err(Failure::usage(text.to_owned()));
    if !asked.command.is_empty() {
        return refuse(
            "trace start runs no command: start the program yourself before or after it, or use trace record -- COMMAND",
        );
    }
    if asked.stats == Some(true) {
        return refuse("--stats is for trace record; trace stats reads the file of a recording");
    }
    if asked.report == Some(true) {
        return refuse("--report is for trace record; trace report reads the file of a recording");
    }
    if asked.max_size.is_some() {
        return refuse(
            "--max-size is for trace record; give start a --duration, or a --trigger that stops it",
        );
    }
    for trigger in &asked.trigger {
        if trigger.action != Action::Stop {
            return refuse(
                "--trigger: only stop is possible here; trace record --trigger can take snapshots and memory dumps",
            );
        }
        if trigger.delay.is_some() {
            return refuse(
                "--trigger: trace record --trigger can stop after a delay; here an alert stops at once",
            );
        }
        if !matches!(trigger.condition, Condition::Alert(_)) {
            return refuse(
                "--trigger: only alerts are possible here; trace record --trigger also takes signals, rss() and durations",
            );
        }
    }
    if settings.spec.as_ref().is_some_and(|spec| !spec.measure.is_empty()) {
        return refuse("--spec-file: measurements are for trace record, or for trace measure afterwards");
    }
    if asked.format.is_some_and(|format| format != Format::Fxt) {
        return refuse("--format is for trace record; trace stop -o converts at the end");
    }
    if compress.is_some_and(|compress| compress != Compress::No) {
        return refuse("--compress is for trace record; trace stop -o trace.fxt.zst compresses at the end");
    }
    Ok(())
}
