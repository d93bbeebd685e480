//! What programs in C say that they use memory for.

use super::programs::shown;
use trace_tests::{Archive, Requirement, Sandbox, native};

//= docs/recording.md#memory-dumps
#[test]
fn a_program_in_c_says_what_it_uses_memory_for() {
    if !Requirement::Compilers.is_met("a_program_in_c_says_what_it_uses_memory_for") {
        return;
    }
    for (compiler, flags) in [("gcc", &["-x", "c"][..]), ("clang++", &["-x", "c++"])] {
        let sandbox = Sandbox::new();
        let program = sandbox.file("memory");
        native::program(compiler, &["memory.c"], &[&native::STRICT[..], flags].concat(), &program);
        let program = program.to_str().expect("a path in UTF-8");
        let options = ["record", "--categories", "memory_dump", "-o", "trace.fxt", "--", program];
        let mut recording = sandbox.spawn("trace", &options);
        assert_eq!(recording.line(), "ready");
        for (arguments, answer) in
            [(&["dump-memory"][..], "memory dump 1"), (&["dump-memory", "--detailed"], "memory dump 2")]
        {
            let output = sandbox.trace(arguments);
            assert!(String::from_utf8_lossy(&output.stdout).starts_with(answer), "{output:?}");
        }
        assert_eq!([recording.line(), recording.line()], ["dump 1", "dump 2"]);
        recording.close_stdin();
        let output = recording.finish();
        assert!(output.status.success(), "{output:?}");
        let events: Vec<_> = Archive::read(&sandbox.file("trace.fxt")).events.iter().map(shown).collect();
        assert_eq!(
            events,
            [
                r#"durationbegin memory_dump/memory dump dump=1u64 level="light""#,
                "counter { id: 0 } memory_dump/cache bytes=3000u64",
                "counter { id: 0 } memory_dump/last dump bytes=1u64",
                "durationend memory_dump/memory dump",
                r#"durationbegin memory_dump/memory dump dump=2u64 level="detailed""#,
                "counter { id: 0 } memory_dump/cache bytes=3000u64",
                "counter { id: 0 } memory_dump/last dump bytes=2u64",
                "counter { id: 0 } memory_dump/cache/images bytes=1500u64",
                "durationend memory_dump/memory dump",
            ],
            "{compiler}"
        );
    }
}
