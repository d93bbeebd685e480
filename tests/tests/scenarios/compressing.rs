//! Archives that are compressed while they are recorded: what can be read of them at any time, and what is
//! recovered when a process is killed.

use super::background::SmallDisk;
use rustix::process::Signal;
use std::fs::{self, File};
use std::path::Path;
use std::process::Output;
use trace_tests::build::program;
use trace_tests::sandbox::kill;
use trace_tests::scene::{Scene, counted, freeze, stderr, wait_for_death};
use trace_tests::{Archive, Requirement, Sandbox, wait_for};

const MODES: [&str; 3] = ["oneshot", "circular", "streaming"];
const PARTIAL: &str = "trace.partial.fxt.zst";

fn record(sandbox: &Sandbox, options: &[&str], command: &[&str]) -> Output {
    let output = sandbox.trace([&["record"], options, &["--"], command].concat());
    assert!(output.status.success(), "{output:?}");
    output
}

/// Frames of a compressed file by the table at its end: where they begin, and how many bytes they and their
/// contents have.
fn frames(bytes: &[u8]) -> Vec<(usize, usize, usize)> {
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let footer = bytes.len() - 9;
    assert_eq!(bytes[footer + 4..], [0, 0xb1, 0xea, 0x92, 0x8f], "a table is at the end");
    let begin = footer - 8 * number(footer);
    let mut place = 0;
    let mut frame = |entry: usize| {
        let (compressed, plain) = (number(entry), number(entry + 4));
        place += compressed;
        (place - compressed, compressed, plain)
    };
    let frames = (begin..footer).step_by(8).map(&mut frame).collect();
    assert_eq!(place, begin - 8, "the table is of all frames");
    frames
}

/// The events that `stream` wrote.
fn numbers(archive: &Archive) -> Vec<u64> {
    archive.events.iter().filter(|event| event.name() == "event").map(|event| event.u64("n")).collect()
}

/// It is the archive, frame for frame, and every command reads it.
//= docs/recording.md#compressed-while-it-is-recorded
#[test]
fn an_archive_is_compressed_as_it_comes_and_every_command_reads_it() {
    let sandbox = Sandbox::new();
    let emit = program("stream").to_str().unwrap();
    for mode in MODES {
        let name = format!("{mode}.fxt.zst");
        let options = ["--buffering-mode", mode, "--buffer-size", "8", "-o", &name];
        record(&sandbox, &options, &[emit, "1", "60000", "0"]);
        let bytes = fs::read(sandbox.file(&name)).unwrap();
        let plain = zstd::decode_all(&bytes[..]).unwrap();
        let frames = frames(&bytes);
        let contents: Vec<u8> = frames
            .iter()
            .flat_map(|(begin, length, plain)| {
                let contents = zstd::decode_all(&bytes[*begin..begin + length]).unwrap();
                assert_eq!(contents.len(), *plain);
                // Each begins with a record.
                assert_eq!(whole(&contents), contents.len());
                contents
            })
            .collect();
        assert_eq!(contents, plain);
        assert!(frames.len() >= 2 && bytes.len() < plain.len() / 4, "{mode}: {frames:?}");
        let archive = Archive::of_bytes(&plain);
        assert!(numbers(&archive).into_iter().eq(0..60_000), "{mode}");
        assert!(!sandbox.file(&format!("{mode}.partial.fxt.zst")).exists());
        fs::write(sandbox.file("plain.fxt"), &plain).unwrap();
        let answer = |command: &[&str], file: &str| {
            let output = sandbox.trace([command, &[file]].concat());
            (output.status.code(), String::from_utf8(output.stdout).unwrap().replace(file, &name))
        };
        for command in [&["check"][..], &["stats"], &["dump"], &["query", "SELECT count(*) FROM slices"]] {
            assert_eq!(answer(command, &name), answer(command, "plain.fxt"), "{mode}: {command:?}");
        }
        for arguments in [["convert", &name, "a.fxt"], ["convert", "plain.fxt", "b.fxt"]] {
            assert!(sandbox.trace(arguments).status.success());
        }
        assert_eq!(fs::read(sandbox.file("a.fxt")).unwrap(), fs::read(sandbox.file("b.fxt")).unwrap());
        let output = sandbox.trace(["report", &name, "-o", "page.html"]);
        assert!(output.status.success(), "{output:?}");
    }
}

/// How many bytes are whole records.
fn whole(bytes: &[u8]) -> usize {
    trace_reader::complete_records_end(&mut std::io::Cursor::new(bytes)).unwrap() as usize
}

