//! What root may do, and what users may do with namespaces and with their own processes.
//!
//! Root of a container has the number of root, but not all of its privileges.

use super::Requirement;
use super::trial::{Scratch, run};
use nix::sys::ptrace;
use nix::sys::wait::waitpid;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A user that the trials act for.
const USER: u32 = 4_001;

/// A copy of a program of the system, which other users can run.
fn copy(scratch: &Scratch, name: &str, mode: &str) -> Result<PathBuf, String> {
    let found = run(Command::new("sh").args(["-c", &format!("command -v {name}")]))?;
    let copy = scratch.path(name);
    run(Command::new("install").args(["-m", mode]).arg(found.trim()).arg(&copy))?;
    Ok(copy)
}

pub fn root() -> Result<(), String> {
    if !rustix::process::geteuid().is_root() {
        return Err("this is not root".to_owned());
    }
    let scratch = Scratch::new();
    let file = scratch.write("given", "");
    chown(&file, Some(USER), Some(USER)).map_err(|error| format!("chown: {error}"))?;
    let program = copy(&scratch, "id", "755")?;
    run(Command::new(program).arg("-u").uid(USER).gid(USER).current_dir("/")).map(drop)
}

pub fn other_processes() -> Result<(), String> {
    Requirement::Root.tried()?;
    let mut command = Command::new("cat");
    command.uid(USER).gid(USER).current_dir("/").stdin(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("cat: {error}"))?;
    // Unlike the list of descriptors, what they lead to is only for those who may trace the process.
    let descriptor = format!("/proc/{}/fd/0", child.id());
    let found = std::fs::read_link(&descriptor);
    let _ = child.kill();
    let _ = child.wait();
    found.map(drop).map_err(|error| format!("{descriptor}, of another user: {error}"))
}

pub fn set_uid() -> Result<(), String> {
    Requirement::Root.tried()?;
    let scratch = Scratch::new();
    let program = copy(&scratch, "id", "755")?;
    chown(&program, Some(USER), Some(USER)).map_err(|error| format!("chown: {error}"))?;
    run(Command::new("chmod").arg("4755").arg(&program))?;
    let user = run(Command::new(&program).arg("-u"))?;
    let is_obeyed = user.trim() == USER.to_string();
    is_obeyed.then_some(()).ok_or_else(|| format!("{} ignores set-uid", std::env::temp_dir().display()))
}

pub fn mounts() -> Result<(), String> {
    let scratch = Scratch::new();
    let (directory, file) = (scratch.directory("mounted"), scratch.write("file", ""));
    let script = format!(
        "mount -t tmpfs -o size=1m,mode=700 none {0} && touch {0}/file && mount --bind {1} {0}/file",
        directory.display(),
        file.display()
    );
    let mut command = Command::new("unshare");
    run(command.args(["--mount", "--propagation", "private", "sh", "-c", &script])).map(drop)?;
    // And where all processes see it.
    run(Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "none"]).arg(&directory))?;
    run(Command::new("umount").arg("--lazy").arg(&directory)).map(drop)
}

pub fn pid_namespaces() -> Result<(), String> {
    let mut command = Command::new("unshare");
    run(command.args(["--pid", "--fork", "--kill-child", "--mount-proc", "true"])).map(drop)
}

pub fn time_namespaces() -> Result<(), String> {
    run(Command::new("unshare").args(["--time", "--boottime", "1", "true"])).map(drop)
}

pub fn net_namespaces() -> Result<(), String> {
    run(Command::new("unshare").args(["--net", "true"])).map(drop)
}

pub fn user_namespaces() -> Result<(), String> {
    let scratch = Scratch::new();
    let root = scratch.directory("root");
    let script = format!("mount --rbind / {0} && chroot {0} true", root.display());
    let user = ["--user", "--map-root-user", "--mount"];
    run(Command::new("unshare").args(user).args(["sh", "-c", &script]))?;
    let pid = ["--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child", "true"];
    run(Command::new("unshare").args(pid)).map(drop)
}

pub fn limits() -> Result<(), String> {
    let script = "prlimit --pid $$ --nofile=512:512 && prlimit --pid $$ --nofile=:513";
    run(Command::new("sh").args(["-c", script])).map(drop)
}

/// A control group of its own, which is removed when its processes have ended.
#[derive(Debug)]
pub struct MemoryGroup(PathBuf);

impl MemoryGroup {
    /// One of 512 MiB.
    ///
    /// # Errors
    /// Why it cannot be made.
    pub fn new(name: &str) -> Result<Self, String> {
        Self::of("512M", name)
    }

    /// One with a limit.
    ///
    /// # Errors
    /// Why it cannot be made.
    pub fn of(limit_bytes: &str, name: &str) -> Result<Self, String> {
        let (base, limit) =
            [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")]
                .into_iter()
                .find(|(base, _)| Path::new(base).join("cgroup.procs").exists())
                .ok_or("no control groups of memory")?;
        let group = Self(Path::new(base).join(format!("trace-test-{name}-{}", std::process::id())));
        std::fs::create_dir(&group.0).map_err(|error| format!("{}: {error}", group.0.display()))?;
        let file = group.0.join(limit);
        std::fs::write(&file, limit_bytes).map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(group)
    }

    /// Where a process writes its number to be in it.
    #[must_use]
    pub fn processes(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let is_gone = || std::fs::remove_dir(&self.0).is_ok().then_some(());
        let _ = crate::sandbox::in_time(is_gone);
    }
}

pub fn sysctl() -> Result<(), String> {
    run(Command::new("sysctl").args(["-n", "kernel.ostype"])).map(drop)
}

pub fn ptrace() -> Result<(), String> {
    let mut command = Command::new("cat");
    let mut child = command.stdin(Stdio::piped()).spawn().map_err(|error| format!("cat: {error}"))?;
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).expect("a pid"));
    let traced = ptrace::seize(pid, ptrace::Options::PTRACE_O_EXITKILL)
        .and_then(|()| ptrace::interrupt(pid))
        .and_then(|()| waitpid(pid, None))
        .and_then(|_| ptrace::detach(pid, None));
    let _ = child.kill();
    let _ = child.wait();
    traced.map_err(|error| format!("ptrace: {}", error.desc()))
}
