//! Hosts that make it hard for a library to be their guest, in each way to be one.
//!
//! What is here in Rust is in `tests/tests/native/hosts.rs` in C.
//= docs/internals/providers.md#guests-in-a-process

use trace_tests::hosts::{Host, WAYS, check};
use trace_tests::{Requirement, build};

fn each_way(hostility: &str) {
    check(&Host { program: build::program("hosts"), environment: &[] }, &WAYS, hostility);
}

#[test]
fn a_host_may_close_all_descriptors_and_take_their_numbers() {
    each_way("close");
}

#[test]
fn a_host_may_close_all_descriptors_all_the_time() {
    // Those of a polled provider are the program's.
    let ways = WAYS.into_iter().filter(|way| *way != "polled").collect::<Vec<_>>();
    check(&Host { program: build::program("hosts"), environment: &[] }, &ways, "closes");
}

#[test]
fn a_host_may_have_closed_standard_input_output_and_error() {
    each_way("standard");
}

#[test]
fn a_hosts_handlers_run_on_its_own_threads() {
    each_way("handles");
}

#[test]
fn a_host_that_waits_for_signals_gets_each_of_them() {
    each_way("sigwait");
}

#[test]
fn a_host_may_block_all_signals() {
    each_way("blocks");
}

#[test]
fn messages_that_nothing_reads_raise_no_signal() {
    each_way("pipe");
}

#[test]
fn a_host_may_fork_in_each_state() {
    each_way("forks");
}

#[test]
fn a_host_may_fork_from_several_threads() {
    each_way("threads");
}

#[test]
fn programs_that_a_host_spawns_inherit_no_sockets() {
    each_way("spawns");
}

#[test]
fn a_host_has_no_children_but_its_own() {
    each_way("waits");
}

#[test]
fn a_host_may_ignore_the_end_of_children() {
    each_way("ignores");
}

#[test]
fn a_host_may_be_limited_to_small_files() {
    each_way("small files");
}

#[test]
fn a_host_may_limit_its_files_while_it_is_recorded() {
    each_way("smaller files");
}

#[test]
fn a_host_may_have_few_descriptors() {
    each_way("few numbers");
}

#[test]
fn a_host_may_have_little_address_space() {
    each_way("little space");
}

#[test]
fn a_host_may_have_little_memory() {
    if Requirement::MemoryGroups.is_met("a_host_may_have_little_memory") {
        each_way("little memory");
    }
}

#[test]
fn a_host_may_exit_anywhere() {
    ["exit", "_exit", "abort", "returns"].into_iter().for_each(each_way);
}

#[test]
fn a_hosts_first_thread_may_end_before_the_others() {
    each_way("first thread");
}
