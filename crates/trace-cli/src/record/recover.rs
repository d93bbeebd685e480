//! `trace recover`: recovers archives of interrupted recordings.

mod listing;

use crate::args::Recover;
use crate::args::format::{Compression, Format, of_name};
use crate::connection::{self, sessions_of};
use crate::files::output::Place;
use crate::files::output::{OutputFile, remove_on_signal};
use crate::record::destination::unused_name;
use crate::record::summary;
use crate::shell::caller;
use crate::shell::exit::Failure;
use crate::shell::json::Answer;
use crate::shell::stdio::{self, say};
use rustix::process::Uid;
use std::collections::HashMap;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use trace_analysis::check::{Limits, check};
use trace_analysis::counted::Counted;
use trace_archive::manifest::{Manifest, SessionInfo};
use trace_archive::problem;
use trace_archive::recovery::{self, ClientFile, Error, Leftover, Now, Recovered, Session, recover_startups};
use trace_format::shown::Shown;
use trace_reader::Disorder;

/// How long a manager may take to end a session: its programs have 5 s to confirm that.
const ENDING_WAIT: Duration = Duration::from_secs(10);
const ENDING_INTERVAL: Duration = Duration::from_millis(20);
/// Programs that a reminder names.
const MAX_NAMED: usize = 10;

/// Recovers an archive, lists recordings, or deletes them.
pub fn run(options: &Recover) -> Result<(), Failure> {
    match &options.directory {
        Some(directory) => is_there(directory)?,
        None => connection::check_named()?,
    }
    if options.list {
        listing::list(options)
    } else if options.delete {
        delete(options)
    } else {
        recover(options)
    }
}

/// Whether a directory that the user names can be looked into.
fn is_there(directory: &Path) -> Result<(), Failure> {
    let wrong = |why: &dyn std::fmt::Display| format!("{}: {why}", Shown(&directory.display().to_string()));
    match std::fs::metadata(directory) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(Failure::usage(wrong(&"it is no directory"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(Failure::nothing_recorded(wrong(&"there is no such directory")))
        }
        Err(error) => Err(Failure::new(wrong(&error))),
    }
}

/// Names of some programs, and how many more there are.
fn some<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let (named, others) = names.split_at(names.len().min(MAX_NAMED));
    let mut text = Shown(&named.join(", ")).to_string();
    if !others.is_empty() {
        text += &format!(" and {} more", others.len());
    }
    text
}

/// Reports that a recording can be recovered, before another command does its work.
pub fn remind() {
    let (startups, others): (Vec<_>, Vec<_>) =
        waiting().into_iter().partition(|session| session.manifest.session.is_startup);
    match startups.as_slice() {
        [] => {}
        [one] => {
            let names = some(one.manifest.buffers.values().map(|buffer| buffer.provider.name.as_str()));
            let age = age(one, &Now::read());
            say!("trace: {names} recorded itself {age} ago; save that with: trace recover");
        }
        several => {
            say!("trace: {} programs recorded themselves; save that with: trace recover", several.len());
        }
    }
    for session in others {
        let buffers = session.manifest.buffers.values().filter(|buffer| buffer.is_started);
        say!(
            "trace: a recording of {} was cut off {} ago; save it with: trace recover {}",
            some(buffers.map(|buffer| buffer.provider.name.as_str())),
            age(&session, &Now::read()),
            session.directory.display()
        );
        session.announce();
    }
    startups.iter().for_each(Session::announce);
}

/// Interrupted recordings that have not been recovered yet.
pub fn waiting() -> Vec<Session> {
    let directories = connection::directories();
    let sessions = directories.iter().flat_map(|directory| sessions_of(directory));
    sessions.filter(Session::is_waiting).collect()
}

/// All sessions in the usual directories, or below the given one.
fn sessions(options: &Recover) -> Vec<Session> {
    match &options.directory {
        Some(directory) => match Session::read(directory) {
            Ok(session) => vec![session],
            Err(_) => sessions_of(directory),
        },
        None => connection::directories().iter().flat_map(|directory| sessions_of(directory)).collect(),
    }
}

/// The same, when the manager has ended those whose recordings are over. A client that ends, in whatever way,
/// does not wait for that.
//= docs/recovery.md#recovery
fn settled(options: &Recover) -> Vec<Session> {
    let deadline = Instant::now() + ENDING_WAIT;
    let mut asked = HashMap::new();
    loop {
        let found = sessions(options);
        // A program that records itself ends when it wants.
        let is_ending = |session: &&Session| session.has_manager() && !session.manifest.session.is_startup;
        let running = found.iter().filter(is_ending);
        let mut is_new = false;
        let mut is_ending = false;
        for runtime in running.filter_map(|session| session.directory.parent()) {
            // A manager that answers has handled whatever happened before.
            let answers = asked.entry(runtime.to_owned()).or_insert_with(|| {
                is_new = true;
                connection::answers(runtime)
            });
            is_ending |= *answers && !connection::announces_recording(runtime);
        }
        if !(is_new || is_ending) || Instant::now() >= deadline {
            return found;
        }
        if !is_new {
            std::thread::sleep(ENDING_INTERVAL);
        }
    }
}

