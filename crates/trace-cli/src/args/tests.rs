//! The command line: its definition, and the errors about it.

use super::parsing::line;
use super::*;
use clap::CommandFactory;
use std::ffi::OsString;

#[test]
fn the_definition_is_consistent() {
    Cli::command().debug_assert();
}

/// Options that `start` refuses, or that are for commands.
#[test]
fn start_offers_what_it_takes() {
    let mut command = Cli::command();
    let help = command.find_subcommand_mut("start").expect("start").render_long_help().to_string();
    for option in ["[COMMAND]", "--max-size", "--detach", "--append-args"] {
        assert!(!help.contains(option), "{option}");
    }
    assert!(help.contains("--duration"));
}

#[test]
fn every_command_has_examples() {
    for command in Cli::command().get_subcommands() {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(help.contains("Example"), "{}", command.get_name());
    }
}

//= docs/command-line.md#names
#[test]
fn what_cannot_be_stdout_is_refused() {
    let commands: [&[&str]; 9] = [
        &["assert", "--junit", "-", "a.fxt", "lost == 0"],
        &["ab", "--junit", "-", "--judge", "runs"],
        &["ab", "--save-runs", "-", "--", "true", "--", "true"],
        &["convert", "--system-event-output-file", "-", "a.fxt"],
        &["man", "-"],
        &["measure", "--spec-file", "s", "--benchmark-results-file", "-", "a.fxt"],
        &["query", "--save", "-", "a.fxt"],
        &["record", "--spec-file", "s", "--benchmark-results-file", "-"],
        &["start", "--spec-file", "s", "--benchmark-results-file=-"],
    ];
    for arguments in commands {
        let parsed = Cli::try_parse_from([&["trace"], arguments].concat());
        let why = parsed.map(|_| ()).unwrap_err().to_string();
        assert!(why.contains("this cannot be written to stdout: expected a name"), "{arguments:?}: {why}");
    }
    assert!(Cli::try_parse_from(["trace", "man", "./-"]).is_ok());
}

/// An option, a wrong value, and what the error says besides naming both.
#[test]
fn a_wrong_value_is_named_with_its_option_and_what_would_be_right() {
    let size = "expected a size from 1 to 4096 MiB, such as 4 (mebibytes), 64MiB or 1GiB";
    let time = "expected a time above 0, such as 10s, 500ms, 1.5 (seconds) or 2m";
    let modes = "[possible values: oneshot, circular, streaming]";
    let formats = "[possible values: fxt, catapult, chrome, perfetto, folded]";
    let truth = "[possible values: true, false]";
    let table = [
        ("record", "--buffer-size", "0", size),
        ("record", "--buffer-size", "4kB", size),
        ("record", "--program-buffer-size", "app", "expected NAME:SIZE, such as app:64MiB"),
        ("record", "--program-buffer-size", "app:big", size),
        ("record", "--buffering-mode", "ring", modes),
        ("record", "--duration", "soon", time),
        ("record", "--start-timeout", "0", time),
        ("record", "--stop-timeout", "-1", time),
        ("record", "--max-size", "0", "expected a size above 0, such as 500 (mebibytes), 64KiB or 2GB"),
        ("record", "--trigger", "stall", "expected CONDITION:ACTION, such as stall:stop"),
        ("record", "--trigger", "stall:go", "expected stop, snapshot or dump-memory"),
        ("record", "--categories", "a b", "no blanks or quotes, and * only at the end"),
        ("record", "--categories", ",", "leave the option out to record all"),
        ("record", "--format", "xml", formats),
        ("record", "--detach", "maybe", truth),
        ("record", "--decouple", "1", truth),
        ("record", "--manager-fd", "7", truth),
        ("record", "--return-child-result", "no", truth),
        ("record", "--no-metadata", "x", truth),
        ("record", "--no-verify-trace", "x", truth),
        ("record", "--compress", "lzma", "expected gzip, zstd, zstd:LEVEL"),
        ("record", "--compress", "zstd:20", "(from -7, the fastest, to 19), true or false"),
        ("record", "--compress", "zstd:0", "expected gzip, zstd, zstd:LEVEL"),
        ("start", "--duration", "x", time),
        ("snapshot", "--last", "x", time),
        ("manager", "--idle-timeout", "x", time),
        ("list-programs", "--machine", "xml", "[possible values: json]"),
        ("check", "--allow", "los", "no such kind of problem"),
        ("check", "--table-size", "0", "expected a whole number above 0, such as 24"),
        ("record", "--profile", "0", "expected 1 to 100000"),
        ("check", "--open-spans", "many", "expected a whole number, such as 1000"),
        ("recover", "--older-than", "x", "expected a whole number of days, such as 7"),
    ];
    for (command, option, value, expected) in table {
        let argument = format!("{option}={value}");
        let error = Cli::try_parse_from(["trace", command, &argument]).unwrap_err();
        let line = line(&error, []);
        assert_eq!(line.lines().count(), 1);
        for word in [option, value.split(',').next().unwrap_or_default(), expected] {
            assert!(line.contains(word), "{command} {argument}: no {word:?} in {line}");
        }
    }
}

