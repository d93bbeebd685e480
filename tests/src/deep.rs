//! What the programs called `deep` say of their own scopes, and what a trace says of them.

use crate::Archive;
use crate::archive::Value;
use std::collections::BTreeMap;
use trace_format::event::EventKind;
use trace_format::scopes::ENTRIES;

/// What a thread has done when its program ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// How many of its scopes have ended.
    pub ended: usize,
    /// Those that are open, the outermost first, as far as they are distinguished.
    pub open: Vec<String>,
    /// How many are inside of these.
    pub deeper: u64,
}

/// By the names of threads, what a program has printed.
///
/// # Panics
/// If it is not what such a program prints.
#[must_use]
pub fn told(stdout: &str) -> BTreeMap<String, Done> {
    let (lines, _) = stdout.split_once("end\n").expect("all lines of the program");
    let done = |line: &str| {
        let mut words = line.split(' ');
        let name = words.next().expect("a name").to_owned();
        let ended = words.next().and_then(|ended| ended.parse().ok()).expect("a number");
        let open = words.next().unwrap_or_default().split('>').filter(|name| !name.is_empty());
        let mut open: Vec<String> = open.map(str::to_owned).collect();
        let entries = if name.starts_with("lane") { usize::MAX } else { ENTRIES };
        let deeper = open.len().saturating_sub(entries) as u64;
        open.truncate(entries);
        (name, Done { ended, open, deeper })
    };
    // A thread that has done nothing is in no trace.
    lines.lines().map(done).filter(|(_, done)| *done != Done::default()).collect()
}

/// The same, as a trace has it, where a scope that is open has this reason.
///
/// # Panics
/// If a scope that has ended is open, or another reason is there.
#[must_use]
pub fn recorded(archive: &Archive, reason: &str) -> BTreeMap<String, Done> {
    let mut threads = BTreeMap::<u64, (Done, Vec<u64>, Vec<u64>)>::new();
    let events = archive.events.iter().chain(&archive.open).map(|event| &event.event);
    for event in events.filter(|event| event.category.as_bytes() == b"deep") {
        let (done, begins, open) = threads.entry(event.thread.0).or_default();
        match event.kind {
            EventKind::DurationComplete { .. } => {
                done.ended += 1;
                begins.push(event.timestamp.0);
            }
            EventKind::DurationBegin => {
                let Some(Value::String(end)) = event.argument("end") else { panic!("{event:?}") };
                assert_eq!(end.to_str(), reason, "{event:?}");
                assert!(
                    open.last().is_none_or(|last| *last < event.timestamp.0),
                    "in their order: {event:?}"
                );
                open.push(event.timestamp.0);
                done.open.push(event.name.to_str().into_owned());
                if let Some(Value::Uint64(deeper)) = event.argument("deeper") {
                    done.deeper = *deeper;
                }
            }
            _ => panic!("{event:?}"),
        }
        assert!(open.iter().all(|open| !begins.contains(open)), "no scope has ended and is open");
    }
    let named = |(thread, (done, ..)): (u64, (Done, _, _))| {
        (archive.threads.get(&thread).cloned().unwrap_or_default(), done)
    };
    threads.into_iter().map(named).collect()
}
