//! `trace record --privacy`: recordings that are to be passed on.

use trace_tests::archive::{ResolvedEvent, Text};
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

/// A configuration of another tool that asks for privacy gets it, or nothing is recorded.
//= docs/configurations.md#privacy
#[test]
fn configurations_that_ask_for_privacy_have_it() {
    let sandbox = Sandbox::new();
    let program = build::program("secrets").to_str().unwrap();
    let chrome = |text: &str| {
        format!(
            "data_sources {{ config {{ name: \"org.chromium.trace_event\" chrome_config {{ {text} }} }} }}"
        )
    };
    std::fs::write(sandbox.file("private.cfg"), chrome("privacy_filtering_enabled: true")).unwrap();
    assert!(!has(&record(&sandbox, &["-c", "private.cfg"], program), SECRET));
    std::fs::write(sandbox.file("open.cfg"), chrome("privacy_filtering_enabled: false")).unwrap();
    assert!(has(&record(&sandbox, &["-c", "open.cfg"], program), SECRET));
    std::fs::write(sandbox.file("chrome.json"), r#"{"enable_argument_filter": true}"#).unwrap();
    let arguments = ["record", "-o", "trace.fxt", "-c", "chrome.json", "--", program, SECRET];
    let output = sandbox.trace(arguments);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    let expected = "trace: chrome.json: line 1, column 2: enable_argument_filter protects what a recording would have: \
                    --privacy leaves out texts that are no literals, and trace filter --strip-args all arguments\n";
    assert_eq!(said, expected);
    assert!(!sandbox.file("trace.fxt").exists());
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

/// An event's texts.
fn texts(event: &ResolvedEvent) -> String {
    let shown = |text: &Text| String::from_utf8_lossy(text.as_bytes()).into_owned();
    let keys: Vec<String> = event.arguments.iter().map(|(name, _)| shown(name)).collect();
    format!("{}/{} {keys:?}", shown(&event.category), shown(&event.name))
}

/// What the program constants records. All but the secrets are literals where they come from, and not all
/// where they are used.
fn events([secret, other, beside, second, key]: [&str; 5]) -> Vec<String> {
    let events = [
        ("app", "literal", &["key"][..]),
        ("app", "in brackets", &["key"]),
        ("app", "scope", &["key"]),
        ("app", secret, &["number"]),
        ("app", secret, &["number"]),
        ("app", other, &["number"]),
        (secret, "name", &[]),
        (other, "name", &[]),
        ("app", "count", &[beside, secret]),
        ("app", "count", &[beside, other]),
        ("app", secret, &[key]),
        ("app", second, &[other]),
        ("app", secret, &[]),
        ("app", secret, &[]),
        ("app", secret, &[]),
        ("app", secret, &[]),
        ("app", "flow", &[]),
        ("app", secret, &[]),
        ("app", "arrival", &[]),
        ("app", "flow", &[]),
        ("app", "arrival", &[]),
    ];
    events.map(|(category, name, keys)| format!("{category}/{name} {keys:?}")).to_vec()
}

/// A text is a constant if the compiler says so, with optimization or without; the first text that a site is
/// given is none because of that.
//= docs/recording.md#private-recordings
//= docs/c.md#sites
#[test]
fn constants_of_a_c_program_are_what_the_compiler_knows() {
    if !Requirement::Compilers.is_met("constants_of_a_c_program_are_what_the_compiler_knows") {
        return;
    }
    let other = format!("{SECRET}-2");
    let public = events([SECRET, &other, "literal", "second", "key"]);
    let private = events(["(redacted)"; 5]);
    for (compiler, language, standard) in [
        ("gcc", "c", "-std=c11"),
        ("clang", "c", "-std=c11"),
        ("g++", "c++", "-std=c++17"),
        ("clang++", "c++", "-std=c++17"),
    ] {
        for optimization in ["-O0", "-O2"] {
            let sandbox = Sandbox::new();
            let program = sandbox.file("constants");
            let flags = [&native::STRICT[..], &["-x", language, standard, optimization]].concat();
            native::program(compiler, &["constants.c"], &flags, &program);
            for (options, expected) in [(&["--privacy"][..], &private), (&[], &public)] {
                let bytes = record(&sandbox, options, program.to_str().unwrap());
                assert_eq!(has(&bytes, SECRET), options.is_empty());
                std::fs::write(sandbox.file("kept.fxt"), bytes).unwrap();
                let events = Archive::read(&sandbox.file("kept.fxt")).events;
                let found: Vec<String> = events.iter().map(|event| texts(&event.event)).collect();
                assert_eq!(&found, expected, "{compiler} {optimization} {options:?}");
            }
        }
    }
}

/// Programs that were compiled with earlier headers say nothing about their texts.
//= docs/recording.md#private-recordings
#[test]
fn the_first_text_of_a_site_without_marks_is_a_constant() {
    if !Requirement::Compilers.is_met("the_first_text_of_a_site_without_marks_is_a_constant") {
        return;
    }
    let sandbox = Sandbox::new();
    let program = sandbox.file("constants");
    native::program("gcc", &["constants.c"], &["-DWITHOUT_MARKS"], &program);
    std::fs::write(sandbox.file("kept.fxt"), record(&sandbox, &["--privacy"], program.to_str().unwrap()))
        .unwrap();
    let found: Vec<String> =
        Archive::read(&sandbox.file("kept.fxt")).events.iter().map(|event| texts(&event.event)).collect();
    let redacted = |keys: &str| format!("(redacted)/(redacted) [{keys}]");
    let mut expected = events([SECRET, "", "literal", "", "key"]);
    for (number, keys) in
        [(5, "\"(redacted)\""), (7, ""), (9, "\"(redacted)\", \"(redacted)\""), (11, "\"(redacted)\"")]
    {
        expected[number] = redacted(keys);
    }
    assert_eq!(found, expected);
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
