//! Where a program spends its time.

use serde_json::{Value, json};
use trace_tests::kernel::alone;
use trace_tests::perfetto::query;
use trace_tests::skip::skip;
use trace_tests::{Sandbox, native};

/// The functions of each sample's stack, the innermost first, and how many samples have it.
const STACKS: &str = "WITH RECURSIVE up(sample, parent, depth, frame) AS (\
     SELECT s.id, c.parent_id, 0, c.frame_id FROM perf_sample s JOIN stack_profile_callsite c ON s.callsite_id = c.id \
     UNION ALL SELECT up.sample, c.parent_id, up.depth + 1, c.frame_id \
     FROM stack_profile_callsite c JOIN up ON c.id = up.parent) \
     SELECT f.name AS name, m.name AS module, count(*) AS n FROM up JOIN stack_profile_frame f ON up.frame = f.id \
     JOIN stack_profile_mapping m ON f.mapping = m.id GROUP BY f.name, m.name ORDER BY n DESC";

//= docs/kernel.md#profiles
//= docs/perfetto.md#profiles
#[test]
fn a_profile_shows_the_functions_that_a_program_is_in() {
    let test = "a_profile_shows_the_functions_that_a_program_is_in";
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    let is_root = rustix::process::geteuid().is_root();
    if !is_root && paranoid.trim().parse::<i32>().is_ok_and(|paranoid| paranoid > 2) {
        return skip(test, "perf", "this kernel tells users nothing");
    }
    if !native::has_compilers(test) {
        return;
    }
    let _alone = alone();
    let sandbox = Sandbox::new();
    let program = sandbox.file("profiled");
    let frames = ["-O1", "-g", "-fno-omit-frame-pointer", "-Wl,--build-id"];
    native::program("gcc", &["profiled.c"], &frames, &program);
    let program = program.to_str().unwrap();
    let output = sandbox.trace(["record", "--profile", "1000", "--", program]);
    assert!(output.status.success(), "{output:?}");
    let dump = sandbox.trace(["dump", "--json", "trace.fxt"]);
    let records: Vec<Value> = dump
        .stdout
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect();
    let is_it = |record: &&Value, kind: &str| record["kind"] == kind;
    let module = records.iter().find(|record| is_it(record, "module") && record["name"] == json!(program));
    let module = module.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&dump.stdout)));
    let of_program = |record: &&Value| is_it(record, "backtrace") && record["process"] == module["process"];
    let samples: Vec<u64> =
        records.iter().filter(of_program).map(|record| record["ns"].as_u64().expect("a time")).collect();
    // 300 ms on a CPU, a thousand times a second.
    assert!((200..=400).contains(&samples.len()), "{}", samples.len());
    let mut spans: Vec<u64> = samples.windows(2).map(|pair| pair[1] - pair[0]).collect();
    spans.sort_unstable();
    // Where it was alone on its CPU: others take a turn between two samples on a busy machine.
    assert!((900_000..1_100_000).contains(&spans[spans.len() / 4]), "{spans:?}");

    let output = sandbox.trace(["convert", "trace.fxt", "trace.pftrace"]);
    assert!(output.status.success(), "{output:?}");
    let Some(found) = query(test, &sandbox.file("trace.pftrace"), STACKS) else { return };
    let samples_with = |name: &str| {
        let is_it = |row: &&Value| row["name"] == json!(name) && row["module"] == json!(program);
        found.iter().find(is_it).map_or(0, |row| row["n"].as_u64().expect("a count"))
    };
    let all = samples.len() as u64;
    // What is before main and behind it is short.
    assert!(samples_with("main") * 20 >= all * 19, "{found:?}");
    assert!(samples_with("outer") * 20 >= all * 18, "{found:?}");
    assert!(samples_with("innermost") * 20 >= all * 16, "{found:?}");
    let errors = "SELECT name FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0";
    assert_eq!(query(test, &sandbox.file("trace.pftrace"), errors).unwrap(), Vec::<Value>::new());
}