/// To a pipe, by an option instead of a name, with a level, and at the end of a conversion.
//= docs/recording.md#compressed-while-it-is-recorded
#[test]
fn options_compress_too_and_conversions_write_the_same_form() {
    let sandbox = Sandbox::new();
    let emit = program("emit").to_str().unwrap();
    let run = |options: &[&str]| record(&sandbox, options, &[emit, "1", "3"]);
    let events = |bytes: &[u8]| {
        assert_eq!(frames(bytes).len(), 1);
        Archive::of_bytes(&zstd::decode_all(bytes).unwrap()).events.len()
    };
    let bytes = |name: &str| fs::read(sandbox.file(name)).unwrap();
    run(&["--compress=zstd"]);
    let expected = 3 * 14;
    assert_eq!(events(&bytes("trace.fxt.zst")), expected);
    run(&["-o", "named.fxt", "--compress=zstd:19"]);
    assert_eq!(events(&bytes("named.fxt.zst")), expected);
    let piped = run(&["-o", "-", "--compress=zstd:-7"]).stdout;
    assert_eq!(events(&piped), expected);
    assert!(bytes("named.fxt.zst").len() < piped.len());
    run(&["-o", "named.json.zst"]);
    let json = zstd::decode_all(&bytes("named.json.zst")[..]).unwrap();
    serde_json::from_slice::<serde_json::Value>(&json).unwrap();
    assert_eq!(frames(&bytes("named.json.zst")).len(), 1);
    for (from, to) in [("named.fxt.zst", "again.fxt.zst"), ("named.fxt.zst", "again.pftrace.zst")] {
        assert!(sandbox.trace(["convert", from, to]).status.success());
        assert_eq!(frames(&bytes(to)).len(), 1);
    }
    assert_eq!(events(&bytes("again.fxt.zst")), expected);
    for (arguments, why) in [
        (
            &["record", "-o", "a.fxt.gz", "--compress=zstd"][..],
            "--compress is zstd, and the name ends in .gz",
        ),
        (&["start", "-o", "a.fxt.zst"], "trace stop -o converts it to other formats, and compresses it"),
        (&["start", "--compress=zstd"], "trace stop -o trace.fxt.zst compresses at the end"),
    ] {
        let output = sandbox.trace(arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(stderr(&output).contains(why), "{output:?}");
    }
}

/// Recordings in the background and snapshots are compressed when they are complete.
#[test]
fn what_the_manager_writes_is_compressed_at_its_end() {
    let sandbox = Sandbox::new();
    assert!(sandbox.trace(["start", "--buffering-mode", "circular"]).status.success());
    let emit = sandbox.spawn_recorded("emit", &["1", "3"]);
    let _ = emit.finish();
    for arguments in [["snapshot", "-o", "snapshot.fxt.zst"], ["stop", "-o", "stopped.fxt.zst"]] {
        let output = sandbox.trace(arguments);
        assert!(output.status.success(), "{output:?}");
        let bytes = fs::read(sandbox.file(arguments[2])).unwrap();
        assert_eq!(frames(&bytes).len(), 1);
        let archive = Archive::of_bytes(&zstd::decode_all(&bytes[..]).unwrap());
        assert_eq!(archive.events.len(), 3 * 14, "{arguments:?}");
    }
}

/// The limit is that of the archive, before it is compressed.
//= docs/recording.md#how-a-recording-ends
#[test]
fn a_limit_counts_what_is_compressed() {
    let sandbox = Sandbox::new();
    let options = [
        "--buffering-mode",
        "streaming",
        "--max-size",
        "64KiB",
        "--return-child-result=false",
        "-o",
        "a.fxt.zst",
    ];
    let output = record(&sandbox, &options, &[program("emit").to_str().unwrap(), "1", "2000"]);
    let plain = zstd::decode_all(&fs::read(sandbox.file("a.fxt.zst")).unwrap()[..]).unwrap();
    assert!((50 << 10..=64 << 10).contains(&plain.len()), "{}", plain.len());
    assert_eq!(whole(&plain), plain.len());
    let events = Archive::of_bytes(&plain).events.len();
    assert!(stderr(&output).contains(&format!("trace: {events} events of 1 program")), "{output:?}");
}

/// What a program has recorded while little happens can be read soon, though no frame is full.
//= docs/recording.md#compressed-while-it-is-recorded
#[test]
fn a_quiet_stream_can_be_read_while_it_is_compressed() {
    let sandbox = Sandbox::new();
    let options = ["record", "-o", "trace.fxt.zst", "--write-period", "50ms", "--"];
    let program = [program("stream").to_str().unwrap(), "1", "1000000", "1000"];
    let recording = sandbox.spawn("trace", &[&options[..], &program].concat());
    for events in [1, 2, 10] {
        wait_for("events", || {
            let archive = Some(decompressed_so_far(&sandbox.file(PARTIAL)));
            let archive = archive.filter(|archive| !archive.is_empty())?;
            (numbers(&Archive::of_prefix(&archive)).len() >= events).then_some(())
        });
    }
    recording.signal(Signal::TERM);
    recording.finish();
    let plain = zstd::decode_all(&fs::read(sandbox.file("trace.fxt.zst")).unwrap()[..]).unwrap();
    let numbers = numbers(&Archive::of_bytes(&plain));
    assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "{numbers:?}");
}