#[test]
fn a_near_miss_gets_a_suggestion() {
    let error_line = |arguments: &[&str]| {
        let error = Cli::try_parse_from(arguments).unwrap_err();
        line(&error, arguments.iter().map(OsString::from))
    };
    let text = error_line(&["trace", "recrd"]);
    assert!(text.contains("unrecognized subcommand 'recrd'") && text.contains("'record'"), "{text}");
    let text = error_line(&["trace", "record", "--buffersize", "4"]);
    assert!(text.contains("--buffersize") && text.contains("'--buffer-size'"), "{text}");
    let text = error_line(&["trace", "record", "-o", "-dash.fxt"]);
    assert!(text.ends_with("begins with a hyphen, use -o ./-NAME"), "{text}");
    let text = error_line(&["trace", "record", "-b", "64", "--", "x"]);
    assert_eq!(
        text,
        "unexpected argument '-b' found; there are --buffer-size, --buffering-mode, --benchmark-results-file"
    );
    assert_eq!(error_line(&["trace", "stats", "-5"]), "unexpected argument '-5' found");
    assert!(error_line(&["trace", "record", "--last", "3"]).ends_with("'--last' found"));
    let text = error_line(&["trace", "stop", "--abort", "-o", "x"]);
    assert!(text.contains("cannot be used with"), "{text}");
}

#[test]
fn kinds_of_problem_are_known() {
    assert_eq!(problem_kind("loss"), Ok("loss".to_owned()));
    assert!(problem_kind("los").unwrap_err().to_string().contains("end-before-begin, loss, lost"));
    let cli = Cli::try_parse_from(["trace", "check", "--allow", "loss,lost", "x"]);
    let Command::Check(check) = cli.unwrap().command else { panic!("check was asked for") };
    assert_eq!(
        (check.allow, check.open_spans, check.table_size),
        (vec!["loss".into(), "lost".into()], 200_000, 24)
    );
}

#[test]
fn what_follows_the_command_is_the_commands() {
    let cli = Cli::try_parse_from(["trace", "record", "--duration", "1", "--", "app", "--categories", "x"]);
    let Command::Record(record) = cli.unwrap().command else { panic!("record was asked for") };
    let recording = record.recording;
    assert_eq!(recording.command, ["app", "--categories", "x"]);
    assert_eq!((recording.categories, recording.output), (None, None));
    let cli = Cli::try_parse_from(["trace", "record", "app", "--categories", "x"]);
    let Command::Record(record) = cli.unwrap().command else { panic!("record was asked for") };
    assert_eq!(record.recording.command, ["app", "--categories", "x"]);
    assert!(Cli::try_parse_from(["trace", "record", "--unknown", "app"]).is_err());
}
