//! A recording of `burst` that is killed in the middle, and what must be found of it.

use crate::archive::Event;
use crate::sandbox::{Process, kill};
use crate::{Archive, Sandbox, build, wait_for};
use rustix::process::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use trace_format::event::EventKind;
use trace_format::loss::LossCode;
use trace_format::slab::LossReason;

/// Of `burst`.
pub const THREADS: usize = 4;

/// A recording of `burst`, under way.
pub struct Scene {
    /// Where it happens.
    pub sandbox: Sandbox,
    /// The client.
    pub recording: Process,
    /// The manager's process.
    pub manager: u32,
    /// The program's process.
    pub burst: u32,
}

impl Scene {
    /// Waits until so many events were written, by all threads together.
    ///
    /// # Panics
    /// If it does not get that far, or the program does not wait for its recording.
    #[must_use]
    pub fn begin(mode: &str, events: u64) -> Self {
        Self::begin_with(mode, &["--buffer-size", "1"], events)
    }

    /// The same with options of its own.
    ///
    /// # Panics
    /// As [`Scene::begin`].
    #[must_use]
    pub fn begin_with(mode: &str, more_options: &[&str], events: u64) -> Self {
        let sandbox = Sandbox::new();
        let page = sandbox.file("page");
        fs::write(&page, [0; 4096]).unwrap();
        let burst = build::program("burst").to_str().unwrap();
        let options = [&["record", "--buffering-mode", mode][..], more_options, &["--", burst]].concat();
        let page_name = page.to_str().unwrap();
        let more = if mode == "oneshot" { "100" } else { "10" };
        let limit = u64::MAX.to_string();
        let arguments = [&options[..], &[page_name, &limit, more]].concat();
        let mut command = sandbox.command_with_hangup("trace");
        command.args(&arguments);
        let recording = Sandbox::spawn_command(command);
        wait_for("the program to write", || (counted(&sandbox).iter().sum::<u64>() > events).then_some(()));
        if !more_options.contains(&"-o") {
            // The client deletes an empty file when it ends.
            let partial = sandbox.file("trace.partial.fxt");
            let has_begun = || fs::metadata(&partial).is_ok_and(|file| file.len() > 0);
            wait_for("the archive to begin", || has_begun().then_some(()));
        }
        let burst = child_of(recording.pid(), "burst").expect("the program runs");
        assert!(was_recorded(&sandbox), "the program has not waited for its recording");
        let manager = sandbox.manager_pid().expect("a manager runs");
        Self { sandbox, recording, manager, burst }
    }

    /// A recording of a `burst` that was started without the client.
    #[must_use]
    pub fn of(sandbox: Sandbox, recording: Process, manager: u32, burst: u32) -> Self {
        Self { sandbox, recording, manager, burst }
    }

    /// The directories of sessions that are there.
    ///
    /// # Panics
    /// If the runtime directory cannot be read.
    #[must_use]
    pub fn sessions(&self) -> Vec<PathBuf> {
        Self::sessions_of(&self.sandbox)
    }

    /// Those of any sandbox.
    ///
    /// # Panics
    /// If the runtime directory cannot be read.
    #[must_use]
    pub fn sessions_of(sandbox: &Sandbox) -> Vec<PathBuf> {
        let entries = fs::read_dir(sandbox.runtime_dir()).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("session-")).collect()
    }

    /// Waits until the client has ended.
    pub fn wait_for_client(&self) {
        wait_for_death(self.recording.pid());
    }

    /// Makes `recovered.fxt`.
    #[must_use]
    pub fn recover(&self) -> Output {
        self.sandbox.trace(["recover", "-o", "recovered.fxt"])
    }

    /// What each thread's events in some archives are.
    ///
    /// # Panics
    /// If an archive has something twice.
    #[must_use]
    pub fn numbers(&self, files: &[&str]) -> BTreeMap<u64, BTreeSet<u64>> {
        numbers(&self.sandbox, files)
    }

    /// Everything that was counted is in the archives, and at most one event more of each thread. A circular
    /// buffer has the last of it.
    ///
    /// # Panics
    /// If it is not so.
    pub fn check(&self, mode: &str, files: &[&str], counted: &[u64]) {
        let most: Vec<u64> = counted.iter().map(|counted| counted + 1).collect();
        self.check_between(mode, mode != "circular", files, counted, &most);
    }

    /// The last event of each thread is one of these, and all before it are there, from the first if that is
    /// said, or the last of them. What an archive declares lost, as a stream does that a busy machine does
    /// not save in time, may be missing.
    ///
    /// # Panics
    /// If it is not so.
    pub fn check_between(&self, mode: &str, from_first: bool, files: &[&str], least: &[u64], most: &[u64]) {
        let numbers = self.numbers(files);
        // Recovered files declare the losses of the first archive, too.
        let declared = files.iter().map(|file| self.declared(file)).max().unwrap_or(0);
        let mut missing = 0;
        for (thread, (least, most)) in (0..).zip(least.iter().zip(most)) {
            let found = numbers.get(&thread).cloned().unwrap_or_default();
            let first = found.first().copied().unwrap_or(0);
            let last = found.last().map_or(0, |last| last + 1);
            let what = format!(
                "{mode}, thread {thread}: {first} to {last} of {least} to {most}, {declared} declared lost"
            );
            assert!(last <= *most, "{what}");
            assert!(!from_first || first == 0 || declared > 0, "{what}");
            missing += least.saturating_sub(last) + (last - first - found.len() as u64);
            missing += if from_first { first } else { 0 };
        }
        assert!(missing <= declared, "{mode}: {missing} events are missing, {declared} are declared lost");
    }

    /// Records that an archive declares lost.
    fn declared(&self, file: &str) -> u64 {
        let archive = Archive::read_prefix(&self.sandbox.file(file));
        let overwritten = LossCode::from(LossReason::Overwritten);
        archive.losses.iter().filter(|loss| loss.reason != overwritten).map(|loss| loss.count).sum()
    }
}

