//! `trace record --privacy`: recordings that are to be passed on.

use trace_tests::{Archive, Requirement, Sandbox, build, native};

/// What no archive may have. Programs get it as an argument.
const SECRET: &str = "Xk7-secret-of-Q9";

/// Records a program; the bytes of the archive.
fn record(sandbox: &Sandbox, options: &[&str], program: &str) -> Vec<u8> {
    let output = sandbox.trace([&["record", "-o", "trace.fxt"], options, &["--", program, SECRET]].concat());
    native::check(program, &output);
    let checked = sandbox.trace(["check", "trace.fxt"]);
    native::check("check", &checked);
    let bytes = std::fs::read(sandbox.file("trace.fxt")).unwrap();
    std::fs::remove_file(sandbox.file("trace.fxt")).unwrap();
    bytes
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Each way of recording a text of the run has it in an ordinary recording, and not in a private one.
//= docs/recording.md#private-recordings
#[test]
fn no_text_of_a_programs_run_is_in_the_archive() {
    let sandbox = Sandbox::new();
    let program = build::program("secrets").to_str().unwrap();
    let public = ["public literal", "public constant", "public message", "public warning", "public track"];
    let bytes = record(&sandbox, &["--privacy"], program);
    assert!(!has(&bytes, SECRET));
    // Of the machine and the command line, too.
    assert!(!has(&bytes, program), "the path of the program");
    for text in public {
        assert!(has(&bytes, text), "{text}");
    }
    for mode in ["oneshot", "circular"] {
        assert!(!has(&record(&sandbox, &["--privacy", "--buffering-mode", mode], program), SECRET), "{mode}");
    }
    let bytes = record(&sandbox, &[], program);
    assert!(has(&bytes, SECRET) && has(&bytes, program));
}

//= docs/recording.md#private-recordings
#[test]
fn events_of_a_private_recording_are_those_of_an_ordinary_one() {
    let sandbox = Sandbox::new();
    let program = build::program("secrets").to_str().unwrap();
    let kinds = |options: &[&str]| -> Vec<String> {
        let bytes = record(&sandbox, options, program);
        let file = sandbox.file("kept.fxt");
        std::fs::write(&file, bytes).unwrap();
        let archive = Archive::read(&file);
        let events = archive.events.iter().map(|event| {
            let kind = format!("{:?}", event.event.kind);
            format!("{} {}", kind.split([' ', '{']).next().unwrap(), event.event.arguments.len())
        });
        events.collect()
    };
    assert_eq!(kinds(&["--privacy"]), kinds(&[]));
}

//= docs/recording.md#private-recordings
#[test]
fn no_text_of_a_c_programs_run_is_in_the_archive() {
    if !Requirement::Compilers.is_met("no_text_of_a_c_programs_run_is_in_the_archive") {
        return;
    }
    for (compiler, language) in [("gcc", "c"), ("g++", "c++")] {
        let sandbox = Sandbox::new();
        let program = sandbox.file("secrets");
        let flags = [&native::STRICT[..], &["-x", language]].concat();
        native::program(compiler, &["secrets.c"], &flags, &program);
        let program = program.to_str().unwrap();
        let bytes = record(&sandbox, &["--privacy"], program);
        assert!(!has(&bytes, SECRET), "{language}");
        for text in ["public literal", "by hand", "request", "(redacted)"] {
            assert!(has(&bytes, text), "{language}: {text}");
        }
        assert!(has(&record(&sandbox, &[], program), SECRET), "{language}");
    }
}

/// What a program has recorded before, by itself, has all texts: it stays with the program.
//= docs/recording.md#private-recordings
#[test]
fn what_was_recorded_before_is_not_taken() {
    let sandbox = Sandbox::new();
    let program = build::program("secrets").to_str().unwrap();
    let command = ["--", "env", "TRACE_STARTUP=*", program, SECRET];
    let output = sandbox.trace([&["record", "-o", "trace.fxt", "--privacy"][..], &command].concat());
    native::check("record", &output);
    assert!(!has(&std::fs::read(sandbox.file("trace.fxt")).unwrap(), SECRET));
}

/// A profile is made of names of files and functions.
//= docs/recording.md#private-recordings
#[test]
fn a_profile_is_refused() {
    let sandbox = Sandbox::new();
    let output = sandbox.trace(["record", "--privacy", "--profile", "99", "--", "true"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let reason = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(reason.contains("--profile") && reason.contains("give one of them"), "{reason}");
    assert_eq!(sandbox.files(), [""; 0]);
}
