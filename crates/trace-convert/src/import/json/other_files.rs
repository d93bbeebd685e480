//! Recognizes JSON files that are no traces, by the members of their object.
//= docs/import.md#what-is-no-trace

use std::fmt;

/// How many members are examined, and how much of the name of each.
const MAX_MEMBERS: usize = 16;
const MAX_NAME_BYTES: usize = 40;

/// Members that all files of a kind have, and the name of the kind.
const KINDS: [(&[&str], &str); 9] = [
    (&["nodes", "startTime", "endTime"], "a CPU profile of V8 (.cpuprofile)"),
    (&["snapshot", "nodes", "edges"], "a heap snapshot of V8 (.heapsnapshot)"),
    (&["head", "samples"], "a heap profile of V8 (.heapprofile)"),
    (&["log"], "an HTTP archive (HAR)"),
    (&["meta", "libs", "threads"], "a profile of Firefox"),
    (&["shared", "profiles"], "a profile of speedscope"),
    (&["resourceSpans"], "spans of OpenTelemetry"),
    (&["version", "sources", "mappings"], "a source map"),
    (&["name", "version"], "a package's description (package.json)"),
];

/// The members of an object, as many as identify its kind.
#[derive(Debug, Default)]
pub(super) struct ObjectMembers {
    first: Vec<String>,
    count: u64,
}

impl ObjectMembers {
    pub fn push(&mut self, name: &str) {
        self.count += 1;
        if self.first.len() < MAX_MEMBERS {
            self.first.push(name[..name.floor_char_boundary(MAX_NAME_BYTES)].to_owned());
        }
    }

    /// The kind of files with these members, if it is known.
    pub fn kind(&self) -> Option<&'static str> {
        let has = |member: &&str| self.first.iter().any(|name| name == member);
        KINDS.iter().find(|(members, _)| members.iter().all(has)).map(|(_, kind)| *kind)
    }
}

impl fmt::Display for ObjectMembers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 5;

        f.write_str("an object without traceEvents")?;
        for (name, separator) in self.first.iter().take(SHOWN).zip([" but with ", ", ", ", ", ", ", ", "]) {
            write!(f, "{separator}{name:?}")?;
        }
        match self.count.saturating_sub(SHOWN as u64) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}
