//! What programs write into `trace_marker`.

use std::process::Command;
use trace_tests::kernel::{ROOT, alone};
use trace_tests::{Archive, Requirement, Sandbox, native};

/// Kind, name and arguments of the events of a category.
fn shown(archive: &Archive, category: &str) -> Vec<String> {
    let of_category =
        archive.events.iter().filter(|event| event.event.category.as_bytes() == category.as_bytes());
    of_category
        .map(|event| {
            let kind = format!("{:?}", event.event.kind);
            let kind = kind.split([' ', '{']).next().unwrap().to_owned();
            let arguments: Vec<String> = event
                .event
                .arguments
                .iter()
                .map(|(name, value)| format!(" {}={value:?}", name.to_str()))
                .collect();
            format!("{kind} {:?}{}", event.name(), arguments.concat())
        })
        .collect()
}

//= docs/kernel.md#markers
#[test]
fn markers_of_a_shell_script_have_exact_names() {
    if !Requirement::Markers.is_met("markers_of_a_shell_script_have_exact_names") {
        return;
    }
    let _alone = alone();
    let sandbox = Sandbox::new();
    let script = format!(
        "m() {{ echo \"$1\" > {ROOT}/trace_marker; }}; \
         m \"B|$$|load | all\"; m \"C|$$|queue|7\"; m E; m \"S|$$|job|12\"; m \"F|$$|job|12\"; \
         m \"I|$$|now\"; m \"N|$$|track|then\"; m \"G|$$|net|get|3\"; m \"H|$$|net|get|3\"; m 'no marker'"
    );
    let output = sandbox.trace(["record", "--categories", "atrace,kernel:probe", "--", "sh", "-c", &script]);
    assert!(output.status.success(), "{output:?}");
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    assert_eq!(
        shown(&archive, "atrace"),
        [
            "DurationBegin \"load | all\"",
            "Counter \"queue\" value=Int64(7)",
            "DurationEnd \"load | all\"",
            "AsyncBegin \"job\"",
            "AsyncEnd \"job\"",
            "Instant \"now\"",
            "Instant \"then\" track=String(Text([116, 114, 97, 99, 107]))",
            "AsyncBegin \"get\"",
            "AsyncEnd \"get\"",
        ]
    );
    assert_eq!(
        shown(&archive, "kernel:probe"),
        [format!("Instant \"print\" text=String(Text({:?}))", b"no marker")]
    );
    // All are the script's, whose process the kernel has reported.
    let mut processes: Vec<u64> = archive.events.iter().map(|event| event.event.process.0).collect();
    processes.dedup();
    assert_eq!(processes.len(), 1);
    assert_eq!(archive.processes[&processes[0]], "sh");
}

/// Markers of a process, which writes `{pid}` for its own number.
const TEXTS: [&str; 27] = [
    "E|{pid}",
    "B|{pid}|outer",
    "B|{pid}|inner | all",
    "C|{pid}|queue|7",
    "C|{pid}|share|0.5|app",
    "C|1|of another process|8",
    "E|{pid}",
    "E",
    "E",
    "S|{pid}|job|12",
    "S|{pid}|job|12",
    "F|{pid}|job|12",
    "F|{pid}|job|12",
    "F|{pid}|job|13",
    "G|{pid}|lane|get|3",
    "G|{pid}|lane|put|3",
    "G|{pid}|other lane|walk|3",
    "H|{pid}|lane|3",
    "H|{pid}|lane|other name|3",
    "H|{pid}|other lane|3",
    "H|{pid}|lane|3",
    "I|{pid}|now ",
    "N|{pid}|lane|then",
    "B|{pid}|",
    "E",
    "C|{pid}|no number|high",
    "no marker",
];

