//! `trace recover`: archives of recordings whose manager has died.

use crate::args::Recover;
use crate::connection;
use crate::exit::Failure;
use crate::output::{OutputFile, remove_on_signal};
use crate::stdio::{self, print, print_document, say};
use crate::summary;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};
use trace_format::shown::Shown;
use trace_manager::problem;
use trace_manager::recovery::{Error, Leftover, Recovered, Session, session_directories};
use trace_reader::check::{Limits, check};

/// Makes an archive, lists what there is, or deletes it.
pub fn run(options: &Recover) -> Result<(), Failure> {
    if options.list {
        list(options)
    } else if options.delete {
        delete(options)
    } else {
        recover(options)
    }
}

/// Says that something can be recovered, before another command does its work.
pub fn remind() {
    for directory in connection::directories() {
        let sessions = sessions_of(&directory);
        for session in sessions.iter().filter(|session| session.is_waiting()) {
            let names: Vec<_> = session.unsaved().map(|buffer| buffer.provider.name.as_str()).collect();
            say!(
                "trace: a recording of {} was cut off {} ago; save it with: trace recover {}",
                names.join(", "),
                age(session.began()),
                session.directory.display()
            );
        }
    }
}

/// All sessions in the places where there may be some, or below the one that was named.
fn sessions(options: &Recover) -> Vec<Session> {
    match &options.directory {
        Some(directory) => match Session::look(directory) {
            Ok(session) => vec![session],
            Err(_) => sessions_of(directory),
        },
        None => connection::directories().iter().flat_map(|directory| sessions_of(directory)).collect(),
    }
}

fn sessions_of(runtime: &Path) -> Vec<Session> {
    let directories = session_directories(runtime).unwrap_or_default();
    directories.iter().filter_map(|directory| Session::look(directory).ok()).collect()
}

fn looked(options: &Recover) -> String {
    let paths = options.directory.clone().map_or_else(connection::directories, |directory| vec![directory]);
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

fn recover(options: &Recover) -> Result<(), Failure> {
    let mut found = sessions(options);
    if let (Some(_), [session]) = (&options.directory, found.as_slice())
        && session.has_manager()
    {
        return Err(Failure::new(format!(
            "{} is being recorded right now; end that recording, and its trace is complete",
            session.directory.display()
        )));
    }
    found.retain(|session| !session.has_manager() && session.unsaved().next().is_some());
    if options.directory.is_none() && found.iter().any(Session::is_waiting) {
        // What was recovered before is there for those who name it.
        found.retain(Session::is_waiting);
    }
    let session = match found.as_slice() {
        [] => {
            return Err(Failure::new(format!("there is nothing to recover (looked in {})", looked(options))));
        }
        [session] => session,
        several => {
            stdio::tell(&table(several));
            return Err(Failure::new("several recordings can be recovered; name the directory of one"));
        }
    };
    let leftover = Leftover::open(&session.directory).map_err(failure)?;
    remove_on_signal()?;
    let mut output = OutputFile::create(&options.output_file)?;
    let mut all = Vec::new();
    let mut writer = BufWriter::new(output.file());
    leftover.recover(&mut writer, |recovered| all.push(recovered.clone())).map_err(failure)?;
    let flushed = writer.flush();
    drop(writer);
    flushed.map_err(|error| Failure::new(format!("cannot write the archive: {error}")))?;
    let path = output.finish()?;
    leftover.note_recovered(&path).map_err(failure)?;
    report(&all, &path, &session.directory)
}

/// What was recovered, whether it is sound, and what the recording's own file may hold.
fn report(all: &[Recovered], path: &Path, directory: &Path) -> Result<(), Failure> {
    let stats: Vec<_> = all.iter().map(|recovered| recovered.stats.clone()).collect();
    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let place = path.display().to_string();
    let summary = summary::Summary {
        providers: &stats,
        place: &place,
        file_bytes: Some(bytes),
        has_command: true,
        buffer_size: 4,
    };
    stdio::tell(&summary.text());
    for recovered in all {
        let who = format!("{} (pid {})", recovered.stats.name, recovered.stats.pid);
        match recovered.halves_before {
            (_, None) => {}
            (saved, Some(saving)) if saved == Some(saving) => say!(
                "trace: {who}: the recording's own file holds halves 0 to {saving}, of which the last may be here too"
            ),
            (_, Some(saving)) => say!(
                "trace: {who}: the recording's own file holds the halves before {saving}, and perhaps a part of \
                 half {saving}, which is here too"
            ),
        }
    }
    say!(
        "trace: the buffers are still there; delete them with: trace recover --delete {}",
        directory.display()
    );
    let unreadable = |why: String| Failure::new(format!("{}: {why}", path.display()));
    let file = std::fs::File::open(path).map_err(|error| unreadable(error.to_string()))?;
    let checked = check(file, Limits::default()).map_err(|error| unreadable(problem(&error)))?;
    let problems: Vec<_> =
        checked.problems.iter().filter(|problem| UNSOUND.contains(&problem.kind)).collect();
    match problems.first() {
        None => Ok(()),
        Some(problem) => Err(unreadable(format!("{} findings of kind {}", problem.count, problem.kind))),
    }
}

/// Kinds of finding that an archive of ours never has, whatever a program did and whenever it was killed.
const UNSOUND: [&str; 11] = [
    "damaged",
    "lost",
    "malformed",
    "no-magic",
    "no-rate",
    "rates-differ",
    "truncated",
    "undefined-string",
    "undefined-thread",
    "unknown-provider",
    "zero-words",
];

fn list(options: &Recover) -> Result<(), Failure> {
    let found = sessions(options);
    if options.json || options.machine.is_some() {
        let list: Vec<_> = found.iter().map(machine).collect();
        return print_document(&format!("{}\n", serde_json::Value::Array(list)));
    }
    if found.is_empty() {
        say!("trace: nothing was left behind (looked in {})", looked(options));
        return Ok(());
    }
    print(&table(&found))
}

fn machine(session: &Session) -> serde_json::Value {
    let providers: Vec<_> = session
        .manifest
        .buffers
        .values()
        .map(|buffer| {
            let facts = &buffer.provider;
            serde_json::json!({
                "id": facts.id, "name": facts.name, "pid": facts.pid, "buffer_bytes": facts.bytes,
                "is_archived": buffer.is_archived,
            })
        })
        .collect();
    serde_json::json!({
        "directory": session.directory.display().to_string(),
        "began_ns": session.manifest.session.wall_clock_ns,
        "state": state(session),
        "command_line": session.manifest.session.command_line,
        "recovered": session.manifest.recovered,
        "providers": providers,
    })
}

fn state(session: &Session) -> &'static str {
    if session.has_manager() {
        "running"
    } else if session.unsaved().next().is_none() {
        "nothing to recover"
    } else if session.manifest.recovered.is_empty() {
        "to be recovered"
    } else {
        "recovered"
    }
}

