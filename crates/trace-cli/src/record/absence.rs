//! Why no program took part in a recording, and the one thing that helps: found in the command's executable
//! and in `/proc`.
//= docs/troubleshooting.md#no-program-took-part

mod executable;

use executable::{Executable, Language};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use trace_client::connection::usual_directories;
use trace_format::shown::Shown;
use trace_protocol::controller::ProviderStats;
use trace_protocol::names::{RECORD_VARIABLE, RUNTIME_VARIABLE};
use zx_sim::process::{end_in_words, start_time};

/// Programs that start another one as another user.
const OF_ANOTHER_USER: [&str; 4] = ["sudo", "doas", "su", "runuser"];

/// Programs that run scripts.
const SHELLS: [&str; 5] = ["bash", "dash", "sh", "zsh", "python3"];

/// A command that was recorded.
#[derive(Clone, Copy, Debug)]
pub struct Command<'a> {
    /// The program and its arguments.
    pub words: &'a [String],
    /// How it ended, if it has.
    pub status: Option<ExitStatus>,
}

/// [`cause`], of a recording without programs.
pub fn of_none(stats: &[ProviderStats], directory: &Path, command: Option<Command<'_>>) -> Option<String> {
    stats.is_empty().then(|| cause(directory, command))
}

/// Why no program has registered with the manager of a directory.
pub fn cause(directory: &Path, command: Option<Command<'_>>) -> String {
    let Some(command) = command else {
        return of_running(directory);
    };
    let Some((name, words)) = command.words.split_first() else {
        return of_running(directory);
    };
    let shown = Shown(short(name)).to_string();
    let executable =
        crate::record::command::path_of(name).map(|path| Executable::read(&path)).unwrap_or_default();
    if let Some(language) = executable.provider {
        let call = language.call(short(name));
        return match command.status {
            Some(status) if status.signal().is_some() => format!(
                "{shown} links the trace library, and was {} before it registered; {call}",
                end_in_words(status)
            ),
            Some(status) => {
                format!(
                    "{shown} links the trace library, and did not register before its end ({}); {call}",
                    end_in_words(status)
                )
            }
            None => format!("{shown} links the trace library, and has not registered; {call}"),
        };
    }
    let begun = start_time(u64::from(std::process::id()));
    let is_started = |process: &Process| {
        process.started >= begun
            && process.name() != "trace"
            && process.variable(RUNTIME_VARIABLE).as_deref() == Some(directory)
            && process.variable(RECORD_VARIABLE).is_some()
    };
    if command.status.is_some()
        && let Some(process) = processes().find(is_started)
    {
        return format!(
            "{shown} has ended, but {process}, which it started, runs on; record what runs: trace record"
        );
    }
    // What it has executed in its own place, or what its script names.
    let is_script = executable.is_script || SHELLS.contains(&short(name));
    let all = if is_script { words_of_script(name, words) } else { words.to_vec() };
    let words = &all[..];
    let programs = words.iter().filter(|word| !word.starts_with('-'));
    let found = programs
        .filter_map(|word| Some((word, Executable::read(&crate::record::command::path_of(word)?).provider?)));
    let launched = found.map(|(word, _)| word).next();
    // `env VARIABLE=VALUE PROGRAM`
    let named = words.iter().find_map(|word| word.strip_prefix(RUNTIME_VARIABLE)?.strip_prefix('='));
    if let Some(named) = named.filter(|named| Path::new(named) != directory && !named.is_empty()) {
        let named = Shown(named);
        return format!(
            "{shown} has the program look for a manager in {named}; record there: {RUNTIME_VARIABLE}={named} trace record"
        );
    }
    if OF_ANOTHER_USER.contains(&short(name))
        || short(name) == "setpriv" && words.iter().any(|word| word.contains("uid"))
    {
        return of_another_user(short(name), words);
    }
    match launched {
        // In the usual directory the environment does not matter.
        Some(program)
            if (short(name) == "env" || words.iter().any(|word| short(word) == "env"))
                && words.iter().any(|word| word.starts_with('-'))
                && !usual_directories().iter().any(|usual| usual == directory) =>
        {
            format!(
                "{shown} has ended, and {} has not registered: in an environment without {RUNTIME_VARIABLE} it looks \
                 in other directories; pass it on: {RUNTIME_VARIABLE}={}",
                Shown(short(program)),
                Shown(&directory.display().to_string())
            )
        }
        Some(program) if is_script => format!(
            "{shown} is a script that names {0}, which links the trace library and has not registered: it was not run, \
             did not register, or looked for a manager elsewhere; record it alone: trace record -- {0}",
            Shown(program)
        ),
        Some(program) => {
            format!("{} links the trace library, and did not register before its end", Shown(short(program)))
        }
        None if is_script => format!(
            "{shown} is a script, and no program that it ran has registered: none that it names links the trace library; {}",
            Language::default().call("name")
        ),
        None => format!("{shown} does not link the trace library; {}", executable.language.call(short(name))),
    }
}

/// As much of a script is looked at.
const MAX_SCRIPT_BYTES: u64 = 64 << 10;
/// So many words of it.
const MAX_SCRIPT_WORDS: usize = 1000;