/// Reports sessions whose manifests are damaged.
fn report_unreadable(options: &Recover, known: &[Session]) {
    for directory in looked_in(options).iter().flat_map(|directory| recovery::unreadable(directory, known)) {
        say!(
            "trace: {}: its manifest is damaged: the buffers there are kept, and cannot be recovered",
            Shown(&directory.display().to_string())
        );
    }
}

fn nothing(options: &Recover) -> String {
    let found = format!("there is nothing to recover (looked in {})", looked(options));
    let is_elsewhere = connection::directories().iter().any(|directory| connection::is_roots(directory));
    if is_elsewhere && options.directory.is_none() {
        return format!("{found}; recordings with root's manager for all users: sudo trace recover");
    }
    found
}

fn looked_in(options: &Recover) -> Vec<PathBuf> {
    options.directory.clone().map_or_else(connection::directories, |directory| vec![directory])
}

fn looked(options: &Recover) -> String {
    looked_in(options).iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

fn recover(options: &Recover) -> Result<(), Failure> {
    caller::begin(None)?;
    let place = match &options.output {
        Some(path) => Place::named(path),
        // An archive that was recovered before is not replaced: its buffers were deleted.
        None => unused_name("recovered", Format::Fxt, Compression::None)?,
    };
    if place.is_stdout() {
        return Err(Failure::usage(
            "-o -: trace recover deletes what it has written to a file: name one, and read that",
        ));
    }
    if !matches!(of_name(&place.path), (None | Some(Format::Fxt), Compression::None)) {
        let path = place.path.display();
        return Err(Failure::usage(format!(
            "-o {path}: trace recover writes FXT: name the file .fxt, and convert it with: trace convert ARCHIVE {path}"
        )));
    }
    let mut found = settled(options);
    report_unreadable(options, &found);
    let running = found.iter().find(|session| session.has_manager()).map(running);
    found.retain(Session::is_recoverable);
    if options.directory.is_none() && found.iter().any(Session::is_waiting) {
        // Recordings that were recovered before are only found by name.
        found.retain(Session::is_waiting);
    }
    let is_startup = |session: &Session| session.manifest.session.is_startup;
    if options.startup {
        found.retain(is_startup);
    }
    let sessions = match found.as_slice() {
        [] => {
            return Err(match running {
                Some(running) => Failure::new(running),
                None => Failure::nothing_recorded(nothing(options)),
            });
        }
        [session] => std::slice::from_ref(session),
        startups if startups.iter().all(is_startup) => startups,
        several => {
            several.iter().for_each(Session::announce);
            stdio::report(&listing::table(several, stdio::stderr_width()));
            let startup = if several.iter().any(is_startup) { ", or use --startup" } else { "" };
            return Err(Failure::usage(format!(
                "several recordings can be recovered; name the directory of one{startup}"
            )));
        }
    };
    let (leftovers, left) = open_with_one_clock(sessions)?;
    let _removing = remove_on_signal()?;
    let mut output = place.create()?;
    let mut all = Vec::new();
    let mut writer = BufWriter::new(output.file());
    let add = |recovered: &Recovered| all.push(recovered.clone());
    let client = match &leftovers[..] {
        [leftover] if !leftover.session().manifest.session.is_startup => leftover.recover(&mut writer, add),
        startups => recover_startups(startups, &mut writer, add).map(|()| ClientFile::Unknown),
    };
    let client = client.map_err(failure)?;
    if sessions.iter().all(is_startup) {
        all.iter_mut().for_each(say_what_was_short);
    }
    let flushed = writer.flush();
    drop(writer);
    flushed.map_err(|error| Failure::new(format!("cannot write the archive: {error}")))?;
    give_to_user(&mut output, sessions);
    // Its contents are on disk.
    let path = output.finish()?;
    report(&all, &client, &path, is_json(options));
    let complete = is_sound(&path).and_then(|()| is_complete(&all, &client, &sessions[0].directory));
    if complete.is_err() {
        let directories = sessions.iter().map(|session| session.directory.display().to_string());
        let (directories, is) =
            (directories.collect::<Vec<_>>(), if sessions.len() == 1 { "is" } else { "are" });
        say!("trace: nothing was deleted: {} {is} unchanged", directories.join(", "));
        return complete;
    }
    leftovers.into_iter().try_for_each(|leftover| {
        leftover.note_recovered(&path).map_err(failure)?;
        remove_pieces(leftover)
    })?;
    match left {
        0 => Ok(()),
        left => {
            let left = Counted(left as u64, "recordings");
            Err(Failure::new(format!("not saved yet: {left}; run trace recover again")))
        }
    }
}

/// Locks these recordings, and returns how many are left: those that cannot be locked, for which it says the
/// reason, and those whose timestamps have another rate than the newest one's, as after a restart of the
/// machine: one archive has one rate.
fn open_with_one_clock(sessions: &[Session]) -> Result<(Vec<Leftover>, usize), Failure> {
    let rate = |session: &Session| session.manifest.session.ticks_per_second;
    let mut leftovers: Vec<Leftover> = Vec::new();
    let mut problem = None;
    for session in sessions.iter().rev() {
        if leftovers.first().is_some_and(|newest| rate(newest.session()) != rate(session)) {
            continue;
        }
        match Leftover::open(&session.directory) {
            Ok(leftover) => leftovers.push(leftover),
            Err(error) if sessions.len() > 1 => {
                say!("trace: {error}");
                problem = Some(error);
            }
            Err(error) => return Err(failure(error)),
        }
    }
    leftovers.reverse();
    match (leftovers.len(), problem) {
        (0, Some(error)) => Err(failure(error)),
        (opened, _) => Ok((leftovers, sessions.len() - opened)),
    }
}

/// What root saves of another user's recording is that user's.
//= docs/recovery.md#recordings-with-a-manager-for-all-users
fn give_to_user(output: &mut OutputFile, sessions: &[Session]) {
    let [Session { manifest: Manifest { session: SessionInfo { uid: Some(uid), .. }, .. }, .. }] = sessions
    else {
        return;
    };
    if !rustix::process::geteuid().is_root() || *uid == 0 {
        return;
    }
    // A file system may have no owners, or not this one.
    if let Err(error) = rustix::fs::fchown(output.file(), Some(Uid::from_raw(*uid)), None) {
        say!("trace: warning: the archive is not given to user {uid}: {error}");
    }
}

/// No option of a recording makes a program's own buffer larger.
fn say_what_was_short(recovered: &mut Recovered) {
    let stats = &mut recovered.stats;
    if stats.needed_rolling_bytes.take().is_some() | stats.needed_durable_bytes.take().is_some() {
        let (name, pid) = (Shown(&stats.name), stats.pid);
        say!("trace: {name} (pid {pid}) needs a larger buffer of its own: TRACE_STARTUP_BUFFER_SIZE");
    }
}

/// What a session is that cannot be recovered yet.
fn running(session: &Session) -> String {
    let directory = session.directory.display();
    let mut programs = session.manifest.buffers.values().map(|buffer| &buffer.provider);
    match programs.next().filter(|_| session.manifest.session.is_startup) {
        Some(program) => format!(
            "{} (pid {}{}) records itself into {directory}; end it, or record it with: trace record",
            Shown(&program.name),
            program.pid,
            if session.is_elsewhere() { " in another container" } else { "" }
        ),
        None => {
            format!("{directory} is being recorded right now; end that recording, and its trace is complete")
        }
    }
}

/// Fails unless all expected data could be read.
fn is_complete(all: &[Recovered], client: &ClientFile, session: &Path) -> Result<(), Failure> {
    for Recovered { stats, unread, .. } in all {
        if let Some(why) = unread {
            let (name, pid) = (Shown(&stats.name), stats.pid);
            return Err(Failure::unreadable(format!("cannot read what {name} (pid {pid}) has left: {why}")));
        }
    }
    match client {
        ClientFile::Missing { path, bytes, why } if *bytes > 0 => Err(Failure::unreadable(format!(
            "cannot read {}, which had the first {bytes} bytes of the recording: {why}; restore that file and recover again, \
             or discard the rest: trace recover --delete {}",
            path.display(),
            session.display()
        ))),
        _ => Ok(()),
    }
}

/// Removes the buffers and files that the archive was made of, unless a process may still write into them.
fn remove_pieces(leftover: Leftover) -> Result<(), Failure> {
    let directory = leftover.session().directory.clone();
    if let Some((name, pid)) = leftover.live_program() {
        say!(
            "trace: {name} (pid {pid}) still has its buffer; when it has ended, delete it with: trace recover --delete {}",
            directory.display()
        );
        return Ok(());
    }
    if !leftover.session().is_certainly_over() {
        say!(
            "trace: {0} is kept: another release recorded it, and may still do so in a container; when its program has ended: \
             trace recover --delete {0}",
            directory.display()
        );
        return Ok(());
    }
    if let Some(path) = leftover.delete_client_file().map_err(failure)? {
        say!("trace: deleted {}: the recovered trace has its contents", path.display());
    }
    leftover.delete().map_err(failure)
}

/// Reports what was recovered, and what is missing.
fn report(all: &[Recovered], client: &ClientFile, path: &Path, is_json: bool) {
    let stats: Vec<_> = all.iter().map(|recovered| recovered.stats.clone()).collect();
    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let place = path.display().to_string();
    let summary = summary::Summary {
        providers: &stats,
        place: &place,
        is_unchanged: false,
        file_bytes: Some(bytes),
        programs: &[],
        absence: None,
        buffer_size: 4,
        room: None,
    };
    stdio::report(&summary.text());
    match client {
        ClientFile::Unknown => {}
        ClientFile::Found { path, bytes, is_cut_off } => {
            let how = if *is_cut_off { ", whose compressed data is cut off" } else { "" };
            say!("trace: {bytes} bytes of it come from {}{how}", path.display());
        }
        // Reported at the end.
        ClientFile::Missing { .. } => {}
    }
    for recovered in all {
        let who = format!("{} (pid {})", Shown(&recovered.stats.name), recovered.stats.pid);
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
    if is_json {
        summary.answer().give();
    }
}

/// Fails if an archive has a problem that none of ours ever has.
fn is_sound(path: &Path) -> Result<(), Failure> {
    let unreadable = |why: String| Failure::unreadable(format!("{}: {why}", path.display()));
    let file = std::fs::File::open(path).map_err(|error| unreadable(error.to_string()))?;
    let checked =
        check(file, Limits::default(), &Disorder::default()).map_err(|error| unreadable(problem(&error)))?;
    let mut found = checked.problems.iter().chain(&checked.remarks);
    match found.find(|problem| UNSOUND.contains(&problem.kind)) {
        None => Ok(()),
        Some(problem) => {
            Err(unreadable(format!("{} of kind {}", Counted(problem.count, "findings"), problem.kind)))
        }
    }
}

/// Kinds of problem that an archive of ours never has, whatever a program did and whenever it was killed.
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

fn is_json(options: &Recover) -> bool {
    options.json || options.machine.is_some()
}

fn is_bare(options: &Recover) -> bool {
    options.machine.is_some() && !options.json
}

fn delete(options: &Recover) -> Result<(), Failure> {
    let is_named = options.directory.as_ref().is_some_and(|directory| Session::read(directory).is_ok());
    let limit = Duration::from_secs(u64::from(options.older_than) * 24 * 60 * 60);
    let now = Now::read();
    let mut deleted = Vec::new();
    for session in settled(options) {
        let is_old = session.age(&now) > limit;
        if session.has_manager() || !(is_named || is_old) {
            continue;
        }
        match Leftover::open(&session.directory).and_then(Leftover::delete) {
            Ok(()) => {
                say!("trace: deleted {}", session.directory.display());
                deleted.push(session.directory.display().to_string());
            }
            Err(error) if is_named => return Err(failure(error)),
            Err(error) => say!("trace: kept: {error}"),
        }
    }
    if deleted.is_empty() && is_named {
        let session = options.directory.as_ref().and_then(|directory| Session::read(directory).ok());
        return Err(Failure::new(match session.filter(|session| session.manifest.session.is_startup) {
            Some(session) => running(&session),
            None => format!("{} is in use by a running manager", looked(options)),
        }));
    }
    if deleted.is_empty() {
        let days = options.older_than;
        say!("trace: nothing is older than {days} days (looked in {})", looked(options));
    }
    if is_json(options) {
        Answer::of(serde_json::json!({"deleted": deleted})).bare_if(is_bare(options)).give();
    }
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn failure(error: Error) -> Failure {
    Failure::new(error.to_string())
}

/// The age of a session, in one unit.
fn age(session: &Session, now: &Now) -> String {
    in_one_unit(session.age(now))
}

fn in_one_unit(age: Duration) -> String {
    let seconds = age.as_secs();
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
        let ago = |seconds| in_one_unit(Duration::from_secs(seconds));
        assert_eq!(ago(5), "5 s");
        assert_eq!(ago(600), "10 min");
        assert_eq!(ago(3 * 3600), "3 h");
        assert_eq!(ago(9 * 86_400), "9 days");
    }

    #[test]
    fn every_kind_of_finding_is_known() {
        assert!(UNSOUND.iter().all(|kind| trace_analysis::check::KINDS.contains(kind)));
    }
}
