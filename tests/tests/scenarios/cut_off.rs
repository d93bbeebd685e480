//! Compressed traces that are cut off or damaged: every command reads what comes before.

use super::contained::tar;
use flate2::write::{DeflateEncoder, GzEncoder};
use std::fs;
use std::io::Write;
use trace_tests::{Archive, Sandbox};

/// Instants of each trace.
const EVENTS: usize = 3000;
const SPEC: &str = r#"{"measure": [{"type": "time_between", "output_test_name": "from one to the next",
    "first_event_name": "event", "first_event_category": "cat",
    "second_event_name": "event", "second_event_category": "cat"}]}"#;

/// Text that does not compress to nothing.
fn noise(state: &mut u64) -> String {
    let mut word = || {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("{:016x}", *state ^ *state >> 29)
    };
    (0..8).map(|_| word()).collect()
}

/// The same instants in each format that is read.
fn originals(sandbox: &Sandbox) -> [(&'static str, Vec<u8>); 4] {
    let mut state = 1;
    let event = |at: usize| {
        let noise = noise(&mut state);
        format!(
            r#"{{"ph":"i","s":"t","name":"event","cat":"cat","ts":{at},"pid":1,"tid":2,"args":{{"noise":"{noise}"}}}}"#
        )
    };
    let events: Vec<String> = (0..EVENTS).map(event).collect();
    let json = format!("[{}]", events.join(",\n"));
    fs::write(sandbox.file("original.json"), &json).unwrap();
    for name in ["original.fxt", "original.pftrace"] {
        let output = sandbox.trace(["convert", "original.json", name]);
        assert!(output.status.success(), "{output:?}");
    }
    let line = |at: usize| format!("  app-2 [000] {at}.5: tracing_mark_write: I|1|{}\n", noise(&mut state));
    let text = format!("# tracer: nop\n{}", (0..EVENTS).map(line).collect::<String>());
    let read = |name: &str| fs::read(sandbox.file(name)).unwrap();
    [
        ("archive", read("original.fxt")),
        ("json", json.into_bytes()),
        ("ftrace", text.into_bytes()),
        ("perfetto", read("original.pftrace")),
    ]
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Damages compressed bytes.
type Damage = fn(&[u8]) -> Vec<u8>;
/// What is done, how; what the commands say then, and how many events they find.
type Case = (&'static str, Damage, &'static str, fn(usize) -> bool);

fn cut(bytes: &[u8]) -> Vec<u8> {
    bytes[..bytes.len() / 2].to_vec()
}

fn without_last_byte(bytes: &[u8]) -> Vec<u8> {
    bytes[..bytes.len() - 1].to_vec()
}

/// In what gzip and zstd put behind their data.
fn wrong_checksum(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let place = bytes.len() - 3;
    bytes[place] ^= 0x10;
    bytes
}

fn garbage_behind(bytes: &[u8]) -> Vec<u8> {
    [bytes, b"garbage behind the end"].concat()
}

/// A second member, or frame, that is cut off.
fn second_is_cut(bytes: &[u8]) -> Vec<u8> {
    [bytes, &cut(bytes)].concat()
}

/// What was run, its exit code, stdout, and stderr.
fn outcome(sandbox: &Sandbox, arguments: &[&str]) -> (String, Option<i32>, String, String) {
    let output = sandbox.trace(arguments);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (format!("{arguments:?}"), output.status.code(), text(output.stdout), text(output.stderr))
}

/// How many instants a file that was converted has.
fn instants(sandbox: &Sandbox, output: &str) -> usize {
    let path = sandbox.file(output);
    match path.extension().unwrap().to_str().unwrap() {
        "fxt" => Archive::read(&path).events.len(),
        "json" => {
            let document: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
            let events = document["traceEvents"].as_array().unwrap();
            events.iter().filter(|event| event["ph"] == "i").count()
        }
        "pftrace" => {
            let question = "SELECT count(*) FROM instants";
            let (command, code, answer, _) =
                outcome(sandbox, &["query", "--format", "csv", question, output]);
            assert_eq!(code, Some(0), "{command}");
            answer.lines().nth(1).unwrap().parse().unwrap()
        }
        _ => fs::read_to_string(path.join("instants.csv")).unwrap().lines().count() - 1,
    }
}

/// Every command reads what comes before, says what is wrong and where, and fails. How many events there are.
fn assert_read_as_far_as_it_goes(sandbox: &Sandbox, name: &str, what: &str) -> usize {
    let assert_told = |(command, code, _, stderr): &(String, Option<i32>, String, String)| {
        assert_eq!(*code, Some(6), "{command}: {stderr}");
        let is_place = |line: &&str| line.starts_with(&format!("trace: {name}: cannot read at byte "));
        let told: Vec<&str> = stderr.lines().filter(is_place).collect();
        assert!(told.len() == 1 && told[0].contains(what), "{command}: {stderr}");
    };
    let dumped = outcome(sandbox, &["dump", name]);
    assert_told(&dumped);
    let events = dumped.2.lines().filter(|line| line.contains(" instant ")).count();
    let checked = outcome(sandbox, &["check", name]);
    assert_told(&checked);
    assert!(checked.2.contains(&format!(", {events} events in ")), "{checked:?}");
    let asked = outcome(sandbox, &["query", "--format", "csv", "SELECT count(*) FROM instants", name]);
    assert_told(&asked);
    assert_eq!(asked.2, format!("count(*)\n{events}\n"), "{asked:?}");
    let measured = outcome(sandbox, &["measure", "--spec-file", "spec.json", name]);
    assert_told(&measured);
    if !name.starts_with("ftrace") {
        assert!(measured.2.contains(&format!(" out of {} samples", events - 1)), "{measured:?}");
    }
    for (target, output) in [
        ("fxt", "out.fxt"),
        ("catapult", "catapult.json"),
        ("chrome", "chrome.json"),
        ("perfetto", "out.pftrace"),
        ("csv", "out.tables"),
    ] {
        let converted = outcome(sandbox, &["convert", "--format", target, name, output]);
        assert_told(&converted);
        assert_eq!(instants(sandbox, output), events, "{converted:?}");
        let path = sandbox.file(output);
        let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        removed.unwrap();
    }
    events
}

//= docs/import.md#what-is-cut-off
#[test]
fn every_command_reads_a_compressed_trace_as_far_as_it_goes() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.file("spec.json"), SPEC).unwrap();
    let all = |events: usize| events == EVENTS;
    // Of the last 4 KiB before damage nothing may be handed out.
    let nearly_all = |events: usize| (EVENTS - 30..=EVENTS).contains(&events);
    let some = |events: usize| (200..EVENTS - 200).contains(&events);
    let more = |events: usize| (EVENTS + 200..2 * EVENTS - 200).contains(&events);
    let damage: [Case; 5] = [
        ("cut", cut, "data is cut off", some),
        ("checksum", wrong_checksum, "bad ", nearly_all),
        ("last", without_last_byte, "data is cut off", all),
        ("garbage", garbage_behind, "bad ", nearly_all),
        ("second", second_is_cut, "data is cut off", more),
    ];
    for (format, bytes) in originals(&sandbox) {
        for (suffix, compressed) in [("gz", gzip(&bytes)), ("zst", zstd(&bytes))] {
            let damage = if format == "archive" { &damage[..] } else { &damage[..2] };
            for (kind, make, what, is_expected) in damage {
                let name = format!("{format}-{kind}.{suffix}");
                fs::write(sandbox.file(&name), make(&compressed)).unwrap();
                let events = assert_read_as_far_as_it_goes(&sandbox, &name, what);
                assert!(is_expected(events), "{name}: {events} events");
            }
        }
    }
}