/// The words of what a shell runs, by blanks and marks alone: of the text behind `-c`, or of the file.
fn words_of_script(name: &str, words: &[String]) -> Vec<String> {
    let text = match words {
        [option, text, ..] if option.starts_with('-') && option.ends_with('c') => text.clone(),
        words => {
            let is_file = |word: &&String| !word.starts_with('-');
            let path = match SHELLS.contains(&short(name)) {
                true => words.iter().find(is_file).map(PathBuf::from),
                false => crate::record::command::path_of(name),
            };
            let file = path.filter(|path| path.is_file()).and_then(|path| fs::File::open(path).ok());
            let mut text = Vec::new();
            let read = file.map(|file| file.take(MAX_SCRIPT_BYTES).read_to_end(&mut text));
            read.map_or_else(String::new, |_| String::from_utf8_lossy(&text).into_owned())
        }
    };
    let is_between = |letter: char| letter.is_whitespace() || ";&|()<>'\"`".contains(letter);
    let each = text.split(is_between).filter(|word| !word.is_empty());
    each.take(MAX_SCRIPT_WORDS).map(str::to_owned).collect()
}

/// Of a command that runs its program as another user, who has another manager.
fn of_another_user(name: &str, words: &[String]) -> String {
    let shown = Shown(name);
    let helps = match words.first() {
        // With options of sudo's the other user is not known here; su and runuser expect a user's name first.
        Some(first) if !first.starts_with('-') && ["sudo", "doas"].contains(&name) => {
            format!(": {shown} trace record -- {}", Shown(&words.join(" ")))
        }
        _ => String::new(),
    };
    format!("{shown} runs a program as another user; record as that user{helps}")
}

/// Whether a manager serves the programs of all users: then its directory is open to them.
fn is_for_all(directory: &Path) -> bool {
    fs::metadata(directory).is_ok_and(|found| found.mode() & 0o005 == 0o005)
}

/// Why none of the running programs has.
fn of_running(directory: &Path) -> String {
    // Root may record with the manager of another user.
    let own =
        fs::metadata(directory).map_or_else(|_| rustix::process::geteuid().as_raw(), |found| found.uid());
    let mut others = None;
    for process in processes().filter(Process::has_provider) {
        if process.uid != own && !is_for_all(directory) {
            others = others.or(Some(process));
        } else {
            return process.why(directory);
        }
    }
    match others {
        Some(process) if process.uid == 0 => {
            format!("{process} belongs to root; record as root: sudo trace record")
        }
        Some(process) => format!(
            "{process} belongs to user {0}; record as that user: sudo -u '#{0}' trace record",
            process.uid
        ),
        None => "no running program links the trace library".to_owned(),
    }
}

/// The last part of a path.
fn short(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// A process that runs.
#[derive(Debug)]
struct Process {
    pid: u64,
    uid: u32,
    started: Option<u64>,
}

/// Those that this user sees, but for this one.
fn processes() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let uid = entry.metadata().ok()?.uid();
        let started = Some(start_time(pid)?);
        (pid != u64::from(std::process::id())).then_some(Process { pid, uid, started })
    })
}

impl Process {
    fn path(&self, name: &str) -> PathBuf {
        Path::new("/proc").join(self.pid.to_string()).join(name)
    }

    fn name(&self) -> String {
        fs::read_to_string(self.path("comm")).unwrap_or_default().trim_end().to_owned()
    }

    /// What its environment had when it was executed; none if that cannot be seen.
    fn variable(&self, name: &str) -> Option<PathBuf> {
        let environment = fs::read(self.path("environ")).ok()?;
        let entries = environment.split(|byte| *byte == 0);
        let mut values = entries.filter_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
        values.next().map(|value| PathBuf::from(std::ffi::OsStr::from_bytes(value)))
    }

    /// What it executes: of another user's only what its command line names.
    fn executable(&self) -> Executable {
        if fs::read_link(self.path("exe")).is_ok() {
            return Executable::read(&self.path("exe"));
        }
        let line = fs::read(self.path("cmdline")).unwrap_or_default();
        let first = line.split(|byte| *byte == 0).next().unwrap_or_default();
        let path = Path::new(std::ffi::OsStr::from_bytes(first));
        if path.is_absolute() { Executable::read(path) } else { Executable::default() }
    }

    fn has_provider(&self) -> bool {
        let is_library = || {
            let maps = fs::read_to_string(self.path("maps")).unwrap_or_default();
            maps.lines().any(|line| line.ends_with(executable::LIBRARY))
        };
        // A manager links one for itself.
        self.name() != "trace" && (self.executable().provider.is_some() || is_library())
    }

    /// Why it has not registered with the manager of a directory, though it has a provider.
    fn why(&self, directory: &Path) -> String {
        let named = self.variable(RUNTIME_VARIABLE);
        if let Some(named) = named.as_ref().filter(|named| *named != directory) {
            return format!(
                "{self} looks for a manager in {0}; record there: {RUNTIME_VARIABLE}={0} trace record",
                Shown(&named.display().to_string())
            );
        }
        if named.is_none() && !usual_directories().iter().any(|usual| usual == directory) {
            return format!(
                "{self} has an environment without {RUNTIME_VARIABLE}, and looks in the usual directories; record \
                 there: env -u {RUNTIME_VARIABLE} trace record"
            );
        }
        if self.has_other_files() {
            return format!(
                "{self} sees other files, as in a container or with a private /tmp; mount {} there, and name it in \
                 {RUNTIME_VARIABLE}",
                Shown(&directory.display().to_string())
            );
        }
        format!("{self} links the trace library, and has not registered; {}", self.call())
    }

    fn call(&self) -> String {
        self.executable().provider.unwrap_or(Language::C).call("name")
    }

    fn has_other_files(&self) -> bool {
        let space = |path: PathBuf| fs::read_link(path).ok();
        let own = space("/proc/self/ns/mnt".into());
        space(self.path("ns/mnt")).is_some_and(|found| Some(found) != own)
    }
}

impl std::fmt::Display for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (pid {})", Shown(&self.name()), self.pid)
    }
}
