//! Dumps of memory: on request, again and again, by alerts.

use std::collections::BTreeMap;
use trace_format::event::EventKind;
use trace_tests::archive::Value;
use trace_tests::build::program;
use trace_tests::{Archive, Sandbox, wait_for};

/// Of each dump of a provider: level, and values by name.
type Dumps = BTreeMap<u64, (String, BTreeMap<String, u64>)>;

fn dumps(archive: &Archive, provider: &str) -> Dumps {
    let mut dumps = Dumps::new();
    let mut current = None;
    let is_it = |event: &&trace_tests::archive::Event| archive.providers[&event.provider] == provider;
    for event in archive.events.iter().filter(is_it).filter(|event| event.name() != "alert") {
        assert_eq!(event.event.category.as_bytes(), b"memory_dump");
        match event.event.kind {
            EventKind::DurationBegin => {
                let Some(Value::String(level)) = event.event.argument("level") else { panic!("{event:?}") };
                let before = dumps.insert(event.u64("dump"), (level.to_str().into_owned(), BTreeMap::new()));
                assert_eq!((event.name().as_str(), before, current), ("memory dump", None, None));
                current = Some(event.u64("dump"));
            }
            EventKind::Counter { id: 0 } => {
                let (_, values) = dumps.get_mut(&current.expect("inside of a dump")).unwrap();
                assert_eq!(values.insert(event.name(), event.u64("bytes")), None);
            }
            EventKind::DurationEnd => current = None,
            _ => panic!("{event:?}"),
        }
    }
    assert_eq!(current, None);
    dumps
}

fn expected(dump: u64, is_detailed: bool, bytes: u64) -> (u64, (String, BTreeMap<String, u64>)) {
    let mut values = BTreeMap::from([("cache".to_owned(), bytes), ("last dump".to_owned(), dump)]);
    if is_detailed {
        values.insert("cache/images".to_owned(), bytes / 2);
    }
    (dump, (if is_detailed { "detailed" } else { "light" }.to_owned(), values))
}

//= docs/recording.md#memory-dumps
//= docs/protocol.md#memory-dumps
#[test]
fn programs_are_asked_all_at_one_moment_and_say_it_with_one_number() {
    let sandbox = Sandbox::new();
    let _manager = sandbox.spawn("trace", &["manager"]);
    let mut programs =
        [("one", "1000"), ("two", "2000")].map(|(name, bytes)| sandbox.spawn("memory", &[name, bytes]));
    programs.iter_mut().for_each(|program| assert_eq!(program.line(), "ready"));
    // One that has nothing to say.
    let mut plain = sandbox.spawn("emit", &["1", "1", "--wait"]);
    plain.line();
    let listed = || {
        String::from_utf8(sandbox.trace(["list-programs", "--json"]).stdout)
            .unwrap()
            .matches("\"pid\"")
            .count()
    };
    wait_for("all programs to be known", || (listed() == 3).then_some(()));
    let refused = sandbox.trace(["dump-memory"]);
    assert_eq!(refused.status.code(), Some(5), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("nothing is being recorded"), "{refused:?}");

    let started = sandbox.trace(["start", "--categories", "memory_dump", "-o", "trace.fxt"]);
    assert!(started.status.success(), "{started:?}");
    for (arguments, answer) in [
        (&["dump-memory"][..], "memory dump 1: written by 2 of 3 programs\n"),
        (&["dump-memory", "--detailed"], "memory dump 2: written by 2 of 3 programs\n"),
    ] {
        let output = sandbox.trace(arguments);
        assert_eq!(String::from_utf8_lossy(&output.stdout), answer, "{output:?}");
    }
    for program in &mut programs {
        assert_eq!([program.line(), program.line()], ["dump 1", "dump 2"]);
    }
    assert!(sandbox.trace(["stop"]).status.success());
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    for (name, bytes) in [("one", 1000), ("two", 2000)] {
        assert_eq!(
            dumps(&archive, name),
            Dumps::from([expected(1, false, bytes), expected(2, true, bytes)]),
            "{name}"
        );
    }
    assert_eq!(dumps(&archive, "emit"), Dumps::new());
}

//= docs/recording.md#memory-dumps
#[test]
fn dumps_are_taken_again_and_again_and_at_alerts() {
    let sandbox = Sandbox::new();
    let program = program("memory").to_str().unwrap();
    let options = ["record", "--categories", "memory_dump,memory", "--memory-dump-interval", "20ms"];
    let more = ["--trigger", "much:dump-memory", "--", program, "one", "1000"];
    let mut recording = sandbox.spawn("trace", &[&options[..], &more].concat());
    assert_eq!(recording.line(), "ready");
    // At its own intervals first.
    let number = |line: String| line.strip_prefix("dump ").expect("a dump").parse::<u64>().unwrap();
    let regular = [(); 3].map(|()| number(recording.line()));
    assert!(regular[0] < regular[1] && regular[1] < regular[2], "{regular:?}");
    recording.say("go");
    let said = wait_for("the dump at the alert", || {
        let said = recording.stderr_so_far();
        said.contains("trace: alert much: memory dump ").then_some(said)
    });
    recording.close_stdin();
    let output = recording.finish();
    assert!(output.status.success(), "{output:?}");
    let at_alert: u64 = said
        .split("memory dump ")
        .nth(1)
        .and_then(|rest| rest.lines().next()?.trim().parse().ok())
        .expect("its number");
    let found = dumps(&Archive::read(&sandbox.file("trace.fxt")), "one");
    assert_eq!(found.get(&at_alert), Some(&expected(at_alert, true, 1000).1), "{found:?}");
    assert!(regular.iter().all(|dump| found.contains_key(dump)), "{found:?}, {regular:?}");
    for (dump, found) in &found {
        assert_eq!(found, &expected(*dump, *dump == at_alert, 1000).1);
    }
}
