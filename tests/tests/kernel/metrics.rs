//! Metrics of the system and of its processes.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use trace_format::event::EventKind;
use trace_tests::archive::{Event, Value};
use trace_tests::build::program;
use trace_tests::kernel::alone;
use trace_tests::{Archive, Requirement, Sandbox, wait_for};

/// Values of a counter, with their times in seconds.
fn values(archive: &Archive, name: &str, argument: &str, is_it: impl Fn(&Event) -> bool) -> Vec<(f64, f64)> {
    let of_name = archive.events.iter().filter(|event| event.name() == name && is_it(event));
    of_name
        .map(|event| {
            let value = match event.event.argument(argument) {
                Some(Value::Double(value)) => *value,
                Some(Value::Uint64(value)) => *value as f64,
                other => panic!("{name} {argument}: {other:?}"),
            };
            (event.event.nanos().0 as f64 / 1e9, value)
        })
        .collect()
}

/// Counters of a process's memory, with their arguments.
const MEMORY: [(&str, &str); 2] = [("resident memory", "anon"), ("proportional memory", "pss")];

/// Whether an event is about a process of a name; others on the machine may have the same.
fn is_of(archive: &Archive, name: &str, event: &Event) -> bool {
    archive.processes.get(&event.event.process.0).is_some_and(|found| found == name)
}

fn most(values: &[(f64, f64)]) -> f64 {
    values.iter().map(|(_, value)| *value).fold(0.0, f64::max)
}

/// Counters of which there is one in each sample.
const SERIES: [&str; 4] = ["cpus", "load", "memory", "page faults"];

//= docs/kernel.md#metrics
#[test]
fn figures_show_what_a_program_does() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    let script = "timeout 0.6 taskset -c 1 sh -c 'while :; do :; done'; \
                  echo begun; (head -c 64000000 /dev/zero; read end) | tail -c 64000000 > /dev/null";
    let mut recording = sandbox.spawn(
        "trace",
        &[
            "record",
            "--categories",
            "system_metrics,system_metrics:pss",
            "--sample-interval",
            "20ms",
            "--",
            "sh",
            "-c",
            script,
        ],
    );
    assert_eq!(recording.line(), "begun");
    // As much as can be counted again.
    let (from, to) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    for _ in 0..1000 {
        from.send_to(&[0; 1000], to.local_addr().unwrap()).unwrap();
    }
    // A busy machine takes its time to look at every process, and takes fewer samples in the same time.
    wait_for("the memory and enough samples", || {
        let archive = Archive::read_prefix(&sandbox.file("trace.partial.fxt"));
        let count = |name: &str| archive.events.iter().filter(|event| event.name() == name).count();
        let (cpu, _) = archive.threads.iter().find(|(_, name)| *name == "cpu-1")?;
        let of_cpu = archive
            .events
            .iter()
            .filter(|event| event.name() == "cpu" && event.event.thread.0 == *cpu)
            .count();
        let is_enough = of_cpu > 20 && SERIES.iter().all(|name| count(name) > 20);
        let is_there = |(name, argument)| {
            most(&values(&archive, name, argument, |event| is_of(&archive, "tail", event))) > 64e6
        };
        (is_enough && MEMORY.into_iter().all(is_there)).then_some(())
    });
    recording.say("end");
    let output = recording.finish();
    assert!(output.status.success(), "{output:?}");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("nothing of it"), "{output:?}");
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    let any = |_: &Event| true;

    let cpu = archive.threads.iter().find(|(_, name)| *name == "cpu-1").map(|(thread, _)| *thread).unwrap();
    let busy = values(&archive, "cpu", "busy", |event| event.event.thread.0 == cpu);
    assert!(busy.len() > 20 && most(&busy) > 90.0, "{busy:?}");
    // A fiftieth of a second apart, as was asked for; on a busy machine a multiple of it.
    let spans: Vec<f64> = busy.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    let mut sorted = spans.clone();
    sorted.sort_by(f64::total_cmp);
    let intervals = sorted[sorted.len() / 2] / 0.02;
    assert!(intervals > 0.75 && (intervals - intervals.round()).abs() < 0.25, "{spans:?}");

    let of_tail = |event: &Event| is_of(&archive, "tail", event);
    for (name, argument) in MEMORY {
        let memory = values(&archive, name, argument, of_tail);
        assert!((64e6..80e6).contains(&most(&memory)), "{name}: {memory:?}");
    }
    // Each of its pages once, at least.
    assert!(most(&values(&archive, "page faults", "minor", of_tail)) > 64e6 / 4096.0 / 512.0);

    let received = values(&archive, "net lo", "received B/s", any);
    let bytes: f64 = received.windows(2).map(|pair| pair[1].1 * (pair[1].0 - pair[0].0)).sum();
    assert!(bytes > 1e6, "{bytes}: {received:?}");

    let mut series: BTreeMap<String, usize> = BTreeMap::new();
    for event in &archive.events {
        *series.entry(event.name()).or_default() += 1;
    }
    for name in SERIES {
        assert!(series.get(name).is_some_and(|count| *count > 20), "{name}: {series:?}");
    }
    let free = values(&archive, "memory", "available", any);
    assert!(free.iter().all(|(_, bytes)| *bytes > 1e6), "{free:?}");
}

/// What is counted for a thread, and what is said of counters that the processor lacks.
//= docs/kernel.md#counters-of-threads
#[test]
fn threads_have_counters_of_their_own() {
    let test = "threads_have_counters_of_their_own";
    // What happens in the kernel counts for root only.
    if !Requirement::KernelPerf.is_met(test) {
        return;
    }
    let _alone = alone();
    let sandbox = Sandbox::new();
    let pattern = program("pattern").to_str().unwrap();
    let categories = "cpu:context-switches,cpu:task-clock,cpu:page-faults,cpu:cycles,pattern";
    let options =
        ["record", "--categories", categories, "--sample-interval", "10ms", "--", pattern, "0", "400", "500"];
    let output = sandbox.trace(options);
    assert!(output.status.success(), "{output:?}");
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    let ping = archive.by_thread("sleep").into_keys().next().unwrap();
    let of_ping =
        |event: &Event| event.event.thread.0 == ping && event.event.kind == EventKind::Counter { id: ping };
    let switches = values(&archive, "context-switches", "value", of_ping);
    // Once for each rest, and hardly more; counted from when the thread was found.
    assert!((200.0..=520.0).contains(&most(&switches)), "{switches:?}");
    assert!(switches.windows(2).all(|pair| pair[0] < pair[1] && pair[0].1 < pair[1].1), "{switches:?}");
    let clock = values(&archive, "task-clock", "value", of_ping);
    // What the thread itself knows of it, when it began to spin and at its end.
    let used = archive.by_thread("used").remove(&ping).unwrap();
    let [begin, end] = [0, 1].map(|place| used[place].u64("ns") as f64);
    let (least, most) = ((end - begin) * 0.5, end + 10e6);
    assert!((least..most).contains(&clock.last().unwrap().1), "{clock:?}, {least} to {most}");
    // Whether the processor counts cycles depends on the machine; which it is, is said.
    let has_cycles = archive.events.iter().any(|event| event.name() == "cycles");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_ne!(has_cycles, said.contains("this machine does not count cpu:cycles\n"), "{said}");
}