/// What a recording has and what an import of ftrace's text makes of the same texts.
//= docs/kernel.md#markers
/// Two applications write markers, and one of them is asked for, in our words and in Perfetto's.
//= docs/kernel.md#markers
#[test]
fn markers_of_one_application_are_those_of_its_processes() {
    if !Requirement::Markers.is_met("markers_of_one_application_are_those_of_its_processes") {
        return;
    }
    let _alone = alone();
    let config = "buffers { size_kb: 65536 fill_policy: RING_BUFFER }\n\
                  data_sources { config { name: \"linux.ftrace\" ftrace_config { atrace_apps: \"mine\" } } }\n\
                  duration_ms: 60000\n";
    for (options, expected) in [
        (&["--categories", "kernel:atrace:mine"][..], &["of mine"][..]),
        (&["-c", "config.pbtx"], &["of mine"]),
        (&["--categories", "kernel:atrace:mine,kernel:atrace:other"], &["of mine", "of other"]),
        (&["--categories", "kernel:atrace:neither"], &[]),
    ] {
        let sandbox = Sandbox::new();
        std::fs::write(sandbox.file("config.pbtx"), config).unwrap();
        let mut applications = Vec::new();
        for name in ["mine", "other"] {
            std::fs::copy("/bin/sh", sandbox.file(name)).unwrap();
            let fifos = ["go", "done", "end"].map(|what| sandbox.file(&format!("{what}-{name}")));
            let [go, done, end] = fifos.each_ref().map(|fifo| fifo.display());
            for fifo in &fifos {
                rustix::fs::mkfifoat(rustix::fs::CWD, fifo, rustix::fs::Mode::RWXU).unwrap();
            }
            // It has not ended when its markers are read.
            let script = format!(
                "read _ < {go}; echo \"B|$$|of {name}\" > {ROOT}/trace_marker; echo \"E|$$\" > {ROOT}/trace_marker; \
                 echo > {done}; read _ < {end}"
            );
            applications.push(Command::new(sandbox.file(name)).arg("-c").arg(script).spawn().unwrap());
        }
        let script = "for name in mine other; do echo > go-$name; cat done-$name; done";
        let record = [&["record", "--allow-empty", "-o", "trace.fxt"], options, &["--", "sh", "-c", script]];
        let output = sandbox.trace(record.concat());
        for mut application in applications {
            application.kill().unwrap();
            application.wait().unwrap();
        }
        assert!(output.status.success(), "{output:?}");
        let found = shown(&Archive::read(&sandbox.file("trace.fxt")), "atrace");
        let events = |name: &&str| [format!("DurationBegin {name:?}"), format!("DurationEnd {name:?}")];
        assert_eq!(found, expected.iter().flat_map(events).collect::<Vec<_>>(), "{options:?}: {output:?}");
    }
}

