//! The rules of the house that a program can check.
#![forbid(unsafe_code)]

#[path = "tidy/commits.rs"]
mod commits;
#[path = "tidy/front_pages.rs"]
mod front_pages;
#[path = "tidy/layout.rs"]
mod layout;
#[path = "tidy/packages.rs"]
mod packages;
#[path = "tidy/rules.rs"]
mod rules;
#[path = "tidy/texts.rs"]
mod texts;
#[path = "tidy/words.rs"]
mod words;

use rules::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use trace_tests::build::{cargo, workspace};

/// Which crate uses which of ours; no other edges.
const EDGES: [(&str, &[&str]); 30] = [
    ("fxt-corpus", &[]),
    ("trace-macros", &[]),
    ("trace-format", &[]),
    ("zx-ticks", &[]),
    ("zx-sim", &["zx-ticks"]),
    ("trace-protocol", &["trace-format"]),
    ("trace-reader", &["trace-format"]),
    ("trace-model", &["trace-reader"]),
    ("trace-analysis", &["trace-format", "trace-model", "trace-reader"]),
    ("trace-engine", &["trace-format", "zx-ticks"]),
    ("trace-event", &["trace-engine"]),
    ("trace-linux", &["trace-format"]),
    ("trace-config", &["trace-format"]),
    ("trace-convert", &["trace-format", "trace-linux", "trace-model", "trace-reader"]),
    // The page agrees with the tables, the statistics and the checks because it is made of them.
    ("trace-report", &["trace-analysis", "trace-convert", "trace-format", "trace-model", "trace-reader"]),
    (
        "trace-provider",
        &[
            "trace-archive",
            "trace-engine",
            "trace-event",
            "trace-format",
            "trace-macros",
            "trace-protocol",
            "trace-reader",
            "zx-sim",
        ],
    ),
    ("log-fxt", &["trace-engine", "trace-provider"]),
    ("metrics-fxt", &["trace-engine", "trace-provider"]),
    ("rayon-fxt", &["trace-engine", "trace-provider"]),
    ("tokio-fxt", &["trace-engine", "trace-provider"]),
    ("tracing-fxt", &["trace-engine", "trace-provider"]),
    ("trace-c", &["trace-engine", "trace-format", "trace-provider", "zx-sim"]),
    ("trace-reader-c", &["trace-format", "trace-reader"]),
    ("trace-json-c", &["trace-config", "trace-convert", "trace-format", "zx-sim"]),
    ("ktrace-provider", &["trace-engine", "trace-format", "trace-linux", "trace-provider", "zx-sim"]),
    ("trace-archive", &["trace-format", "trace-protocol", "trace-reader", "zx-sim"]),
    ("trace-manager", &["trace-archive", "trace-format", "trace-protocol", "trace-reader", "zx-sim"]),
    ("trace-client-c", &["trace-client"]),
    // With a feature that its users choose, it converts.
    (
        "trace-client",
        &["trace-archive", "trace-convert", "trace-format", "trace-protocol", "trace-reader", "zx-sim"],
    ),
    (
        "trace-cli",
        &[
            "ktrace-provider",
            "trace-analysis",
            "trace-archive",
            "trace-client",
            "trace-config",
            "trace-convert",
            "trace-format",
            "trace-manager",
            "trace-model",
            "trace-protocol",
            "trace-provider",
            "trace-reader",
            "trace-report",
            "zx-sim",
        ],
    ),
];

/// Packages of the workspace that nothing shipped depends on.
const NOT_SHIPPED: [&str; 9] = [
    "axum-server",
    "demo",
    "trace-tests",
    "trace-benches",
    "trace-mutations",
    "trace-engine-models",
    "trace-engine-mixes",
    "tracing-fxt-models",
    "workspace-hack",
];

