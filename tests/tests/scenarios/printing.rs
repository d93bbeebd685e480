//! Standard output and standard error that are closed, full, or gone.

use nix::pty::openpty;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pipe::fcntl_getpipe_size;
use std::fs::File;
use std::io::{PipeReader, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use trace_tests::build::program;
use trace_tests::{Archive, Sandbox, wait_for};

/// Events of `emit 1 20`.
const EVENTS: usize = 20 * 14;

fn full_device() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

/// A pipe that takes nothing more until it is read.
fn full_pipe() -> (PipeReader, OwnedFd) {
    let (reader, writer) = std::io::pipe().unwrap();
    let size = fcntl_getpipe_size(&writer).unwrap();
    (&writer).write_all(&vec![b'.'; size]).unwrap();
    (reader, writer.into())
}

/// A terminal that is gone: writing to it is an input/output error.
fn lost_terminal() -> OwnedFd {
    let pty = openpty(None, None).unwrap();
    // Programs that other tests start meanwhile must not have it.
    for end in [&pty.master, &pty.slave] {
        rustix::io::fcntl_setfd(end, rustix::io::FdFlags::CLOEXEC).unwrap();
    }
    pty.slave
}

/// A terminal that accepts no more output: it is not read.
fn stopped_terminal() -> (OwnedFd, OwnedFd) {
    let pty = openpty(None, None).unwrap();
    let flags = fcntl_getfl(&pty.slave).unwrap();
    fcntl_setfl(&pty.slave, flags | OFlags::NONBLOCK).unwrap();
    while rustix::io::write(&pty.slave, &[b'.'; 64]).is_ok() {}
    while rustix::io::write(&pty.slave, b".").is_ok() {}
    fcntl_setfl(&pty.slave, flags).unwrap();
    (pty.master, pty.slave)
}

/// A recording of `emit 1 20`, whose own output goes nowhere.
fn recording(sandbox: &Sandbox) -> Command {
    let mut command = sandbox.command("trace");
    let script = format!("exec {} 1 20 > /dev/null", program("emit").display());
    command.args(["record", "--", "sh", "-c", &script]);
    command
}

/// How a program ends, which is killed if it does not.
fn end_of(mut child: Child) -> ExitStatus {
    struct Killed<'a>(&'a mut Child);
    impl Drop for Killed<'_> {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
    let child = Killed(&mut child);
    wait_for("the end of a program", || child.0.try_wait().unwrap())
}

fn assert_recorded(sandbox: &Sandbox, what: &str, command: &mut Command) {
    let status = end_of(command.spawn().unwrap());
    assert_eq!(status.code(), Some(0), "{what}: {status}");
    assert_eq!(sandbox.files(), ["trace.fxt"], "{what}");
    assert_eq!(Archive::read(&sandbox.file("trace.fxt")).events.len(), EVENTS, "{what}");
}

//= docs/recording.md#messages
#[test]
fn a_recording_is_whole_whatever_becomes_of_its_messages() {
    let (_reader, full) = full_pipe();
    let (_, closed) = std::io::pipe().unwrap();
    let (_master, stopped) = stopped_terminal();
    for (what, stderr) in [
        ("a full pipe that nobody reads", Stdio::from(full)),
        ("a pipe that nobody has open", Stdio::from(closed)),
        ("a full disk", Stdio::from(full_device())),
        ("a terminal that nobody reads", Stdio::from(stopped)),
        ("a terminal that is gone", Stdio::from(lost_terminal())),
    ] {
        let sandbox = Sandbox::new();
        assert_recorded(&sandbox, what, recording(&sandbox).stderr(stderr));
    }
    for redirection in ["2>&-", ">&-", ">&- 2>&-"] {
        let sandbox = Sandbox::new();
        let record = recording(&sandbox);
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("exec \"$0\" \"$@\" {redirection}"));
        shell.arg(record.get_program()).args(record.get_args());
        shell.current_dir(sandbox.work_dir()).env("TRACE_RUNTIME_DIR", sandbox.runtime_dir());
        assert_recorded(&sandbox, redirection, &mut shell);
    }
    let sandbox = Sandbox::new();
    assert_recorded(&sandbox, "stdout is a full disk", recording(&sandbox).stdout(full_device()));
}

