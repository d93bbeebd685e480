//! The manager's death while a recording ends whose archive does not go into a plain file: without the
//! archive's end, the recording is no success.

use rustix::process::Signal;
use std::fs::File;
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::thread::{JoinHandle, spawn};
use trace_format::metadata::MAGIC_WORD;
use trace_reader::Plain;
use trace_tests::sandbox::kill;
use trace_tests::scene::{is_dead, wait_for_death};
use trace_tests::tracer::{Side, Tracer, held};
use trace_tests::{Requirement, Sandbox};

#[derive(Clone, Copy, Debug)]
enum Output {
    Pipe,
    Connection,
    Compressed,
}

/// What came out of it.
#[derive(Debug)]
struct Ended {
    is_success: bool,
    has_end: bool,
    stderr: String,
}

/// Reads all of something.
fn reading(mut from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).expect("all of it");
        bytes
    })
}

/// Records a program's events, and kills the manager at the Nth system call after the recording was asked to
/// end; or how many there are.
fn kill_at(output: Output, options: &[&str], call: u64) -> Result<Ended, u64> {
    let sandbox = Sandbox::new();
    let manager = Sandbox::spawn_command(held(sandbox.command("trace").arg("manager")));
    let mut tracer = Tracer::new(&manager, "trace");
    let socket = sandbox.runtime_dir().join("provisioner");
    assert_eq!(tracer.run_to(u64::MAX, Side::Before, || socket.exists()), None);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let compressed = sandbox.file("trace.fxt.zst");
    let name = match output {
        Output::Pipe => "-".to_owned(),
        Output::Connection => format!("tcp:127.0.0.1:{port}"),
        Output::Compressed => "trace.fxt.zst".to_owned(),
    };
    let said = sandbox.file("said");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let mut command = sandbox.command("trace");
    command.arg("record").args(options).args(["-o", &name]).process_group(0);
    command.stdout(writer).stderr(File::create(&said).expect("a file"));
    let mut recording = command.spawn().expect("the client");
    // Its end of the pipe is the only one now.
    drop(command);
    let arriving = match output {
        Output::Pipe => Some(reading(reader)),
        Output::Connection => Some(reading(listener.accept().expect("the client").0)),
        Output::Compressed => None,
    };
    let stderr = || std::fs::read_to_string(&said).unwrap_or_default();
    let has_begun = || stderr().contains("press Ctrl-C");
    assert_eq!(tracer.run_to(u64::MAX, Side::Before, has_begun), None);
    let emit = sandbox.spawn_recorded("emit", &["1", "10"]);
    assert_eq!(tracer.run_to(u64::MAX, Side::Before, || is_dead(emit.pid())), None);
    kill(recording.id(), Signal::INT);
    let begin = tracer.calls;
    let client = recording.id();
    let found = tracer.run_to(begin.saturating_add(call), Side::Before, || is_dead(client));
    let calls = tracer.calls - begin;
    tracer.kill();
    wait_for_death(manager.pid());
    let status = recording.wait().expect("its end");
    if found.is_none() {
        return Err(calls);
    }
    let has_end = match arriving {
        Some(arriving) => has_end(&arriving.join().expect("no panic")),
        None => is_complete(&compressed),
    };
    Ok(Ended { is_success: status.success(), has_end, stderr: stderr() })
}

/// Whether a compressed file has an archive with its end.
fn is_complete(path: &Path) -> bool {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| Plain::open(file)?.0.read_to_end(&mut bytes));
    read.is_ok() && has_end(&bytes)
}

/// What is described has an event as its last record, and what is not, two magic number records.
fn has_end(archive: &[u8]) -> bool {
    let magic = MAGIC_WORD.to_le_bytes();
    let last = &archive[archive.len().saturating_sub(96)..];
    last.windows(13).any(|bytes| bytes == b"recording_end") || last.ends_with(&[magic, magic].concat())
}

/// Kills at a call, and checks what the client makes of it. Whether it was a success; none if there are
/// fewer calls this time.
fn check(output: Output, options: &[&str], call: u64) -> Option<bool> {
    let ended = kill_at(output, options, call).ok()?;
    let what = format!("{output:?} {options:?} call {call}: {ended:?}");
    assert_eq!(ended.is_success, ended.has_end, "{what}");
    let is_said = ended.stderr.contains("the trace manager is gone");
    assert_eq!(is_said, !ended.is_success, "{what}");
    Some(ended.is_success)
}

/// In the gate at the calls around the one that decides; with more `KILLS`, at all.
//= docs/protocol.md#end-of-the-archive
#[test]
fn an_archive_without_its_end_is_no_success() {
    if !Requirement::Ptrace.is_met("an_archive_without_its_end_is_no_success") {
        return;
    }
    let outputs = [
        (Output::Pipe, &[][..]),
        (Output::Connection, &["--no-metadata"]),
        (Output::Compressed, &["--privacy"]),
    ];
    std::thread::scope(|scope| {
        for (output, options) in outputs {
            scope.spawn(move || check_all(output, options));
        }
    });
}

fn check_all(output: Output, options: &[&str]) {
    let is_more = |kills: String| kills.parse().is_ok_and(|kills: u64| kills > super::KILLS);
    let is_campaign = std::env::var("KILLS").is_ok_and(is_more);
    let calls = kill_at(output, options, u64::MAX).expect_err("so many calls are not made");
    // The last call at which it fails, and the first one at which it does not.
    let (mut last, mut first, mut failed) = (0, calls, 0);
    while first - last > 1 && !is_campaign {
        let call = last + (first - last) / 2;
        match check(output, options, call) {
            Some(false) => (last, failed) = (call, failed + 1),
            Some(true) | None => first = call,
        }
    }
    let around = if is_campaign { 1..=calls } else { last.saturating_sub(6)..=(first + 3).min(calls) };
    failed += around.filter(|call| check(output, options, *call) == Some(false)).count();
    assert!(failed > 0, "{output:?}: none of {calls}");
}
