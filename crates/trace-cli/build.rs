//! Names the commit that `trace --version` shows between releases.

use std::path::Path;
use std::process::Command;

/// What git says in this crate's directory; none without git, or outside a checkout.
fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// The commit of this checkout, unless it is a tagged release. A package that was unpacked below another
/// checkout is not tracked there and has none.
fn commit() -> Option<String> {
    git(&["ls-files", "--error-unmatch", "Cargo.toml"])?;
    for file in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", file])?;
        if Path::new(&path).exists() {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    let release = format!("v{}", env!("CARGO_PKG_VERSION"));
    let tags = git(&["tag", "--points-at", "HEAD"]).unwrap_or_default();
    if tags.lines().any(|tag| tag == release) { None } else { git(&["rev-parse", "--short=10", "HEAD"]) }
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let commit = commit().map(|commit| format!(" ({commit})"));
    println!("cargo:rustc-env=TRACE_COMMIT={}", commit.unwrap_or_default());
}
