//! What each kind of call becomes in the archive.

use super::programs::{record, shown};
use std::path::Path;
use trace_format::record::{Record, RecordHeader, RecordType};
use trace_tests::{Archive, Requirement, Sandbox, native};

/// Compiles a program of one file and records some categories of it: what it says, and what was recorded.
fn recorded(compiler: &str, source: &str, flags: &[&str], categories: &str) -> (String, Archive, Sandbox) {
    recorded_with(compiler, source, flags, &["--categories", categories])
}

/// As [`recorded`], with options for the recording.
fn recorded_with(
    compiler: &str,
    source: &str,
    flags: &[&str],
    options: &[&str],
) -> (String, Archive, Sandbox) {
    let build = Sandbox::new();
    let program = build.file(source.split('.').next().expect("a name"));
    let standard = if compiler.ends_with("++") { "-std=c++17" } else { "-std=c11" };
    let all = [&native::STRICT[..], &[standard, "-pthread", "-D_GNU_SOURCE"], flags].concat();
    native::program(compiler, &[source], &all, &program);
    let program = program.to_str().expect("a path in UTF-8");
    let sandbox = Sandbox::new();
    let command = ["--output-file", "trace.fxt", "--", program];
    let output = sandbox.trace([&["record"], options, &command].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    native::check(&format!("{compiler} {source}"), &output);
    check(&sandbox);
    (said, archive, sandbox)
}

/// Nothing is wrong with the archive, and every record is accounted for.
fn check(sandbox: &Sandbox) {
    native::check("trace check", &sandbox.trace(["check", "trace.fxt"]));
}

fn events(archive: &Archive) -> Vec<String> {
    archive.events.iter().map(shown).collect()
}

/// Records of the providers that are of a type, as they stand in the file.
fn records(path: &Path, wanted: RecordType) -> Vec<String> {
    let bytes = std::fs::read(path).expect("the archive");
    let mut rest = bytes.as_slice();
    let mut found = Vec::new();
    while let Some(header) = rest.first_chunk::<8>() {
        let header = RecordHeader(u64::from_le_bytes(*header));
        let large = header.record_type() == Some(RecordType::Large);
        let size = if large { (header.0 >> 4 & 0xffff_ffff) as usize * 8 } else { header.size().bytes() };
        let (record, behind) = rest.split_at(size);
        rest = behind;
        if header.record_type() == Some(wanted) {
            found.push(format!("{:?}", Record::decode(record).expect("a record")));
        }
    }
    found
}

const TYPES: [&str; 35] = [
    "nullptr value=null",
    "yes value=true",
    "int8 value=-8i32",
    "uint8 value=8u32",
    "int16 value=-16i32",
    "uint16 value=16u32",
    "int32 value=-32i32",
    "uint32 value=32u32",
    "int64 value=-64i64",
    "uint64 value=64u64",
    "longer value=-65i64",
    "static_cast<int>(changing) value=7i32",
    "single value=0.5",
    "twice value=0.25",
    "most value=0.125",
    r#"string value="string""#,
    r#"constant value="constant""#,
    r#"view value="view""#,
    r#"text value="text""#,
    r#"none value="""#,
    r#""literal" value="literal""#,
    // All of it, but for the NUL at the end.
    "array value=\"array\\0\\0\"",
    r#"full value="abc""#,
    "address value=0x1000p",
    "writable value=0x2000p",
    "koid value=99u64",
    "TA_KOID(koid) value=99k",
    "plain value=3u32",
    "small value=200u32",
    "+bits.three value=5i32",
    r#"Text() value="own class""#,
    r#"string + " that is temporary" value="string that is temporary""#,
    r#"TA_STRING(text) value="text""#,
    r#"TA_CHAR_ARRAY(text, 2) value="te""#,
    "TA_NULL() value=null",
];

#[test]
fn values_become_what_their_types_say() {
    if !Requirement::Compilers.is_met("values_become_what_their_types_say") {
        return;
    }
    let mut expected: Vec<String> = Vec::new();
    for _ in 0..2 {
        expected.extend(TYPES.iter().map(|line| format!("instant {{ scope: thread }} types/{line}")));
    }
    let fifteen = "instant { scope: thread } types/fifteen 1=1i32 2=2u32 3=3i64 4=4u64 5=0.5 6=\"six\" 7=\"string\" 8=true \
                   9=null 10=65i32 11=3u32 12=\"view\" 13=13k 14=0x1000p 15=\"fifteen\"";
    let rest = [
        fifteen,
        "instant { scope: thread } types/between length=100u64",
        r#"complete types/inner view="tri" number=1i32"#,
        r#"complete types/temporary text="string lives until the end""#,
        "instant { scope: thread } types/evaluated count=2i32",
    ];
    expected.extend(rest.map(str::to_owned));
    for compiler in native::CXX {
        for optimization in ["-O0", "-O2"] {
            let (_, archive, _) = recorded(compiler, "types.cc", &[optimization], "types");
            assert_eq!(events(&archive), expected, "{compiler} {optimization}");
        }
    }
}

#[test]
fn rare_calls_and_names_that_change() {
    if !Requirement::Compilers.is_met("rare_calls_and_names_that_change") {
        return;
    }
    let mut expected: Vec<String> = Vec::new();
    for round in 0..3 {
        for (name, argument) in [("one", "first"), ("two", "second")] {
            expected.push(format!("instant {{ scope: thread }} rare/{name} {argument}=\"{name}\""));
            expected.push(format!("complete rare/{name} {argument}=\"rare\""));
        }
        expected.push(format!("durationbegin rare/step round={round}i32"));
        expected.push(format!("flowbegin {{ id: 7 }} rare/flow round={round}i32"));
        expected.push(format!("durationend rare/step round={round}i32"));
        expected.extend(
            ["durationbegin rare/end", "flowend { id: 7 } rare/flow", "durationend rare/end"]
                .map(str::to_owned),
        );
    }
    expected.push(format!("instant {{ scope: thread }} rare/long text={:?}", "x".repeat(32_000)));
    // Its category is not asked for.
    expected.push("instant { scope: thread } trace/alert name=\"an alert\"".to_owned());
    for compiler in native::C {
        for optimization in ["-O0", "-O2"] {
            let (_, archive, sandbox) = recorded(compiler, "rare.c", &[optimization], "rare");
            assert_eq!(events(&archive), expected, "{compiler} {optimization}");
            let path = sandbox.file("trace.fxt");
            let large = records(&path, RecordType::Large);
            assert_eq!(large.len(), 6, "{large:?}");
            let objects = records(&path, RecordType::KernelObject).join("\n");
            assert!(objects.contains("object_type: 5"), "{objects}");
            let process = archive.processes.values().filter(|name| *name == "rare").count();
            assert_eq!(process, 1, "{:?}", archive.processes);
            // Each round has one; what the manager adds is no data of the program's.
            let blobs = records(&path, RecordType::Blob);
            assert_eq!(blobs.iter().filter(|blob| blob.contains("Index")).count(), 3, "{blobs:?}");
        }
    }
}

//= docs/format.md#alerts
#[test]
fn alerts_are_events_whatever_is_selected() {
    if !Requirement::Compilers.is_met("alerts_are_events_whatever_is_selected") {
        return;
    }
    let expected = [
        "alerting/here",
        "trace/alert name=\"stall\"",
        "trace/alert name=\"by hand\"",
        "trace/alert name=\"a longer\"",
    ]
    .map(|event| format!("instant {{ scope: thread }} {event}"));
    for compiler in [native::C, native::CXX].concat() {
        let source = if compiler.ends_with("++") { "alert.cc" } else { "alert.c" };
        for mode in ["oneshot", "circular", "streaming"] {
            let options = ["--categories", "alerting", "--buffering-mode", mode];
            let (_, archive, _) = recorded_with(compiler, source, &["-O2"], &options);
            assert_eq!(events(&archive), expected, "{compiler} {mode}");
            assert_eq!(archive.generated().into_values().collect::<Vec<_>>(), [4], "{compiler} {mode}");
        }
    }
}

#[test]
fn virtual_threads_have_lines_of_their_own() {
    if !Requirement::Compilers.is_met("virtual_threads_have_lines_of_their_own") {
        return;
    }
    let expected = [
        "durationbegin virtual/work number=1i32",
        "flowbegin { id: 77 } virtual/flow",
        "flowstep { id: 77 } virtual/flow",
        "flowend { id: 77 } virtual/flow",
        "counter { id: 1 } virtual/depth depth=3u32",
        "durationend virtual/work",
    ];
    for compiler in native::CXX {
        let (_, archive, _) = recorded(compiler, "virtual.cc", &[], "virtual");
        assert_eq!(events(&archive), expected, "{compiler}");
        let koid = 1 << 63 | 5;
        assert!(archive.events.iter().all(|event| event.event.thread.0 == koid), "{:?}", archive.events);
        assert_eq!(archive.threads.get(&koid).map(String::as_str), Some("queue"));
        let times: Vec<u64> = archive.events.iter().map(|event| event.event.timestamp.0).collect();
        let steps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(steps, [10; 5]);
    }
}

#[test]
fn records_put_together_by_hand() {
    if !Requirement::Compilers.is_met("records_put_together_by_hand") {
        return;
    }
    let expected = [
        "instant { scope: global } hand/registered number=1i32 text=\"text\"",
        "counter { id: 8 } hand/inline name number=1i32",
        "complete hand/registered",
        "durationbegin hand/registered",
        "durationend hand/registered",
        "asyncbegin { id: 9 } hand/registered",
        "asyncinstant { id: 9 } hand/registered",
        "asyncend { id: 9 } hand/registered",
        "flowbegin { id: 10 } hand/registered",
        "flowstep { id: 10 } hand/registered",
        "flowend { id: 10 } hand/registered",
        "instant { scope: thread } hand/string by hand",
        "instant { scope: thread } hand/registered",
    ];
    for compiler in native::C {
        let (_, archive, sandbox) = recorded(compiler, "by_hand.c", &[], "hand*");
        assert_eq!(events(&archive), expected, "{compiler}");
        let first = archive.events[0].event.timestamp.0;
        let times: Vec<u64> = archive.events.iter().map(|event| event.event.timestamp.0 - first).collect();
        assert_eq!(times, [0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 15, 16], "as they were given");
        assert_eq!(archive.events[1].event.process.0, 4000);
        assert_eq!(archive.events[1].event.thread.0, 4001);
        assert_eq!(archive.processes.get(&4000).map(String::as_str), Some("inline name"));
        assert_eq!(archive.threads.get(&4001).map(String::as_str), Some("inline name"));
        assert_eq!(archive.threads.get(&(1 << 63 | 6)).map(String::as_str), Some("virtual"));
        let path = sandbox.file("trace.fxt");
        let logs = records(&path, RecordType::Log);
        assert!(logs.len() == 1 && logs[0].contains(&format!("{:?}", b"a message")), "{logs:?}");
        assert_eq!(records(&path, RecordType::Large).len(), 2);
        let switches = records(&path, RecordType::Scheduling).join("\n");
        assert!(switches.contains("outgoing_priority: 5") && switches.contains("cpu: 3"), "{switches}");
        let blobs = records(&path, RecordType::Blob);
        assert_eq!(blobs.iter().filter(|blob| blob.contains("Index")).count(), 2, "{blobs:?}");
    }
}

#[test]
fn the_names_of_chromium_are_recorded() {
    if !Requirement::Compilers.is_met("the_names_of_chromium_are_recorded") {
        return;
    }
    for compiler in native::CXX {
        let (_, archive, _) = recorded(compiler, "chromium.cc", &[], "chromium");
        let found = events(&archive);
        // Its id is an address.
        let ids = found
            .iter()
            .filter_map(|line| line.strip_prefix("counter { id: ")?.split_once(" }")?.0.parse().ok());
        let id: u64 = ids.max().expect("counters");
        let last = format!("counter {{ id: {id} }} chromium/counter value=8i32");
        let expected = [
            "complete chromium/two text=\"literal\" number=2.5",
            "complete chromium/one text=\"text\"",
            "complete chromium/none",
            "durationbegin chromium/begin",
            "durationend chromium/begin number=1i32",
            "instant { scope: process } chromium/instant",
            "instant { scope: thread } chromium/instant a=1i32 b=true",
            "counter { id: 0 } chromium/counter value=5i32",
            "counter { id: 0 } chromium/counters used=6u32 free=7u32",
            &last,
            "asyncbegin { id: 9 } chromium/async number=1i32",
            "asyncinstant { id: 9 } chromium/async step=\"halfway\"",
            "asyncend { id: 9 } chromium/async",
            "asyncbegin { id: 10 } chromium/nestable",
            "asyncinstant { id: 10 } chromium/nestable",
            "asyncend { id: 10 } chromium/nestable a=1i32 b=\"copied\"",
            "flowbegin { id: 11 } chromium/work",
            "complete chromium/work number=11i32",
            "flowstep { id: 11 } chromium/work",
            "complete chromium/work number=11i32",
            "flowend { id: 11 } chromium/work",
            "complete chromium/work number=11i32",
        ];
        assert_eq!(found, expected, "{compiler}");
    }
}

#[test]
fn observers_are_asked_before_a_start_counts() {
    if !Requirement::Compilers.is_met("observers_are_asked_before_a_start_counts") {
        return;
    }
    for compiler in native::CXX {
        let (_, archive, _) = recorded(compiler, "observing.cc", &[], "observed");
        let expected = [
            "instant { scope: thread } observed/before the answer",
            "instant { scope: thread } observed/after the answer",
        ];
        assert_eq!(events(&archive), expected, "{compiler}");
        assert_eq!(archive.providers.values().filter(|name| *name == "observing").count(), 1);
    }
}

#[test]
fn a_program_reads_what_another_wrote() {
    if !Requirement::Compilers.is_met("a_program_reads_what_another_wrote") {
        return;
    }
    let build = Sandbox::new();
    let program = build.file("example");
    native::program("gcc", &["do_something.c", "provider_main.c"], &[], &program);
    let (sandbox, archive) = record(&program, &[]);
    for compiler in native::CXX {
        let dump = build.file("dump");
        let flags = [&native::STRICT[..], &["-std=c++17", "-fno-rtti"]].concat();
        native::program(compiler, &["dump.cc"], &flags, &dump);
        let output =
            std::process::Command::new(&dump).arg(sandbox.file("trace.fxt")).output().expect("it runs");
        native::check("dump", &output);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let own: Vec<&str> = said.lines().filter(|line| line.starts_with("example/")).collect();
        let id = archive.events[0].event.process.0;
        let expected = [
            format!("example/DoSomething {id}/{id} a: int32(1) b: \"one\""),
            format!("example/DoSomething {id}/{id} a: int32(-2) b: \"two\""),
        ];
        assert_eq!(own, expected, "{compiler}");
        assert!(said.ends_with("errors: 0\n"), "{said}");
        // Its own two, and the manager's own two.
        assert!(said.contains("type 4: 4\n"), "{said}");
    }
}
