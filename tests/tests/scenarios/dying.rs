//! What was open when a program ended, a recording was stopped, or a snapshot was taken.

use trace_tests::build::program;
use trace_tests::deep::{recorded, told};
use trace_tests::{Archive, Sandbox};

const DEATH: &str = "open at death";

fn path(name: &str) -> &'static str {
    program(name).to_str().expect("a path in UTF-8")
}

/// Each kind of death, in each mode: what is open is what the program says.
//= docs/buffer.md#open-scopes
#[test]
fn what_was_open_at_a_death_is_what_the_program_says() {
    let deaths = ["kill", "segfault", "abort", "overflow", "panic-abort"];
    let modes = ["oneshot", "circular", "streaming"];
    for seed in 0..20_u64 {
        for (number, how) in deaths.iter().enumerate() {
            let mode = modes[(seed as usize + number) % modes.len()];
            let sandbox = Sandbox::new();
            let seed_text = seed.to_string();
            let arguments = ["record", "--buffering-mode", mode, "--", path("deep"), &seed_text, how];
            let output = sandbox.trace(arguments);
            let archive = Archive::read(&sandbox.file("trace.fxt"));
            let expected = told(&String::from_utf8_lossy(&output.stdout));
            assert_eq!(recorded(&archive, DEATH), expected, "{how}, {mode}, seed {seed}");
        }
    }
}