/// The only files with unsafe code.
const UNSAFE: [&str; 59] = [
    "crates/trace-c/src/abi.rs",
    "crates/trace-c/src/chromium.rs",
    "crates/trace-c/src/context.rs",
    "crates/trace-c/src/dispatcher.rs",
    "crates/trace-c/src/events.rs",
    "crates/trace-c/src/exports.rs",
    "crates/trace-c/src/handler.rs",
    "crates/trace-c/src/hook.rs",
    "crates/trace-c/src/instrumentation.rs",
    "crates/trace-c/src/known_categories.rs",
    "crates/trace-c/src/layout.rs",
    "crates/trace-c/src/library_election.rs",
    "crates/trace-c/src/local.rs",
    "crates/trace-c/src/memory_dump.rs",
    "crates/trace-c/src/notes.rs",
    "crates/trace-c/src/observers.rs",
    "crates/trace-c/src/provider.rs",
    "crates/trace-c/src/records.rs",
    "crates/trace-c/src/zircon.rs",
    "crates/trace-client-c/src/exports.rs",
    "crates/trace-convert/src/tables/sqlite/virtual_table.rs",
    "crates/trace-engine/src/api/macros.rs",
    "crates/trace-engine/src/buffer/record_writer.rs",
    "crates/trace-engine/src/buffer/region.rs",
    "crates/trace-engine/src/ffi.rs",
    "crates/trace-engine/src/record/event_writer.rs",
    "crates/trace-engine/src/record/hot_path.rs",
    "crates/trace-engine/src/session/engine.rs",
    "crates/trace-engine/src/session/hook.rs",
    "crates/trace-engine/src/session/lease.rs",
    "crates/trace-engine/src/session/run.rs",
    "crates/trace-engine/src/site.rs",
    "crates/trace-engine/src/site/dynamic_sites.rs",
    "crates/trace-engine/src/site/interned.rs",
    "crates/trace-engine/src/site/known.rs",
    "crates/trace-engine/src/site/section.rs",
    "crates/trace-engine/src/sys.rs",
    "crates/trace-engine/src/sys/elsewhere.rs",
    "crates/trace-engine/src/thread/block.rs",
    "crates/trace-engine/src/thread/open_scopes.rs",
    "crates/trace-engine/src/thread/registry.rs",
    "crates/trace-engine/src/thread/scope_pages.rs",
    "crates/trace-provider/examples/tokio_loop.rs",
    "crates/trace-provider/src/linux/buffer.rs",
    "crates/trace-provider/src/linux/fork.rs",
    "crates/trace-json-c/src/abi.rs",
    "crates/trace-json-c/src/exports.rs",
    "crates/trace-reader-c/src/exports.rs",
    "crates/zx-sim/src/guest/apart.rs",
    "crates/zx-sim/src/guest/children.rs",
    "crates/zx-sim/src/guest/detached.rs",
    "crates/zx-sim/src/guest/loaded.rs",
    "crates/zx-sim/src/guest/quiet.rs",
    "crates/zx-sim/src/guest/thread.rs",
    "crates/zx-sim/src/liveness.rs",
    "crates/zx-sim/src/sys.rs",
    "crates/zx-sim/src/ticks.rs",
    "crates/zx-ticks/src/clocks.rs",
    "tests/examples/burst.rs",
];

/// Files of tests and their programs, where unsafe code stands for a program that misbehaves.
fn is_test_code(path: &str) -> bool {
    path.contains("/tests/")
        || path.starts_with("tests/")
        || path.starts_with("benches/")
        || path.ends_with("/tests.rs")
}

