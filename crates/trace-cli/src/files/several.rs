//! Commands that take several traces: one after the other.
//= docs/command-line.md#several-traces

use super::input::{is_stdin, name};
use crate::shell::exit::{Failure, LOST, NO, UNDECIDED, UNREADABLE};
use crate::shell::json;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The codes of one of several traces, the one first that the command has if any trace has it.
//= docs/command-line.md#several-traces
const OF_ONE: [u8; 4] = [UNREADABLE, LOST, NO, UNDECIDED];

/// Runs a command for each trace. A failure that is about the trace is reported, and the others are still
/// asked; any other failure ends the command.
pub fn each(traces: &[PathBuf], mut run: impl FnMut(&Path) -> Result<u8, Failure>) -> Result<u8, Failure> {
    if let [trace] = traces {
        return run(trace);
    }
    if traces.iter().filter(|trace| is_stdin(trace)).count() > 1 {
        return Err(Failure::usage("stdin can be one trace only"));
    }
    json::expect_several();
    let mut codes = Vec::new();
    for trace in traces {
        match run(trace) {
            Ok(code) => codes.push(code),
            Err(failure) if OF_ONE.contains(&failure.code) => {
                failure.report();
                json::add_failure(&name(trace), &failure);
                codes.push(failure.code);
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(OF_ONE.into_iter().find(|code| codes.contains(code)).unwrap_or(0))
}

/// The traces among FILE… and OUT, and the output: a second name is OUT, unless the output is an option.
pub fn traces_and_output(
    files: &[PathBuf],
    option: Option<&PathBuf>,
) -> Result<(Vec<PathBuf>, Option<PathBuf>), Failure> {
    match (files, option) {
        (traces, Some(output)) => Ok((traces.to_vec(), Some(output.clone()))),
        ([trace], None) => Ok((vec![trace.clone()], None)),
        ([trace, output], None) => Ok((vec![trace.clone()], Some(output.clone()))),
        _ => Err(Failure::usage("several traces need a directory for what is written: -o DIR")),
    }
}

/// The outputs of several traces in a directory, which is created.
pub fn in_directory(
    directory: &Path,
    traces: &[PathBuf],
    named: impl Fn(&Path) -> PathBuf,
) -> Result<Vec<PathBuf>, Failure> {
    if is_stdin(directory) {
        return Err(Failure::usage("-o -: several traces need a directory for what is written: -o DIR"));
    }
    let mut names = BTreeSet::new();
    let mut outputs = Vec::new();
    for trace in traces {
        let output = named(trace);
        let file = output.file_name().map(OsStr::to_owned).filter(|_| !is_stdin(trace));
        let file = file.ok_or_else(|| Failure::usage(format!("{}: it has no name", name(trace))))?;
        if !names.insert(file.clone()) {
            let what =
                format!("{}: two traces would be written to this name in -o DIR", name(Path::new(&file)));
            return Err(Failure::usage(what));
        }
        outputs.push(directory.join(file));
    }
    std::fs::create_dir_all(directory)
        .map_err(|error| Failure::new(format!("{}: {error}", name(directory))))?;
    Ok(outputs)
}
