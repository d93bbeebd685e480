//! The applications whose markers a recording has, by the names of their processes.
//= docs/kernel.md#markers

use foldhash::{HashMap, HashMapExt};
use std::fs;

/// How long an answer about a process holds, at most a second: it may execute another program, or end, and
/// another process may get its number.
const HOLDS_TICKS: u64 = 1_000_000_000;
/// How many processes are remembered.
const MAX_KNOWN: usize = 10_000;

/// What a process is called: its name, and its program as its command line has it.
pub type Names = (Vec<u8>, Vec<u8>);

/// The applications whose markers are wanted.
pub struct Applications {
    names: Vec<Box<[u8]>>,
    names_of: fn(u32) -> Option<Names>,
    /// Until when it is known of a process whether it is one of them.
    known: HashMap<u32, (u64, bool)>,
    /// Markers of processes that had no names any more.
    kept: u64,
}

impl Applications {
    /// Applications of these names; without any, all are wanted.
    pub fn new(names: &[String], names_of: fn(u32) -> Option<Names>) -> Self {
        let names = names.iter().map(|name| name.as_bytes().into()).collect();
        Self { names, names_of, known: HashMap::new(), kept: 0 }
    }

    /// Whether a process, if it is known, is one of them at this time. One that has ended already may have
    /// been, and counts as one.
    pub fn want(&mut self, at: u64, process: Option<u32>) -> bool {
        if self.names.is_empty() {
            return true;
        }
        if let Some((until, is_wanted)) = process.and_then(|process| self.known.get(&process))
            && at < *until
        {
            return *is_wanted;
        }
        let Some((process, (name, program))) =
            process.and_then(|process| Some((process, (self.names_of)(process)?)))
        else {
            self.kept += 1;
            return true;
        };
        let file = program.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let is_wanted = self.names.iter().any(|wanted| [&*name, &program, file].contains(&&**wanted));
        if self.known.len() == MAX_KNOWN {
            self.known.clear();
        }
        self.known.insert(process, (at.saturating_add(HOLDS_TICKS), is_wanted));
        is_wanted
    }

    /// How many markers were kept because their processes had ended.
    pub const fn kept(&self) -> u64 {
        self.kept
    }
}

/// What a process that exists is called.
pub fn names_of(process: u32) -> Option<Names> {
    let name = fs::read(format!("/proc/{process}/comm")).ok()?;
    let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    Some((name.trim_ascii_end().to_vec(), crate::format::cut(&line).to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_test(process: u32) -> Option<Names> {
        match process {
            1 => Some((b"settings".to_vec(), b"/opt/settings-app".to_vec())),
            2 => Some((b"other".to_vec(), b"other".to_vec())),
            _ => None,
        }
    }

    fn wanted(name: &str) -> Applications {
        Applications::new(&[name.to_owned()], of_test)
    }

    //= docs/kernel.md#markers
    #[test]
    fn applications_have_the_name_of_their_process_or_program() {
        for name in ["settings", "settings-app", "/opt/settings-app"] {
            let mut applications = wanted(name);
            assert_eq!(
                [Some(1), Some(2)].map(|process| applications.want(0, process)),
                [true, false],
                "{name}"
            );
        }
        let mut all = Applications::new(&[], of_test);
        assert!([Some(1), Some(2), Some(3), None].iter().all(|process| all.want(0, *process)));
        assert_eq!(all.kept(), 0);
    }

    //= docs/kernel.md#markers
    #[test]
    fn what_is_not_known_any_more_is_kept_and_counted() {
        let mut applications = wanted("settings");
        assert!(applications.want(0, Some(7)) && applications.want(0, None));
        assert_eq!(applications.kept(), 2);
    }

    #[test]
    fn an_answer_holds_for_a_second() {
        let mut applications = wanted("settings");
        assert!(applications.want(5, Some(1)));
        applications.names_of = |_| Some((b"other".to_vec(), Vec::new()));
        assert!(applications.want(HOLDS_TICKS, Some(1)));
        assert!(!applications.want(HOLDS_TICKS + 5, Some(1)));
    }
}