fn files(extensions: &[&str]) -> Vec<(String, String)> {
    fn walk(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).expect("a directory").flatten() {
            let path = entry.path();
            let name = entry.file_name();
            if path.is_dir() && name != "target" && name != ".git" {
                walk(&path, found);
            } else if path.is_file() {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(workspace(), &mut found);
    found.sort();
    found
        .into_iter()
        .filter(|path| path.extension().is_some_and(|found| extensions.iter().any(|wanted| found == *wanted)))
        .map(|path| {
            let text =
                fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let name = path.strip_prefix(workspace()).expect("inside the workspace");
            (name.to_string_lossy().into_owned(), text)
        })
        .collect()
}

fn metadata() -> serde_json::Value {
    let output = cargo()
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("metadata is JSON")
}

/// Dependencies of a kind of each package: none are normal ones.
fn dependencies_of(kind: Option<&str>) -> BTreeMap<String, BTreeSet<String>> {
    metadata()["packages"]
        .as_array()
        .expect("packages")
        .iter()
        .map(|package| {
            let dependencies = package["dependencies"].as_array().expect("dependencies").iter();
            let of_kind = dependencies.filter(|dependency| dependency["kind"].as_str() == kind);
            let names = of_kind.map(|dependency| dependency["name"].as_str().expect("a name").to_owned());
            (package["name"].as_str().expect("a name").to_owned(), names.collect())
        })
        .collect()
}

fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    dependencies_of(None)
}

/// What crates use in their tests beyond that: always something below them, so that no test needs what uses
/// the crate.
#[test]
fn tests_of_crates_use_what_stands_below() {
    const ALLOWED: [(&str, &[&str]); 3] = [
        ("trace-convert", &["trace-analysis"]),
        ("trace-engine", &["trace-reader", "zx-sim"]),
        ("trace-protocol", &["trace-protocol"]),
    ];
    let ours: BTreeSet<&str> = EDGES.iter().map(|(name, _)| *name).collect();
    for (name, found) in dependencies_of(Some("dev")) {
        let allowed = ALLOWED.iter().find(|(of, _)| *of == name).map_or(&[][..], |(_, allowed)| allowed);
        let found = found.iter().filter(|found| ours.contains(found.as_str()));
        let more: Vec<_> = found.filter(|found| !allowed.contains(&found.as_str())).collect();
        assert!(more.is_empty(), "tests of {name} must not use {more:?} ({TESTS})");
    }
}

#[test]
fn crates_depend_on_each_other_in_one_direction() {
    let dependencies = dependencies();
    let ours: BTreeSet<&str> = EDGES.iter().map(|(name, _)| *name).collect();
    for (name, allowed) in EDGES {
        let found: BTreeSet<&str> =
            dependencies[name].iter().map(String::as_str).filter(|name| ours.contains(name)).collect();
        let more: Vec<_> = found.iter().filter(|name| !allowed.contains(name)).collect();
        assert!(more.is_empty(), "{name} must not use {more:?} ({CRATES})");
    }
    let known: BTreeSet<&str> = dependencies.keys().map(String::as_str).collect();
    let unknown: Vec<_> =
        known.iter().filter(|name| !ours.contains(*name) && !NOT_SHIPPED.contains(name)).collect();
    assert!(unknown.is_empty(), "no edges are set down for {unknown:?} ({CRATES})");
}

/// What `target/release` has for users. Programs that tests spawn are examples of their packages, so that no
/// page has to put a `strings` or a `memory` of ours in front of the system's.
#[test]
fn programs_are_what_users_install() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("packages").iter();
    let targets = packages.flat_map(|package| package["targets"].as_array().expect("targets"));
    let is_bin = |target: &&serde_json::Value| target["kind"] == serde_json::json!(["bin"]);
    let programs: BTreeSet<&str> =
        targets.filter(is_bin).map(|target| target["name"].as_str().expect("a name")).collect();
    assert_eq!(programs, BTreeSet::from(["axum-server", "ktrace-provider", "trace"]), "({TESTS})");
}

/// The rooms of a crate: each uses only those in front of it, but for those that stand beside it.
struct Rooms {
    root: &'static str,
    rooms: &'static [(&'static str, &'static [&'static str])],
    /// Modules that are in no room.
    outside: &'static [&'static str],
}

const ROOMS: [Rooms; 2] = [
    Rooms {
        root: "crates/trace-engine/src/",
        rooms: &[
            ("sync", &[]),
            ("sys", &[]),
            ("site", &[]),
            ("thread", &["site"]),
            ("buffer", &["site", "thread"]),
            ("slab", &[]),
            ("session", &[]),
            ("record", &[]),
            ("api", &[]),
            ("ffi", &["api"]),
        ],
        outside: &["lib", "own_process"],
    },
    // The groups of `trace --help`, behind what they have in common.
    Rooms {
        root: "crates/trace-cli/src/",
        rooms: &[
            ("shell", &[]),
            ("files", &[]),
            ("connection", &["files"]),
            ("args", &["files"]),
            ("settings", &["files", "connection"]),
            ("browser", &["files", "connection", "settings"]),
            ("convert", &["connection", "settings", "browser"]),
            ("look", &["connection", "settings"]),
            ("compare", &["browser", "convert"]),
            ("record", &[]),
            ("background", &["browser", "look", "compare"]),
            ("mcp", &["connection", "settings", "browser", "convert", "compare", "record", "background"]),
            (
                "plumbing",
                &[
                    "settings",
                    "files",
                    "browser",
                    "convert",
                    "look",
                    "compare",
                    "record",
                    "background",
                    "mcp",
                ],
            ),
        ],
        outside: &["lib", "main", "dispatch"],
    },
];

