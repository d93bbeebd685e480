//! One scenario's surroundings: a runtime directory, a working directory, and processes that do not outlive
//! it.

use crate::build::{FOR_HARNESS, program};
use crate::requirement::Requirement;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGINT, SIGQUIT};
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, Once};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// No condition of a scenario takes longer, on a machine that is busy with other things too.
pub const DEADLINE: Duration = Duration::from_secs(60);
const INTERVAL: Duration = Duration::from_millis(2);
/// How much of a failing test's files is kept.
const MAX_KEPT_BYTES: u64 = 64 << 20;

/// The document that a command has printed because of `--json`.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    version: u32,
    /// The command.
    pub command: String,
    /// What it has read or written.
    pub traces: Vec<serde_json::Value>,
    /// What was asked for.
    pub result: serde_json::Value,
    /// What was lost of the traces.
    pub losses: Vec<serde_json::Value>,
    /// What is wrong with them.
    pub problems: Vec<serde_json::Value>,
    exit: Exit,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Exit {
    code: i32,
    of: String,
}

impl Answer {
    /// Reads what a command has printed; the exit code in it is the one that the process has.
    ///
    /// # Panics
    /// If that is something else, or the exit code; with all that the command has written.
    #[must_use]
    pub fn of(output: &Output) -> Self {
        let text = String::from_utf8_lossy(&output.stdout);
        let answer: Self = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        assert_eq!(Some(answer.exit.code), output.status.code(), "{output:?}");
        let members = ["version", "command", "traces", "result", "losses", "problems", "exit"];
        let find = |member: &str, indent: &str| text.find(&format!("\n{indent}\"{member}\": "));
        // What is printed piece by piece is not indented.
        let places = members.map(|member| find(member, "  ").or_else(|| find(member, "")));
        assert!(places.is_sorted(), "{output:?}");
        answer
    }

    /// Reads what a command has printed.
    ///
    /// # Panics
    /// If that is something else.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The result; of a query, the rows of its only statement.
    ///
    /// # Panics
    /// If it is another one than is expected.
    #[must_use]
    pub fn into_result<T: serde::de::DeserializeOwned>(self) -> T {
        assert_eq!(self.version, 1);
        let Self { command, mut result, .. } = self;
        let result = if command == "query" { result[0]["rows"].take() } else { result };
        let text = result.to_string();
        serde_json::from_value(result).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// Whose exit code it is: `trace`, or the `command` that was recorded.
    #[must_use]
    pub fn code_is_of(&self) -> &str {
        &self.exit.of
    }
}

/// The rows of a query, in the order of its columns.
#[derive(serde::Deserialize)]
struct Rows<T> {
    rows: T,
}

#[derive(serde::Deserialize)]
struct Queried<T> {
    result: [Rows<T>; 1],
}

/// The result that a command has printed because of `--json`; of a query, the rows of its only statement.
/// What other programs print is taken as it is.
///
/// # Panics
/// If it is something else; with all that the command has written.
#[must_use]
pub fn json<T: serde::de::DeserializeOwned>(output: &Output) -> T {
    fn parsed<T: serde::de::DeserializeOwned>(output: &Output) -> T {
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }
    let value: serde_json::Value = parsed(output);
    if value.get("exit").is_none() {
        return parsed(output);
    }
    let answer = Answer::of(output);
    if answer.command == "query" {
        let Queried { result: [Rows { rows }] } = parsed(output);
        return rows;
    }
    answer.into_result()
}

/// Waits for a condition.
///
/// # Panics
/// If it has not come true after [`DEADLINE`].
pub fn wait_for<T>(what: &str, condition: impl FnMut() -> Option<T>) -> T {
    in_time(condition).unwrap_or_else(|| panic!("waited in vain for: {what}"))
}

/// Waits for a condition; None if it has not come true after [`DEADLINE`].
pub fn in_time<T>(mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + DEADLINE;
    loop {
        if let Some(value) = condition() {
            return Some(value);
        }
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(INTERVAL);
    }
}

/// A shell has its background jobs ignore Ctrl-C, and so do the processes that they start.
fn obey_interrupts() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        for signal in [SIGINT, SIGQUIT] {
            // A handled signal is not inherited as ignored, and this handler does the default action.
            let always = Arc::new(AtomicBool::new(true));
            signal_hook::flag::register_conditional_default(signal, always).expect("a signal");
        }
    });
}

