//! Messages of the `log` crate.

use trace_tests::Sandbox;

/// The program's messages as thread and text, threads with letters; and what the program printed.
fn record(mode: &str, options: &[&str]) -> (Vec<(char, String)>, String) {
    let sandbox = Sandbox::new();
    let output = sandbox.record(&[&["-o", "log.fxt"], options].concat(), "logging", &[mode]);
    let printed = String::from_utf8(output.stdout).unwrap();
    let output = sandbox.trace(["check", "log.fxt"]);
    assert!(output.status.success(), "{mode}: {output:?}");
    let rows =
        sandbox.trace(["query", "--format", "json", "SELECT tid, message FROM logs ORDER BY ts", "log.fxt"]);
    assert!(rows.status.success(), "{rows:?}");
    let rows: serde_json::Value = trace_tests::json(&rows);
    let mut threads = Vec::new();
    let messages = rows.as_array().unwrap().iter().map(|row| {
        let thread = row["tid"].as_u64().unwrap();
        let number = threads.iter().position(|known| *known == thread).unwrap_or_else(|| {
            threads.push(thread);
            threads.len() - 1
        });
        ((b'A' + number as u8) as char, row["message"].as_str().unwrap().to_owned())
    });
    (messages.collect(), printed)
}

fn expected(detail: &str, formatted: u32) -> Vec<(char, String)> {
    let long = format!("WARN quiet: {}", "long ".repeat(300));
    let of_long_target = format!("INFO {}", "t".repeat(31_995));
    let of_empty_message = format!("WARN quiet:  error={formatted}");
    [
        ('A', "ERROR logging: no room for \"file\""),
        ('A', "WARN net: retrying in 5 s"),
        ('A', "INFO quiet: one literal"),
        ('A', "DEBUG net: packet 0"),
        ('A', detail),
        ('A', &long),
        ('B', "INFO net: elsewhere"),
        ('A', &of_long_target),
        ('A', "INFO net: connected port=80 host=a host state=Some(1) ok=true"),
        ('A', &of_empty_message),
    ]
    .into_iter()
    .filter(|(_, text)| !text.is_empty())
    .map(|(thread, text)| (thread, text.to_owned()))
    .collect()
}

#[test]
fn messages_are_records_of_their_threads() {
    let (messages, printed) = record("alone", &[]);
    assert_eq!(messages, expected("", 1));
    assert_eq!(printed, "0 2 0\ntrue true true true 0\n");
}

/// The program's own logger gets what it would get alone, and no more: nothing is asked before, as `log`'s
/// macros do not ask.
#[test]
fn another_logger_gets_what_it_has_asked_for() {
    let (messages, printed) = record("beside", &[]);
    assert_eq!(messages, expected("TRACE net: detail 1", 2));
    assert_eq!(printed, "4 3 0\ntrue true true true 0\n");
}

#[test]
fn targets_are_categories() {
    let (messages, printed) = record("beside", &["--categories", "net"]);
    let only = |(_, text): &(char, String)| text.contains(" net: ");
    let of_net: Vec<_> = expected("TRACE net: detail 1", 2).into_iter().filter(only).collect();
    assert_eq!(messages, of_net);
    assert_eq!(printed, "4 2 0\nfalse true false false 2\n");
}

/// Without a recording nothing is formatted for one.
#[test]
fn without_a_recording_nothing_is_formatted() {
    let sandbox = Sandbox::new();
    for (mode, printed) in
        [("alone", ["0 0 0", "false false false false 0"]), ("beside", ["4 0 0", "false true false false 2"])]
    {
        let mut program = sandbox.spawn("logging", &[mode]);
        assert_eq!([program.line(), program.line()], printed, "{mode}");
        program.succeed();
    }
}