fn table(sessions: &[Session]) -> String {
    let header = ["age", "state", "size", "providers", "directory"].map(str::to_owned);
    let rows: Vec<[String; 5]> = sessions
        .iter()
        .map(|session| {
            let buffers = session.manifest.buffers.values();
            let names: Vec<_> = buffers.clone().map(|buffer| buffer.provider.name.clone()).collect();
            let bytes = buffers.map(|buffer| buffer.provider.bytes).fold(0, u64::saturating_add);
            [
                age(session.began()),
                state(session).to_owned(),
                format!("{} MiB", bytes >> 20),
                Shown(&names.join(",")).to_string(),
                Shown(&session.directory.display().to_string()).to_string(),
            ]
        })
        .collect();
    let all = || std::iter::once(&header).chain(&rows);
    let width = |column: usize| all().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..5).map(width).collect();
    let line = |row: &[String; 5]| {
        let cells: Vec<_> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    all().map(line).collect()
}

fn delete(options: &Recover) -> Result<(), Failure> {
    let is_named = options.directory.as_ref().is_some_and(|directory| Session::look(directory).is_ok());
    let limit = Duration::from_secs(u64::from(options.older_than) * 24 * 60 * 60);
    let mut deleted = 0;
    for session in sessions(options) {
        let is_old = SystemTime::now().duration_since(session.began()).is_ok_and(|age| age > limit);
        if session.has_manager() || !(is_named || is_old) {
            continue;
        }
        match Leftover::open(&session.directory).and_then(Leftover::delete) {
            Ok(()) => {
                say!("trace: deleted {}", session.directory.display());
                deleted += 1;
            }
            Err(error) if is_named => return Err(failure(error)),
            Err(error) => say!("trace: kept: {error}"),
        }
    }
    if deleted == 0 && is_named {
        return Err(Failure::new(format!("{} is in use by a running manager", looked(options))));
    }
    if deleted == 0 {
        let days = options.older_than;
        say!("trace: nothing is older than {days} days (looked in {})", looked(options));
    }
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn failure(error: Error) -> Failure {
    Failure::new(error.to_string())
}

/// How long ago something was, in one unit.
fn age(then: SystemTime) -> String {
    let seconds = SystemTime::now().duration_since(then).unwrap_or_default().as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_one_unit() {
        let ago = |seconds| age(SystemTime::now() - Duration::from_secs(seconds));
        assert_eq!(ago(5), "5 s");
        assert_eq!(ago(600), "10 min");
        assert_eq!(ago(3 * 3600), "3 h");
        assert_eq!(ago(9 * 86_400), "9 days");
    }

    #[test]
    fn every_kind_of_finding_is_known() {
        assert!(UNSOUND.iter().all(|kind| trace_reader::check::KINDS.contains(kind)));
    }
}
