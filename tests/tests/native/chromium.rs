//! The macros with Chromium's names: what each records, and which categories select it.

use super::programs::shown;
use trace_tests::{Archive, Requirement, Sandbox, native};

/// Of each macro in its order, what it records, and where one has a timestamp, how many milliseconds behind
/// the program's moment that is.
const EACH: [(&str, Option<u64>); 157] = [
    ("complete chromium/TRACE_EVENT0", None),
    ("complete chromium/TRACE_EVENT1 a=1i32", None),
    (r#"complete chromium/TRACE_EVENT2 a=1i32 b="two""#, None),
    ("flowbegin { id: 7 } chromium/WITH_FLOW", None),
    ("complete chromium/WITH_FLOW", None),
    ("flowstep { id: 7 } chromium/WITH_FLOW", None),
    ("complete chromium/WITH_FLOW a=1i32", None),
    ("flowend { id: 7 } chromium/WITH_FLOW", None),
    (r#"complete chromium/WITH_FLOW a=1i32 b="two""#, None),
    ("instant { scope: thread } chromium/INSTANT0", None),
    ("instant { scope: process } chromium/INSTANT1 a=1i32", None),
    (r#"instant { scope: global } chromium/INSTANT2 a=1i32 b="two""#, None),
    ("instant { scope: thread } chromium/INSTANT_WITH_FLAGS0", None),
    ("instant { scope: process } chromium/INSTANT_WITH_FLAGS1 a=1i32", None),
    ("instant { scope: thread } chromium/COPY_INSTANT0", None),
    ("instant { scope: process } chromium/COPY_INSTANT1 a=1i32", None),
    (r#"instant { scope: global } chromium/COPY_INSTANT2 a=1i32 b="two""#, None),
    ("instant { scope: thread } chromium/INSTANT_WITH_TIMESTAMP0", Some(1)),
    ("instant { scope: thread } chromium/INSTANT_WITH_TIMESTAMP1 a=1i32", Some(2)),
    ("durationbegin chromium/duration", None),
    ("durationbegin chromium/duration a=1i32", None),
    (r#"durationbegin chromium/duration a=1i32 b="two""#, None),
    ("durationbegin chromium/duration", None),
    ("durationbegin chromium/duration a=1i32", None),
    ("durationbegin chromium/duration", None),
    ("durationbegin chromium/duration a=1i32", None),
    (r#"durationbegin chromium/duration a=1i32 b="two""#, None),
    ("durationend chromium/duration", None),
    ("durationend chromium/duration a=1i32", None),
    (r#"durationend chromium/duration a=1i32 b="two""#, None),
    ("durationend chromium/duration", None),
    ("durationend chromium/duration a=1i32", None),
    ("durationend chromium/duration", None),
    ("durationend chromium/duration a=1i32", None),
    (r#"durationend chromium/duration a=1i32 b="two""#, None),
    ("asyncbegin { id: 7 } chromium/*_WITH_ID_TID_AND_TIMESTAMP0", Some(3)),
    ("asyncbegin { id: 7 } chromium/*_WITH_ID_TID_AND_TIMESTAMP1 a=1i32", Some(4)),
    (r#"asyncbegin { id: 7 } chromium/*_WITH_ID_TID_AND_TIMESTAMP2 a=1i32 b="two""#, Some(5)),
    ("asyncbegin { id: 7 } chromium/COPY_*_WITH_ID_TID_AND_TIMESTAMP0", Some(6)),
    ("asyncbegin { id: 7 } chromium/COPY_*_WITH_ID_TID_AND_TIMESTAMP1 a=1i32", Some(7)),
    (r#"asyncbegin { id: 7 } chromium/COPY_*_WITH_ID_TID_AND_TIMESTAMP2 a=1i32 b="two""#, Some(8)),
    ("asyncend { id: 7 } chromium/*_WITH_ID_TID_AND_TIMESTAMP0", Some(9)),
    ("asyncend { id: 7 } chromium/*_WITH_ID_TID_AND_TIMESTAMP1 a=1i32", Some(10)),
    (r#"asyncend { id: 7 } chromium/*_WITH_ID_TID_AND_TIMESTAMP2 a=1i32 b="two""#, Some(11)),
    ("asyncend { id: 7 } chromium/COPY_*_WITH_ID_TID_AND_TIMESTAMP0", Some(12)),
    ("asyncend { id: 7 } chromium/COPY_*_WITH_ID_TID_AND_TIMESTAMP1 a=1i32", Some(13)),
    (r#"asyncend { id: 7 } chromium/COPY_*_WITH_ID_TID_AND_TIMESTAMP2 a=1i32 b="two""#, Some(14)),
    ("instant { scope: thread } chromium/MARK_WITH_TIMESTAMP0", Some(15)),
    ("instant { scope: thread } chromium/MARK_WITH_TIMESTAMP1 a=1i32", Some(16)),
    (r#"instant { scope: thread } chromium/MARK_WITH_TIMESTAMP2 a=1i32 b="two""#, Some(17)),
    ("instant { scope: thread } chromium/COPY_MARK", None),
    ("instant { scope: thread } chromium/COPY_MARK1 a=1i32", None),
    ("instant { scope: thread } chromium/COPY_MARK_WITH_TIMESTAMP", Some(18)),
    ("instant { scope: thread } chromium/SAMPLE_WITH_TID_AND_TIMESTAMP0", Some(19)),
    ("instant { scope: thread } chromium/SAMPLE_WITH_TID_AND_TIMESTAMP1 a=1i32", Some(20)),
    (r#"instant { scope: thread } chromium/SAMPLE_WITH_TID_AND_TIMESTAMP2 a=1i32 b="two""#, Some(21)),
    ("instant { scope: thread } chromium/TRACE_EVENT_SAMPLE_WITH_ID1 id=7u64 a=1i32", None),
    ("counter { id: 0 } chromium/TRACE_COUNTER1 value=-5i64", None),
    ("counter { id: 0 } chromium/TRACE_COUNTER2 a=5u32 b=0.5", None),
    ("counter { id: 0 } chromium/TRACE_COUNTER_WITH_FLAG1 value=-5i64", None),
    ("counter { id: 0 } chromium/TRACE_COPY_COUNTER1 value=-5i64", None),
    ("counter { id: 0 } chromium/TRACE_COPY_COUNTER2 a=5u32 b=0.5", None),
    ("counter { id: 0 } chromium/TRACE_COUNTER_WITH_TIMESTAMP1 value=-5i64", Some(22)),
    ("counter { id: 0 } chromium/TRACE_COUNTER_WITH_TIMESTAMP2 a=5u32 b=0.5", Some(23)),
    ("counter { id: 7 } chromium/TRACE_COUNTER_ID1 value=-5i64", None),
    ("counter { id: 7 } chromium/TRACE_COUNTER_ID2 a=5u32 b=0.5", None),
    ("counter { id: 7 } chromium/TRACE_COPY_COUNTER_ID1 value=-5i64", None),
    ("counter { id: 7 } chromium/TRACE_COPY_COUNTER_ID2 a=5u32 b=0.5", None),
    ("asyncbegin { id: 7 } chromium/ASYNC_*0", None),
    ("asyncbegin { id: 7 } chromium/ASYNC_*1 a=1i32", None),
    (r#"asyncbegin { id: 7 } chromium/ASYNC_*2 a=1i32 b="two""#, None),
    ("asyncbegin { id: 7 } chromium/ASYNC_*_WITH_TIMESTAMP0", Some(24)),
    ("asyncbegin { id: 7 } chromium/ASYNC_*_WITH_TIMESTAMP1 a=1i32", Some(25)),
    (r#"asyncbegin { id: 7 } chromium/ASYNC_*_WITH_TIMESTAMP2 a=1i32 b="two""#, Some(26)),
    ("asyncbegin { id: 7 } chromium/COPY_ASYNC_*0", None),
    ("asyncbegin { id: 7 } chromium/COPY_ASYNC_*1 a=1i32", None),
    (r#"asyncbegin { id: 7 } chromium/COPY_ASYNC_*2 a=1i32 b="two""#, None),
    ("asyncbegin { id: 7 } chromium/COPY_ASYNC_*_WITH_TIMESTAMP0", Some(27)),
    ("asyncend { id: 7 } chromium/ASYNC_*0", None),
    ("asyncend { id: 7 } chromium/ASYNC_*1 a=1i32", None),
    (r#"asyncend { id: 7 } chromium/ASYNC_*2 a=1i32 b="two""#, None),
    ("asyncend { id: 7 } chromium/ASYNC_*_WITH_TIMESTAMP0", Some(28)),
    ("asyncend { id: 7 } chromium/ASYNC_*_WITH_TIMESTAMP1 a=1i32", Some(29)),
    (r#"asyncend { id: 7 } chromium/ASYNC_*_WITH_TIMESTAMP2 a=1i32 b="two""#, Some(30)),
    ("asyncend { id: 7 } chromium/COPY_ASYNC_*0", None),
    ("asyncend { id: 7 } chromium/COPY_ASYNC_*1 a=1i32", None),
    (r#"asyncend { id: 7 } chromium/COPY_ASYNC_*2 a=1i32 b="two""#, None),
    ("asyncend { id: 7 } chromium/COPY_ASYNC_*_WITH_TIMESTAMP0", Some(31)),
    (r#"asyncinstant { id: 7 } chromium/ASYNC_*0 step="half""#, None),
    (r#"asyncinstant { id: 7 } chromium/ASYNC_*1 step="half" a=1i32"#, None),
    (r#"asyncinstant { id: 7 } chromium/ASYNC_*0 step="half""#, None),
    (r#"asyncinstant { id: 7 } chromium/ASYNC_*1 step="half" a=1i32"#, None),
    (r#"asyncinstant { id: 7 } chromium/ASYNC_*_WITH_TIMESTAMP0 step="half""#, Some(32)),
    ("asyncbegin { id: 7 } chromium/NESTABLE_ASYNC_*0", None),
    ("asyncbegin { id: 7 } chromium/NESTABLE_ASYNC_*1 a=1i32", None),
    (r#"asyncbegin { id: 7 } chromium/NESTABLE_ASYNC_*2 a=1i32 b="two""#, None),
    ("asyncbegin { id: 7 } chromium/NESTABLE_ASYNC_*_WITH_TIMESTAMP0", Some(33)),
    ("asyncbegin { id: 7 } chromium/NESTABLE_ASYNC_*_WITH_TIMESTAMP1 a=1i32", Some(34)),
    (r#"asyncbegin { id: 7 } chromium/NESTABLE_ASYNC_*_WITH_TIMESTAMP2 a=1i32 b="two""#, Some(35)),
    ("asyncbegin { id: 7 } chromium/COPY_NESTABLE_ASYNC_*0", None),
    ("asyncbegin { id: 7 } chromium/COPY_NESTABLE_ASYNC_*1 a=1i32", None),
    (r#"asyncbegin { id: 7 } chromium/COPY_NESTABLE_ASYNC_*2 a=1i32 b="two""#, None),
    ("asyncbegin { id: 7 } chromium/COPY_NESTABLE_ASYNC_*_WITH_TIMESTAMP0", Some(36)),
    ("asyncbegin { id: 7 } chromium/COPY_NESTABLE_ASYNC_*_WITH_TIMESTAMP1 a=1i32", Some(37)),
    ("asyncbegin { id: 7 } chromium/NESTABLE_ASYNC_*_WITH_FLAGS0", None),
    ("asyncbegin { id: 7 } chromium/NESTABLE_ASYNC_*_WITH_TIMESTAMP_AND_FLAGS0", Some(38)),
    (r#"asyncbegin { id: 7 } chromium/COPY_NESTABLE_ASYNC_*_WITH_TTS2 a=1i32 b="two""#, None),
    ("asyncinstant { id: 7 } chromium/NESTABLE_ASYNC_*0", None),
    ("asyncinstant { id: 7 } chromium/NESTABLE_ASYNC_*1 a=1i32", None),
    (r#"asyncinstant { id: 7 } chromium/NESTABLE_ASYNC_*2 a=1i32 b="two""#, None),
    ("asyncinstant { id: 7 } chromium/NESTABLE_ASYNC_*_WITH_TIMESTAMP0", Some(39)),
    ("asyncinstant { id: 7 } chromium/NESTABLE_ASYNC_*_WITH_TIMESTAMP1 a=1i32", Some(40)),
    (r#"asyncinstant { id: 7 } chromium/NESTABLE_ASYNC_*_WITH_TIMESTAMP2 a=1i32 b="two""#, Some(41)),
    ("asyncend { id: 7 } chromium/NESTABLE_ASYNC_*0", None),
    ("asyncend { id: 7 } chromium/NESTABLE_ASYNC_*1 a=1i32", None),
    (r#"asyncend { id: 7 } chromium/NESTABLE_ASYNC_*2 a=1i32 b="two""#, None),
    ("asyncend { id: 7 } chromium/NESTABLE_ASYNC_*_WITH_TIMESTAMP0", Some(42)),
    ("asyncend { id: 7 } chromium/NESTABLE_ASYNC_*_WITH_TIMESTAMP1 a=1i32", Some(43)),
    (r#"asyncend { id: 7 } chromium/NESTABLE_ASYNC_*_WITH_TIMESTAMP2 a=1i32 b="two""#, Some(44)),
    ("asyncend { id: 7 } chromium/COPY_NESTABLE_ASYNC_*0", None),
    ("asyncend { id: 7 } chromium/COPY_NESTABLE_ASYNC_*1 a=1i32", None),
    (r#"asyncend { id: 7 } chromium/COPY_NESTABLE_ASYNC_*2 a=1i32 b="two""#, None),
    ("asyncend { id: 7 } chromium/COPY_NESTABLE_ASYNC_*_WITH_TIMESTAMP0", Some(45)),
    ("asyncend { id: 7 } chromium/COPY_NESTABLE_ASYNC_*_WITH_TIMESTAMP1 a=1i32", Some(46)),
    ("asyncend { id: 7 } chromium/NESTABLE_ASYNC_*_WITH_FLAGS0", None),
    ("asyncend { id: 7 } chromium/NESTABLE_ASYNC_*_WITH_TIMESTAMP_AND_FLAGS0", Some(47)),
    (r#"asyncend { id: 7 } chromium/COPY_NESTABLE_ASYNC_*_WITH_TTS2 a=1i32 b="two""#, None),
    ("flowbegin { id: 7 } chromium/FLOW_*0", None),
    ("flowbegin { id: 7 } chromium/FLOW_*1 a=1i32", None),
    (r#"flowbegin { id: 7 } chromium/FLOW_*2 a=1i32 b="two""#, None),
    ("flowbegin { id: 7 } chromium/COPY_FLOW_*0", None),
    ("flowbegin { id: 7 } chromium/COPY_FLOW_*1 a=1i32", None),
    (r#"flowbegin { id: 7 } chromium/COPY_FLOW_*2 a=1i32 b="two""#, None),
    (r#"flowstep { id: 7 } chromium/FLOW_*0 step="half""#, None),
    (r#"flowstep { id: 7 } chromium/FLOW_*1 step="half" a=1i32"#, None),
    (r#"flowstep { id: 7 } chromium/COPY_FLOW_*0 step="half""#, None),
    (r#"flowstep { id: 7 } chromium/COPY_FLOW_*1 step="half" a=1i32"#, None),
    ("flowend { id: 7 } chromium/FLOW_*0", None),
    ("flowend { id: 7 } chromium/FLOW_*1 a=1i32", None),
    (r#"flowend { id: 7 } chromium/FLOW_*2 a=1i32 b="two""#, None),
    ("flowbegin { id: 7 } chromium/FLOW_END_BIND_TO_ENCLOSING0", None),
    ("flowend { id: 7 } chromium/FLOW_END_BIND_TO_ENCLOSING0", None),
    ("flowend { id: 7 } chromium/COPY_FLOW_*0", None),
    ("flowend { id: 7 } chromium/COPY_FLOW_*1 a=1i32", None),
    (r#"flowend { id: 7 } chromium/COPY_FLOW_*2 a=1i32 b="two""#, None),
    ("complete chromium/with flows", None),
    ("asyncbegin { id: 7 } chromium/OBJECT_*", None),
    (r#"asyncinstant { id: 7 } chromium/OBJECT_* snapshot="two""#, None),
    (r#"asyncinstant { id: 7 } chromium/OBJECT_* snapshot="two""#, Some(48)),
    ("asyncend { id: 7 } chromium/OBJECT_*", None),
    ("durationbegin chromium/*_CONTEXT context=7u64", None),
    ("durationend chromium/*_CONTEXT context=7u64", None),
    ("complete chromium/SCOPED_CONTEXT context=7u64", None),
    ("instant { scope: process } chromium/METADATA1 a=1i32", None),
    ("instant { scope: thread } chromium/TRACE_LINK_IDS id=7u64 linked_id=8u64", None),
    (r#"instant { scope: global } __metadata/clock_sync sync_id="two""#, None),
    (r#"instant { scope: global } __metadata/clock_sync sync_id="two" issue_ts=42i64"#, Some(49)),
];

/// An id that the program gives for another thread.
const OTHER_THREAD: u64 = 4_000_000;
/// How far two conversions of a moment may be apart: what passes while both clocks are read.
const MARGIN_NS: u64 = 100_000;

//= docs/c.md#chromium
#[test]
fn each_macro_of_chromium_is_recorded() {
    if !Requirement::Compilers.is_met("each_macro_of_chromium_is_recorded") {
        return;
    }
    let sandbox = Sandbox::new();
    let program = sandbox.file("program");
    let c = native::C.map(|compiler| (compiler, "chromium_each.c", "-std=c11"));
    let cxx = native::CXX.map(|compiler| (compiler, "chromium_each.cc", "-std=c++17"));
    for (compiler, source, standard) in c.into_iter().chain(cxx) {
        for optimization in ["-O0", "-O2"] {
            let name = format!("{compiler} {optimization}");
            let flags = [&native::STRICT[..], &[standard, optimization, "-pthread"]].concat();
            native::program(compiler, &[source], &flags, &program);
            let command = program.to_str().expect("a path in UTF-8");
            let options = ["--categories", "chromium,__metadata,toplevel", "--output-file", "trace.fxt"];
            let output = sandbox.trace([&["record"], &options[..], &["--", command]].concat());
            native::check(&name, &output);
            native::check("trace check", &sandbox.trace(["check", "trace.fxt"]));
            let archive = Archive::read(&sandbox.file("trace.fxt"));
            let ns = |event: &trace_tests::archive::Event| event.event.nanos().0;
            let instant = |name: &str| {
                let shown_as = format!("instant {{ scope: thread }} chromium/{name}");
                archive.events.iter().find(|event| shown(event) == shown_as).map(ns).expect("an instant")
            };
            let (before, behind, start) = (instant("before"), instant("behind"), instant("between"));
            assert!(start + MARGIN_NS > before && start < behind + MARGIN_NS, "{before} {start} {behind}");
            let rounds = &archive.events[3..];
            let is_task = compiler.ends_with("++");
            assert_eq!(rounds.len(), 2 * EACH.len() + usize::from(is_task), "{name}");
            for (event, (expected, after_ms)) in rounds.iter().zip(EACH.iter().chain(&EACH)) {
                assert_eq!(shown(event), *expected, "{name}");
                let is_elsewhere = event.event.thread.0 == OTHER_THREAD;
                assert_eq!(
                    is_elsewhere,
                    IS_ELSEWHERE.iter().any(|part| expected.contains(part)),
                    "{expected}"
                );
                if let Some(after_ms) = after_ms {
                    let off = ns(event).abs_diff(start + after_ms * 1_000_000);
                    assert!(off < MARGIN_NS, "{name}: {expected} is off by {off} ns");
                }
            }
            let task = "complete toplevel/run src_file=\"file\" src_func=\"function\"";
            assert!(!is_task || shown(&rounds[2 * EACH.len()]) == task, "{name}");
        }
    }
}

/// Parts of what is recorded of macros that are given another thread.
const IS_ELSEWHERE: [&str; 2] = ["chromium/*_WITH_ID_TID", "chromium/SAMPLE_WITH_TID"];

/// What a COPY macro is given may end with the statement, in C++ with the objects that it belongs to.
//= docs/c.md#chromium
#[test]
fn texts_of_copied_events_may_belong_to_temporary_objects() {
    if !Requirement::Compilers.is_met("texts_of_copied_events_may_belong_to_temporary_objects") {
        return;
    }
    let sandbox = Sandbox::new();
    let program = sandbox.file("program");
    for (compiler, optimization) in
        native::CXX.iter().flat_map(|compiler| [(compiler, "-O0"), (compiler, "-O2")])
    {
        let flags = [&native::STRICT[..], &["-std=c++17", optimization, "-pthread"]].concat();
        native::program(compiler, &["chromium_copied.cc"], &flags, &program);
        let command = program.to_str().expect("a path in UTF-8");
        let output = sandbox.trace(["record", "--output-file", "trace.fxt", "--", command]);
        native::check(compiler, &output);
        let archive = Archive::read(&sandbox.file("trace.fxt"));
        let found: Vec<String> = archive.events.iter().map(shown).collect();
        let expected = |round: u32| {
            [
                "instant { scope: thread } chromium/instant".to_owned(),
                "instant { scope: thread } chromium/instant of one a=\"one\"".to_owned(),
                format!("durationbegin chromium/pair a={round}i32 b=\"two\""),
                "durationend chromium/pair".to_owned(),
                "counter { id: 0 } chromium/counter value=5i32".to_owned(),
            ]
        };
        assert_eq!(found, [expected(0), expected(1)].concat(), "{compiler} {optimization}");
    }
}

/// Records a program with a list of categories: which of its events there are.
fn selected(sandbox: &Sandbox, program: &str, categories: Option<&str>) -> Vec<String> {
    let mut options = vec!["record", "--output-file", "trace.fxt"];
    options.extend(categories.iter().flat_map(|categories| ["--categories", categories]));
    let file = sandbox.file("trace.fxt");
    let _ = std::fs::remove_file(&file);
    let output = sandbox.trace([&options[..], &["--", program]].concat());
    native::check(&format!("{categories:?}"), &output);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("nothing of it was recorded"), "{said}");
    // Without an event there is no file.
    if !file.exists() {
        return Vec::new();
    }
    let archive = Archive::read(&file);
    let own = archive.events.iter().filter(|event| event.event.name.to_str().starts_with("in "));
    own.map(|event| format!("{} {}", event.event.category.to_str(), event.event.name.to_str())).collect()
}

//= docs/protocol.md#category-matching
#[test]
fn one_of_several_categories_is_enough_and_disabled_ones_have_to_be_named() {
    if !Requirement::Compilers
        .is_met("one_of_several_categories_is_enough_and_disabled_ones_have_to_be_named")
    {
        return;
    }
    let sandbox = Sandbox::new();
    let program = sandbox.file("program");
    native::program("g++", &["chromium_groups.cc"], &["-std=c++17"], &program);
    let program = program.to_str().expect("a path in UTF-8");
    let (a, both) = ("a in a", "a,b in both");
    let (disabled, mixed) = ("disabled-by-default-x in disabled", "a,disabled-by-default-x in mixed");
    let cases: [(Option<&str>, &[&str]); 8] = [
        (None, &[a, both, mixed]),
        (Some("*"), &[a, both, mixed]),
        (Some("a"), &[a, both, mixed]),
        (Some("b"), &[both]),
        (Some("-a"), &[both]),
        (Some("-a,-b"), &[]),
        (Some("disabled-by-default-x"), &[disabled, mixed]),
        (Some("b,disabled-by-default-*"), &[both, disabled, mixed]),
    ];
    for (categories, expected) in cases {
        assert_eq!(selected(&sandbox, program, categories), expected, "{categories:?}");
    }
}