/// The modules in all paths that begin with `crate::`, also in groups.
fn uses_of_the_crate(code: &str) -> BTreeSet<String> {
    let lines: Vec<&str> = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = lines.join("\n").replace("$crate::", "");
    let mut uses = BTreeSet::new();
    for used in code.split("crate::").skip(1) {
        let (mut depth, mut is_first) = (0, true);
        for word in used.split_inclusive(|byte: char| !byte.is_alphanumeric() && byte != '_') {
            let name = word.trim_end_matches(|byte: char| !byte.is_alphanumeric() && byte != '_');
            if is_first && !name.is_empty() {
                uses.insert(name.to_owned());
                is_first = false;
            }
            match word.chars().last() {
                Some('{') => depth += 1,
                Some('}') => depth -= 1,
                Some(',') => is_first = depth == 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
    }
    uses
}

#[test]
fn rooms_of_a_crate_use_each_other_in_one_direction() {
    let files = files(&["rs"]);
    for Rooms { root, rooms, outside } in ROOMS {
        let mut seen = BTreeSet::new();
        for (path, text) in files.iter().filter(|(path, _)| path.starts_with(root)) {
            let name = path[root.len()..].split(['/', '.']).next().expect("a name");
            let Some(place) = rooms.iter().position(|(room, _)| *room == name) else {
                assert!(outside.contains(&name), "{path} is in no room ({CRATES})");
                continue;
            };
            seen.insert(name);
            if is_test_code(path) {
                continue;
            }
            let (room, not) = rooms[place];
            for other in uses_of_the_crate(text.split("mod tests {").next().unwrap_or_default()) {
                let is_below = rooms[..=place].iter().any(|(below, _)| *below == other);
                let is_allowed = is_below && !not.contains(&&*other);
                let is_room = rooms.iter().any(|(room, _)| *room == other);
                assert!(is_allowed || !is_room, "{path}: {room} uses {other} ({CRATES})");
            }
        }
        assert_eq!(seen.len(), rooms.len(), "{root}: a room is empty: {seen:?} ({CRATES})");
    }
}

#[test]
fn the_engine_uses_only_the_clock_of_zx_sim() {
    for (path, text) in files(&["rs"]).iter().filter(|(path, _)| path.starts_with("crates/trace-engine/src"))
    {
        for line in text.lines().filter(|line| line.contains("zx_sim::")) {
            assert!(line.contains("zx_sim::ticks"), "{path}: {line} ({CRATES})");
        }
    }
}

#[test]
fn versions_of_packages_stand_in_one_table() {
    // Fuzz targets and peers are workspaces of their own; one crate exists for features of packages that
    // others use.
    let is_member = |path: &str| {
        path.ends_with("/Cargo.toml")
            && !["/fuzz/", "/peers/", "/workspace-hack/"].iter().any(|other| path.contains(other))
    };
    for (path, text) in files(&["toml"]).iter().filter(|(path, _)| is_member(path)) {
        let mut is_dependency = false;
        for line in text.lines() {
            if line.starts_with('[') {
                is_dependency = line.contains("dependencies");
            } else if is_dependency && line.contains('=') {
                // A package that its own tests ask for features of.
                let is_itself = line.contains("path = \".\"");
                assert!(is_itself || line.contains("workspace = true"), "{path}: {line} ({DEPENDENCIES})");
            }
        }
    }
}

/// Longest comment line, in columns.
const MAX_COMMENT: usize = 110;

/// rustfmt keeps code within its width and leaves comments alone.
#[test]
fn comments_are_not_too_wide() {
    for (path, text) in files(&["rs", "h", "c", "cc", "mjs"]) {
        for (line, text) in (1..).zip(text.lines()) {
            let is_comment = ["//", "/*", "* "].iter().any(|start| text.trim_start().starts_with(start));
            let width = text.chars().count();
            assert!(
                !is_comment || width <= MAX_COMMENT,
                "{path}:{line} has {width} columns ({DOCUMENTATION})"
            );
        }
    }
}

/// Whether a file has unsafe code, outside of comments.
fn has_unsafe_code(text: &str) -> bool {
    const WAYS: [&str; 5] = ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern", "#[unsafe("];
    let mut code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.any(|line| WAYS.iter().any(|way| line.contains(way)))
}

#[test]
fn unsafe_code_stands_in_named_modules() {
    for (path, text) in files(&["rs"]) {
        let has_unsafe = has_unsafe_code(&text);
        let is_allowed = UNSAFE.contains(&path.as_str()) || is_test_code(&path);
        assert!(
            !has_unsafe || is_allowed || path.ends_with("tidy.rs"),
            "{path} has unsafe code ({UNSAFE_CODE})"
        );
    }
    for (name, _) in EDGES {
        let directory =
            if name == "fxt-corpus" { "tests/data/corpus".into() } else { format!("crates/{name}") };
        let root = ["lib.rs", "main.rs"].map(|file| workspace().join(&directory).join("src").join(file));
        let text = root.iter().find_map(|path| fs::read_to_string(path).ok()).expect("a root module");
        let has_own = UNSAFE.iter().any(|path| path.starts_with(&format!("crates/{name}/")));
        let wanted = if has_own { "#![deny(unsafe_code)]" } else { "#![forbid(unsafe_code)]" };
        assert!(text.contains(wanted), "{name} lacks {wanted} ({UNSAFE_CODE})");
    }
}

/// The anchor that a heading gets.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    kept.chars()
        .filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'))
        .collect::<String>()
        .replace(' ', "-")
}

/// Whether a page has a heading with this anchor.
fn has_heading(page: &str, wanted: &str) -> bool {
    page.lines().filter(|line| line.starts_with('#')).any(|line| anchor(line) == wanted)
}

#[test]
fn cited_headings_exist_and_are_tested() {
    let mut cited: BTreeMap<String, (String, bool)> = BTreeMap::new();
    for (path, text) in files(&["rs"]) {
        let tests_begin = text.find("mod tests {").unwrap_or(usize::MAX);
        let mut offset = 0;
        for line in text.lines() {
            if let Some(citation) = line.trim().strip_prefix("//= ") {
                let is_test = is_test_code(&path) || offset > tests_begin;
                let entry = cited.entry(citation.to_owned()).or_insert_with(|| (path.clone(), false));
                entry.1 |= is_test;
            }
            offset += line.len() + 1;
        }
    }
    assert!(cited.len() > 10, "citations are not found: {cited:?}");
    let mut untested = Vec::new();
    for (citation, (path, is_tested)) in &cited {
        let (file, wanted) = citation.split_once('#').unwrap_or_else(|| panic!("{path}: {citation}"));
        let text =
            fs::read_to_string(workspace().join(file)).unwrap_or_else(|_| panic!("{path} cites {file}"));
        let has_heading = has_heading(&text, wanted);
        assert!(has_heading, "{path} cites {citation}, which has no such heading ({DOCUMENTATION})");
        if !is_tested {
            untested.push(citation);
        }
    }
    assert!(untested.is_empty(), "cited by code and by no test ({DOCUMENTATION}): {untested:#?}");
}

/// Some messages quote their source: who goes through sources by himself prints those twice.
#[test]
fn sources_of_errors_are_printed_in_one_place() {
    // The second looks for the error of an import among them, and prints nothing else.
    let allowed =
        ["crates/trace-archive/src/problem.rs", "crates/trace-cli/src/files/input.rs", "tests/tests/tidy.rs"];
    for (path, text) in files(&["rs"]).iter().filter(|(path, _)| !allowed.contains(&path.as_str())) {
        for way in ["error.source()", "Error::source(", ".chain()", "source.source()"] {
            let prints = text.lines().any(|line| line.contains(way) && !line.contains("iter"));
            assert!(!prints, "{path} goes through the sources of an error: use problem() ({ERRORS})");
        }
    }
}

/// Crates in which only one module prints, and where that module is. What the standard library prints with
/// panics where its output is closed, and waits for ever where it is full.
const PRINTERS: [(&str, Option<&str>); 13] = [
    ("trace-archive", None),
    ("trace-client", None),
    ("trace-client-c", None),
    ("trace-cli", Some("src/shell/stdio")),
    ("zx-sim", Some("src/debuglog")),
    ("trace-manager", Some("src/daemon/log")),
    ("trace-engine", None),
    ("trace-provider", None),
    ("trace-c", None),
    ("trace-config", None),
    ("trace-json-c", None),
    ("trace-reader-c", None),
    ("ktrace-provider", Some("src/service")),
];

#[test]
fn one_module_of_a_crate_prints() {
    const WAYS: [&str; 7] =
        ["print!(", "println!(", "dbg!(", "io::stdout()", "io::stderr()", "Term::stdout()", "Term::stderr()"];
    for (name, printer) in PRINTERS {
        let sources = format!("crates/{name}/src/");
        let printer = printer.map(|printer| format!("crates/{name}/{printer}"));
        let files = files(&["rs"]);
        let of_crate = files.iter().filter(|(path, _)| path.starts_with(&sources) && !is_test_code(path));
        let is_printer = |path: &str| printer.as_ref().is_some_and(|printer| path.starts_with(printer));
        let (own, others): (Vec<_>, Vec<_>) = of_crate.partition(|(path, _)| is_printer(path));
        assert_eq!(own.is_empty(), printer.is_none(), "{name} has no {printer:?} ({OUTPUT})");
        for (path, text) in others {
            for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
                let found = WAYS.iter().find(|way| line.contains(**way));
                assert!(
                    found.is_none(),
                    "{path} prints by itself, use {printer:?} ({OUTPUT}): {}",
                    line.trim()
                );
            }
        }
    }
}

