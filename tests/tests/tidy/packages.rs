//! Packages of others.

use super::front_pages::{entries_of, subjects};
use super::{CRATES, DEPENDENCIES, EDGES, dependencies, files};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use trace_tests::build::{cargo, workspace};

#[test]
fn required_packages_are_used_by_shipped_crates() {
    let dependencies = dependencies();
    let sources = files(&["rs"]);
    for package in ["memmap2", "crossbeam-channel", "thiserror", "clap", "serde_json", "parking_lot"] {
        let users: Vec<&str> = EDGES
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| dependencies[*name].contains(package))
            .collect();
        let module = package.replace('-', "_");
        let is_used = users.iter().any(|user| {
            let prefix = format!("crates/{user}/src/");
            sources
                .iter()
                .any(|(path, text)| path.starts_with(&prefix) && text.contains(&format!("{module}::")))
        });
        assert!(is_used, "{package} is used by none of {users:?} ({DEPENDENCIES})");
    }
}

#[test]
fn packages_are_explained() {
    let manifest = fs::read_to_string(workspace().join("Cargo.toml")).expect("Cargo.toml");
    let table = manifest.split_once("[workspace.dependencies]").expect("the table").1;
    let table = table.split_once("\n[").expect("the next table").0;
    let lines = table.lines().filter(|line| !line.starts_with('#') && !line.contains("path ="));
    let names = lines.filter_map(|line| Some(line.split_once('=')?.0.trim().to_owned()));
    let used: BTreeSet<String> = names.collect();
    let page = "docs/internals/packages.md";
    let list = entries_of(page, "## List");
    let explained: BTreeSet<String> =
        list.iter().flat_map(|entry| subjects(entry)).map(str::to_owned).collect();
    let missing: Vec<_> = used.difference(&explained).collect();
    assert!(
        missing.is_empty(),
        "{page} says what each package is for, and lacks {missing:?} ({DEPENDENCIES})"
    );
    let gone: Vec<_> = explained.difference(&used).collect();
    assert!(gone.is_empty(), "{page} lists packages that are not used: {gone:?} ({DEPENDENCIES})");
}

/// Every licence that a package may have, as its manifest says it.
const LICENCES: [&str; 9] = [
    "CC0-1.0",
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "Zlib",
    "Unlicense",
    "Unicode-3.0",
];

/// Packages that are there in two versions, and who asks for the older.
const TWICE: [(&str, &str); 7] = [
    ("embedded-io", "postcard"),
    ("gimli", "framehop"),
    ("getrandom", "rand 0.8, of shuttle"),
    ("r-efi", "ahash, of parquet, for other systems"),
    ("rand", "shuttle"),
    ("rand_core", "rand 0.8, of shuttle"),
    ("syn", "derive macros that have not moved yet"),
];

/// All packages of the lock file, with their manifests.
fn all_packages() -> Vec<serde_json::Value> {
    let output =
        cargo().args(["metadata", "--format-version", "1", "--locked"]).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("metadata is JSON");
    metadata["packages"].as_array().expect("packages").clone()
}

/// One licence of each alternative is enough; what is joined by `AND` all have to be allowed.
#[test]
fn licences_of_packages_are_allowed() {
    let is_allowed = |licence: &str| {
        let all = licence.split(" AND ").map(|part| part.trim().trim_matches(['(', ')']));
        let is_known = |one: &str| LICENCES.contains(&one.trim());
        let has_known = |part: &str| part.split(" OR ").flat_map(|one| one.split('/')).any(is_known);
        all.map(has_known).reduce(|one, other| one && other) == Some(true)
    };
    assert!(is_allowed("GPL-3.0 OR MIT") && !is_allowed("(MIT OR Zlib) AND GPL-3.0"));
    for package in all_packages() {
        let licence = package["license"].as_str().unwrap_or("none");
        assert!(is_allowed(licence), "{} has the licence {licence} ({DEPENDENCIES})", package["name"]);
    }
}

/// Each version more is code that every build compiles twice.
#[test]
fn packages_are_there_in_one_version() {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in all_packages() {
        let text = |field: &str| package[field].as_str().expect("a text").to_owned();
        versions.entry(text("name")).or_default().insert(text("version"));
    }
    let found: BTreeSet<&str> =
        versions.iter().filter(|(_, versions)| versions.len() > 1).map(|(name, _)| name.as_str()).collect();
    assert_eq!(found, BTreeSet::from(TWICE.map(|(name, _)| name)), "{DEPENDENCIES}");
}

/// The features of other packages that a selection of ours builds, along some edges.
fn features(selection: &[&str], edges: &str) -> BTreeSet<String> {
    let output = cargo()
        .args(["tree", "--locked", "--edges", edges, "--prefix", "none", "--format", "{p} {f}"])
        .args(selection)
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let others = text.lines().map(|line| line.trim_end_matches(" (*)")).filter(|line| !line.contains("(/"));
    others.map(str::to_owned).collect()
}

/// `cargo test -p one` finds built what `cargo test --workspace` has built.
#[test]
fn every_selection_builds_packages_with_the_same_features() {
    // What runs while others are compiled may have features of its own: so the rest is looked at alone, too.
    for edges in ["normal,build,dev", "normal,dev,no-proc-macro"] {
        let all = features(&["--workspace"], edges);
        assert!(all.len() > 100, "{all:?}");
        for (name, _) in EDGES {
            let own = features(&["--package", name], edges);
            let others: Vec<_> = own.difference(&all).collect();
            assert!(
                others.is_empty(),
                "crates/workspace-hack/Cargo.toml lacks features ({DEPENDENCIES}): {name} builds {others:#?}"
            );
        }
    }
}

/// The packages of others that a package's users link, with the features that are usual.
fn linked(package: &str) -> BTreeSet<String> {
    let output = cargo()
        .args(["tree", "--locked", "--edges", "normal,build", "--prefix", "none", "--package", package])
        .args(["--target", "x86_64-unknown-linux-gnu"])
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let others = text.lines().filter(|line| !line.contains("(/"));
    others.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

/// Each is a package that the compiler of every program's author builds.
//= docs/rust.md#what-they-link
#[test]
fn programs_link_few_packages() {
    const OF_A_LIBRARY: [&str; 2] = ["libc", "pin-project-lite"];
    const OF_A_PROGRAM: [&str; 6] =
        ["bitflags", "libc", "linux-raw-sys", "memmap2", "pin-project-lite", "rustix"];
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(linked("trace-event"), set(&OF_A_LIBRARY), "{CRATES}");
    assert_eq!(linked("trace-provider"), set(&OF_A_PROGRAM), "{CRATES}");
    assert_eq!(linked("log-fxt"), set(&[&OF_A_PROGRAM[..], &["log"]].concat()), "{CRATES}");
}
