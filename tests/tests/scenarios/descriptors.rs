//! Programs that close descriptors they do not know, and put their own in their places.
//= docs/buffer.md#descriptors

use trace_tests::{Archive, Sandbox, build};

fn record(how: &str) {
    let sandbox = Sandbox::new();
    let program = build::program("descriptors").to_str().unwrap();
    let file = sandbox.file("own");
    let arguments = ["record", "--", program, how, file.to_str().unwrap()];
    let output = sandbox.spawn("trace", &arguments).finish();
    assert!(output.status.success(), "{how}: {output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "well\n", "{how}");
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    let expected: Vec<(String, u64)> =
        ["before", "after"].iter().flat_map(|name| (0..10).map(|n| ((*name).to_owned(), n))).collect();
    let found: Vec<_> = archive.events.iter().map(|event| (event.name(), event.u64("n"))).collect();
    assert_eq!(found, expected, "{how}");
}

#[test]
fn a_program_that_closes_all_it_does_not_know_is_recorded_to_its_end() {
    record("close");
}

#[test]
fn what_a_program_puts_in_the_place_of_a_providers_descriptors_stays_its_own() {
    ["0", "1", "2"].into_iter().for_each(record);
}