/// The variants of errors, each from its text to the next one's.
fn error_texts(source: &str) -> Vec<String> {
    let starts: Vec<usize> = source.match_indices("#[error(").map(|(at, _)| at).collect();
    let ends = starts.iter().copied().skip(1).chain([source.len()]);
    let parts = starts.iter().zip(ends).map(|(start, end)| &source[*start..end]);
    // The last one ends with its type.
    parts.map(|part| part.split("\n}\n").next().unwrap_or(part).to_owned()).collect()
}

/// The name of a field of a variant whose text quotes it, and which is its source.
fn quoted_source(variant: &str) -> Option<String> {
    let (text, fields) = variant.split_once(")]\n")?;
    let is_quoted = |field: &str| {
        let quotes =
            [format!("{{{field}}}"), format!("{{{field}:"), format!(", {field}"), format!(", .{field}")];
        quotes.iter().any(|quote| text.contains(quote))
    };
    let marked = ["#[source]", "#[from]"].iter().filter_map(|mark| fields.split_once(mark));
    let marked = marked.map(|(before, after)| {
        let name = after.trim_start().split(|byte: char| !byte.is_alphanumeric() && byte != '_').next();
        let is_named = after.trim_start()[name.map_or(0, str::len)..].starts_with(": ");
        match name {
            Some(name) if is_named => name.to_owned(),
            _ => before.rsplit('(').next().unwrap_or_default().matches(',').count().to_string(),
        }
    });
    // The derive macro takes a field of this name for the source.
    let named = fields.contains(" source: ").then(|| "source".to_owned());
    marked.chain(named).find(|field| is_quoted(field))
}

