//! Checks that the requested categories exist, and that they were recorded.

use crate::args::categories::scope;
use crate::connection::Connection;
use crate::files::input::open;
use crate::record::kernel;
use crate::shell::exit::Failure;
use crate::shell::progress;
use crate::shell::stdio::say;
use ktrace_provider::{categories, metrics, probes};
use std::collections::BTreeSet;
use std::path::Path;
use trace_config::near;
use trace_format::markers;
use trace_format::shown::Shown;
use trace_protocol::KnownCategories;
use trace_protocol::controller::ProviderStats;
use trace_reader::{Item, Reader};

/// Recorded by programs that register functions for it; no call site announces it.
const MEMORY_DUMPS: &str = "memory_dump";
/// Categories of Fuchsia's kernel that have no events on Linux.
const NO_EVENTS: [&str; 3] = ["kernel:ipc", "kernel:arch", "kernel:restricted"];
/// Maximum number of changes between similar categories.
const MAX_CHANGES: usize = 3;

/// The requested categories, and those that programs know.
#[derive(Default)]
pub struct Expected {
    wanted: Vec<String>,
    known: BTreeSet<String>,
}

impl Expected {
    /// Of the entries of `--categories`, those that programs announce.
    pub fn new(requested: &[String]) -> Self {
        let is_of_programs = |entry: &&str| is_checked(entry) && !kernel::is_ours(unscoped(entry));
        let wanted = requested.iter().map(String::as_str).filter(is_of_programs);
        Self { wanted: wanted.map(str::to_owned).collect(), known: BTreeSet::new() }
    }

    /// Whether there is nothing to compare.
    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Adds the categories that programs know.
    pub fn add(&mut self, known: KnownCategories) {
        self.known.extend(known.listed.into_iter().map(|category| category.name));
    }

    /// A warning for each category that no program knows, if programs announce any at all.
    pub fn warnings(&self) -> Vec<String> {
        let unknown = self.wanted.iter().filter(|entry| !is_found(unscoped(entry), &self.known));
        let unknown = unknown.filter(|_| !self.known.is_empty());
        unknown
            .map(|entry| {
                let hint = hint(entry, &self.known);
                format!("trace: warning: no running program knows the category {}{hint}", Shown(entry))
            })
            .collect()
    }

    /// Warns of those that no running program knows.
    pub fn check_running(&mut self, connection: &mut Connection) -> Result<(), Failure> {
        if self.is_empty() {
            return Ok(());
        }
        connection.settled_providers()?;
        self.add(connection.known_categories()?);
        self.warnings().iter().for_each(|warning| say!("{warning}"));
        Ok(())
    }
}

/// Warns of programs that are to be recorded and do not run, with similar names.
pub fn programs_running(connection: &mut Connection, wanted: &[String]) -> Result<(), Failure> {
    if wanted.is_empty() {
        return Ok(());
    }
    let running = connection.settled_providers()?.listed;
    let is_running = |name: &String| running.iter().any(|provider| provider.name == *name);
    for name in wanted.iter().filter(|name| !is_running(name)) {
        let names = running.iter().map(|provider| provider.name.as_str());
        let near = near::nearest(name, names, MAX_CHANGES, str::to_owned);
        let hint = near.map_or_else(String::new, |near| format!("; did you mean {}?", Shown(near)));
        say!("trace: no running program is called {}, which is recorded when it starts{hint}", Shown(name));
    }
    Ok(())
}

/// Reports requested categories without events, with similar names. Without an archive there were no events.
pub fn categories(
    requested: &[String],
    expected: &Expected,
    archive: Option<&Path>,
    programs: &[ProviderStats],
) -> Result<(), Failure> {
    let (of_absent, others): (Vec<&str>, Vec<&str>) =
        requested.iter().map(String::as_str).partition(|entry| is_of_absent(entry, programs));
    for entry in of_absent {
        let program = scope(entry).0.unwrap_or_default();
        let names = programs.iter().map(|program| program.name.as_str());
        let near = near::nearest(program, names, MAX_CHANGES, str::to_owned);
        let hint = near.map_or_else(String::new, |near| format!("; did you mean {}?", Shown(near)));
        let (entry, program) = (Shown(entry), Shown(program));
        say!("trace: warning: {entry} was requested, but no program {program} took part{hint}");
    }
    let wanted: Vec<&str> = others.into_iter().filter(|entry| is_checked(entry)).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let found = archive.map(found).transpose()?.unwrap_or_default();
    let names: BTreeSet<String> = found.iter().chain(&expected.known).cloned().collect();
    for entry in wanted.iter().filter(|entry| !is_found(unscoped(entry), &found)) {
        let hint = match programs.iter().any(|program| program.name == *entry) {
            true => format!("; {entry} is a program; for all of its categories: {entry}/*"),
            false => hint(entry, &names),
        };
        let entry = Shown(entry);
        say!("trace: warning: category {entry} was requested, but nothing of it was recorded{hint}");
    }
    Ok(())
}

/// Whether an entry is for a program that took no part.
fn is_of_absent(entry: &str, programs: &[ProviderStats]) -> bool {
    let is_absent = |wanted: &str| programs.iter().all(|program| program.name != wanted);
    !entry.starts_with('-') && scope(entry).0.is_some_and(is_absent)
}