/// A scenario's directories.
pub struct Sandbox {
    /// Where the manager's directory is.
    runtime: tempfile::TempDir,
    directory: tempfile::TempDir,
}

/// Where a manager's directory is for real: in memory. A disk writes buffers back while programs write into
/// them, and a file system that is busy with others' files holds up whatever makes one.
fn memory() -> PathBuf {
    let shared = Path::new("/dev/shm");
    let has_room = rustix::fs::statvfs(shared).is_ok_and(|found| found.f_bavail * found.f_frsize >= 1 << 30);
    if has_room { shared.to_owned() } else { std::env::temp_dir() }
}

/// A process that is killed when the scenario is over.
pub struct Process {
    child: Child,
    /// What came on stderr so far, collected by a thread.
    stderr: Arc<Mutex<Vec<u8>>>,
    collector: Option<JoinHandle<()>>,
}

impl Sandbox {
    /// An empty one.
    ///
    /// # Panics
    /// If there is no room for it.
    #[must_use]
    pub fn new() -> Self {
        obey_interrupts();
        let directory = |base: &Path| {
            let directory = tempfile::Builder::new().prefix("trace-test-").tempdir_in(base);
            directory.expect("a temporary directory")
        };
        let sandbox = Self { runtime: directory(&memory()), directory: directory(&std::env::temp_dir()) };
        std::fs::create_dir(sandbox.runtime_dir()).expect("a runtime directory");
        let private = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(sandbox.runtime_dir(), private).expect("a private runtime directory");
        std::fs::create_dir(sandbox.work_dir()).expect("a working directory");
        sandbox
    }