/// The recorded command writes to the same pipe, so that room that was announced is taken before a message
/// can have it.
//= docs/recording.md#messages
#[test]
fn a_command_that_fills_the_pipe_does_not_hold_the_recording_up() {
    let sandbox = Sandbox::new();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let size = fcntl_getpipe_size(&writer).unwrap();
    let emit = program("emit").display();
    let script = format!("head -c {size} /dev/zero >&2; exec {emit} 1 20 > /dev/null");
    let mut command = sandbox.command("trace");
    command.args(["record", "--", "sh", "-c", &script]).stderr(writer);
    // It ends only when the pipe has room for all that it writes: nothing that the client says is before
    // that.
    let status = end_of(command.spawn().unwrap());
    drop(command);
    assert_eq!(status.code(), Some(0));
    assert_eq!(Archive::read(&sandbox.file("trace.fxt")).events.len(), EVENTS);
    let mut said = Vec::new();
    reader.read_to_end(&mut said).unwrap();
    assert_eq!(said.len(), size, "{:?}", String::from_utf8_lossy(&said));
}

/// Commands that print what they were asked for.
fn printing() -> [&'static [&'static str]; 9] {
    [
        &["dump", "trace.fxt"],
        &["dump", "--json", "trace.fxt"],
        &["convert", "--format", "catapult", "trace.fxt", "-"],
        &["convert", "--format", "perfetto", "trace.fxt", "-"],
        &["query", "SELECT * FROM slices", "trace.fxt"],
        &["query", "--format", "json", "SELECT * FROM slices", "trace.fxt"],
        &["check", "trace.fxt"],
        &["list-category-groups"],
        &["record", "--help"],
    ]
}

fn recorded() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.record(&[], "emit", &["1", "200"]);
    sandbox
}

//= docs/recording.md#messages
#[test]
fn what_cannot_be_written_to_stdout_is_an_error() {
    let sandbox = recorded();
    for arguments in printing() {
        let output = sandbox.command("trace").args(arguments).stdout(full_device()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(125), "{arguments:?}: {said}");
        assert!(said.contains("cannot write") && said.contains("No space left"), "{arguments:?}: {said}");
    }
}

//= docs/recording.md#messages
#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let sandbox = recorded();
    for arguments in printing() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = sandbox.command("trace").args(arguments).stdout(writer).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {said}");
        assert!(!said.contains("cannot"), "{arguments:?}: {said}");
    }
}

/// Another process may have made the pipe non-blocking.
//= docs/recording.md#messages
#[test]
fn a_slow_reader_of_stdout_is_waited_for() {
    let sandbox = recorded();
    let expected = sandbox.trace(["dump", "trace.fxt"]).stdout;
    for is_nonblocking in [false, true] {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let size = fcntl_getpipe_size(&writer).unwrap();
        assert!(expected.len() > 3 * size);
        if is_nonblocking {
            fcntl_setfl(&writer, OFlags::WRONLY | OFlags::NONBLOCK).unwrap();
        }
        let mut command = sandbox.command("trace");
        let mut child = command.args(["dump", "trace.fxt"]).stdout(writer).spawn().unwrap();
        drop(command);
        // It has filled the pipe, and waits.
        let held = || rustix::io::ioctl_fionread(&reader).unwrap();
        wait_for("a full pipe", || (held() + 4096 > size as u64).then_some(()));
        assert!(child.try_wait().unwrap().is_none());
        let mut found = Vec::new();
        reader.read_to_end(&mut found).unwrap();
        assert_eq!(end_of(child).code(), Some(0), "{is_nonblocking}");
        assert_eq!(found, expected, "{is_nonblocking}");
    }
}
