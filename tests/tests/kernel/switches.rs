//! What the scheduler did to a program that it can do only one thing with.

use std::fs;
use std::path::PathBuf;
use trace_reader::item::ThreadState;
use trace_tests::archive::Scheduled;
use trace_tests::build::program;
use trace_tests::kernel::{ROOT, alone};
use trace_tests::perfetto::query;
use trace_tests::{Archive, Requirement, Sandbox};

const ROUNDS: usize = 50;
const FIRST_ROUNDS: usize = 5;
const SLEEPS: usize = 10;

/// Records `pattern` where nothing can take the CPU away from it: wakeups do not, among equals in real time.
pub fn record_pattern(sandbox: &Sandbox, options: &[&str]) {
    let pattern = program("pattern").to_str().unwrap();
    let (rounds, sleeps) = (ROUNDS.to_string(), SLEEPS.to_string());
    let command = ["--", "chrt", "-f", "1", "taskset", "-c", "1", pattern, &rounds, &sleeps, "100"];
    let output = sandbox.trace([&["record"], options, &command].concat());
    assert!(output.status.success(), "{output:?}");
}

//= docs/kernel.md#records
#[test]
fn a_known_pattern_is_seen_switch_by_switch() {
    if !Requirement::Tracefs.is_met("a_known_pattern_is_seen_switch_by_switch") {
        return;
    }
    let _alone = alone();
    let sandbox = Sandbox::new();
    record_pattern(&sandbox, &["--categories", "kernel:sched,pattern"]);
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    let (ping, pong) = (archive.thread("ping"), archive.thread("pong"));
    let name = |thread: u64| match thread {
        thread if thread == ping => Some("ping"),
        thread if thread == pong => Some("pong"),
        _ => None,
    };
    let mut scheduling = archive.scheduling.clone();
    scheduling.sort_by_key(Scheduled::at);
    let seen: Vec<String> = scheduling
        .iter()
        .filter_map(|scheduled| match *scheduled {
            Scheduled::Switch { cpu, outgoing, state, .. } => {
                let outgoing = name(outgoing)?;
                assert_eq!(cpu, 1);
                Some(match state {
                    ThreadState::BLOCKED => format!("{outgoing} blocks"),
                    state => format!("{outgoing} is {}", state.text().unwrap()),
                })
            }
            Scheduled::Wakeup { thread, waker, .. } => {
                let by = waker.map_or("interrupt", |waker| name(waker).unwrap_or("another"));
                Some(format!("{by} wakes {}", name(thread)?))
            }
        })
        .collect();
    // In the first rounds code may have to be fetched from a disk yet.
    let rounds =
        seen.iter().enumerate().filter(|(_, what)| *what == "ping wakes pong").map(|(place, _)| place);
    let rounds: Vec<usize> = rounds.collect();
    // The last is for the end.
    let first = rounds.len().checked_sub(ROUNDS - FIRST_ROUNDS + 1).unwrap_or_else(|| panic!("{seen:?}"));
    let mut expected = Vec::new();
    for _ in FIRST_ROUNDS..ROUNDS {
        expected.extend(["ping wakes pong", "ping blocks", "pong wakes ping", "pong blocks"]);
    }
    for _ in 0..SLEEPS {
        expected.extend(["ping blocks", "interrupt wakes ping"]);
    }
    expected.extend(["ping wakes pong", "ping is dead", "pong is dead"]);
    assert_eq!(seen[rounds[first]..], expected);
    assert_eq!(archive.by_thread("spin")[&ping].len(), 100);
}

/// The kernel's own text of what the scheduler does, in an instance of the scenario's.
struct TextCapture(PathBuf);

impl TextCapture {
    fn begin() -> Self {
        let path = PathBuf::from(ROOT).join(format!("instances/trace_test_{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        let capture = Self(path);
        capture.set("tracing_on", "0");
        capture.set("trace_clock", "mono");
        capture.set("buffer_size_kb", "16384");
        capture.set("events/sched/sched_switch/enable", "1");
        capture.set("events/sched/sched_waking/enable", "1");
        capture.set("tracing_on", "1");
        capture
    }

    fn set(&self, file: &str, value: &str) {
        fs::write(self.0.join(file), value).unwrap();
    }

    fn text(&self) -> String {
        self.set("tracing_on", "0");
        fs::read_to_string(self.0.join("trace")).unwrap()
    }
}

impl Drop for TextCapture {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

const SLICES: &str = "SELECT cpu, thread.name AS name, dur, end_state AS state, priority FROM sched JOIN thread USING (utid) \
     WHERE thread.name IN ('ping', 'pong') ORDER BY ts";

/// Perfetto sees the same in our archive as in the kernel's own text of the same time.
//= docs/kernel.md#records
#[test]
fn perfetto_sees_the_switches_that_the_kernels_text_has() {
    let test = "perfetto_sees_the_switches_that_the_kernels_text_has";
    if !Requirement::Tracefs.is_met(test) {
        return;
    }
    let _alone = alone();
    let sandbox = Sandbox::new();
    let capture = TextCapture::begin();
    record_pattern(&sandbox, &["--categories", "kernel:sched"]);
    fs::write(sandbox.file("capture.txt"), capture.text()).unwrap();
    let Some(expected) = query(test, &sandbox.file("capture.txt"), SLICES) else { return };
    let found = query(test, &sandbox.file("trace.fxt"), SLICES).unwrap();
    // Some kernels do not report every switch out of the idle thread.
    assert!(expected.len() > 2 * ROUNDS, "{}", expected.len());
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        for column in ["cpu", "name", "state", "priority"] {
            assert_eq!(found[column], expected[column], "{column}: {found} {expected}");
        }
    }
    let nanos = |slice: &serde_json::Value| slice["dur"].as_i64().unwrap();
    let differences =
        found.iter().zip(&expected).map(|(found, expected)| nanos(found).abs_diff(nanos(expected)));
    let mut differences: Vec<u64> = differences.collect();
    differences.sort_unstable();
    // The text has microseconds, and the kernel looks at the clock for each of the two instances, with
    // something in between at times.
    assert!(differences[differences.len() * 9 / 10] <= 2000, "{differences:?}");
    assert!(differences.iter().all(|difference| *difference < 1_000_000), "{differences:?}");
}