//= docs/import.md#markers
#[test]
fn markers_are_the_same_in_a_recording_and_in_a_text() {
    if !Requirement::Markers.is_met("markers_are_the_same_in_a_recording_and_in_a_text") {
        return;
    }
    let _alone = alone();
    let sandbox = Sandbox::new();
    let writes = TEXTS.map(|text| format!("echo \"{}\" > {ROOT}/trace_marker", text.replace("{pid}", "$$")));
    let script = writes.join("; ");
    let output = sandbox.trace(["record", "--categories", "atrace,kernel:probe", "--", "sh", "-c", &script]);
    assert!(output.status.success(), "{output:?}");
    let recorded = Archive::read(&sandbox.file("trace.fxt"));
    let process = recorded.events.iter().find(|event| event.name() == "outer").unwrap().event.process.0;

    let lines = TEXTS.iter().enumerate().map(|(line, text)| {
        let text = text.replace("{pid}", &process.to_string());
        format!("  sh-{process} ({process}) [000] ..... {line}.5: tracing_mark_write: {text}\n")
    });
    std::fs::write(sandbox.file("text"), format!("# tracer: nop\n{}", lines.collect::<String>())).unwrap();
    let output = sandbox.trace(["convert", "--format", "fxt", "text", "text.fxt"]);
    assert!(output.status.success(), "{output:?}");
    let imported = Archive::read(&sandbox.file("text.fxt"));

    let events = |archive: &Archive| -> Vec<String> {
        let event = |event: &trace_tests::archive::Event| {
            let of = (event.event.process.0, event.event.thread.0);
            let (kind, arguments) = (event.event.kind, &event.event.arguments);
            format!("{of:?} {} {:?} {kind:?} {arguments:?}", event.event.category.to_str(), event.name())
        };
        archive.events.iter().map(event).collect()
    };
    assert_eq!(events(&recorded), events(&imported));
    let names = |kind: &str| -> Vec<String> {
        let shown = shown(&recorded, "atrace").into_iter();
        shown.filter_map(|event| event.strip_prefix(kind).map(str::to_owned)).collect()
    };
    assert_eq!(names("DurationEnd "), [r#""inner | all""#, r#""outer""#, r#""""#]);
    let ends = [r#""job""#, r#""job""#, r#""job""#, r#""put""#, r#""get""#, r#""walk""#, r#""""#];
    assert_eq!(names("AsyncEnd "), ends);
}

/// In a program with a provider, by the recording; other software gets them where that is asked for.
//= docs/kernel.md#markers
#[test]
fn markers_are_written_while_a_recording_wants_them() {
    if !Requirement::Markers.is_met("markers_are_written_while_a_recording_wants_them") {
        return;
    }
    let _alone = alone();
    let sandbox = Sandbox::new();
    let said = |command: &mut Command| {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let expected = |with_one| format!("without a provider: true\nwith one: {with_one}\n");
    assert_eq!(said(&mut sandbox.command("marking")), expected(false));
    assert_eq!(said(sandbox.command("marking").env("TRACE_MARKERS", "always")), expected(true));
    let program = trace_tests::build::program("marking").to_str().unwrap();
    for (categories, is_wanted) in
        [("app", false), ("app,atrace", true), ("app,marking/atrace", true), ("app,other/atrace", false)]
    {
        let mut record = sandbox.command("trace");
        assert_eq!(
            said(record.args(["record", "-o", "trace.fxt", "--categories", categories, "--", program])),
            expected(is_wanted)
        );
        let archive = Archive::read(&sandbox.file("trace.fxt"));
        let sections: Vec<String> = archive
            .events
            .iter()
            .filter(|event| event.name() == "section")
            .map(|event| event.event.category.to_str().into_owned())
            .collect();
        assert_eq!(sections, if is_wanted { vec!["atrace"] } else { vec![] }, "{categories}");
    }
}

//= docs/kernel.md#markers
#[test]
fn markers_of_a_c_program_have_exact_names() {
    let test = "markers_of_a_c_program_have_exact_names";
    if !Requirement::Markers.is_met(test) || !Requirement::Compilers.is_met(test) {
        return;
    }
    let _alone = alone();
    let sandbox = Sandbox::new();
    let program = sandbox.file("markers");
    native::program(
        "gcc",
        &["markers.c"],
        &["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"],
        &program,
    );
    let program = program.to_str().unwrap();
    let output = sandbox.trace(["record", "--categories", "atrace", "--", program]);
    assert!(output.status.success(), "{output:?}");
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    assert_eq!(
        shown(&archive, "atrace"),
        [
            "DurationBegin \"native section\"",
            "Counter \"native counter\" value=Int64(-12345678901)",
            "AsyncBegin \"native job\"",
            "AsyncEnd \"native job\"",
            "DurationEnd \"native section\"",
        ]
    );
}

/// The kernel records them as it does those of other software.
//= docs/kernel.md#mirrored-events
#[test]
fn events_are_mirrored_if_the_recording_asks_for_it() {
    let test = "events_are_mirrored_if_the_recording_asks_for_it";
    if !Requirement::Markers.is_met(test) || !Requirement::Compilers.is_met(test) {
        return;
    }
    let _alone = alone();
    let round = [
        "DurationBegin \"outer\"",
        "DurationBegin \"inner\"",
        "Instant \"moment\"",
        "DurationEnd \"inner\"",
        "Counter \"load\" value=Int64(-7)",
        "DurationEnd \"outer\"",
    ];
    let expected = [&round[..], &round, &["AsyncBegin \"job\"", "AsyncEnd \"job\""]].concat();
    for (compiler, language) in [("gcc", "c"), ("g++", "c++")] {
        let sandbox = Sandbox::new();
        let program = sandbox.file("mirrored");
        let flags = [&native::STRICT[..], &["-x", language]].concat();
        native::program(compiler, &["mirrored.c"], &flags, &program);
        let program = program.to_str().unwrap();
        for (options, marks) in [(&["--mirror-markers"][..], &expected[..]), (&[], &[])] {
            let record = [&["record", "--categories", "app,atrace"], options, &["--", program]].concat();
            let output = sandbox.trace(record);
            assert!(output.status.success(), "{output:?}");
            let archive = Archive::read(&sandbox.file("trace.fxt"));
            assert_eq!(shown(&archive, "atrace"), marks, "{language}");
            assert_eq!(shown(&archive, "app").len(), 10, "{language}");
            std::fs::remove_file(sandbox.file("trace.fxt")).unwrap();
        }
    }
}

/// Names of markers are those of programs; what the kernel's provider says by itself stays.
//= docs/recording.md#private-recordings
#[test]
fn a_private_recording_has_no_texts_of_markers() {
    const SECRET: &str = "Xk7-secret-of-Q9";
    if !Requirement::Markers.is_met("a_private_recording_has_no_texts_of_markers") {
        return;
    }
    let _alone = alone();
    let sandbox = Sandbox::new();
    let script = format!(
        "m() {{ echo \"$1\" > {ROOT}/trace_marker; }}; \
         m \"B|$$|{SECRET}\"; m \"C|$$|{SECRET}|7\"; m E; m \"N|$$|{SECRET}|{SECRET}\"; m '{SECRET}'"
    );
    let mut found = Vec::new();
    for options in [&["--privacy"][..], &[]] {
        let record = ["record", "-o", "trace.fxt", "--categories", "atrace,kernel:probe,kernel:sched"];
        let output = sandbox.trace([&record, options, &["--", "sh", "-c", &script]].concat());
        assert!(output.status.success(), "{output:?}");
        let bytes = std::fs::read(sandbox.file("trace.fxt")).unwrap();
        let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        found.push([SECRET, "incoming_weight", "process"].map(has));
        if !options.is_empty() {
            let archive = Archive::read(&sandbox.file("trace.fxt"));
            let names: Vec<String> = shown(&archive, "atrace");
            let text = format!("String(Text({:?}))", b"(redacted)");
            assert_eq!(
                names,
                [
                    "DurationBegin \"(redacted)\"".to_owned(),
                    "Counter \"(redacted)\" value=Int64(7)".to_owned(),
                    "DurationEnd \"(redacted)\"".to_owned(),
                    format!("Instant \"(redacted)\" track={text}"),
                ]
            );
            assert_eq!(shown(&archive, "kernel:probe"), [format!("Instant \"print\" text={text}")]);
        }
        std::fs::remove_file(sandbox.file("trace.fxt")).unwrap();
    }
    assert_eq!(found, [[false, true, true], [true; 3]]);
}
