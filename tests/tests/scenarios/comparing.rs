//! `trace ab`: two commands in turns, and recordings that were kept.

use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::process::Output;
use trace_tests::build::program;
use trace_tests::{Sandbox, wait_for};

/// What a trace of one run has: durations by name, with their begin and their length in microseconds.
type Durations<'a> = &'a [(&'a str, f64, f64)];

/// A directory of recordings, made by hand.
fn keep(sandbox: &Sandbox, pairs: usize, run: impl Fn(usize, bool) -> Vec<Value>) {
    let directory = sandbox.file("runs");
    fs::create_dir(&directory).unwrap();
    for pair in 1..=pairs {
        for (side, is_new) in [("old", false), ("new", true)] {
            let text = Value::from(run(pair, is_new)).to_string();
            fs::write(directory.join(format!("{pair:04}-{side}.fxt")), text).unwrap();
        }
    }
}

fn durations(of: Durations<'_>) -> Vec<Value> {
    let event = |(name, begin, length): &(&str, f64, f64)| json!({"ph": "X", "pid": 1, "tid": 2, "ts": begin, "dur": length, "name": name, "cat": "c"});
    of.iter().map(event).collect()
}

/// A run whose `draw` takes a tenth longer with the new command, which `frame` contains together with `load`.
fn slower(pair: usize, is_new: bool) -> Vec<Value> {
    let noise = (pair * 7 % 5) as f64 * 0.1;
    let draw = if is_new { 110.0 } else { 100.0 } + noise;
    durations(&[("draw", 1010.0, draw), ("load", 1300.0, 50.0), ("frame", 1000.0, 400.0 + draw)])
}

fn outcome(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn judged(sandbox: &Sandbox, arguments: &[&str]) -> (Option<i32>, Value) {
    let (code, stdout, stderr) = outcome(&sandbox.trace([&["ab", "--json"][..], arguments].concat()));
    assert!(!stdout.is_empty(), "{stderr}");
    (code, trace_tests::Answer::parse(&stdout).into_result())
}

//= docs/ab.md#verdicts
//= docs/ab.md#parts
//= docs/ab.md#json
#[test]
fn what_takes_longer_is_found_with_the_part_that_carries_it() {
    let sandbox = Sandbox::new();
    keep(&sandbox, 20, slower);
    let output = sandbox.trace(["ab", "--judge", "runs", "--seed", "1", "--junit", "ab.xml"]);
    let (code, stdout, stderr) = outcome(&output);
    assert_eq!((code, stderr.as_str()), (Some(1), ""));
    let first = "20 runs of each, at most 20; p50; seed 1; changes up to 1 % do not count";
    assert_eq!(stdout.lines().next(), Some(first));
    let rows: Vec<Vec<&str>> =
        stdout.lines().skip(2).take(3).map(|line| line.split_whitespace().take(3).collect()).collect();
    assert_eq!(rows, [["slower", "c", "draw"], ["slower", "c", "frame"], ["same", "c", "load"]]);
    assert!(stdout.contains("\n  c:draw: its own time 100 % (+10 µs)\n"), "{stdout}");
    assert!(stdout.contains("\n  c:frame: c:draw 100 % (+10 µs)\n"), "{stdout}");
    assert!(stdout.ends_with("\nof 3 names: 2 slower, 1 same\n"), "{stdout}");
    let junit = fs::read_to_string(sandbox.file("ab.xml")).unwrap();
    assert!(junit.contains("tests=\"3\" failures=\"2\" errors=\"0\""), "{junit}");
    assert!(junit.contains("name=\"c:load\"><system-out>same: 0 %, between 0 % and 0 %<"), "{junit}");

    // What is inside of a selected duration is a part of it, whether it is selected or not.
    for (options, expected) in [
        (&["--name", "frame"][..], json!([["frame", ["draw", "load", null]]])),
        (&["--name", "-load", "--to", "5us"], json!([["frame", ["draw", "load", null]]])),
        (&["--from", "5us", "--thread", "2"], json!([["draw", [null]], ["load", []]])),
    ] {
        let (_, found) = judged(&sandbox, &[&["--judge", "runs"], options].concat());
        let names = found["names"].as_array().unwrap().iter().map(|of| {
            let parts = of["parts"].as_array().unwrap().iter().map(|part| part["name"].clone());
            json!([of["name"], parts.collect::<Vec<_>>()])
        });
        assert_eq!(names.collect::<Value>(), expected, "{options:?}");
    }

    // The other way round, nothing takes longer.
    for pair in 1..=20 {
        let path = |side: &str| sandbox.file(&format!("runs/{pair:04}-{side}.fxt"));
        fs::rename(path("old"), path("between")).unwrap();
        fs::rename(path("new"), path("old")).unwrap();
        fs::rename(path("between"), path("new")).unwrap();
    }
    let (code, found) = judged(&sandbox, &["--judge", "runs", "--seed", "1"]);
    assert_eq!((code, &found["verdict"]), (Some(0), &json!("passed")));
    let verdict = |name: &str| {
        let names = found["names"].as_array().unwrap();
        names.iter().find(|of| of["name"] == name).unwrap_or_else(|| panic!("{name}: {found}"))["verdict"]
            .clone()
    };
    assert_eq!([verdict("draw"), verdict("frame"), verdict("load")], ["faster", "faster", "same"]);
    assert_eq!(found["names"][0]["parts"][0]["change_ns"], -10_000.0);
    // Changes up to a fifth do not count.
    let (_, found) = judged(&sandbox, &["--judge", "runs", "--min-effect", "20%"]);
    assert_eq!(found["names"].as_array().unwrap().iter().filter(|name| name["verdict"] == "same").count(), 3);
}

//= docs/ab.md#statistics
#[test]
fn the_same_recordings_and_seed_give_the_same_results() {
    let sandbox = Sandbox::new();
    keep(&sandbox, 20, slower);
    let of = |seed: &str| outcome(&sandbox.trace(["ab", "--judge", "runs", "--seed", seed])).1;
    assert_eq!(of("7"), of("7"));
    assert_ne!(of("7"), of("8"));
    for (statistic, before) in
        [("total", 500_212.5), ("self", 350_000.0), ("count", 1.0), ("max", 500_212.5), ("mean", 500_212.5)]
    {
        let arguments = ["--judge", "runs", "--name", "frame", "--statistic", statistic];
        let found = judged(&sandbox, &arguments).1;
        assert_eq!(found["names"][0]["before"], before, "{statistic}");
        assert_eq!(found["names"].as_array().map(Vec::len), Some(1));
    }
}

/// Nothing is judged of what may be missing, and no name that is not always there.
//= docs/ab.md#verdicts
//= docs/ab.md#exit-codes
#[test]
fn what_cannot_be_judged_is_reported() {
    let sandbox = Sandbox::new();
    keep(&sandbox, 12, |pair, is_new| {
        let mut events = slower(1, false);
        if pair == 3 || is_new {
            events.extend(durations(&[("rare", 1.0, 2.0)]));
        }
        events
    });
    let (code, stdout, _) = outcome(&sandbox.trace(["ab", "--judge", "runs"]));
    assert_eq!(code, Some(0), "{stdout}");
    let rare = "not judged: c:rare: not in each run: in 1 of the old, 12 of the new\n";
    assert!(stdout.contains(rare), "{stdout}");
    // One that has not ended.
    let path = sandbox.file("runs/0002-new.fxt");
    let open = json!({"ph": "B", "pid": 1, "tid": 9, "ts": 1, "name": "draw", "cat": "c"});
    let mut events = slower(1, false);
    events.push(open);
    fs::write(&path, Value::from(events).to_string()).unwrap();
    let (code, stdout, _) = outcome(&sandbox.trace(["ab", "--judge", "runs"]));
    assert_eq!(code, Some(3), "{stdout}");
    assert!(
        stdout.contains("not judged: c:draw: incomplete: it has not ended in 1 of 24 runs\n"),
        "{stdout}"
    );
    assert!(stdout.ends_with("of 2 names: 2 same\n"), "{stdout}");
    // One with a malformed event: what was lost there may be of any name.
    fs::write(&path, r#"[{"ph": "X", "pid": 1, "tid": 2, "ts": 1, "dur": 1, "name": "draw"}, {"ph": "#)
        .unwrap();
    let (code, stdout, _) = outcome(&sandbox.trace(["ab", "--judge", "runs"]));
    assert_eq!(code, Some(3), "{stdout}");
    assert!(stdout.contains("\nlost: "), "{stdout}");
    assert!(stdout.contains("incomplete: events are missing in 1 of 24 runs\n"), "{stdout}");
    assert!(stdout.ends_with("incomplete: no name could be judged\n"), "{stdout}");
    // Too few runs to find anything.
    fs::remove_file(sandbox.file("runs/0009-new.fxt")).unwrap();
    fs::write(&path, Value::from(slower(1, false)).to_string()).unwrap();
    fs::remove_file(sandbox.file("runs/0010-new.fxt")).unwrap();
    let gap = outcome(&sandbox.trace(["ab", "--judge", "runs"]));
    assert_eq!(gap.0, Some(2), "{gap:?}");
    assert!(gap.2.contains("runs: pair 0009 is not complete, and later ones are there"), "{gap:?}");
    for pair in 10..=12 {
        for side in ["old", "new"] {
            let _ = fs::remove_file(sandbox.file(&format!("runs/{pair:04}-{side}.fxt")));
        }
    }
    let (code, stdout, _) = outcome(&sandbox.trace(["ab", "--judge", "runs"]));
    assert_eq!(code, Some(3), "{stdout}");
    assert!(stdout.ends_with("incomplete: 3 names need at least 12 runs of each\n"), "{stdout}");
}

//= docs/ab.md#exit-codes
#[test]
fn what_is_wrong_is_refused() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.file("full")).unwrap();
    fs::write(sandbox.file("full/x"), "").unwrap();
    let fifty = program("fifty").to_str().expect("UTF-8");
    for (arguments, text) in [
        (&["--", "a"][..], "there is only one command"),
        (&["--", "a", "--", "b", "--", "c"], "which -- separates the commands"),
        (&["--judge", "none"], "--judge none: No such file"),
        (&["--judge", "full"], "full: it has no recordings of trace ab --save-runs"),
        (&["--save-runs", "full", "--", "a", "--", "b"], "--save-runs full: the directory is not empty"),
        (&["--min-effect", "x", "--", "a", "--", "b"], "expected a percentage"),
        (&["--runs", "0", "--", "a", "--", "b"], "expected a whole number from 1 to 100000, such as 30"),
        (&["--runs", "99999999999", "--", "a", "--", "b"], "expected a whole number from 1 to 100000"),
        (&["--", "./none", "--", fifty], "warmup 1 of ./none (old): exit status 127"),
        (&["--warmup", "0", "--", fifty, "--", "sh", "-c", "exit 7"], "run 1 of sh (new): exit status 7"),
        // One that nothing was recorded of can't be compared.
        (&["--warmup", "0", "--", fifty, "--", "true"], "run 1 of true (new): exit status 5"),
    ] {
        let (code, stdout, stderr) = outcome(&sandbox.trace([&["ab"][..], arguments].concat()));
        let expected = if text.contains("exit status") { 125 } else { 2 };
        assert_eq!((code, stdout.as_str()), (Some(expected), ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains(text), "{arguments:?}: {stderr}");
    }
}

/// The order of runs, what is kept, and that a real change is found: its step does five times the work.
//= docs/ab.md#order-of-runs
//= docs/ab.md#recordings
#[test]
fn commands_run_in_blocks_and_a_slower_one_is_found() {
    let sandbox = Sandbox::new();
    let fifty = program("fifty");
    for (script, letter, slow) in [("old", "A", ""), ("new", "B", "'step 3' 400")] {
        let text = format!("printf {letter} >> order\nexec {} {slow}\n", fifty.display());
        fs::write(sandbox.file(script), text).unwrap();
    }
    let run = |more: &[&str]| {
        let options = ["--name", "step 3", "--runs", "12", "--seed", "5"];
        let arguments = [&options[..], more, &["--", "sh", "old", "--", "sh", "new"]].concat();
        judged(&sandbox, &arguments)
    };
    let (code, found) = run(&["--all-runs", "--save-runs", "kept"]);
    assert_eq!((code, &found["verdict"]), (Some(1), &json!("failed")), "{found}");
    assert_eq!((&found["runs"], &found["judged_runs"]), (&json!(12), &json!(12)));
    assert!(found["names"][0]["change"].as_f64().unwrap() > 1.0, "{found}");
    let order = fs::read_to_string(sandbox.file("order")).unwrap();
    // A warmup of each, and six blocks.
    assert_eq!(&order[..2], "AB");
    let blocks: Vec<&str> = (0..6).map(|block| &order[2 + 4 * block..6 + 4 * block]).collect();
    assert!(blocks.iter().all(|block| ["ABBA", "BAAB"].contains(block)), "{order}");
    assert!(blocks.contains(&"ABBA") && blocks.contains(&"BAAB"), "{order}");
    assert_eq!(order.len(), 26);
    // The same order again from the seed, and no more runs than it takes.
    fs::remove_file(sandbox.file("order")).unwrap();
    let (code, early) = run(&["--warmup", "0"]);
    assert_eq!((code, &early["verdict"]), (Some(1), &json!("failed")), "{early}");
    assert!(order[2..].starts_with(&fs::read_to_string(sandbox.file("order")).unwrap()[..8]));
    // What was kept is judged in the same way, with the seed that it was made with.
    assert_eq!(fs::read_dir(sandbox.file("kept")).unwrap().count(), 25);
    let (code, again) = judged(&sandbox, &["--judge", "kept", "--name", "step 3", "--all-runs"]);
    assert_eq!((code, again), (Some(1), found));
}

/// A first Ctrl-C lets the run end, and what there is then is judged.
//= docs/ab.md#order-of-runs
#[test]
fn an_interrupted_comparison_judges_what_there_is() {
    let sandbox = Sandbox::new();
    let fifty = program("fifty");
    // The third run tells that it runs, and waits.
    let text = format!(
        "printf x >> count\n[ $(wc -c < count) = 3 ] && {{ : > third; read line < gate; }}\nexec {}\n",
        fifty.display()
    );
    fs::write(sandbox.file("app"), text).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(sandbox.file("gate")).status().unwrap().success());
    let ab = sandbox.spawn("trace", &["ab", "--warmup", "0", "--", "sh", "app", "--", "sh", "app"]);
    wait_for("the third run", || sandbox.file("third").exists().then_some(()));
    ab.signal_group(Signal::INT);
    wait_for("the answer", || ab.stderr_so_far().contains("judging after this run").then_some(()));
    fs::write(sandbox.file("gate"), "go\n").unwrap();
    let output = ab.finish();
    let (code, stdout, _) = outcome(&output);
    assert_eq!(code, Some(3), "{stdout}");
    assert!(stdout.contains("\n1 run of each, at most 30; "), "{stdout}");
    assert_eq!(fs::read_to_string(sandbox.file("count")).unwrap().len(), 3);
}

/// Real comparisons, as many as `AB` says: of equal commands, and with three percent more work in one of
/// fifty names. Without `AB` it is one of each, whose results depend on the machine and are only printed.
//= docs/ab.md#false-alarms
#[test]
fn a_campaign_raises_few_alarms_and_finds_three_percent() {
    let trials = std::env::var("AB").map(|number| number.parse::<usize>().expect("AB is a number"));
    let count = *trials.as_ref().unwrap_or(&1);
    let fifty = program("fifty").to_str().expect("UTF-8");
    let sandbox = Sandbox::new();
    let (mut alarms, mut found, mut others) = (0, 0, 0);
    for trial in 0..count {
        let (code, equal) = judged(&sandbox, &["--", fifty, "--", fifty]);
        assert!(matches!(code, Some(0 | 1 | 3)), "{equal}");
        assert_eq!(equal["not_judged"], json!([]), "{equal}");
        let changed = |name: &&Value| name["verdict"] == "slower" || name["verdict"] == "faster";
        let names = |of: &Value| of["names"].as_array().expect("names").clone();
        alarms += usize::from(names(&equal).iter().any(|name| changed(&name)));
        let slow = format!("step {}", trial % 42);
        let (_, planted) = judged(&sandbox, &["--", fifty, "--", fifty, &slow, "3"]);
        let names = names(&planted);
        found += usize::from(
            names.iter().any(|name| name["name"] == slow.as_str() && name["verdict"] == "slower"),
        );
        // The stage and the frame around it take longer, too.
        let is_other = |name: &&Value| changed(name) && name["name"].as_str().unwrap().starts_with("step");
        others += usize::from(names.iter().any(|name| is_other(&name) && name["name"] != slow.as_str()));
    }
    println!("of {count} comparisons: {alarms} false alarms, {found} of 3 % found, {others} with others");
    if trials.is_ok() {
        assert!(alarms * 100 <= count && others * 100 <= count && found * 100 >= 95 * count);
    }
}
