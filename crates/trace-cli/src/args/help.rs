//! What `trace --help` prints: the commands by what they are for.

use std::fmt::Write as _;

/// Commands with what they do, in a group.
type Group = (&'static str, &'static [(&'static str, &'static str)]);

/// Commands that people use by themselves.
const COMMANDS: &[Group] = &[
    (
        "Record",
        &[
            ("record", "until a command ends, a time is over, or Ctrl-C"),
            ("live", "the same, with rates and losses on the screen"),
            ("recover", "save what a killed recording has left"),
            ("doctor", "can this machine record, and what to do if not"),
        ],
    ),
    (
        "Background",
        &[
            ("start", "record in the background"),
            ("stop", "end that, with a summary"),
            ("status", "what is recorded"),
            ("snapshot", "save what there is so far, and go on"),
            ("list-providers", "programs that can be recorded"),
            ("list-categories", "categories that running programs know"),
        ],
    ),
    (
        "Look",
        &[
            ("report", "one HTML page, offline, or a part as a picture"),
            ("view", "in the Perfetto UI, or while it is recorded"),
            ("stats", "where the time went, what was lost"),
            #[cfg(feature = "query")]
            ("query", "SQL"),
            ("dump", "one line for each record"),
        ],
    ),
    (
        "Compare",
        &[
            ("check", "problems of a trace"),
            ("assert", "limits, for CI"),
            ("diff", "two traces"),
            ("ab", "two commands, run alternately"),
            ("measure", "measurements of a specification"),
        ],
    ),
    (
        "Convert",
        &[
            ("convert", "Perfetto, Chrome, Parquet, CSV, folded stacks ..."),
            ("filter", "less in it, to pass it on"),
        ],
    ),
    #[cfg(feature = "query")]
    ("For agents", &[("mcp", "answers over stdin and stdout")]),
];

/// Commands that scripts and installations need more often than people.
const PLUMBING: &[Group] = &[
    (
        "Recording",
        &[
            ("list-category-groups", "what #name stands for"),
            ("dump-memory", "ask programs for a memory dump"),
            ("flush", "write out what a recording has so far"),
            ("time", "the time as it is in traces"),
        ],
    ),
    (
        "Services",
        &[
            ("manager", "what programs register with; starts on demand"),
            ("ktrace", "kernel events for recordings of other users"),
        ],
    ),
    ("Installing", &[("completions", "for a shell"), ("man", "the manual pages")]),
];

fn names(groups: &[Group]) -> impl Iterator<Item = &'static str> {
    groups.iter().flat_map(|(_, commands)| *commands).map(|(name, _)| *name)
}

fn listed(groups: &[Group]) -> String {
    let width = names(groups).map(str::len).max().unwrap_or(0) + 2;
    let mut text = String::new();
    for (group, commands) in groups {
        let titles = std::iter::once(*group).chain(std::iter::repeat(""));
        for (title, (name, does)) in titles.zip(*commands) {
            _ = writeln!(text, "{title:12}{name:width$}{does}");
        }
    }
    text
}

/// The commands, and where the others are.
pub fn commands() -> String {
    let mut plumbing: Vec<&str> = names(PLUMBING).collect();
    plumbing.sort_unstable();
    let (first, second) = plumbing.split_at(4);
    format!(
        "Record what programs do, and analyse the traces.\n\n{}\n\
         Options: -h, --help, -V, --version; trace COMMAND --help has a command's own.\n\
         More: trace help plumbing ({},\n{}).\n\
         Begin with:  trace record -- ./app   and then   trace report trace.fxt",
        listed(COMMANDS),
        first.join(", "),
        second.join(", ")
    )
}

/// The other commands.
pub fn plumbing() -> String {
    format!(
        "Commands that scripts and installations use.\n\n{}\n\
         trace COMMAND --help has the options of each, with examples.",
        listed(PLUMBING)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::CommandFactory;
    use std::collections::BTreeSet;

    #[test]
    fn the_commands_are_those_of_the_parser() {
        let cli = Cli::command();
        let parsed = cli.get_subcommands().filter(|command| !command.is_hide_set());
        let parsed: BTreeSet<&str> = parsed.map(clap::Command::get_name).collect();
        let listed: Vec<&str> = names(COMMANDS).chain(names(PLUMBING)).collect();
        assert_eq!(listed.iter().copied().collect::<BTreeSet<_>>(), parsed);
        assert_eq!(listed.len(), parsed.len());
    }

    #[test]
    fn the_help_fits_on_a_screen() {
        for text in [commands(), plumbing()] {
            assert!(text.lines().count() <= 40, "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= 79), "{text}");
        }
    }
}
