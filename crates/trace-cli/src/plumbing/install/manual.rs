//! Manual pages: what the parser knows, and what all commands have in common.

use crate::args::help;
use crate::shell::exit;
use clap::{Arg, ArgAction, Command};
use clap_mangen::Man;
use roff::{Inline, Roff, bold, italic, roman};
use std::io;

/// Variables of the environment, and what they do.
//= docs/command-line.md#environment
const ENVIRONMENT: &[(&str, &str)] = &[
    (
        "TRACE_RUNTIME_DIR",
        "the directory in which programs and commands find the manager; a file is an error",
    ),
    ("TRACE_UI", "the directory of a copy of the Perfetto UI, for trace view"),
    ("TRACE_DEBUG_FILES", "directories of debug files, separated by colons, before /usr/lib/debug"),
    (
        "TRACE_STARTUP",
        "of a program: categories that it records from its first line, before a recording runs",
    ),
    ("TRACE_STARTUP_MODE", "of a program: oneshot or circular"),
    ("TRACE_STARTUP_BUFFER_SIZE", "of a program: the size of that buffer in MiB"),
    ("TRACE_STARTUP_FILE", "of a program: the file that it writes at its end"),
    ("TRACE_MARKERS", "of a program: always writes markers for other recorders of the kernel's trace"),
    ("TRACE_ECHO", "of a program: 1 or categories prints its events on stderr"),
    ("XDG_CONFIG_HOME", "where trace/config.toml is, by default ~/.config"),
    ("TMPDIR", "where large intermediate files are, which have no name"),
    ("NO_COLOR", "if it is not empty, text has no colours"),
    ("TERM", "dumb: no colours, and no lines that change"),
];

/// Files, and what they are.
const FILES: &[(&str, &str)] = &[
    ("trace.fxt", "the trace of a recording that names no file; trace-1.fxt and so on if it exists"),
    ("~/.config/trace/config.toml", "options of recordings"),
    ("/etc/trace/config.toml", "the same for all users"),
    ("/run/user/UID/trace", "the runtime directory, with what trace recover finds"),
];

/// Columns of an example, which `man` indents by seven in a terminal of 80.
const EXAMPLE_WIDTH: usize = 73;

/// The page of a command, or of the tool itself.
pub fn page(command: &Command, title: &str) -> io::Result<Vec<u8>> {
    // Only the version of the tool: the full one has a line for each protocol.
    let page = Man::new(command.clone())
        .title(title.to_uppercase())
        .section("1")
        .source(concat!("trace ", env!("CARGO_PKG_VERSION")))
        .manual("User Commands");
    let behind = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let has = |part: &str, headings: [&str; 2]| {
        part.split_once(':').is_some_and(|(heading, _)| headings.contains(&heading))
    };
    let (examples, rest): (Vec<&str>, Vec<&str>) =
        behind.split("\n\n").partition(|part| has(part, ["Example", "Examples"]));
    let (exit_codes, notes): (Vec<&str>, Vec<&str>) =
        rest.into_iter().partition(|part| has(part, ["Exit code", "Exit codes"]));
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    synopsis(command).to_writer(&mut text)?;
    page.render_description_section(&mut text)?;
    let mut roff = Roff::new();
    notes.into_iter().for_each(|note| paragraph(&mut roff, note));
    roff.to_writer(&mut text)?;
    let mut options = Vec::new();
    page.render_options_section(&mut options)?;
    // Options of a topic are options, too.
    let options = String::from_utf8_lossy(&options).replace("\n.SH ", "\n.SS ");
    text.extend(options.replacen(".SS OPTIONS", ".SH OPTIONS", 1).bytes());
    if command.has_subcommands() {
        page.render_subcommands_section(&mut text)?;
    }
    let mut roff = Roff::new();
    for example in examples {
        let (_, lines) = example.split_once('\n').unwrap_or_default();
        roff.control("SH", ["EXAMPLES"]).control("nf", []);
        let lines = lines.lines().flat_map(|line| example_lines(line.trim_end()));
        lines.for_each(|line| _ = roff.text([roman(line)]));
        roff.control("fi", []);
    }
    roff.control("SH", ["EXIT STATUS"]);
    exit_codes.into_iter().for_each(|codes| paragraph(&mut roff, codes));
    list(&mut roff, exit::rows_of(command.get_name()));
    roff.control("SH", ["ENVIRONMENT"]);
    list(&mut roff, ENVIRONMENT.iter().copied());
    roff.control("SH", ["FILES"]);
    list(&mut roff, FILES.iter().copied());
    roff.control("SH", ["SEE ALSO"]).text(see_also(title, command.get_name()));
    roff.to_writer(&mut text)?;
    Ok(text)
}