/// An error's text either includes its source's text or has a source, not both: a program that prints the
/// chain, as most do, would print it twice.
#[test]
fn texts_of_errors_do_not_quote_their_sources() {
    for (variant, expected) in [
        ("#[error(\"cannot read: {0}\")]\n    Read(#[from] io::Error),\n", Some("0")),
        ("#[error(\"cannot read: {1}\")]\n    Read(u64, #[source] io::Error),\n", Some("1")),
        ("#[error(\"{what}: {source}\")]\n    Io { what: String, source: io::Error },\n", Some("source")),
        ("#[error(\"{}: {why:#}\", path)]\n    Io { #[source] why: io::Error },\n", Some("why")),
        ("#[error(\"{}\", source)]\n    Io { source: io::Error },\n", Some("source")),
        ("#[error(\"{what}: {error}\")]\n    Io { what: String, error: io::Error },\n", None),
        ("#[error(\"{0}\")]\n    Read(u64, #[source] io::Error),\n", None),
        ("#[error(transparent)]\n    Read(#[from] io::Error),\n", None),
        ("#[error(\"cannot read\")]\n    Read(#[from] io::Error),\n", None),
    ] {
        assert_eq!(quoted_source(variant).as_deref(), expected, "{variant}");
    }
    let mut count = 0;
    for (path, text) in files(&["rs"]).iter().filter(|(path, _)| !path.ends_with("tidy.rs")) {
        for variant in error_texts(text) {
            count += 1;
            let quoted = quoted_source(&variant);
            assert!(quoted.is_none(), "{path} quotes the source {quoted:?} ({ERRORS}): {variant}");
        }
    }
    assert!(count > 60, "{count}");
}

