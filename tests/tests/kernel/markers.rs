//! What programs write into `trace_marker`.

use rustix::process::Signal;
use std::fs::File;
use std::io::Write;
use std::process::Command;
use trace_tests::archive::Event;
use trace_tests::kernel::{ROOT, alone};
use trace_tests::sandbox::{Process, kill, wait_for};
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

/// A recording's list selects tags, in a program with a provider by what it is sent, in others by what the
/// manager says to all.
//= docs/kernel.md#tags
#[test]
fn markers_of_the_tags_that_a_recording_wants_are_written() {
    if !Requirement::Markers.is_met("markers_of_the_tags_that_a_recording_wants_are_written") {
        return;
    }
    let _alone = alone();
    let sandbox = Sandbox::new();
    let said = |command: &mut Command| {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let expected = |without: u64, with: u64| {
        let shown = |tags: u64| format!("{} {tags:#x}", tags & 0x1000 != 0);
        format!("without a provider: {}\nwith one: {}\n", shown(without), shown(with))
    };
    const ALL: u64 = 0xfff_ffff;
    assert_eq!(said(&mut sandbox.command("marking")), expected(0, 0));
    assert_eq!(said(sandbox.command("marking").env("TRACE_MARKERS", "always")), expected(ALL, ALL));
    let program = trace_tests::build::program("marking").to_str().unwrap();
    let (drawing, section) = ("drawing", "section");
    for (categories, without, with, markers) in [
        ("app", 0, 0, &[][..]),
        ("app,atrace", ALL, ALL, &[section, drawing, drawing]),
        ("app,marking/atrace", 0, ALL, &[section, drawing, drawing]),
        ("app,other/atrace", 0, 0, &[]),
        ("app,atrace:view", 0x9, 0x9, &[drawing, drawing]),
        ("app,atrace:app,atrace:am", 0x1041, 0x1041, &[section]),
        ("app,atrace,-atrace:app", ALL & !0x1000, ALL & !0x1000, &[drawing, drawing]),
        ("app,marking/atrace:app", 0, 0x1001, &[section]),
        ("app,atrace:gfx,marking/atrace:view", 0x3, 0xb, &[drawing, drawing]),
        ("app,atrace:none", 0, 0, &[]),
        ("app,kernel:atrace:marking", ALL, 0, &[]),
        ("app,kernel:atrace:marking,atrace:app", 0x1001, 0x1001, &[section]),
    ] {
        let mut record = sandbox.command("trace");
        assert_eq!(
            said(record.args(["record", "-o", "trace.fxt", "--categories", categories, "--", program])),
            expected(without, with),
            "{categories}"
        );
        let archive = Archive::read(&sandbox.file("trace.fxt"));
        let of_kernel = archive.events.iter().filter(|event| event.event.category.as_bytes() == b"atrace");
        assert_eq!(of_kernel.map(Event::name).collect::<Vec<_>>(), markers, "{categories}");
    }
}

/// An instance of the kernel's that has all markers, as one of other software.
struct Copied(std::path::PathBuf);

impl Copied {
    fn new() -> Self {
        let path = format!("{ROOT}/instances/trace_tests_copied_{}", std::process::id()).into();
        std::fs::create_dir(&path).unwrap();
        let copied = Self(path);
        for (name, value) in [("buffer_size_kb", "4096"), ("options/copy_trace_marker", "1")] {
            std::fs::write(copied.0.join(name), value).unwrap();
        }
        copied
    }

    /// How many markers of a process the kernel has got.
    fn count(&self, pid: u32) -> usize {
        let marker = format!("I|{pid}|mark");
        let trace = std::fs::read_to_string(self.0.join("trace")).unwrap();
        trace.lines().filter(|line| line.ends_with(&marker)).count()
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        let _ = std::fs::write(self.0.join("options/copy_trace_marker"), "0");
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// A program without a provider calls the kernel only while a manager that it finds records markers.
//= docs/kernel.md#tags
//= docs/protocol.md#markers-that-are-wanted
#[test]
fn a_program_without_a_provider_is_quiet_without_a_recording() {
    if !Requirement::Markers.is_met("a_program_without_a_provider_is_quiet_without_a_recording") {
        return;
    }
    let _alone = alone();
    let sandbox = Sandbox::new();
    let copied = Copied::new();
    let mut program = sandbox.spawn("sections", &[]);
    let pid = program.pid();
    let mark = |program: &mut Process, count: u32| {
        program.say(&count.to_string());
        program.line()
    };
    assert_eq!((mark(&mut program, 5000).as_str(), copied.count(pid)), ("0x0", 0));

    let mut always = sandbox.command("sections");
    let mut always = Sandbox::spawn_command({
        always.env("TRACE_MARKERS", "always");
        always
    });
    assert_eq!(mark(&mut always, 5000), "0xfffffff");
    assert_eq!(copied.count(always.pid()), 5000);
    always.close_stdin();
    always.succeed();

    let mut count = 0;
    for (categories, tags, is_killed, written) in [
        ("atrace", "0xfffffff", false, 7),
        ("app", "0x0", false, 0),
        ("atrace:view", "0x9", true, 0),
        ("atrace:app", "0x1001", true, 7),
    ] {
        let record = sandbox.spawn("trace", &["record", "-o", "trace.fxt", "--categories", categories]);
        let manager = wait_for("the recording", || {
            let started = sandbox.runtime_dir().join("recording.all").exists();
            sandbox.manager_pid().filter(|_| started)
        });
        if tags == "0x0" {
            assert!(!sandbox.runtime_dir().join("markers").exists());
        }
        wait_for("the tags", || (mark(&mut program, 0) == tags).then_some(()));
        // One that starts now looks at once.
        let mut second = sandbox.spawn("sections", &[]);
        assert_eq!(mark(&mut second, 0), tags);
        assert_eq!(mark(&mut program, 7), tags);
        count += written;
        assert_eq!(copied.count(pid), count, "{categories}");
        if is_killed {
            kill(manager, Signal::KILL);
            assert!(!record.finish().status.success());
            // A file without a manager counts for no program.
            assert!(sandbox.runtime_dir().join("markers").exists());
        } else {
            record.signal(Signal::INT);
            record.finish();
        }
        wait_for("the end", || (mark(&mut program, 0) == "0x0").then_some(()));
        let mut third = sandbox.spawn("sections", &[]);
        assert_eq!(mark(&mut third, 5), "0x0");
        assert_eq!(mark(&mut program, 5), "0x0");
        assert_eq!(copied.count(pid) + copied.count(third.pid()), count, "{categories}");
        for mut one in [second, third] {
            one.close_stdin();
            one.succeed();
        }
    }
    program.close_stdin();
    program.succeed();
}

/// What stands in the place of a manager's file neither holds a program up nor ends it.
//= docs/protocol.md#markers-that-are-wanted
#[test]
fn odd_files_in_the_place_of_a_managers_hurt_no_program() {
    if !Requirement::Markers.is_met("odd_files_in_the_place_of_a_managers_hurt_no_program") {
        return;
    }
    let _alone = alone();
    let sandbox = Sandbox::new();
    std::fs::create_dir_all(sandbox.runtime_dir()).unwrap();
    let place = sandbox.runtime_dir().join("markers");
    let mut program = sandbox.spawn("sections", &[]);
    let tags = |program: &mut Process| {
        program.say("1");
        program.line()
    };
    let locked = || {
        let file = File::options().create(true).write(true).read(true).truncate(true).open(&place).unwrap();
        zx_sim::liveness::mark(&file).unwrap();
        (&file).write_all(&0x1001_u64.to_le_bytes()).unwrap();
        file
    };
    for round in 0..2 {
        let file = locked();
        wait_for("the tags", || (tags(&mut program) == "0x1001").then_some(()));
        match round {
            // Cut while the program uses it, and as long as no memory.
            0 => file.set_len(0).unwrap(),
            _ => file.set_len(1 << 40).unwrap(),
        }
        wait_for("the end", || (tags(&mut program) == "0x0").then_some(()));
        std::fs::remove_file(&place).unwrap();
    }
    let odd: [&dyn Fn(); 4] = [
        &|| rustix::fs::mkfifoat(rustix::fs::CWD, &place, rustix::fs::Mode::RWXU).unwrap(),
        &|| std::os::unix::fs::symlink("/dev/zero", &place).unwrap(),
        &|| std::os::unix::fs::symlink(&place, &place).unwrap(),
        &|| std::fs::create_dir(&place).unwrap(),
    ];
    for make in odd {
        let _ = std::fs::remove_file(&place);
        make();
        // Looks at once.
        let mut second = sandbox.spawn("sections", &[]);
        assert_eq!(tags(&mut second), "0x0");
        second.close_stdin();
        second.succeed();
    }
    // The next manager does what it can.
    let output = sandbox.trace(["record", "--categories", "atrace", "--", "true"]);
    assert!(output.status.success(), "{output:?}");
    program.close_stdin();
    program.succeed();
}

/// In C and C++, by the names of the system's own processes.
//= docs/kernel.md#tags
#[test]
fn markers_of_c_and_cpp_have_tags() {
    let test = "markers_of_c_and_cpp_have_tags";
    if !Requirement::Markers.is_met(test) || !Requirement::Compilers.is_met(test) {
        return;
    }
    let _alone = alone();
    let view = [
        "DurationBegin \"view\"",
        "Counter \"views\" value=Int64(-7)",
        "Instant \"drawn\"",
        "AsyncBegin \"layout\"",
        "AsyncEnd \"layout\"",
        "DurationEnd \"view\"",
    ];
    let camera = ["DurationBegin \"camera\"", "DurationEnd \"camera\""];
    let application = ["DurationBegin \"application\"", "DurationEnd \"application\""];
    for (compiler, language) in [("gcc", "c"), ("g++", "c++"), ("clang", "c"), ("clang++", "c++")] {
        let sandbox = Sandbox::new();
        let program = sandbox.file("tagged");
        let flags = [&native::STRICT[..], &["-x", language]].concat();
        native::program(compiler, &["tagged.c"], &flags, &program);
        let program = program.to_str().unwrap();
        for (categories, said, events) in [
            ("atrace", "0xfffffff 1\n", &[&view[..], &camera, &application][..]),
            ("atrace:view", "0x9 0\n", &[&view]),
            ("atrace:camera,atrace:app", "0x1401 1\n", &[&camera, &application]),
            ("atrace:hal", "0x801 0\n", &[]),
        ] {
            let record =
                ["record", "--allow-empty", "-o", "trace.fxt", "--categories", categories, "--", program];
            let output = sandbox.trace(record);
            assert!(output.status.success(), "{output:?}");
            assert_eq!(String::from_utf8_lossy(&output.stdout), said, "{categories}");
            let archive = Archive::read(&sandbox.file("trace.fxt"));
            assert_eq!(shown(&archive, "atrace"), events.concat(), "{language} {categories}");
            std::fs::remove_file(sandbox.file("trace.fxt")).unwrap();
        }
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