/// A ZIP archive without its list.
fn zip_without_list(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    let packed = encoder.finish().unwrap();
    let mut archive = b"PK\x03\x04\x14\0\0\0\x08\0\0\0\0\0\0\0\0\0".to_vec();
    archive.extend([packed.len() as u32, bytes.len() as u32].map(u32::to_le_bytes).as_flattened());
    archive.extend(b"\x01\0\0\0a");
    [archive, packed].concat()
}

//= docs/import.md#containers
#[test]
fn every_command_reads_a_container_that_is_cut_off_as_far_as_it_goes() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.file("spec.json"), SPEC).unwrap();
    let assert_some = |file: &str, bytes: &[u8], name: &str, what: &str| {
        fs::write(sandbox.file(file), cut(bytes)).unwrap();
        let events = assert_read_as_far_as_it_goes(&sandbox, name, what);
        assert!((200..EVENTS - 200).contains(&events), "{name}: {events} events");
    };
    for (format, bytes) in originals(&sandbox) {
        let tar = gzip(&tar(&[("log.txt", b"begun\n"), ("a", &bytes)]));
        let name = format!("{format}.tar.gz");
        assert_some(&name, &tar, &name, "the gzip data is cut off");
        assert_some(&name, &tar, &format!("{name}:a"), "the gzip data is cut off");
        let name = format!("{format}.zip");
        assert_some(&name, &zip_without_list(&bytes), &name, " is cut off");
    }
    let json = &originals(&sandbox)[1].1;
    let page = [b"<html><script type=application/json>", &**json, b"</script></html>"].concat();
    assert_some("json.html.gz", &gzip(&page), "json.html.gz", "the gzip data is cut off");
    assert_some("json.tar", &tar(&[("a", json)]), "json.tar", "the tar archive is cut off");
    let strict = outcome(&sandbox, &["convert", "--strict", "json.tar", "strict.fxt"]);
    assert_eq!(strict.1, Some(6), "{strict:?}");
}

