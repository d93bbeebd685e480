//! Traces inside other files, and files of which nothing can be read.

use std::fs;
use trace_tests::{Sandbox, build::workspace};

const QUESTION: &str = "SELECT name, dur FROM slices ORDER BY ts";

/// Runs the tool; its exit code, its output, and its errors.
fn run(sandbox: &Sandbox, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = sandbox.trace(arguments);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// A file, or a member of one, whose slices are these.
#[track_caller]
fn has(sandbox: &Sandbox, file: &str, slices: &str) {
    let (code, answer, said) = run(sandbox, &["query", "--format", "csv", QUESTION, file]);
    assert_eq!((code, &*answer), (Some(0), &*format!("name,dur\n{slices}")), "{file}: {said}");
    let (code, report, said) = run(sandbox, &["check", file]);
    assert!(code == Some(0) && report.ends_with("\nclean\n"), "{file}: {report}{said}");
    let (code, _, said) = run(sandbox, &["convert", "--strict", file, "out.fxt"]);
    assert_eq!(code, Some(0), "{file}: {said}");
    fs::remove_file(sandbox.file("out.fxt")).unwrap();
}

/// A tar archive.
pub fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, bytes) in members {
        let mut header = [0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..107].copy_from_slice(b"0000644");
        header[124..135].copy_from_slice(format!("{:011o}", bytes.len()).as_bytes());
        header[136..147].copy_from_slice(b"00000000000");
        header[156] = b'0';
        header[257..265].copy_from_slice(b"ustar\x0000");
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        archive.extend(header);
        archive.extend(*bytes);
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.resize(archive.len() + 1024, 0);
    archive
}

//= docs/import.md#containers
#[test]
fn traces_in_other_files_are_read_by_every_command() {
    let sandbox = Sandbox::new();
    let cases = workspace().join("tests/data/cases");
    for (case, slices) in [
        ("L1_viewer_page.html", "a,2000\n"),
        ("O1_atrace_z.data", "draw,100000\n"),
        ("P1_lines.json", "a,2000\nb,2000\nc,2000\n"),
    ] {
        fs::copy(cases.join(case), sandbox.file(case)).unwrap();
        has(&sandbox, case, slices);
    }
    let lines = fs::read(cases.join("P1_lines.json")).unwrap();
    let page = fs::read(cases.join("L1_viewer_page.html")).unwrap();
    fs::write(sandbox.file("one.tar"), tar(&[("log.txt", b"begun\n"), ("P1.json", &lines)])).unwrap();
    has(&sandbox, "one.tar", "a,2000\nb,2000\nc,2000\n");
    fs::write(sandbox.file("two.tar"), tar(&[("P1.json", &lines), ("a:b.json", &lines), ("L1.html", &page)]))
        .unwrap();
    has(&sandbox, "two.tar:a:b.json", "a,2000\nb,2000\nc,2000\n");
    has(&sandbox, "two.tar:L1.html:trace", "a,2000\n");
    let said = "trace: cannot read two.tar: 2 traces in the tar archive, of which one has to be chosen: P1.json, a:b.json; \
                name it behind the file, such as FILE:P1.json\n";
    for command in ["check", "dump", "stats"] {
        assert_eq!(run(&sandbox, &[command, "two.tar"]), (Some(6), String::new(), said.to_owned()));
    }
    let missing =
        "trace: cannot read two.tar:c: no \"c\" in the tar archive, which has: P1.json, a:b.json, L1.html\n";
    assert_eq!(run(&sandbox, &["check", "two.tar:c"]).2, missing);
}

/// A ZIP archive of members that are not compressed, without its list.
fn zip(members: &[(&str, u8, &[u8])]) -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, flags, bytes) in members {
        archive.extend([b"PK\x03\x04\x14\0".as_slice(), &[*flags], &[0; 7]].concat());
        let mut crc = flate2::Crc::new();
        crc.update(bytes);
        archive.extend(crc.sum().to_le_bytes());
        archive.extend([bytes.len() as u32; 2].map(u32::to_le_bytes).as_flattened());
        archive.extend([name.len() as u16, 0].map(u16::to_le_bytes).as_flattened());
        archive.extend([name.as_bytes(), bytes].concat());
    }
    archive
}

//= docs/import.md#containers
#[test]
fn members_that_are_passed_over_are_named() {
    let sandbox = Sandbox::new();
    let lines = fs::read(workspace().join("tests/data/cases/P1_lines.json")).unwrap();
    let question = ["query", "--format", "csv", QUESTION];
    let ask = |file: &str| run(&sandbox, &[&question[..], &[file]].concat());
    let slices = "name,dur\na,2000\nb,2000\nc,2000\n".to_owned();
    let named = "passed over: a (is encrypted; `7z x` unpacks it)\n";
    let lost = "the ZIP archive is cut off, or the list of its members is damaged; the results cover what comes before it\n";
    let bytes = lines.len();
    fs::write(sandbox.file("two.zip"), zip(&[("a", 1, b"secret"), ("b", 0, &lines), ("c", 0, b"x")]))
        .unwrap();
    let place = |name: &str| format!("trace: {name}: cannot read at byte {bytes}: {lost}");
    assert_eq!(ask("two.zip"), (Some(6), slices.clone(), format!("trace: {named}{}", place("two.zip"))));
    assert_eq!(ask("two.zip:b"), (Some(6), slices, place("two.zip:b")));
}

//= docs/import.md#what-is-no-trace
#[test]
fn a_file_of_which_nothing_can_be_read_is_no_clean_trace() {
    let sandbox = Sandbox::new();
    let lines = "# tracer: function_graph\n#\n 0)   0.306 us    |    tick();\n 0)   1.100 us    |  }\n";
    let nanoseconds = r#"[{"ph":"X","ts":1764500000000000000,"dur":1,"pid":1,"tid":1,"name":"a"}]"#;
    let recording = [b"\x17\x08\x44tracing6".as_slice(), &[0; 100]].concat();
    for (file, bytes, found) in [
        (
            "graph.txt",
            lines.as_bytes(),
            "taken for text of ftrace's, but nothing in it can be read; lines that are no events: 2",
        ),
        (
            "ns.json",
            nanoseconds.as_bytes(),
            "taken for a JSON trace, but nothing in it can be read; events without a time that can be expressed: 1",
        ),
        ("page.html", b"<!DOCTYPE html>\n<title>x</title>", "no trace in the page, which has: nothing"),
        (
            "trace.dat",
            &recording,
            "found a recording of trace-cmd (trace.dat); `trace-cmd report` makes text",
        ),
    ] {
        fs::write(sandbox.file(file), bytes).unwrap();
        for arguments in [
            &["check", file][..],
            &["assert", file, "errors == 0"],
            &["query", "SELECT 1", file],
            &["convert", file, "out.fxt"],
            &["filter", "--category", "x", file, "out.fxt"],
            &["stats", file],
            &["report", file, "-o", "out.html"],
        ] {
            let (code, _, said) = run(&sandbox, arguments);
            assert!(code == Some(6) && said.contains(found), "{arguments:?}: {code:?} {said}");
            assert!(!sandbox.file("out.fxt").exists() && !sandbox.file("out.html").exists(), "{arguments:?}");
        }
    }
    for empty in ["[]", "{\"traceEvents\":[]}"] {
        fs::write(sandbox.file("empty.json"), empty).unwrap();
        let (code, report, said) = run(&sandbox, &["check", "empty.json"]);
        assert!(code == Some(0) && report.ends_with("\nclean\n"), "{report}{said}");
    }
}
