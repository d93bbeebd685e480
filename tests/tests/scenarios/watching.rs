//! `trace live` in a terminal, and its lines of JSON.

use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use trace_tests::build::program;
use trace_tests::sandbox::{Process, kill};
use trace_tests::screen::Screen;
use trace_tests::{Archive, Requirement, Sandbox, wait_for};

/// A sandbox with a file that `living` waits for, and the line that runs it.
fn living(rounds: u64) -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    fs::write(sandbox.file("wait"), "").unwrap();
    let line = format!("{} wait {rounds}", program("living").display());
    (sandbox, line)
}

/// The words of the line of a screen that begins so.
fn words<'a>(screen: &'a str, first: &str) -> Vec<&'a str> {
    let line = screen.lines().find(|line| line.starts_with(first)).unwrap_or_default();
    line.split_whitespace().collect()
}

/// How many durations, halves of operations and samples of a counter a file has.
fn recorded(sandbox: &Sandbox, file: &str) -> [usize; 3] {
    let archive = Archive::read(&sandbox.file(file));
    ["work", "request", "queue"]
        .map(|name| archive.events.iter().filter(|event| event.name() == name).count())
}

//= docs/live.md#what-is-shown
#[test]
fn the_screen_has_exact_counts_at_any_size_and_q_saves_the_recording() {
    if !Requirement::Terminal.is_met("the_screen_has_exact_counts_at_any_size_and_q_saves_the_recording") {
        return;
    }
    let (sandbox, line) = living(3);
    let screen = Screen::run(&sandbox, &format!("trace live -- {line}"), 110, 30);
    // While the durations are in the window.
    let text = screen.wait_for("all that is recorded", |text| {
        words(text, "living ").get(2) == Some(&"1,509")
            && words(text, "live/work ").get(2) == Some(&"1,500")
            && words(text, "live/queue depth").get(3) == Some(&"3")
    });
    let [name, pid, records, _, _, percent, dropped, missed] = words(&text, "living ")[..] else {
        panic!("{text}")
    };
    assert_eq!((name, records, percent, dropped, missed), ("living", "1,509", "%", "0", "0"), "{text}");
    assert!(fs::read_to_string(format!("/proc/{pid}/comm")).unwrap().starts_with("living"), "{text}");
    assert!(text.starts_with("trace live: started, streaming | 1 program | "), "{text}");
    assert_eq!(words(&text, "live/request")[1..3], ["living", "3"], "{text}");
    assert_eq!(words(&text, "live/queue depth")[2..4], ["living", "3"], "{text}");
    // What the program prints does not disturb the screen.
    assert!(!text.contains("printed"), "{text}");
    screen.resize(34, 9);
    // Until it is drawn again, what stands there is the wide screen, cut by the terminal.
    let narrow = screen.wait_for("a narrow screen", |text| {
        text.starts_with("trace live: started, streaming | …") && text.contains("1,509")
    });
    assert!(narrow.lines().all(|line| line.chars().count() <= 34), "{narrow}");
    assert!(narrow.lines().count() <= 9 && !narrow.contains("pid"), "{narrow}");
    screen.resize(110, 30);
    screen.wait_for("the wide screen again", |text| words(text, "program").contains(&"pid"));
    screen.press(&["q"]);
    let end = screen.wait_for("the end", |text| text.contains("exit code:"));
    assert!(end.contains("exit code: 0"), "{end}");
    assert!(end.contains("printed by the program") && end.contains("1509 events"), "{end}");
    assert!(screen.is_restored());
    assert_eq!(recorded(&sandbox, "trace.fxt"), [1500, 6, 3]);
}

#[test]
fn ctrl_c_saves_the_recording_and_the_end_of_the_command_ends_the_screen() {
    if !Requirement::Terminal.is_met("ctrl_c_saves_the_recording_and_the_end_of_the_command_ends_the_screen")
    {
        return;
    }
    for is_interrupted in [true, false] {
        let (sandbox, line) = living(1);
        let screen = Screen::run(&sandbox, &format!("trace live -o a.fxt -- {line}"), 80, 24);
        screen.wait_for("all that is recorded", |text| words(text, "living ").get(2) == Some(&"503"));
        match is_interrupted {
            true => screen.press(&["C-c"]),
            false => fs::remove_file(sandbox.file("wait")).unwrap(),
        }
        let end = screen.wait_for("the end", |text| text.contains("exit code:"));
        assert!(end.contains("exit code: 0"), "{end}");
        assert!(screen.is_restored());
        assert_eq!(recorded(&sandbox, "a.fxt"), [500, 2, 1]);
    }
}

