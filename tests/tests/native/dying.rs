//! What was open when a program in C or C++ died.

use trace_tests::deep::{recorded, told};
use trace_tests::{Archive, Requirement, Sandbox, native};

//= docs/buffer.md#open-scopes
#[test]
fn what_was_open_at_a_death_is_what_the_program_says() {
    if !Requirement::Compilers.is_met("what_was_open_at_a_death_is_what_the_program_says") {
        return;
    }
    let compilers = [("gcc", "c", "-std=c11"), ("clang", "c", "-std=c11"), ("g++", "c++", "-std=c++17")];
    let ways = ["kill", "segfault", "abort", "overflow", "jump"];
    // In each way, with all compilers together.
    let deaths: u64 = std::env::var("DEATHS").map_or(20, |text| text.parse().expect("DEATHS is a number"));
    for (number, (compiler, language, standard)) in compilers.into_iter().enumerate() {
        let sandbox = Sandbox::new();
        let program = sandbox.file("deep");
        let flags = ["-O2", "-D_GNU_SOURCE", standard, "-Wno-infinite-recursion", "-pthread", "-x", language];
        native::program(compiler, &["deep.c"], &flags, &program);
        let program = program.to_str().expect("a path in UTF-8");
        // A thread enlists the site, and the others come to it meanwhile.
        for _ in 0..3 {
            let output = sandbox.trace(["record", "--", program, "0", "together"]);
            let expected = told(&String::from_utf8_lossy(&output.stdout));
            assert_eq!(
                recorded(&Archive::read(&sandbox.file("trace.fxt")), "open at death"),
                expected,
                "{compiler}"
            );
        }
        for seed in 0..deaths.div_ceil(compilers.len() as u64) {
            for (way, how) in ways.iter().enumerate() {
                let mode = ["oneshot", "circular", "streaming"][(seed as usize + number + way) % 3];
                let seed = seed.to_string();
                let output = sandbox.trace(["record", "--buffering-mode", mode, "--", program, &seed, how]);
                let archive = Archive::read(&sandbox.file("trace.fxt"));
                let expected = told(&String::from_utf8_lossy(&output.stdout));
                let found = recorded(&archive, "open at death");
                assert_eq!(found, expected, "{compiler}, {how}, {mode}, seed {seed}");
            }
        }
    }
}