    /// One whose directories every user may enter, for a manager that serves them all. None, and the test is
    /// reported as skipped, if this process cannot act for other users.
    ///
    /// # Panics
    /// If there is no room for it.
    #[must_use]
    pub fn for_all_users(test: &str) -> Option<Self> {
        if !Requirement::Root.is_met(test) {
            return None;
        }
        let sandbox = Self::new();
        let open = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("an open directory");
        };
        open(sandbox.directory.path(), 0o755);
        open(sandbox.runtime.path(), 0o755);
        open(&sandbox.runtime_dir(), 0o755);
        open(&sandbox.work_dir(), 0o1777);
        Some(sandbox)
    }

    /// The manager's directory.
    #[must_use]
    pub fn runtime_dir(&self) -> PathBuf {
        self.runtime.path().join("run")
    }

    /// Where commands run and leave their files.
    #[must_use]
    pub fn work_dir(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    /// A file in the working directory.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.work_dir().join(name)
    }

    /// The names of what is in the working directory, hidden files too.
    ///
    /// # Panics
    /// If it cannot be read.
    #[must_use]
    pub fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.work_dir()).expect("the working directory");
        let mut names: Vec<_> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// A program of the workspace, to be run here.
    pub fn command(&self, name: &str) -> Command {
        let mut command = Command::new(program(name));
        command
            .current_dir(self.work_dir())
            .env("TRACE_RUNTIME_DIR", self.runtime_dir())
            .env("XDG_CONFIG_HOME", self.directory.path().join("config"))
            .env_remove("TRACE_RECORD")
            .env_remove(FOR_HARNESS)
            .stdin(Stdio::null());
        command
    }

    /// The same for a program that a hangup ends, though the tests themselves may run under `nohup`. The
    /// kernel sends one, and has the program go on, if it is stopped when its parent dies.
    ///
    /// # Panics
    /// If the program cannot be built.
    #[must_use]
    pub fn command_with_hangup(&self, name: &str) -> Command {
        let prepared = self.command(name);
        let mut command = Command::new("env");
        command.arg("--default-signal=HUP,QUIT").arg(prepared.get_program());
        command.current_dir(self.work_dir()).stdin(Stdio::null());
        for (name, value) in prepared.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }

    /// Runs the `trace` tool to its end.
    ///
    /// # Panics
    /// If it cannot be run.
    pub fn trace<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Output {
        let mut command = self.command("trace");
        command.args(arguments);
        self.forget_trace(&command);
        command.output().expect("trace runs")
    }

    /// `trace record` without a name replaces no file, so that what an earlier recording has left would be
    /// taken for the next one's.
    fn forget_trace(&self, command: &Command) {
        let mut options = command.get_args().take_while(|argument| *argument != "--");
        let is_recording = options.next().is_some_and(|first| first == "record");
        if is_recording && !options.any(|option| option == "-o" || option == "--output-file") {
            let _ = std::fs::remove_file(self.file("trace.fxt"));
        }
    }

    /// Records a program of the workspace into `trace.fxt` and returns what the tool said.
    ///
    /// # Panics
    /// If the tool does not succeed.
    pub fn record(&self, options: &[&str], name: &str, arguments: &[&str]) -> Output {
        let program = program(name).to_string_lossy().into_owned();
        let command: Vec<&str> = ["record"]
            .into_iter()
            .chain(options.iter().copied())
            .chain(["--", &program])
            .chain(arguments.iter().copied())
            .collect();
        let output = self.trace(command);
        assert!(output.status.success(), "{output:?}");
        output
    }

    /// Spawns a program in a process group of its own, with pipes.
    ///
    /// # Panics
    /// If it cannot be spawned.
    #[must_use]
    pub fn spawn(&self, name: &str, arguments: &[&str]) -> Process {
        let mut command = self.command(name);
        command.args(arguments);
        self.forget_trace(&command);
        Self::spawn_command(command)
    }

    /// As [`Sandbox::spawn`], and its provider waits until it is recorded, as below `trace record`.
    ///
    /// # Panics
    /// If it cannot be spawned.
    #[must_use]
    pub fn spawn_recorded(&self, name: &str, arguments: &[&str]) -> Process {
        let mut command = self.command(name);
        command.args(arguments).env("TRACE_RECORD", "1");
        Self::spawn_command(command)
    }

    /// As [`Sandbox::spawn`], of a command that was prepared further.
    ///
    /// # Panics
    /// If it cannot be spawned.
    #[must_use]
    pub fn spawn_command(mut command: Command) -> Process {
        command.process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program is spawned");
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let collector = child.stderr.take().map(|mut input| {
            let stderr = stderr.clone();
            std::thread::spawn(move || {
                let mut chunk = [0; 4096];
                while let Ok(length @ 1..) = input.read(&mut chunk) {
                    stderr.lock().expect("no panic").extend_from_slice(&chunk[..length]);
                }
            })
        });
        Process { child, stderr, collector }
    }

    /// The running manager's process.
    #[must_use]
    pub fn manager_pid(&self) -> Option<u32> {
        use std::os::unix::fs::MetadataExt;

        let lock = std::fs::File::open(self.runtime_dir().join("lock")).ok()?;
        // A running manager holds the lock; the number alone may be another process's by now. To try the lock
        // would keep it from a manager that starts just then, so the kernel is asked: `lock: 1: FLOCK
        // ADVISORY WRITE 42 00:1a:1234 0 EOF`.
        let inode = format!(":{} ", lock.metadata().ok()?.ino());
        let pid: u32 = std::io::read_to_string(lock).ok()?.trim().parse().ok()?;
        // Its own list: that of the machine leaves locks out when others go while it is read.
        let mut descriptors = std::fs::read_dir(format!("/proc/{pid}/fdinfo")).ok()?.flatten();
        let is_held = |facts: String| {
            facts
                .lines()
                .any(|line| line.starts_with("lock:") && line.contains("FLOCK") && line.contains(&inode))
        };
        descriptors.any(|entry| std::fs::read_to_string(entry.path()).is_ok_and(is_held)).then_some(pid)
    }

    /// Waits until so many programs are registered with the manager.
    ///
    /// # Panics
    /// If they do not come.
    pub fn wait_for_providers(&self, count: usize) {
        wait_for("programs to register", || {
            let listed = self.trace(["list-programs", "--json"]);
            (listed.status.success() && json::<Vec<serde_json::Value>>(&listed).len() >= count).then_some(())
        });
    }
}

impl Sandbox {
    /// Copies the files of a test that fails to `target/failed/TEST-NUMBER`, and prints that name: a failure
    /// that depends on the moment of a kill may not happen again.
    fn keep(&self) {
        let thread = std::thread::current();
        let test = thread.name().unwrap_or("test").replace(|letter: char| !letter.is_alphanumeric(), "-");
        let to = crate::build::workspace().join(format!("target/failed/{test}-{}", std::process::id()));
        let mut room = MAX_KEPT_BYTES;
        let kept = copy_files(&self.work_dir(), &to.join("work"), &mut room)
            .and_then(|()| copy_files(&self.runtime_dir(), &to.join("run"), &mut room));
        match kept {
            Ok(()) => eprintln!("the files of this test are in {}", to.display()),
            Err(error) => eprintln!("cannot keep the files of this test in {}: {error}", to.display()),
        }
    }
}

