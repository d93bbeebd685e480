//! The kernel's clock is that of the programs.

use trace_format::record::{RecordHeader, RecordType};
use trace_tests::build::program;
use trace_tests::kernel::alone;
use trace_tests::{Requirement, Sandbox};

/// Shifts the events of the program of a name by so many ticks.
fn shift(trace: &[u8], provider: &str, ticks: u64) -> Vec<u8> {
    let mut words: Vec<u64> = trace.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let (mut at, mut is_here) = (0, false);
    while at < words.len() {
        let header = RecordHeader(words[at]);
        let size = header.size().0;
        match header.record_type() {
            // Its name, or that it goes on here.
            Some(RecordType::Metadata) if header.0 >> 16 & 0xf == 1 => {
                let length = (header.0 >> 52 & 0xff) as usize;
                let bytes: Vec<u8> =
                    words[at + 1..at + size].iter().flat_map(|word| word.to_le_bytes()).collect();
                is_here = &bytes[..length] == provider.as_bytes();
            }
            Some(RecordType::Event) if is_here => {
                words[at + 1] += ticks;
                // A complete duration's end.
                if header.0 >> 16 & 0xf == 4 {
                    words[at + size - 1] += ticks;
                }
            }
            _ => {}
        }
        at += size;
    }
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

//= docs/check.md#clocks
//= docs/kernel.md#time
#[test]
fn events_lie_where_their_threads_ran_and_a_skew_of_50_microseconds_shows() {
    if !Requirement::Tracefs.is_met("events_lie_where_their_threads_ran_and_a_skew_of_50_microseconds_shows")
    {
        return;
    }
    let _alone = alone();
    let sandbox = Sandbox::new();
    let pattern = program("pattern").to_str().unwrap();
    let options = ["record", "--categories", "kernel:sched,pattern", "--", pattern, "2000", "50", "500"];
    let output = sandbox.trace(options);
    assert!(output.status.success(), "{output:?}");
    let check = |name: &str| {
        let output = sandbox.trace(["check", "--clocks", "--json", name]);
        let answer = trace_tests::Answer::of(&output);
        let kinds: Vec<serde_json::Value> =
            answer.problems.iter().map(|problem| problem["kind"].clone()).collect();
        (output.status.code(), answer.result, kinds)
    };
    let (code, report, _) = check("trace.fxt");
    assert_eq!(code, Some(0), "{report:#}");
    let provider = |report: &serde_json::Value| {
        let providers = report["programs"].as_array().unwrap();
        providers.iter().find(|provider| provider["name"] == "pattern").unwrap()["id"].clone()
    };
    let clock = |report: &serde_json::Value| {
        let id = provider(report);
        report["clocks"].as_array().unwrap().iter().find(|clock| clock["program_id"] == id).unwrap().clone()
    };
    let truth = clock(&report);
    let number = |clock: &serde_json::Value, name: &str| clock[name].as_i64().unwrap();
    // Two for a round and one for its answer, two for a sleep, begin and end of a spin, two about all spins.
    assert_eq!(number(&truth, "judged"), 3 * 2000 + 2 * 50 + 2 * 500 + 2);
    assert!(number(&truth, "outside") * 1000 <= number(&truth, "judged"), "{truth}");

    let trace = std::fs::read(sandbox.file("trace.fxt")).unwrap();
    let rate = trace_tests::Archive::of_bytes(&trace).rates[0];
    std::fs::write(sandbox.file("off.fxt"), shift(&trace, "pattern", rate / 20_000)).unwrap();
    let (code, report, kinds) = check("off.fxt");
    assert_eq!(code, Some(1));
    let off = clock(&report);
    assert!(number(&off, "outside") * 100 > number(&off, "judged"), "{off}");
    assert_eq!(kinds, ["clock-skew"]);
    // Not later than they are, and about as much earlier.
    assert!((-60_000..=-30_000).contains(&number(&off, "shift_ns")), "{off}");
}

/// Metrics and counters say something of a thread that does not run then.
//= docs/check.md#clocks
#[test]
fn figures_and_counters_are_no_events_of_threads() {
    if !Requirement::Tracefs.is_met("figures_and_counters_are_no_events_of_threads") {
        return;
    }
    let _alone = alone();
    let sandbox = Sandbox::new();
    let pattern = program("pattern").to_str().unwrap();
    let categories = "#default,cpu:task-clock,cpu:context-switches,pattern";
    let command = [pattern, "2000", "50", "500"];
    let options = ["record", "--categories", categories, "--sample-interval", "20ms", "--"];
    let output = sandbox.trace(options.into_iter().chain(command));
    assert!(output.status.success(), "{output:?}");
    let output = sandbox.trace(["check", "--clocks", "trace.fxt"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let archive = trace_tests::Archive::read(&sandbox.file("trace.fxt"));
    let of_category = |category: &str| {
        let events = archive.events.iter().map(|event| &event.event);
        events.filter(|event| event.category.as_bytes() == category.as_bytes()).count()
    };
    for category in ["system_metrics:cpu", "system_metrics:processes", "cpu:task-clock"] {
        assert!(of_category(category) > 5, "{category}");
    }
}
