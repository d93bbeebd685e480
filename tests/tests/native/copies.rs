//! Several copies of the library in one process, which are loaded and unloaded.
//= docs/c.md#several-copies

use super::programs::record;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use trace_tests::{Archive, Requirement, Sandbox, native};

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// How many events of each name there are.
fn counts(archive: &Archive) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for event in &archive.events {
        *counts.entry(event.name()).or_default() += 1;
    }
    counts
}

fn expected<const N: usize>(counts: [(&str, usize); N]) -> BTreeMap<String, usize> {
    counts.map(|(name, count)| (name.to_owned(), count)).into()
}

/// Two plugins, each with a copy of the library.
fn plugins(compiler: &str, sandbox: &Sandbox, flags: &[&str]) -> [PathBuf; 2] {
    ["first", "second"].map(|name| {
        let output = sandbox.file(&format!("{name}.so"));
        let define = format!("-DPLUGIN_NAME=\"{name}\"");
        let own = ["-shared", "-fPIC", "-O2", "-std=c++17", &define];
        native::static_program(compiler, &["shared_plugin.cc"], &[&own[..], flags].concat(), &output);
        output
    })
}

#[test]
fn copies_share_a_call_site_and_come_and_go() {
    const ROUNDS: usize = 3;
    if !Requirement::Compilers.is_met("copies_share_a_call_site_and_come_and_go") {
        return;
    }
    for compiler in native::CXX {
        let sandbox = Sandbox::new();
        let plugins = plugins(compiler, &sandbox, &[]);
        let host = sandbox.file("shared_host");
        let flags = ["-std=c++17", "-O2", "-pthread"];
        // The host's copy is libtrace.so, or its own, whose functions plugins may be linked to.
        for is_shared in [true, false] {
            if is_shared {
                native::program(compiler, &["shared_host.cc"], &flags, &host);
            } else {
                let flags = [&flags[..], &["-rdynamic"]].concat();
                native::static_program(compiler, &["shared_host.cc"], &flags, &host);
            }
            for order in [[0, 1], [1, 0]] {
                let [one, other] = order.map(|index| text(&plugins[index]));
                let (_, archive) = record(&host, &[&ROUNDS.to_string(), one, other]);
                // Of each plugin in each round: two calls, and two events of the host's.
                let all = expected([
                    ("first", 2 * ROUNDS),
                    ("host", 2 * ROUNDS),
                    ("second", 2 * ROUNDS),
                    ("template", 1 + 2 * ROUNDS * 3),
                ]);
                assert_eq!(counts(&archive), all, "{compiler} {is_shared} {order:?}");
                assert_eq!(archive.providers.len(), 2, "the manager and the host");
            }
        }
    }
}

/// Before the plugin's copy was notified that it is loaded, if anything of it could be.
#[test]
fn a_shared_call_site_is_used_as_soon_as_a_plugin_is_loaded() {
    if !Requirement::Compilers.is_met("a_shared_call_site_is_used_as_soon_as_a_plugin_is_loaded") {
        return;
    }
    let sandbox = Sandbox::new();
    // Each is to have a place of its own for what is published.
    let plugins = plugins("g++", &sandbox, &["-DEARLY", "-Wl,-Bsymbolic"]);
    let host = sandbox.file("shared_host");
    native::program("g++", &["shared_host.cc"], &["-std=c++17", "-O2", "-pthread"], &host);
    let (_, archive) = record(&host, &["1", text(&plugins[0]), text(&plugins[1])]);
    let all = expected([("first", 2), ("host", 2), ("second", 2), ("template", 1 + 2 * 3 + 2)]);
    assert_eq!(counts(&archive), all);
}

#[test]
fn many_copies_are_loaded_at_once_and_in_turn() {
    const COPIES: usize = 12;
    if !Requirement::Compilers.is_met("many_copies_are_loaded_at_once_and_in_turn") {
        return;
    }
    let sandbox = Sandbox::new();
    let library = sandbox.file("copy.so");
    let flags = ["-shared", "-fPIC", "-O2", "-s", "-DCOPY_NAME=\"copy\""];
    native::static_program("gcc", &["copy.c"], &flags, &library);
    let copies: Vec<PathBuf> = (0..COPIES).map(|number| sandbox.file(&format!("copy-{number}.so"))).collect();
    for copy in &copies {
        std::fs::copy(&library, copy).expect("a copy");
    }
    let host = sandbox.file("copies_host");
    native::program("gcc", &["copies_host.c"], &["-Wl,--as-needed"], &host);
    let arguments: Vec<&str> = copies.iter().map(|copy| text(copy)).collect();
    let (_, archive) = record(&host, &arguments);
    assert_eq!(counts(&archive), expected([("copy", 3 * COPIES * 10)]));
    assert_eq!(archive.providers.len(), 2, "the manager and the first copy");
}
