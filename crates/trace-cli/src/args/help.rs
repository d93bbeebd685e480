//! What `trace --help` prints: the commands by what they are for.

use clap::{Arg, ArgAction, Command};
use std::fmt::Write as _;

/// Columns of a screen.
const WIDTH: usize = 79;

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
            ("list-programs", "programs that can be recorded"),
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

/// The other commands of a command's group; of another name, all.
pub fn beside(command: &str) -> impl Iterator<Item = &'static str> {
    let groups = || COMMANDS.iter().chain(PLUMBING);
    let is_in = |(_, commands): &&Group| commands.iter().any(|(name, _)| *name == command);
    let own: Vec<&Group> = groups().filter(is_in).collect();
    let chosen = if own.is_empty() { groups().collect() } else { own };
    let names = chosen.into_iter().flat_map(|(_, commands)| *commands).map(|(name, _)| *name);
    names.filter(|name| *name != command).collect::<Vec<_>>().into_iter()
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

/// The options of a recording that people use first.
const FIRST: [&str; 12] = [
    "config",
    "label",
    "interval",
    "categories",
    "program",
    "duration",
    "max_size",
    "output",
    "stats",
    "report",
    "buffer_size",
    "buffering_mode",
];

/// A command whose `--help` has the options that people use first, and the names of the others by topic.
/// `--help-all` has all of them.
pub fn shortened(command: Command) -> Command {
    let command = command.mut_args(|option| {
        let is_first = option.is_positional() || FIRST.contains(&option.get_id().as_str());
        option.hide_short_help(!is_first)
    });
    let all = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let examples = all.split("\n\n").next().unwrap_or_default();
    let short = format!("{}\n{examples}", others(&command));
    with_help_all(command).after_help(short).after_long_help(all)
}

/// A command with an option for its short help and one for all of it.
pub fn with_help_all(command: Command) -> Command {
    let help = Arg::new("help").short('h').long("help").action(ArgAction::HelpShort);
    let help_all = Arg::new("help-all").long("help-all").action(ArgAction::HelpLong);
    command
        .disable_help_flag(true)
        .arg(help.help("Print this help"))
        .arg(help_all.help("Print all options, and exit codes"))
}

/// Names of options that the short help leaves out.
fn others(command: &Command) -> String {
    let mut topics: Vec<(&str, Vec<&str>)> = Vec::new();
    for option in
        command.get_arguments().filter(|option| option.is_hide_short_help_set() && !option.is_hide_set())
    {
        let topic = option.get_help_heading().unwrap_or("General");
        let Some(name) = option.get_long() else { continue };
        match topics.iter_mut().find(|(known, _)| *known == topic) {
            Some((_, names)) => names.push(name),
            None => topics.push((topic, vec![name])),
        }
    }
    let mut text = "More options, which --help-all explains:\n".to_owned();
    for (topic, names) in topics {
        let mut line = format!("  {topic:10}");
        for name in names {
            if line.len() + name.len() + 3 > WIDTH {
                _ = writeln!(text, "{}", line.trim_end());
                line = " ".repeat(12);
            }
            _ = write!(line, "--{name} ");
        }
        _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::CommandFactory;
    use std::collections::BTreeSet;

    #[test]
    fn people_see_ten_options_of_a_recording_and_the_names_of_the_others() {
        // Ten and two of help; the others lack three and have one of their own.
        for (name, count) in [("record", 12), ("start", 10), ("live", 10)] {
            let mut parser = crate::args::parsing::parser();
            parser.build();
            let command = parser.find_subcommand_mut(name).expect("a command");
            let short = command.render_help().to_string();
            let is_shown = |option: &&Arg| !option.is_hide_set() && !option.is_positional();
            let options: Vec<_> = command.get_arguments().filter(is_shown).cloned().collect();
            let (left_out, shown): (Vec<_>, Vec<_>) =
                options.into_iter().partition(|option| option.is_hide_short_help_set());
            assert_eq!(shown.len(), count, "{name}");
            for option in left_out.iter().filter_map(Arg::get_long) {
                let mentions = short.split_whitespace().filter(|word| *word == format!("--{option}")).count();
                assert!(mentions > 0, "{name}: --{option} in {short}");
            }
            assert!(short.lines().count() <= 80, "{name}: {short}");
        }
    }

    /// Tables of SQL are the only other texts that have the words of the format.
    #[test]
    fn help_calls_what_is_recorded_a_program_and_what_is_missing_lost() {
        let mut parser = crate::args::parsing::parser();
        parser.build();
        let mut texts = vec![("trace", commands()), ("trace", plumbing())];
        let helps = parser.get_subcommands_mut().map(|command| {
            let help = command.render_help().to_string() + &command.render_long_help().to_string();
            (command.get_name(), help)
        });
        texts.extend(helps);
        assert!(texts.len() > 25, "{}", texts.len());
        for (command, text) in texts.iter().filter(|(command, _)| *command != "query") {
            let words = text.split(|letter: char| !letter.is_alphanumeric() && !"_-".contains(letter));
            let found = words
                .map(str::to_lowercase)
                .find(|word| ["provider", "providers", "dropped", "drops"].contains(&word.as_str()));
            assert_eq!(found, None, "{command}: {text}");
        }
    }

    /// A line that is folded is not the command that is pasted from it.
    #[test]
    fn examples_are_not_folded() {
        let mut parser = crate::args::parsing::parser();
        parser.build();
        for command in parser.get_subcommands() {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in text.lines().filter(|line| line.starts_with("  trace ")) {
                assert!(line.chars().count() <= 80, "{}: {line}", command.get_name());
            }
        }
    }

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