/// One that was running goes on; Tab shows one program alone.
//= docs/live.md#watching-a-recording
#[test]
fn the_running_recording_is_shown_and_goes_on() {
    if !Requirement::Terminal.is_met("the_running_recording_is_shown_and_goes_on") {
        return;
    }
    let (sandbox, _) = living(1);
    let started = sandbox.trace(["start", "--buffering-mode", "oneshot", "-o", "b.fxt"]);
    assert!(started.status.success(), "{started:?}");
    let spawn = || {
        let file = sandbox.file("wait");
        let mut living: Process = sandbox.spawn_recorded("living", &[file.to_str().unwrap()]);
        assert_eq!(living.line(), "printed by the program");
        living
    };
    let (first, second) = (spawn(), spawn());
    let screen = Screen::run(&sandbox, "trace live", 120, 24);
    let text = screen.wait_for("both programs", |text| text.matches(" 503 ").count() == 2);
    assert!(text.starts_with("trace live: started, oneshot | 2 programs | "), "{text}");
    screen.press(&["Tab"]);
    let only = format!("only living (pid {})", first.pid());
    // The title is drawn before the programs.
    let is_alone = |text: &str| text.contains(&only) && text.matches(" 503 ").count() == 1;
    screen.wait_for("the first program alone", is_alone);
    screen.press(&["Down", "Tab"]);
    screen.wait_for("both again", |text| text.matches(" 503 ").count() == 2 && !text.contains("only"));
    screen.press(&["q"]);
    let end = screen.wait_for("the end", |text| text.contains("exit code:"));
    assert!(end.contains("trace: the recording goes on") && end.contains("exit code: 0"), "{end}");
    drop(screen);
    // When the recording ends, so does the screen.
    let screen = Screen::run(&sandbox, "trace live", 120, 24);
    screen.wait_for("both programs", |text| text.matches(" 503 ").count() == 2);
    fs::remove_file(sandbox.file("wait")).unwrap();
    first.succeed();
    second.succeed();
    assert!(sandbox.trace(["stop"]).status.success());
    let end = screen.wait_for("the end", |text| text.contains("exit code:"));
    assert!(end.contains("trace: the recording has ended") && end.contains("exit code: 0"), "{end}");
    assert_eq!(recorded(&sandbox, "b.fxt"), [1000, 4, 2]);
}

//= docs/live.md#without-a-terminal
//= docs/json.md#live
#[test]
fn without_a_terminal_there_are_lines_of_json() {
    let (sandbox, line) = living(2);
    let refused = sandbox.trace(["live"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let text = "trace: stdout is not a terminal: --json prints a line for each update\n";
    assert_eq!(String::from_utf8_lossy(&refused.stderr), text);
    let arguments: Vec<&str> =
        ["live", "--json", "--interval", "50ms", "--"].into_iter().chain(line.split(' ')).collect();
    let mut live = sandbox.spawn("trace", &arguments);
    let last = wait_for("all that is recorded", || {
        let line: Value = serde_json::from_str(&live.line()).unwrap();
        let is_there = line["programs"][0]["records"] == 1006 && line["programs"][0]["events"] == 1006;
        // They are in the window, unless the machine is too busy for five seconds.
        (is_there && line["durations"].as_array().is_some_and(|rows| rows.len() == 2)).then_some(line)
    });
    let program = &last["programs"][0];
    for (member, value) in
        [("name", Value::from("living")), ("lost", Value::from(0)), ("missed", Value::from(0))]
    {
        assert_eq!(program[member], value, "{last}");
    }
    assert_eq!((&last["version"], &last["state"]), (&1.into(), &"started".into()));
    assert_eq!(last["counters"][0]["last"], 2.0);
    let mut counts: Vec<_> = last["durations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["name"].as_str(), row["count"].as_u64()))
        .collect();
    counts.sort_unstable();
    assert_eq!(counts, [(Some("request"), Some(2)), (Some("work"), Some(1000))]);
    live.signal(Signal::TERM);
    let output = live.finish();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("printed by the program"), "{output:?}");
    assert_eq!(recorded(&sandbox, "trace.fxt"), [1000, 4, 2]);
}

#[test]
fn what_is_in_the_way_or_goes_away_is_reported() {
    let (sandbox, line) = living(1);
    let started = sandbox.trace(["start", "-o", "b.fxt"]);
    assert!(started.status.success(), "{started:?}");
    // A recording of programs that run.
    let refused = sandbox.trace(["live", "--json", "-o", "a.fxt"]);
    assert_eq!(refused.status.code(), Some(125), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("; trace stop ends it"), "{refused:?}");
    let beside =
        [&["live", "--json", "-o", "a.fxt", "--"][..], &line.split(' ').collect::<Vec<_>>()].concat();
    let mut live = sandbox.spawn("trace", &beside);
    let program = wait_for("its program", || {
        let line: Value = serde_json::from_str(&live.line()).unwrap();
        (line["programs"][0]["records"] == 503).then(|| line["programs"][0].clone())
    });
    let listed: Value = trace_tests::json(&sandbox.trace(["list-programs", "--json"]));
    assert_eq!(
        (&listed[0]["pid"], &listed[0]["recorded_by"]),
        (&program["pid"], &live.pid().into()),
        "{listed}"
    );
    fs::remove_file(sandbox.file("wait")).unwrap();
    let output = live.finish();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.starts_with("trace: another recording is running: this recording has a manager of its own, for"),
        "{said}"
    );
    assert_eq!(recorded(&sandbox, "a.fxt"), [500, 2, 1]);
    let mut live = sandbox.spawn("trace", &["live", "--json"]);
    let first: Value = serde_json::from_str(&live.line()).unwrap();
    assert_eq!(first["programs"], serde_json::json!([]));
    kill(sandbox.manager_pid().unwrap(), Signal::KILL);
    let output = live.finish();
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("the trace manager closed the connection"),
        "{output:?}"
    );
}