/// What a decoder gets out of the partial file.
fn decompressed_so_far(path: &Path) -> Vec<u8> {
    let Ok(file) = File::open(path) else { return Vec::new() };
    let mut bytes = Vec::new();
    if let Ok((mut plain, _)) = trace_reader::Plain::open(file) {
        let _ = std::io::Read::read_to_end(&mut plain, &mut bytes);
    }
    bytes
}

fn begin(mode: &str, events: u64) -> Scene {
    Scene::begin_with(mode, &["--buffer-size", "1", "-o", "trace.fxt.zst"], events)
}

/// The program, and the client, the manager or both: every committed event is recovered, once.
//= docs/recovery.md#what-is-recovered
#[test]
fn after_any_kill_every_committed_event_is_recovered() {
    for mode in MODES {
        for victims in ["client", "manager", "both"] {
            let scene = begin(mode, if mode == "streaming" { 40_000 } else { 3000 });
            let has_begun = || fs::metadata(scene.sandbox.file(PARTIAL)).is_ok_and(|found| found.len() > 0);
            wait_for("the beginning of the file", || has_begun().then_some(()));
            // The client sees nothing of the program's end.
            freeze(scene.recording.pid());
            kill(scene.burst, Signal::KILL);
            wait_for_death(scene.burst);
            let counted = counted(&scene.sandbox);
            if victims != "manager" {
                scene.recording.signal(Signal::KILL);
                wait_for_death(scene.recording.pid());
            }
            if victims != "client" {
                kill(scene.manager, Signal::KILL);
                wait_for_death(scene.manager);
            }
            scene.recording.signal(Signal::CONT);
            scene.wait_for_client();
            let what = format!("{mode}, {victims}");
            assert!(!scene.sandbox.file("trace.fxt.zst").exists(), "{what}");
            assert!(scene.sandbox.file(PARTIAL).exists(), "{what}");
            // The file alone is readable to its last block.
            let checked = scene.sandbox.trace(["check", PARTIAL]);
            let is_cut_off = victims != "manager";
            assert_eq!(
                stderr(&checked).contains("the zstd data is cut off"),
                is_cut_off,
                "{what}: {checked:?}"
            );
            let output = scene.recover();
            assert!(output.status.success(), "{what}: {output:?}");
            let said = stderr(&output);
            assert!(
                said.contains(&format!("bytes of it come from {}", scene.sandbox.file(PARTIAL).display()))
            );
            assert_eq!(said.contains("whose compressed data is cut off"), is_cut_off, "{what}: {said}");
            scene.check(mode, &["recovered.fxt"], &counted);
            assert!(scene.sessions().is_empty(), "{what}");
            assert!(!scene.sandbox.file(PARTIAL).exists(), "{what}");
        }
    }
}

