//! Functions of a program without instrumentation: the commands of docs/import.md, with their tools.

use std::collections::BTreeMap;
use std::process::{Command, Output};
use trace_tests::Sandbox;
use trace_tests::pages;
use trace_tests::requirement::Requirement;

/// Calls `middle` five times, and `leaf` fifteen times.
const APP: &str = "static __attribute__((noinline)) int leaf(int number) {\n  volatile int sum = 0;\n  \
    for (int i = 0; i < 1000000; i++) sum += i % number;\n  return sum;\n}\n\
    static __attribute__((noinline)) int middle(int number) {\n  \
    return leaf(number + 1) + leaf(number + 2) + leaf(number + 3);\n}\n\
    int main(void) {\n  int sum = 0;\n  for (int i = 0; i < 5; i++) sum += middle(i);\n  return sum == 7;\n}\n";

fn bash(sandbox: &Sandbox, script: &str) -> Output {
    let trace = sandbox.command("trace");
    let tools = std::path::Path::new(trace.get_program()).parent().expect("a directory");
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("bash");
    command.args(["-ec", script]).current_dir(sandbox.work_dir()).env("PATH", path);
    let output = command.output().expect("bash runs");
    assert!(output.status.success(), "{script}\n{output:?}");
    output
}

/// Runs the block of the page that has this command, and returns what it has printed.
fn follow(sandbox: &Sandbox, command: &str) -> String {
    std::fs::write(sandbox.file("app.c"), APP).expect("a file");
    let blocks = pages::blocks(&pages::read("docs/import.md"));
    let mut blocks = blocks.iter().filter(|block| block.language == "bash" && block.text.contains(command));
    let (block, None) = (blocks.next().expect("a block"), blocks.next()) else { panic!("{command}: blocks") };
    String::from_utf8(bash(sandbox, &block.text).stdout).expect("UTF-8")
}

/// How often each function was called, in a trace.
fn calls(sandbox: &Sandbox, file: &str) -> BTreeMap<String, u64> {
    let question = "SELECT name, count(*) FROM slices GROUP BY 1";
    let answer = sandbox.trace(["query", "--format", "csv", question, file]);
    assert!(answer.status.success(), "{answer:?}");
    let answer = String::from_utf8(answer.stdout).expect("UTF-8");
    let rows = answer.lines().skip(1).map(|line| line.split_once(',').expect("two columns"));
    rows.map(|(name, count)| (name.trim_matches('"').to_owned(), count.parse().expect("a number"))).collect()
}

fn called() -> BTreeMap<String, u64> {
    [("leaf", 15), ("main", 1), ("middle", 5)].map(|(name, count)| (name.to_owned(), count)).into()
}

//= docs/import.md#functions-without-instrumentation
#[test]
fn stacks_of_perf_are_folded() {
    if !Requirement::PerfTool.is_met("stacks_of_perf_are_folded") {
        return;
    }
    let sandbox = Sandbox::new();
    follow(&sandbox, "perf record");
    let folded = std::fs::read_to_string(sandbox.file("perf.folded")).expect("stacks");
    assert!(folded.lines().any(|line| line.contains(";main;middle;leaf ")), "{folded}");
}

//= docs/import.md#functions-without-instrumentation
#[test]
fn calls_of_uftrace_are_those_of_its_report() {
    if !Requirement::FunctionTracers.is_met("calls_of_uftrace_are_those_of_its_report") {
        return;
    }
    let sandbox = Sandbox::new();
    let printed = follow(&sandbox, "uftrace record");
    assert!(printed.contains("leaf"), "{printed}");
    let report = String::from_utf8(bash(&sandbox, "uftrace report").stdout).expect("UTF-8");
    let rows = report.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let counts =
        rows.filter_map(|row| Some((row.last()?.to_string(), row.get(row.len() - 2)?.parse().ok()?)));
    let counts: BTreeMap<String, u64> = counts.collect();
    let mut found = calls(&sandbox, "uftrace.json");
    found.retain(|name, _| !name.starts_with("linux:"));
    assert_eq!(found, counts, "{report}");
    // Functions of the C library are there, too.
    found.retain(|name, _| !name.starts_with("__"));
    assert_eq!(found, called(), "{report}");
}

//= docs/import.md#functions-without-instrumentation
#[test]
fn calls_of_xray_are_those_of_its_account() {
    if !Requirement::FunctionTracers.is_met("calls_of_xray_are_those_of_its_account") {
        return;
    }
    let sandbox = Sandbox::new();
    let printed = follow(&sandbox, "llvm-xray");
    assert!(printed.contains("leaf"), "{printed}");
    let account = "llvm-xray account --instr_map=./app --format=csv xray-log.app.*";
    let account = String::from_utf8(bash(&sandbox, account).stdout).expect("UTF-8");
    let rows = account.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let counts = rows.map(|row| (row.last().unwrap().trim_matches('"').to_owned(), row[1].parse().unwrap()));
    let counts: BTreeMap<String, u64> = counts.collect();
    assert_eq!((calls(&sandbox, "xray.json"), counts), (called(), called()), "{account}");
}