/// Copies the regular files of a directory and those below it, as far as there is room.
fn copy_files(from: &Path, to: &Path, room: &mut u64) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() {
            copy_files(&path, &to.join(entry.file_name()), room)?;
        } else if kind.is_file() {
            let bytes = entry.metadata()?.len();
            if let Some(left) = room.checked_sub(bytes) {
                *room = left;
                std::fs::copy(&path, to.join(entry.file_name()))?;
            }
        }
    }
    Ok(())
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if let Some(pid) = self.manager_pid() {
            kill(pid, Signal::KILL);
        }
        if std::thread::panicking() {
            self.keep();
        }
    }
}

/// Sends a signal to a process; one that has ended already gets nothing.
pub fn kill(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

impl Process {
    /// Its pid.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill(self.pid(), signal);
    }

    /// Sends a signal to it and everything it spawned, as a terminal does.
    pub fn signal_group(&self, signal: Signal) {
        if let Some(pid) = i32::try_from(self.pid()).ok().and_then(Pid::from_raw) {
            let _ = rustix::process::kill_process_group(pid, signal);
        }
    }

    /// What it said on stderr so far.
    ///
    /// # Panics
    /// Never.
    #[must_use]
    pub fn stderr_so_far(&self) -> String {
        String::from_utf8_lossy(&self.stderr.lock().expect("no panic")).into_owned()
    }

    /// Writes a line to its input.
    ///
    /// # Panics
    /// If it has no reader.
    pub fn say(&mut self, line: &str) {
        use std::io::Write;

        let input = self.child.stdin.as_mut().expect("its input is piped");
        writeln!(input, "{line}").expect("it reads its input");
    }

    /// Closes its input, which lets a program of ours go on.
    pub fn close_stdin(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Reads the next line of its output.
    ///
    /// # Panics
    /// If it ends without one, or says nothing for [`DEADLINE`].
    pub fn line(&mut self) -> String {
        let stdout = self.child.stdout.as_mut().expect("its output is piped");
        let mut line = Vec::new();
        let mut byte = [0];
        while read_in_time(stdout, &mut byte) == 1 && byte[0] != b'\n' {
            line.push(byte[0]);
        }
        assert!(!line.is_empty(), "the program said nothing");
        String::from_utf8_lossy(&line).into_owned()
    }

    /// Whether it is still running.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for its end, which has to be a good one.
    ///
    /// # Panics
    /// If it fails, with all that it said, or does not end.
    pub fn succeed(self) {
        let output = self.finish();
        assert!(output.status.success(), "{output:?}");
    }

    /// Waits for its end and returns the rest of what it said.
    ///
    /// # Panics
    /// If it goes on and says nothing for [`DEADLINE`], or if what it has started does.
    pub fn finish(mut self) -> Output {
        drop(self.child.stdin.take());
        let mut stdout = Vec::new();
        if let Some(out) = self.child.stdout.as_mut() {
            let mut chunk = [0; 4096];
            while let length @ 1.. = read_in_time(out, &mut chunk) {
                stdout.extend_from_slice(&chunk[..length]);
            }
        }
        let status =
            wait_for("the end of a program", || self.child.try_wait().expect("it can be waited for"));
        if let Some(collector) = self.collector.take() {
            wait_for("the end of its messages", || collector.is_finished().then_some(()));
        }
        let stderr = self.stderr.lock().expect("no panic").clone();
        Output { status, stdout, stderr }
    }
}

/// Reads what comes next.
fn read_in_time(stdout: &mut ChildStdout, bytes: &mut [u8]) -> usize {
    let limit = Timespec { tv_sec: DEADLINE.as_secs() as i64, tv_nsec: 0 };
    let mut polled = [PollFd::new(&*stdout, PollFlags::IN)];
    let ready = rustix::io::retry_on_intr(|| poll(&mut polled, Some(&limit)));
    assert_eq!(ready, Ok(1), "a program says nothing");
    stdout.read(bytes).expect("its output can be read")
}

impl Drop for Process {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // What it has started would run for ever.
            self.signal_group(Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
