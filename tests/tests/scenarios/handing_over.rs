//! Clients that hand the descriptor of their file over, so that the manager writes it.

use super::hostile::{Scene, assert_honest};
use std::fs::{self, File};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::process::Command;
use std::thread::JoinHandle;
use trace_protocol::BufferingMode;
use trace_protocol::controller::{
    ArchiveFile, FileCount, SessionRequest, SessionResponse, StartOptions, StopOptions, TraceConfig,
};
use trace_tests::client::Session;
use trace_tests::{Archive, Requirement, Sandbox};
use zx_sim::{Error, Signals, Socket, wait_one};

/// A session whose client hands over a descriptor.
struct Lender {
    session: Session,
    socket: Socket,
    /// Everything that comes through the socket.
    arrived: JoinHandle<Vec<u8>>,
}

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
enum Arrived {
    Counts(Vec<FileCount>),
    Archive(Vec<u8>),
}

impl Lender {
    /// Begins a session with a descriptor, and the name of a file.
    fn begin(scene: &Scene, descriptor: &impl AsFd, named: (u64, u64)) -> Self {
        let (output, their_output) = Socket::pair().unwrap();
        let count = FileCount::Written(0).value().to_le_bytes();
        assert_eq!(output.write_with(&count, descriptor.as_fd()).unwrap(), 8);
        let socket = output.duplicate().unwrap();
        let (path, (device, inode)) = ("/lent".to_owned(), named);
        let config = TraceConfig {
            buffering_mode: BufferingMode::Streaming,
            buffer_size_megabytes_hint: 1,
            confirms: true,
            file: Some(ArchiveFile { path, device, inode, owner: None }),
            ..TraceConfig::default()
        };
        let session = scene.client.begin_into(config, output, their_output);
        let reader = socket.duplicate().unwrap();
        Self { session, socket, arrived: std::thread::spawn(move || read(&reader)) }
    }

    fn start(mut self) -> Self {
        let answer = self.session.ask(SessionRequest::StartTracing(StartOptions::default()));
        assert_eq!(answer, SessionResponse::StartTracing(Ok(())));
        self
    }

    fn stop(mut self) -> Arrived {
        let answer = self.session.ask(SessionRequest::StopTracing(StopOptions { write_results: true }));
        assert!(matches!(answer, SessionResponse::StopTracing(Ok(_))), "{answer:?}");
        self.end()
    }

    fn end(self) -> Arrived {
        drop((self.session, self.socket));
        let bytes = self.arrived.join().unwrap();
        if bytes.first_chunk() != Some(&[0; 8]) {
            return Arrived::Archive(bytes);
        }
        let (counts, []) = bytes.as_chunks::<8>() else { panic!("{} bytes", bytes.len()) };
        Arrived::Counts(
            counts.iter().map(|count| FileCount::from_value(u64::from_le_bytes(*count))).collect(),
        )
    }
}

/// Reads a socket to its end, and confirms an archive.
fn read(socket: &Socket) -> Vec<u8> {
    let (mut bytes, mut chunk) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        match socket.read(&mut chunk) {
            Ok(0) | Err(Error::PeerClosed) => return bytes,
            Ok(length) => bytes.extend_from_slice(&chunk[..length]),
            Err(Error::ShouldWait) => {
                let _ = wait_one(socket, Signals::READABLE | Signals::PEER_CLOSED, None);
            }
            Err(error) => panic!("{error}"),
        }
        if bytes.first().is_some_and(|first| *first != 0) {
            let _ = socket.write(&(bytes.len() as u64).to_le_bytes());
        }
    }
}

fn identity(descriptor: &impl AsFd) -> (u64, u64) {
    let metadata = File::from(descriptor.as_fd().try_clone_to_owned().unwrap()).metadata().unwrap();
    (metadata.dev(), metadata.ino())
}

fn create(path: &Path) -> File {
    File::options().read(true).write(true).create_new(true).open(path).unwrap()
}

