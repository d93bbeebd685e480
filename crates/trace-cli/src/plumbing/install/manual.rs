//! Manual pages: what the parser knows, and what all commands have in common.

use crate::args::help;
use crate::shell::exit;
use clap::{Arg, Command};
use clap_mangen::Man;
use roff::{Inline, Roff, bold, italic, roman};
use std::io;

/// Variables of the environment, and what they do.
//= docs/command-line.md#environment
const ENVIRONMENT: &[(&str, &str)] = &[
    ("TRACE_RUNTIME_DIR", "the directory in which programs and commands find the manager"),
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
    page.render_options_section(&mut text)?;
    if command.has_subcommands() {
        page.render_subcommands_section(&mut text)?;
    }
    let mut roff = Roff::new();
    for example in examples {
        let (_, lines) = example.split_once('\n').unwrap_or_default();
        roff.control("SH", ["EXAMPLES"]).control("nf", []);
        lines.lines().for_each(|line| _ = roff.text([roman(line)]));
        roff.control("fi", []);
    }
    roff.control("SH", ["EXIT STATUS"]);
    exit_codes.into_iter().for_each(|codes| paragraph(&mut roff, codes));
    list(&mut roff, exit::TABLE);
    roff.control("SH", ["ENVIRONMENT"]);
    list(&mut roff, ENVIRONMENT);
    roff.control("SH", ["FILES"]);
    list(&mut roff, FILES);
    roff.control("SH", ["SEE ALSO"]).text(see_also(title, command.get_name()));
    roff.to_writer(&mut text)?;
    Ok(text)
}

fn paragraph(roff: &mut Roff, text: &str) {
    roff.control("PP", []).text([roman(text)]);
}

fn list(roff: &mut Roff, entries: &[(&str, &str)]) {
    for (name, meaning) in entries {
        roff.control("TP", []).text([bold(*name)]).text([roman(*meaning)]);
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
    vec![roman(before), italic(names), roman(behind)]
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
