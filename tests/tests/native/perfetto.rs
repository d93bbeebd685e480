//! The names of Perfetto's SDK: what each records, and what does not compile.

use super::programs::shown;
use std::fs;
use trace_tests::{Archive, Requirement, Sandbox, compiled, native, pages};

/// What a round of the program records.
fn round(round: u32) -> Vec<String> {
    let (block, of_round) =
        (format!(r#"durationbegin rendering/block round={round}i32 text="text""#), format!("of {round}"));
    let of_round = format!("durationbegin rendering/{of_round}");
    let counter = format!("counter {{ id: 0 }} network/of text value={round}i32");
    let events = [
        block.as_str(),
        "instant { scope: thread } rendering/instant",
        of_round.as_str(),
        r#"instant { scope: thread } rendering/static literal="l" pi=3.5 yes=true color=3u32"#,
        r#"instant { scope: thread } rendering/dynamic of text="text""#,
        "durationend rendering/",
        "durationend rendering/block",
        "durationbegin rendering/pair",
        "flowbegin { id: 7 } rendering/flow",
        "durationend rendering/ result=5u32",
        "durationbegin rendering/next",
        "flowstep { id: 7 } rendering/flow",
        "durationend rendering/",
        "durationbegin rendering/last a=-1i32",
        "flowend { id: 7 } rendering/flow",
        "durationend rendering/",
        "durationbegin network/request bytes=1099511627776u64",
        "durationbegin network/text",
        "durationend network/",
        "durationbegin network/inside",
        "durationend network/inside",
        "durationend network/",
        "instant { scope: thread } network/of thread",
        "instant { scope: process } network/of process a=1i32",
        "counter { id: 0 } network/open value=4i32",
        "counter { id: 0 } network/rate value=2.5f64",
        counter.as_str(),
        "instant { scope: thread } network/one statement",
    ];
    events.map(|event| event.replace("f64", "")).to_vec()
}

//= docs/c.md#perfetto
#[test]
fn each_name_of_perfettos_sdk_is_recorded() {
    if !Requirement::Compilers.is_met("each_name_of_perfettos_sdk_is_recorded") {
        return;
    }
    let sandbox = Sandbox::new();
    let program = sandbox.file("program");
    for (compiler, flags) in native::CXX.iter().flat_map(|compiler| {
        [&["-std=c++17", "-O0"][..], &["-std=c++20", "-O2"]].map(|flags| (compiler, flags))
    }) {
        let flags =
            [&native::STRICT[..], flags, &["-Wshadow", "-fno-exceptions", "-fno-rtti", "-pthread"]].concat();
        native::program(compiler, &["perfetto.cc"], &flags, &program);
        let command = program.to_str().expect("a path in UTF-8");
        for private in [&[][..], &["--privacy"]] {
            let options = ["record", "--categories", "rendering,network", "--output-file", "trace.fxt"];
            let output = sandbox.trace([&options[..], private, &["--", command]].concat());
            native::check(compiler, &output);
            native::check("trace check", &sandbox.trace(["check", "trace.fxt"]));
            let archive = Archive::read(&sandbox.file("trace.fxt"));
            let found: Vec<String> = archive.events.iter().map(shown).collect();
            let mut expected = [round(0), round(1)].concat();
            if !private.is_empty() {
                let secrets = ["of 0", "of 1", "of text", "rate", r#""text""#, r#""l""#, "network/text"];
                let with = ["(redacted)", "(redacted)", "(redacted)", "(redacted)", r#""(redacted)""#];
                let with = with.into_iter().chain([r#""(redacted)""#, "network/(redacted)"]);
                for (secret, with) in secrets.into_iter().zip(with) {
                    expected.iter_mut().for_each(|event| *event = event.replace(secret, with));
                }
                // The end of what has no literal name has none, either.
                let ends = expected.len() / 2;
                [5, 5 + ends].into_iter().for_each(|end| expected[end] += "(redacted)");
            }
            assert_eq!(found, expected, "{compiler} {flags:?} {private:?}");
            // Tracks are rows of their own, which events of one share.
            let row = |name: &str| {
                let event = archive.events.iter().find(|event| event.event.name.to_str() == name);
                event.expect("an event").event.thread.0
            };
            assert_eq!(row("request"), row("inside"));
            assert_eq!(row("block"), row("of process"));
            assert_ne!(row("request"), row("block"));
        }
    }
}

/// What compiles to nothing is checked all the same, and its arguments are not evaluated.
//= docs/c.md#perfetto
#[test]
fn what_is_no_event_of_perfettos_does_not_compile() {
    let test = "what_is_no_event_of_perfettos_does_not_compile";
    if !Requirement::Compilers.is_met(test) {
        return;
    }
    let sandbox = Sandbox::new();
    let path = sandbox.file("text.cc");
    let compile = |compiler: &str, text: &str, flags: &[&str]| {
        fs::write(&path, text).expect("a file");
        compiled::compile(compiler, &[&native::STRICT[..], &["-std=c++17"], flags].concat(), &path, None)
    };
    let function =
        |body: &str| format!("#include <trace/perfetto.h>\nint count;\nvoid f();\nvoid f() {{ {body} }}\n");
    let clash = "defines other macros of the same names";
    for compiler in native::CXX {
        for (body, why) in [
            (r#"TRACE_EVENT_INSTANT("c", "n", "key");"#, "expected a track, a flow, or pairs"),
            (r#"TRACE_EVENT("c", "n", [&](int) {});"#, "expected a track, a flow, or pairs"),
            (r#"TRACE_EVENT_BEGIN("c", "n", 5, "value");"#, "the name of an argument is a text"),
            (r#"TRACE_COUNTER("c", "n", "text");"#, "the value of a counter is a number"),
            (r#"struct S {}; TRACE_EVENT_INSTANT("c", "n", "key", S());"#, "argument of this type"),
        ] {
            let output = compile(compiler, &function(body), &[]);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success() && said.contains(why), "{compiler}: {body}: {said}");
        }
        for header in ["lib/trace/event.h", "trace/chromium.h", "trace-vthread/event_vthread.h"] {
            for both in [["trace/perfetto.h", header], [header, "trace/perfetto.h"]] {
                let text = both.map(|header| format!("#include <{header}>\n")).concat();
                let output = compile(compiler, &text, &[]);
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(!output.status.success() && said.contains(clash), "{compiler}: {both:?}: {said}");
            }
        }
        let body = r#"TRACE_EVENT("c", "n", "count", ++count); TRACE_EVENT_INSTANT("c", "n"); TRACE_EVENT_END("c");
                      TRACE_COUNTER("c", "n", ++count); if (TRACE_EVENT_CATEGORY_ENABLED("c")) ++count;
                      if (count) TRACE_EVENT_BEGIN("c", "n"); else TRACE_EVENT_END("c");"#;
        for flags in [&[][..], &["-DNTRACE"], &["-O2", "-Wshadow"]] {
            native::check(compiler, &compile(compiler, &function(body), flags));
        }
    }
    let text = "#include <trace/perfetto.h>\nint main() { int n = 0; TRACE_EVENT(\"c\", \"n\", \"k\", ++n);\n\
                TRACE_COUNTER(\"c\", \"n\", ++n); return n; }\n";
    let program = sandbox.file("program");
    fs::write(&path, text).expect("a file");
    // Nothing of the library is needed, either.
    let (source, output) = (path.to_str().expect("UTF-8"), program.to_str().expect("UTF-8"));
    let include = format!("-I{}", native::include_dir().display());
    native::check(
        "g++",
        &native::compiler("g++", &["-std=c++17", "-DNTRACE", &include, source, "-o", output]),
    );
    native::check("program", &std::process::Command::new(&program).output().expect("it runs"));
}

/// The example of the page, as it stands there.
//= docs/c.md#perfetto
#[test]
fn the_example_with_perfettos_names_is_recorded() {
    if !Requirement::Compilers.is_met("the_example_with_perfettos_names_is_recorded") {
        return;
    }
    let blocks = pages::blocks(&pages::read("docs/c.md"));
    let block = blocks.into_iter().find(|block| block.text.contains("trace/perfetto.h")).expect("an example");
    let sandbox = Sandbox::new();
    let (source, program) = (sandbox.file("main.cc"), sandbox.file("a.out"));
    fs::write(&source, block.text).expect("a file");
    let flags = [&native::STRICT[..], &["-std=c++17"]].concat();
    native::program("g++", &[source.to_str().expect("UTF-8")], &flags, &program);
    let output = sandbox.trace(["record", "--", program.to_str().expect("UTF-8")]);
    native::check("the example", &output);
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    assert_eq!(
        archive.events.iter().map(shown).collect::<Vec<_>>(),
        [
            "durationbegin rendering/frame number=1i32",
            "durationbegin network/upload",
            "flowbegin { id: 5 } network/flow",
            "counter { id: 0 } network/bytes value=1500i32",
            "durationend network/",
            "durationend rendering/frame",
        ]
    );
}
