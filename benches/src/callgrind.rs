//! Counts instructions, by running this program again under callgrind.

use std::path::Path;
use std::process::Command;

/// Repetitions of the shorter run; the longer one has twice as many.
const TIMES: u64 = 10_000;

/// Instructions of one repetition of what `--run ARGUMENTS TIMES` does: the difference between two runs of
/// different length, so that nothing around the repetitions counts.
///
/// # Errors
///
/// There is no valgrind, or the program failed.
pub fn count(arguments: &[&str]) -> Result<u64, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    count_of(&program, &[&["--run"], arguments].concat())
}

/// As [`count`], of another program, which gets the arguments and how often it is to repeat.
///
/// # Errors
///
/// There is no valgrind, or the program failed.
pub fn count_of(program: &Path, arguments: &[&str]) -> Result<u64, String> {
    let of_times = collect(program, arguments, 2 * TIMES)? - collect(program, arguments, TIMES)?;
    // To the nearest: a few instructions more or less around the repetitions do not count.
    Ok((of_times + TIMES / 2) / TIMES)
}

/// Instructions of all that `--run ARGUMENTS TIMES` does.
///
/// # Errors
///
/// There is no valgrind, or the program failed.
pub fn instructions(arguments: &[&str], times: u64) -> Result<u64, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    collect(&program, &[&["--run"], arguments].concat(), times)
}

/// Instructions of a whole run.
fn collect(program: &Path, arguments: &[&str], times: u64) -> Result<u64, String> {
    let runtime = tempfile::tempdir().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .env("TRACE_RUNTIME_DIR", runtime.path())
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(arguments)
        .arg(times.to_string())
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let collected = text.lines().find_map(|line| line.split("Collected : ").nth(1)?.trim().parse().ok());
    match collected {
        Some(count) if output.status.success() => Ok(count),
        _ => Err(format!("{}: {text}", output.status)),
    }
}
