//! Writes the conformance corpus anew: each file, what a reader must find in it, the table in its page, and
//! the list in its package.
//!
//! `cargo run -p trace-tests --example corpus`, then look at what has changed: every difference is a change
//! of the format, or of how it is read.
#![forbid(unsafe_code)]

use std::fs;
use trace_tests::corpus::{CASES_HEADING, TABLE_HEADING, cases, directory, expected, files, table};

fn main() -> std::io::Result<()> {
    let directory = directory();
    fs::create_dir_all(&directory)?;
    for entry in fs::read_dir(&directory)?.flatten() {
        if entry.path().extension().is_some_and(|suffix| suffix == "fxt" || suffix == "txt") {
            fs::remove_file(entry.path())?;
        }
    }
    for file in files() {
        let path = directory.join(&file.name);
        fs::write(path.with_added_extension("fxt"), &file.bytes)?;
        fs::write(path.with_added_extension("txt"), expected(&file.bytes))?;
    }
    let page = directory.join("README.md");
    let text = fs::read_to_string(&page)?;
    let (head, _) = text.split_once(TABLE_HEADING).unwrap_or((&text, ""));
    fs::write(page, format!("{head}{TABLE_HEADING}{}", table()))?;
    let package = directory.join("src/lib.rs");
    let text = fs::read_to_string(&package)?;
    let (head, _) = text.split_once(CASES_HEADING).unwrap_or((&text, ""));
    fs::write(package, format!("{head}{}", cases()))?;
    println!("{} files in {}", files().len(), directory.display());
    Ok(())
}