/// Where nothing could be read there is no result.
//= docs/import.md#what-is-cut-off
#[test]
fn of_a_trace_that_is_cut_in_its_header_nothing_is_made() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.file("spec.json"), SPEC).unwrap();
    fs::write(sandbox.file("limits.txt"), "lost == 0\n").unwrap();
    let archive = &originals(&sandbox)[0].1;
    fs::write(sandbox.file("header.gz"), &gzip(archive)[..7]).unwrap();
    fs::write(sandbox.file("header.zst"), &zstd(archive)[..7]).unwrap();
    fs::write(sandbox.file("empty.gz"), "").unwrap();
    let before = sandbox.files();
    for (name, what) in [
        ("header.gz", "cannot read at byte 0: the gzip data is cut off"),
        ("header.zst", "cannot read at byte 0: the zstd data is cut off"),
        ("empty.gz", "found an empty file"),
    ] {
        for arguments in [
            &["check"][..],
            &["dump"],
            &["query", "SELECT 1"],
            &["measure", "--spec-file", "spec.json"],
            &["stats"],
            &["assert", "--file", "limits.txt"],
            &["convert", "--format", "fxt", "--output-file", "out"],
            &["convert", "--format", "catapult", "--output-file", "out"],
            &["convert", "--format", "chrome", "--output-file", "out"],
            &["convert", "--format", "perfetto", "--output-file", "out"],
            &["convert", "--format", "csv", "--output-file", "out"],
        ] {
            let (command, code, _, stderr) = outcome(&sandbox, &[arguments, &[name]].concat());
            assert_eq!((code, stderr.lines().count()), (Some(6), 1), "{command}: {stderr}");
            assert!(stderr.contains(what), "{command}: {stderr}");
            assert_eq!(sandbox.files(), before, "{command}");
        }
    }
}

/// Damage in the middle shows at once or at the checksum: what can be read is there, and the command fails.
//= docs/import.md#what-is-cut-off
#[test]
fn a_bit_that_has_changed_costs_what_is_behind_it() {
    let sandbox = Sandbox::new();
    let archive = &originals(&sandbox)[0].1;
    for (name, compressed) in [("bit.gz", gzip(archive)), ("bit.zst", zstd(archive))] {
        for place in 4..8 {
            let mut compressed = compressed.clone();
            let at = compressed.len() / 8 * place;
            compressed[at] ^= 0x08;
            fs::write(sandbox.file(name), compressed).unwrap();
            let (command, code, _, stderr) =
                outcome(&sandbox, &["convert", "--format", "chrome", name, "out.json"]);
            assert_eq!(code, Some(6), "{command}: {stderr}");
            let events = instants(&sandbox, "out.json");
            // A block of zstd has 128 KiB, and is lost as a whole.
            assert!(events + 1000 > EVENTS * place / 8 && events > 0, "{name}: {events} of {place}/8");
        }
    }
}