/// Blocks that the client was killed in the middle of, and a file that has lost what was confirmed.
//= docs/recovery.md#what-is-recovered
#[test]
fn a_file_that_ends_in_the_middle_of_a_block_is_joined_and_a_damaged_one_is_not() {
    let scene = begin("streaming", 60_000);
    freeze(scene.recording.pid());
    kill(scene.burst, Signal::KILL);
    wait_for_death(scene.burst);
    let counted = counted(&scene.sandbox);
    scene.recording.signal(Signal::KILL);
    wait_for_death(scene.recording.pid());
    kill(scene.manager, Signal::KILL);
    wait_for_death(scene.manager);
    let partial = scene.sandbox.file(PARTIAL);
    let bytes = fs::read(&partial).unwrap();
    // In place: another file would not be the recording's.
    let replace = |bytes: &[u8]| {
        use std::io::Write;
        let mut file = File::options().write(true).truncate(true).open(&partial).unwrap();
        file.write_all(bytes).unwrap();
    };
    let mut damaged = bytes.clone();
    // In the first block, which was confirmed however slow the machine is.
    damaged[64..128].fill(0xff);
    replace(&damaged);
    let output = scene.recover();
    assert_eq!(output.status.code(), Some(6), "{output:?}");
    let said = stderr(&output);
    assert!(said.contains("which had the first") && said.contains("bad zstd data"), "{said}");
    assert!(said.contains("nothing was deleted") && partial.exists(), "{said}");
    // A part of a block that was never confirmed.
    replace(&[&bytes[..], &[0xff]].concat());
    let output = scene.recover();
    assert!(output.status.success(), "{output:?}");
    assert!(stderr(&output).contains("whose compressed data is cut off"), "{output:?}");
    scene.check("streaming", &["recovered.fxt"], &counted);
}

/// The file can be read to the last whole block, and everything else is still there.
//= docs/recording.md#while-it-is-recorded
#[test]
fn a_full_disk_costs_nothing_that_was_recorded() {
    const EVENTS: u64 = 400_000;
    if !Requirement::Mounts.is_met("a_full_disk_costs_nothing_that_was_recorded") {
        return;
    }
    for mode in MODES {
        let sandbox = Sandbox::new();
        let disk = sandbox.file("disk");
        fs::create_dir(&disk).unwrap();
        let _disk = SmallDisk::mount(&disk);
        let options = ["record", "-o", "disk/trace.fxt.zst", "--compress=zstd:-5", "--buffering-mode", mode];
        let program = [program("stream").to_str().unwrap(), "1", &EVENTS.to_string(), "0"];
        let output = sandbox.trace([&options[..], &["--buffer-size", "32", "--"], &program].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(125), "{mode}: {said}");
        let error =
            format!("cannot write the trace: No space left on device (os error 28); disk/{PARTIAL} has");
        assert!(said.contains(&error), "{mode}: {said}");
        let plain = decompressed_so_far(&disk.join(PARTIAL));
        assert!(plain.len() > 500_000 && whole(&plain) == plain.len(), "{mode}: {}", plain.len());
        let output = sandbox.trace(["recover"]);
        assert!(output.status.success(), "{mode}: {output:?}");
        let archive = Archive::read(&sandbox.file("recovered.fxt"));
        assert!(numbers(&archive).into_iter().eq(0..EVENTS), "{mode}: {}", numbers(&archive).len());
        assert!(!disk.join(PARTIAL).exists(), "{mode}");
    }
}

/// Ctrl-C ends the recording, and the file is complete. One that aborts leaves a partial file that is, too.
//= docs/recording.md#while-it-is-recorded
#[test]
fn ctrl_c_ends_a_file_that_is_compressed() {
    let scene = begin("streaming", 10_000);
    let before = counted(&scene.sandbox);
    scene.recording.signal(Signal::TERM);
    scene.wait_for_client();
    let bytes = fs::read(scene.sandbox.file("trace.fxt.zst")).unwrap();
    frames(&bytes);
    fs::write(scene.sandbox.file("plain.fxt"), zstd::decode_all(&bytes[..]).unwrap()).unwrap();
    let most = || counted(&scene.sandbox).iter().map(|counted| counted + 1).collect::<Vec<_>>();
    scene.check_between("ended", true, &["plain.fxt"], &before, &most());
    let scene = begin("streaming", 10_000);
    let before = counted(&scene.sandbox);
    // It answers no more.
    freeze(scene.manager);
    scene.recording.signal(Signal::TERM);
    scene.wait_for_client();
    wait_for("the client's last words", || {
        let said = scene.recording.stderr_so_far();
        (said.contains("the trace manager does not answer") && said.contains(PARTIAL)).then_some(())
    });
    let bytes = fs::read(scene.sandbox.file(PARTIAL)).unwrap();
    frames(&bytes);
    let plain = zstd::decode_all(&bytes[..]).unwrap();
    assert_eq!(whole(&plain), plain.len());
    kill(scene.manager, Signal::KILL);
    kill(scene.burst, Signal::KILL);
    wait_for_death(scene.manager);
    wait_for_death(scene.burst);
    let output = scene.recover();
    assert!(output.status.success(), "{output:?}");
    let most: Vec<u64> = counted(&scene.sandbox).iter().map(|counted| counted + 1).collect();
    scene.check_between("aborted", true, &["recovered.fxt"], &before, &most);
}