/// `{error}: {source}` and its like.
#[test]
fn sources_are_not_printed_beside_their_errors() {
    for (path, text) in files(&["rs"]).iter().filter(|(path, _)| !path.ends_with("tidy.rs")) {
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let is_twice = ["{error}: {source}", "{e}: {source}", "{error:#}", "{error}: {cause}"];
            let is_twice = is_twice.iter().any(|way| line.contains(way));
            assert!(!is_twice, "{path} prints a source beside its error ({ERRORS}): {}", line.trim());
        }
    }
}

#[test]
fn nothing_is_left_undone() {
    let marks = ["TO-DO", "FIX-ME", "HA-CK"].map(|mark| mark.replace('-', ""));
    for (path, text) in files(&["rs", "mjs", "md", "toml"]) {
        for mark in marks.iter().map(String::as_str).chain(["todo!(", "unimplemented!(", "#[ignore"]) {
            let is_here = path.ends_with("tidy.rs");
            assert!(is_here || !text.contains(mark), "{path} contains {mark} ({DOCUMENTATION})");
        }
    }
}

/// A set-uid program does not do what the environment of its caller says.
#[test]
fn what_programs_link_reads_the_environment_in_one_place() {
    let linked = [
        "zx-sim",
        "trace-provider",
        "trace-engine",
        "trace-c",
        "trace-reader-c",
        "trace-client-c",
        "trace-json-c",
    ];
    let is_linked = |path: &str| {
        linked.iter().any(|name| {
            let root = format!("crates/{name}/");
            path.starts_with(&format!("{root}src/")) || path.starts_with(&format!("{root}include/"))
        })
    };
    for (path, text) in files(&["rs", "c", "h"]).iter().filter(|(path, _)| is_linked(path)) {
        // The second is for tests alone.
        let allowed = ["crates/zx-sim/src/environment.rs", "crates/trace-engine/src/own_process.rs"];
        if allowed.contains(&path.as_str()) || path.ends_with("/tests.rs") {
            continue;
        }
        let code = text.split("mod tests {").next().unwrap_or_default();
        for way in ["env::var", "getenv(", "libc::environ"] {
            let reads = code.lines().any(|line| line.contains(way) && !line.trim_start().starts_with("//"));
            assert!(!reads, "{path} reads the environment: use zx_sim::environment ({OUTPUT})");
        }
    }
}

#[test]
fn tests_wait_for_conditions_instead_of_sleeping() {
    for (path, text) in files(&["rs"]).iter().filter(|(path, _)| is_test_code(path)) {
        // The harness's own wait, and a program that is waited for.
        if ["tests/src/sandbox.rs", "tests/examples/emit.rs", "tests/tests/tidy.rs"].contains(&path.as_str())
        {
            continue;
        }
        assert!(!text.contains("sleep("), "{path} sleeps ({TESTS})");
    }
}
