//! Hosts in C that make it hard for a library to be their guest, and hosts that unload it.
//!
//! What is here in C is in `tests/tests/scenarios/hosts.rs` in Rust.
//= docs/internals/providers.md#guests-in-a-process

use std::path::PathBuf;
use trace_tests::hosts::{Host, check};
use trace_tests::{Requirement, Sandbox, native};

/// What a C program does without a loop of its own.
const WAYS: [&str; 4] = ["provider", "client", "local", "startup"];

/// Both libraries: that of clients, and that of programs that are recorded.
fn linked(name: &str, sources: &[&str], flags: &[&str], sandbox: &Sandbox) -> PathBuf {
    let output = sandbox.file(name);
    let library = format!("-Wl,-L{}", native::library_dir().display());
    let flags =
        [flags, &["-D_GNU_SOURCE", "-pthread", "-Wl,--no-as-needed", &library, "-Wl,-ltrace"]].concat();
    native::client_program("gcc", sources, &flags, &output);
    output
}

/// With a copy of the library for programs that are recorded.
fn linked_statically(name: &str, sources: &[&str], flags: &[&str], sandbox: &Sandbox) -> PathBuf {
    let output = sandbox.file(name);
    let directory = native::library_dir().display();
    let clients =
        format!("-Wl,--no-as-needed,-L{directory},-ltraceclient,--disable-new-dtags,-rpath,{directory}");
    let flags = [flags, &["-D_GNU_SOURCE", "-pthread", &clients]].concat();
    native::static_program("gcc", sources, &flags, &output);
    output
}

fn each_way(test: &str, ways: &[&str], hostilities: &[&str]) {
    if !Requirement::Compilers.is_met(test) {
        return;
    }
    let sandbox = Sandbox::new();
    let program = &linked("hosts", &["hosts.c", "guest.c"], &["-Wall", "-Wextra", "-Werror"], &sandbox);
    let host = Host { program, environment: &[] };
    hostilities.iter().for_each(|hostility| check(&host, ways, hostility));
}

#[test]
fn a_c_hosts_descriptors_and_signals_are_its_own() {
    let hostilities = ["close", "closes", "standard", "handles", "sigwait", "blocks", "pipe"];
    each_way("a_c_hosts_descriptors_and_signals_are_its_own", &WAYS, &hostilities);
}

#[test]
fn a_c_hosts_children_are_its_own() {
    let hostilities = ["forks", "threads", "spawns", "waits", "ignores"];
    each_way("a_c_hosts_children_are_its_own", &WAYS, &hostilities);
}

#[test]
fn a_c_host_may_be_limited() {
    let hostilities = ["small files", "smaller files", "few numbers"];
    each_way("a_c_host_may_be_limited", &WAYS, &hostilities);
    each_way("a_c_host_may_be_limited", &["provider", "client", "local"], &["little space"]);
    if Requirement::MemoryGroups.is_met("a_c_host_may_be_limited") {
        each_way("a_c_host_may_be_limited", &["provider", "client", "local"], &["little memory"]);
    }
}

#[test]
fn a_c_host_may_end_anywhere() {
    let hostilities = ["exit", "_exit", "abort", "returns", "first thread"];
    each_way("a_c_host_may_end_anywhere", &WAYS, &hostilities);
}

/// A host that loads a guest as a plugin.
fn with_plugin(test: &str, sources: &[&str], ways: &[&str], hostility: &str) {
    if !Requirement::Compilers.is_met(test) {
        return;
    }
    let sandbox = Sandbox::new();
    let emit = linked("hosts", &["hosts.c", "guest.c"], &[], &sandbox);
    let plugins = [
        linked("guest.so", sources, &["-shared", "-fPIC"], &sandbox),
        linked_statically("copy.so", sources, &["-shared", "-fPIC"], &sandbox),
    ];
    let program = &sandbox.file("unloading");
    let source = native::source("unloading.c");
    let flags = ["-D_GNU_SOURCE", "-pthread", "-o"];
    let arguments = [&flags[..], &[program.to_str().unwrap(), source.to_str().unwrap(), "-ldl"]].concat();
    native::check("unloading.c", &native::compiler("gcc", &arguments));
    for plugin in plugins {
        let host = Host { program, environment: &[("HOSTS_EMIT", &emit), ("HOSTS_PLUGIN", &plugin)] };
        check(&host, ways, hostility);
    }
}

#[test]
fn a_host_may_unload_its_guest() {
    with_plugin("a_host_may_unload_its_guest", &["guest.c"], &WAYS, "unloads");
}

/// While a library is loaded, no thread begins before its constructors have returned.
#[test]
fn a_guest_may_begin_while_it_is_loaded() {
    let sources = ["guest.c", "constructing.c"];
    with_plugin("a_guest_may_begin_while_it_is_loaded", &sources, &WAYS, "constructs");
}