/// The manager writes it, and reports how far; the last count is the file's length.
//= docs/protocol.md#files-that-are-handed-over
#[test]
fn a_file_that_is_handed_over_is_written_by_the_manager() {
    let mut scene = Scene::new();
    let path = scene.sandbox.file("lent.fxt");
    let file = create(&path);
    let lender = Lender::begin(&scene, &file, identity(&file)).start();
    scene.run_honest(3);
    let Arrived::Counts(counts) = lender.stop() else { panic!("the archive came through the socket") };
    let length = fs::metadata(&path).unwrap().len();
    assert_eq!(
        (counts.first(), counts.last()),
        (Some(&FileCount::Written(0)), Some(&FileCount::Complete(length)))
    );
    let written = counts[..counts.len() - 1].iter().map(|count| match count {
        FileCount::Written(bytes) => *bytes,
        other => panic!("{other:?} before the end"),
    });
    assert!(written.is_sorted());
    assert_honest(&Archive::read(&path), 3, "a file");
    scene.assert_alive();
}

/// A descriptor that the manager could not write as the client could, or that could hold it up, is not used:
/// the archive comes through the socket, with every event.
//= docs/protocol.md#files-that-are-handed-over
#[test]
fn what_is_no_plain_file_of_the_clients_is_not_written() {
    const UNTOUCHED: &str = "untouched";
    let mut scene = Scene::new();
    let path = scene.sandbox.file("victim");
    fs::write(&path, UNTOUCHED).unwrap();
    let open = |options: &mut fs::OpenOptions| OwnedFd::from(options.open(&path).unwrap());
    let fifo = scene.sandbox.file("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let read_write = || File::options().read(true).write(true).to_owned();
    let mut cases = vec![
        ("a FIFO", OwnedFd::from(read_write().open(&fifo).unwrap()), None),
        ("a socket", OwnedFd::from(Socket::pair().unwrap().0), None),
        ("a directory", OwnedFd::from(File::open(scene.sandbox.work_dir()).unwrap()), None),
        ("a device", OwnedFd::from(read_write().open("/dev/full").unwrap()), None),
        ("a read-only file", open(File::options().read(true)), None),
        ("a write-only file", open(File::options().write(true)), None),
        ("a file to append to", open(File::options().read(true).append(true)), None),
        ("another file than the one named", open(&mut read_write()), Some((1, 2))),
    ];
    let others = scene.sandbox.file("others");
    let file = create(&others);
    if Requirement::Root.is_met("what_is_no_plain_file_of_the_clients_is_not_written") {
        chown(&others, Some(12_345), None).unwrap();
        cases.push(("another user's", file.into(), None));
    }
    for (what, descriptor, named) in cases {
        let named = named.unwrap_or_else(|| identity(&descriptor));
        let lender = Lender::begin(&scene, &descriptor, named).start();
        scene.run_honest(1);
        let Arrived::Archive(archive) = lender.stop() else { panic!("{what} was written") };
        assert_honest(&Archive::of_bytes(&archive), 1, what);
        assert_eq!(fs::read_to_string(&path).unwrap(), UNTOUCHED, "{what}");
        scene.assert_alive();
    }
    assert_eq!(fs::metadata(&others).unwrap().len(), 0);
}

/// Its session ends, and says why; the next one has every event.
//= docs/protocol.md#files-that-are-handed-over
#[test]
fn a_file_that_cannot_be_written_ends_its_session_alone() {
    let mut scene = Scene::new();
    let path = scene.sandbox.file("gone.fxt");
    let file = create(&path);
    fs::remove_file(&path).unwrap();
    let lender = Lender::begin(&scene, &file, identity(&file));
    let bytes = lender.arrived.join().unwrap();
    let failed = FileCount::Failed { errno: 0 }.value().to_le_bytes();
    assert_eq!(bytes[..16], [[0; 8], failed].concat());
    assert_eq!(file.metadata().unwrap().len(), 0);
    drop((lender.session, lender.socket));
    scene.assert_alive();
    let recording = scene.start(BufferingMode::Streaming);
    scene.run_honest(2);
    assert_honest(&recording.stop().0, 2, "afterwards");
}

/// A client that says what is written, or stops to listen, has its file let go at once.
//= docs/protocol.md#files-that-are-handed-over
#[test]
fn a_client_that_breaks_off_gets_its_file_back() {
    type BreakOff = fn(&Socket);
    let cases: [(&str, BreakOff); 2] = [
        ("stops to listen", Socket::end_writing),
        ("confirms", |socket| assert_eq!(socket.write(&8_u64.to_le_bytes()).unwrap(), 8)),
    ];
    let mut scene = Scene::new();
    for (what, break_off) in cases {
        let path = scene.sandbox.file(&format!("{what}.fxt"));
        let file = create(&path);
        let lender = Lender::begin(&scene, &file, identity(&file)).start();
        scene.run_honest(2);
        break_off(&lender.socket);
        // The end comes, although the client has closed nothing.
        let bytes = lender.arrived.join().unwrap();
        let (counts, _) = bytes.as_chunks::<8>();
        let counts = counts.iter().map(|count| FileCount::from_value(u64::from_le_bytes(*count)));
        assert!(!counts.clone().any(|count| matches!(count, FileCount::Complete(_))), "{what}");
        let written = counts.filter_map(|count| match count {
            FileCount::Written(bytes) => Some(bytes),
            _ => None,
        });
        let length = file.metadata().unwrap().len();
        assert!(written.max() <= Some(length), "{what}");
        let whole = trace_reader::complete_records_end(&mut File::open(&path).unwrap()).unwrap();
        assert_eq!(whole, length, "{what}");
        drop((lender.session, lender.socket));
        scene.assert_alive();
    }
    let recording = scene.start(BufferingMode::Streaming);
    scene.run_honest(1);
    assert_honest(&recording.stop().0, 1, "afterwards");
}

/// The manager reaches a limit of the size of its files: it lives, the client names the cause, and what is
/// not in the file can be recovered.
//= docs/recovery.md#a-sessions-directory
#[test]
fn a_limit_of_the_managers_is_an_error_of_the_recording() {
    // Above the size of a buffer, and below that of both programs' events.
    for limit in [4_400_000, 5_000_001, 6_543_217, 7_400_000_u64] {
        let sandbox = Sandbox::new();
        let mut command = Command::new("prlimit");
        command
            .arg(format!("--fsize={limit}:{limit}"))
            .arg(trace_tests::build::program("trace"))
            .arg("manager");
        command.env("TRACE_RUNTIME_DIR", sandbox.runtime_dir()).current_dir(sandbox.work_dir());
        let mut manager = Sandbox::spawn_command(command);
        let _client = trace_tests::client::Client::connect(&sandbox);
        let burst = trace_tests::build::program("burst");
        for page in ["a", "b"] {
            fs::write(sandbox.file(page), [0; 4096]).unwrap();
        }
        let script = format!("{0} a 20000; {0} b 20000", burst.display());
        // For another process, so that it has no manager of its own, whose limits are better.
        let this = std::process::id().to_string();
        let options = ["record", "--parent", &this, "--buffering-mode", "oneshot"];
        let output = sandbox.trace([&options[..], &["--", "sh", "-c", &script]].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{limit}: {stderr}");
        assert!(stderr.contains("cannot write the trace: File too large"), "{limit}: {stderr}");
        assert!(manager.is_running(), "{limit}");
        let file = sandbox.file("trace.partial.fxt");
        let kept = fs::metadata(&file).unwrap().len();
        assert!((limit - 600..=limit).contains(&kept), "{limit}: {kept}");
        let output = sandbox.trace(["recover"]);
        assert!(output.status.success(), "{limit}: {output:?}");
        let archive = Archive::read(&sandbox.file("recovered.fxt"));
        let lost: u64 = archive.losses.iter().map(|loss| loss.count).sum();
        assert_eq!(archive.events.len() as u64 + lost, 160_000, "{limit}");
        for events in archive.by_thread_and_time("event").values() {
            assert!(events.iter().map(|event| event.u64("n")).eq(0..events.len() as u64), "{limit}");
        }
        assert!(!file.exists(), "{limit}");
    }
}