/// Not checked: groups, which stand for categories that may exist; the kernel's categories that have events
/// whether or not anything happens; and excluded ones.
fn is_checked(entry: &str) -> bool {
    !entry.starts_with('-')
        && !unscoped(entry).starts_with('#')
        && !["kernel:meta", "kernel:sched", categories::RETAIN, metrics::MEMORY_ALIAS, MEMORY_DUMPS, "*"]
            .contains(&unscoped(entry))
        && !is_single(unscoped(entry))
}

/// A tracepoint, a probe or an application, whose events have another category. The kernel's provider reports
/// whether it can be recorded.
fn is_single(entry: &str) -> bool {
    [categories::POINT, categories::APPLICATION].iter().any(|prefix| entry.starts_with(prefix))
        || probes::is_probe(entry)
}

fn unscoped(entry: &str) -> &str {
    scope(entry).1
}

fn is_found(entry: &str, found: &BTreeSet<String>) -> bool {
    // A marker in the kernel's buffer has no tag.
    let entry = if markers::tag(entry).is_some() { markers::CATEGORY } else { entry };
    found.iter().any(|category| match entry.strip_suffix('*') {
        Some(prefix) => category.starts_with(prefix),
        None => category == entry || (stands_for_others(entry) && is_below(category, entry)),
    })
}

fn stands_for_others(entry: &str) -> bool {
    [categories::ALL, metrics::ALL].contains(&entry)
}

fn is_below(category: &str, entry: &str) -> bool {
    category.strip_prefix(entry).is_some_and(|rest| rest.starts_with(':'))
}

/// The name that may have been meant, as the end of a sentence.
fn hint(entry: &str, names: &BTreeSet<String>) -> String {
    let (program, category) = scope(entry);
    let fixed: BTreeSet<String> = ktrace_provider::category_names().collect();
    if fixed.contains(category) || names.contains(category) {
        return String::new();
    }
    let names: BTreeSet<String> =
        names.iter().chain(&fixed).filter(|name| !NO_EVENTS.contains(&name.as_str())).cloned().collect();
    match nearest(category, &names) {
        Some(near) => {
            let program = program.map_or_else(String::new, |program| format!("{program}/"));
            format!("; did you mean {}?", Shown(&format!("{program}{near}")))
        }
        None => String::new(),
    }
}

fn nearest<'a>(entry: &str, found: &'a BTreeSet<String>) -> Option<&'a str> {
    let entry = entry.trim_end_matches('*');
    let others = found.iter().map(String::as_str).filter(|name| *name != entry);
    near::nearest(entry, others, MAX_CHANGES, str::to_owned)
}

/// The categories of an archive.
fn found(archive: &Path) -> Result<BTreeSet<String>, Failure> {
    let file = open(archive)?;
    let bytes = file.metadata().map_or(0, |metadata| metadata.len());
    let bar = progress::bar("looking for categories", bytes);
    let unreadable = |error| Failure::new(format!("{}: {error}", archive.display()));
    let mut reader = Reader::new(progress::reading(file, &bar)).map_err(unreadable)?;
    let mut categories: BTreeSet<Vec<u8>> = BTreeSet::new();
    while let Some(resolved) = reader.next_item().map_err(unreadable)? {
        if let Item::Event(event) = resolved.item
            && !categories.contains(event.category.as_bytes())
        {
            categories.insert(event.category.as_bytes().to_vec());
        }
    }
    bar.finish_and_clear();
    // For an event with several categories, each of them.
    let each = categories.iter().flat_map(|name| name.split(|byte| *byte == b','));
    Ok(each.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_is_looked_for_by_its_rules() {
        let found: BTreeSet<String> =
            ["app", "net:tcp", "kernel:irq", "system_metrics:cpu"].map(str::to_owned).into();
        for (entry, expected) in [
            ("app", true),
            ("net*", true),
            ("net", false),
            ("kernel", true),
            ("ap", false),
            ("x*", false),
            ("system_metrics", true),
        ] {
            assert_eq!(is_found(entry, &found), expected, "{entry}");
        }
        assert_eq!(nearest("apq", &found), Some("app"));
        assert_eq!(nearest("nettcp", &found), Some("net:tcp"));
        assert_eq!(nearest("x", &found), None);
        assert_eq!(nearest("something", &found), None);
        let found: BTreeSet<String> = ["trace", "render"].map(str::to_owned).into();
        assert_eq!((nearest("frame", &found), nearest("rendr", &found)), (None, Some("render")));
        assert_eq!(nearest("Render", &found), Some("render"));
        assert_eq!(hint("kernle:sched", &found), "; did you mean kernel:sched?");
        assert_eq!(hint("kernel:ipcs", &found), "; did you mean kernel:irq?");
        assert_eq!((hint("kernel:irq", &found), hint("kernel:ipc", &found)), (String::new(), String::new()));
        assert_eq!(hint("one/rendr", &found), "; did you mean one/render?");
        for entry in
            ["-app", "#default", "one/#default", "kernel:sched", "*", "kernel:tp:a:b", "kernel:uprobe:/a:1"]
        {
            assert!(!is_checked(entry), "{entry}");
        }
        assert!(is_checked("one/app"));
        assert_eq!(unscoped("one/app"), "app");
    }
}