/// The lines of an example in a page, whose sections are indented: what it is for goes to a line of its own,
/// and a command continues behind a backslash, or within its quotes.
fn example_lines(example: &str) -> Vec<String> {
    let example = example.strip_prefix("  ").unwrap_or(example);
    if example.chars().count() <= EXAMPLE_WIDTH {
        return vec![example.to_owned()];
    }
    let (command, purpose) = example.trim_start().split_once("  ").unwrap_or((example, ""));
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut quote = None;
    for word in command.split(' ') {
        // Room for a blank and a backslash.
        if line.chars().count() + 1 + word.chars().count() + 2 > EXAMPLE_WIDTH {
            let end = if quote.is_none() { " \\" } else { "" };
            lines.push(std::mem::replace(&mut line, "   ".to_owned()) + end);
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        for char in word.chars().filter(|char| ['\'', '"'].contains(char)) {
            quote = match quote {
                None => Some(char),
                Some(open) if open == char => None,
                open => open,
            };
        }
    }
    lines.push(line);
    let purpose = purpose.trim();
    lines.extend((!purpose.is_empty()).then(|| format!("    {purpose}")));
    lines
}

fn paragraph(roff: &mut Roff, text: &str) {
    roff.control("PP", []).text([roman(text)]);
}

fn list(roff: &mut Roff, entries: impl Iterator<Item = (&'static str, &'static str)>) {
    for (name, meaning) in entries {
        roff.control("TP", []).text([bold(name)]).text([roman(meaning)]);
    }
}

/// Every option with its value.
fn synopsis(command: &Command) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    if command.has_subcommands() {
        roff.text([bold(name), roman(" "), italic("COMMAND"), roman(" [options]")]);
        return roff;
    }
    let mut words = vec![bold(name)];
    for option in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
        let (open, close) = if option.is_required_set() { (" ", "") } else { (" [", "]") };
        words.push(roman(open));
        if !option.is_positional() {
            let short = option.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
            words.push(bold(format!("{short}--{}", option.get_long().unwrap_or_default())));
        }
        words.extend(values(option));
        words.push(roman(close));
    }
    roff.text(words);
    roff
}

fn values(argument: &Arg) -> Vec<Inline> {
    if !argument.is_positional() && !argument.get_action().takes_values() {
        return Vec::new();
    }
    let before = match (argument.is_positional(), argument.is_require_equals_set()) {
        (true, _) => "",
        (_, true) => "[=",
        (_, false) => " ",
    };
    let behind = if before == "[=" { "]" } else { "" };
    let names = argument.get_value_names().unwrap_or_default();
    let names = names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" ");
    let is_list = argument.is_positional() && matches!(argument.get_action(), ArgAction::Append);
    vec![roman(before), italic(names), roman(if is_list { " ..." } else { behind })]
}

/// Links to the page of the tool and to the pages of the other commands of the group.
fn see_also(title: &str, command: &str) -> Vec<Inline> {
    let (tool, _) = title.split_once('-').unwrap_or((title, ""));
    let mut pages: Vec<String> = help::beside(command).map(|name| format!("{tool}-{name}")).collect();
    if title != tool {
        pages.insert(0, tool.to_owned());
    }
    let mut words = Vec::new();
    for page in pages {
        words.extend([roman(if words.is_empty() { "" } else { ", " }), bold(page), roman("(1)")]);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parsing::described;

    #[test]
    fn a_page_has_all_options_of_its_command() {
        let mut cli = described();
        cli.build();
        let mut most = 0;
        for command in cli.get_subcommands().filter(|command| !command.is_hide_set()) {
            let name = command.get_name();
            let text = String::from_utf8(page(command, name).unwrap()).unwrap().replace("\\-", "-");
            let options = text.split_once(".SH OPTIONS").map_or("", |(_, options)| options);
            let options = options.split("\n.SH ").next().unwrap();
            let shown = command.get_arguments().filter(|option| !option.is_hide_set());
            let shown: Vec<&str> = shown.filter_map(Arg::get_long).collect();
            for option in &shown {
                assert!(options.contains(&format!("\\fB--{option}\\fR")), "{name}: --{option}");
            }
            most = most.max(shown.len());
            let has_all = ["record", "start", "live"].contains(&name);
            assert_eq!(shown.contains(&"help-all"), has_all, "{name}");
        }
        // Of `record`, with --help and --help-all.
        assert_eq!(most, 45);
    }

    #[test]
    fn a_synopsis_says_what_may_be_repeated() {
        let mut cli = described();
        cli.build();
        let of = |name: &str| {
            let command = cli.find_subcommand(name).expect("a command");
            let text = String::from_utf8(page(command, name).unwrap()).unwrap();
            let (_, synopsis) = text.split_once(".SH SYNOPSIS").expect("a synopsis");
            synopsis.split("\n.SH ").next().unwrap().replace('\n', "")
        };
        for name in ["stats", "check", "dump", "measure", "report", "convert", "query"] {
            assert!(of(name).contains("..."), "{name}: {}", of(name));
        }
        for name in ["diff", "start", "doctor"] {
            assert!(!of(name).contains("..."), "{name}: {}", of(name));
        }
    }

    #[test]
    fn examples_fit_into_a_terminal() {
        let mut cli = described();
        cli.build();
        let mut count = 0;
        for command in cli.get_subcommands() {
            let behind = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let examples = behind.split("\n\n").filter(|part| part.starts_with("Example"));
            for line in examples.flat_map(|part| part.lines().skip(1)) {
                let lines = example_lines(line);
                let fits = |line: &String| line.chars().count() <= EXAMPLE_WIDTH;
                assert!(lines.iter().all(fits), "{}: {lines:#?}", command.get_name());
                count += 1;
            }
        }
        assert!(count > 50, "{count}");
        let query = "  trace query --format csv 'SELECT a, b FROM slices GROUP BY a, b ORDER BY a, b' trace.fxt > a.csv";
        let expected = [
            "trace query --format csv 'SELECT a, b FROM slices GROUP BY a, b ORDER",
            "    BY a, b' trace.fxt > a.csv",
        ];
        assert_eq!(example_lines(query), expected);
        let purpose =
            "  trace report --from 1.2s --to 1250ms trace.fxt -o frame.svg   a picture for a document";
        let expected =
            ["trace report --from 1.2s --to 1250ms trace.fxt -o frame.svg", "    a picture for a document"];
        assert_eq!(example_lines(purpose), expected);
        let long = format!("  trace record {} -- ./app", "--categories net ".repeat(4).trim_end());
        let expected = [
            "trace record --categories net --categories net --categories net \\",
            "    --categories net -- ./app",
        ];
        assert_eq!(example_lines(&long), expected);
    }
}