/// What each thread's events in some archives are.
///
/// # Panics
/// If an archive has something twice.
#[must_use]
pub fn numbers(sandbox: &Sandbox, files: &[&str]) -> BTreeMap<u64, BTreeSet<u64>> {
    let mut all: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for file in files {
        let archive = Archive::read_prefix(&sandbox.file(file));
        let mut own = BTreeSet::new();
        for event in &archive.events {
            let (thread, number) = (event.u64("thread"), event.u64("n"));
            assert!(own.insert((thread, number)), "{file}: thread {thread}, event {number} twice");
            all.entry(thread).or_default().insert(number);
        }
    }
    all
}

/// What an archive has to have of one of several programs.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// The program.
    pub pid: u32,
    /// All from the first event on, not just the last.
    pub is_from_first: bool,
}

/// Of each thread of a program, an archive has so many events at least, or declares them lost, and so many at
/// most, each once.
///
/// # Panics
/// If it is not so.
pub fn check_share(
    sandbox: &Sandbox,
    file: Option<&str>,
    share: &Share,
    least: &[u64],
    most: &[u64],
    what: &str,
) {
    let archive = file.map(|file| Archive::read_prefix(&sandbox.file(file)));
    let mut found: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    let mut providers = BTreeSet::new();
    // Others are the spans that these stand in, and the parts of an operation behind its begin.
    let is_own = |event: &&Event| {
        event.name() == "event"
            && event.event.process.0 == u64::from(share.pid)
            && matches!(event.event.kind, EventKind::Instant { .. } | EventKind::AsyncBegin { .. })
    };
    for event in archive.iter().flat_map(|archive| &archive.events).filter(is_own) {
        let (thread, number) = (event.u64("thread"), event.u64("n"));
        let is_new = found.entry(thread).or_default().insert(number);
        assert!(is_new, "{what}: thread {thread}, event {number} twice");
        providers.insert(event.provider);
    }
    let overwritten = LossCode::from(LossReason::Overwritten);
    let losses = archive.iter().flat_map(|archive| &archive.losses);
    let own = losses.filter(|loss| loss.reason != overwritten);
    let own = own.filter(|loss| providers.is_empty() || providers.contains(&loss.provider));
    let declared: u64 = own.map(|loss| loss.count).sum();
    let mut missing = 0;
    for (thread, (least, most)) in (0..).zip(least.iter().zip(most)) {
        let found = found.remove(&thread).unwrap_or_default();
        let first = found.first().copied().unwrap_or(0);
        let last = found.last().map_or(0, |last| last + 1);
        assert!(last <= *most, "{what}: thread {thread}: {last} of at most {most}");
        missing += least.saturating_sub(last) + (last - first - found.len() as u64);
        missing += if share.is_from_first { first } else { 0 };
    }
    assert!(missing <= declared, "{what}: {missing} events are missing, {declared} are declared lost");
}

/// A child of a process, by its name.
#[must_use]
pub fn child_of(pid: u32, name: &str) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    let mut pids = children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok());
    pids.find(|pid| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == name))
}

/// What each thread says it has written.
///
/// # Panics
/// If the page is not there.
#[must_use]
pub fn counted(sandbox: &Sandbox) -> Vec<u64> {
    counted_in(&sandbox.file("page"))
}

/// The same, of a page of another name.
///
/// # Panics
/// If it is not there.
#[must_use]
pub fn counted_in(page: &Path) -> Vec<u64> {
    let bytes = fs::read(page).expect("the page");
    bytes.as_chunks::<8>().0.iter().take(THREADS).map(|word| u64::from_le_bytes(*word)).collect()
}

/// Whether the program was being recorded when it began to write.
///
/// # Panics
/// If the page is not there.
#[must_use]
pub fn was_recorded(sandbox: &Sandbox) -> bool {
    let bytes = fs::read(sandbox.file("page")).expect("the page");
    bytes.as_chunks::<8>().0.get(THREADS).is_some_and(|word| u64::from_le_bytes(*word) == 1)
}

/// A process that does not run any more, and is not dead either: what it has written stands still.
///
/// # Panics
/// If it does not stop.
pub fn freeze(pid: u32) {
    kill(pid, Signal::STOP);
    wait_until_frozen(pid);
}

/// Waits until a process has stopped by itself.
///
/// # Panics
/// If it does not stop.
pub fn wait_until_frozen(pid: u32) {
    let is_stopped =
        |stat: &str| stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'));
    // A process counts as stopped when its first thread is: others may still run then.
    let all = || {
        let mut threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
        threads
            .all(|thread| fs::read_to_string(thread.path().join("stat")).is_ok_and(|stat| is_stopped(&stat)))
            .then_some(())
    };
    wait_for("a process to stop", all);
}

/// Waits until a process is dead, or a zombie.
///
/// # Panics
/// If it lives on.
pub fn wait_for_death(pid: u32) {
    wait_for("a process to die", || is_dead(pid).then_some(()));
}

/// Whether a process is dead, or a zombie without threads that still run.
#[must_use]
pub fn is_dead(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let is_zombie = || stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'));
    let threads = || fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    stat.is_empty() || is_zombie() && threads() <= 1
}

/// What a program printed on stdout.
#[must_use]
pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What a program said on stderr.
#[must_use]
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
