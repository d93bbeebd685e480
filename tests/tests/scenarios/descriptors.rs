//! Programs that close descriptors they do not know, and put their own in their places.
//= docs/buffer.md#descriptors

use trace_tests::{Archive, Sandbox, build};

/// Records the program, which says that all went well with it; how many events of each name there are, and
/// what was said on stderr.
fn record(how: &str, refused: &[libc::c_long]) -> (Vec<(String, u64)>, String) {
    let sandbox = Sandbox::new();
    let program = build::program("descriptors").to_str().unwrap();
    let file = sandbox.file("own");
    let refused: Vec<String> = refused.iter().map(ToString::to_string).collect();
    let arguments = ["record", "--allow-empty", "--", program, how, file.to_str().unwrap()];
    let arguments: Vec<&str> = arguments.into_iter().chain(refused.iter().map(String::as_str)).collect();
    let output = sandbox.spawn("trace", &arguments).finish();
    assert!(output.status.success(), "{how}: {output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "well\n", "{how}");
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    let (alerts, others): (Vec<_>, Vec<_>) = archive.events.iter().partition(|event| event.name() == "alert");
    // Of a program that runs on untraced there is nothing.
    assert_eq!(alerts.len(), usize::from(!others.is_empty()), "{how}");
    let found = others.into_iter().map(|event| (event.name(), event.u64("n"))).collect();
    (found, String::from_utf8_lossy(&output.stderr).into_owned())
}

fn all_events() -> Vec<(String, u64)> {
    ["before", "after"].iter().flat_map(|name| (0..10).map(|n| ((*name).to_owned(), n))).collect()
}

#[test]
fn a_program_that_closes_all_it_does_not_know_is_recorded_to_its_end() {
    assert_eq!(record("close", &[]).0, all_events());
}

#[test]
fn what_a_program_puts_in_the_place_of_a_providers_descriptors_stays_its_own() {
    for first in ["0", "1", "2"] {
        assert_eq!(record(first, &[]).0, all_events(), "{first}");
    }
}

#[test]
fn a_kernel_without_close_range_gives_a_table_too() {
    assert_eq!(record("1", &[libc::SYS_close_range]).0, all_events());
}

#[test]
fn a_program_that_may_have_no_second_table_says_so_and_runs_on() {
    let (events, stderr) = record("1", &[libc::SYS_close_range, libc::SYS_unshare]);
    assert_eq!(events, []);
    let expected =
        "trace: program \"descriptors\": not traced: cannot give a thread descriptors of its own: ";
    assert!(stderr.contains(expected), "{stderr}");
}
