//! Tracepoints by their own names, and those that did not exist before.

use std::process::Command;
use trace_tests::archive::Value;
use trace_tests::kernel::alone;
use trace_tests::{Archive, Requirement, Sandbox, native};

/// Where a function is in a program's file.
fn offset(program: &str, function: &str) -> u64 {
    let output = Command::new("nm").arg(program).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|line| line.ends_with(&format!(" T {function}"))).expect("the function");
    u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
}

//= docs/kernel.md#probes
#[test]
fn a_probe_in_a_program_records_what_it_fetches() {
    let test = "a_probe_in_a_program_records_what_it_fetches";
    let needed = [Requirement::Tracefs, Requirement::Compilers, Requirement::Binutils];
    if !needed.iter().all(|requirement| requirement.is_met(test)) {
        return;
    }
    let _alone = alone();
    let sandbox = Sandbox::new();
    let program = sandbox.file("probed");
    // Linked where it lies in its file.
    native::program("gcc", &["probed.c"], &["-O1", "-fPIE", "-pie"], &program);
    let program = program.to_str().unwrap();
    let place = format!("{program}:{:#x}", offset(program, "probed"));
    let (entry, exit) = (format!("kernel:uprobe:{place}"), format!("kernel:uretprobe:{place}"));
    let (value, text) = if cfg!(target_arch = "aarch64") { ("%x0", "%x1") } else { ("%di", "%si") };
    let categories = format!("{entry};value={value}:s32;text=+0({text}):ustring,{exit};result=$retval:s32");
    let output = sandbox.trace(["record", "--categories", &categories, "--", program]);
    assert!(output.status.success(), "{output:?}");
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    let events: Vec<_> = archive.events.iter().filter(|event| event.name() == place).collect();
    let number = |name: &str| -> Vec<i32> {
        let values = events.iter().filter_map(|event| event.event.argument(name));
        values
            .map(|value| if let Value::Int32(value) = value { *value } else { panic!("{value:?}") })
            .collect()
    };
    assert_eq!(number("value"), [-1, 0, 1]);
    assert_eq!(
        number("result"),
        ["-1 some text\n", "0 some text\n", "1 some text\n"].map(|text| text.len() as i32)
    );
    let texts: Vec<_> = events.iter().filter_map(|event| event.event.argument("text")).collect();
    assert!(matches!(texts[..], [Value::String(text), _, _] if text.as_bytes() == b"some text"), "{texts:?}");
    assert!(events.iter().all(|event| event.event.category.as_bytes() == b"kernel:probe"));
    assert!(events.iter().all(|event| archive.processes[&event.event.process.0] == "probed"));
}

//= docs/kernel.md#categories
#[test]
fn a_single_trace_point_has_its_fields_and_what_is_not_there_is_said() {
    if !Requirement::Tracefs.is_met("a_single_trace_point_has_its_fields_and_what_is_not_there_is_said") {
        return;
    }
    let _alone = alone();
    let sandbox = Sandbox::new();
    let categories = "kernel:tp:sched:sched_process_fork,kernel:tp:sched:nothing,kernel:uprobe:/nowhere:0x10";
    let output = sandbox.trace(["record", "--categories", categories, "--", "sh", "-c", "true & wait"]);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("kernel:tp:sched:nothing: the kernel has no such event\n"), "{said}");
    assert!(said.contains("kernel:uprobe:/nowhere:0x10: the kernel rejected this probe: "), "{said}");
    assert!(!said.contains("nothing of it was recorded"), "{said}");
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    let forks: Vec<_> = archive.events.iter().filter(|event| event.name() == "sched_process_fork").collect();
    let is_shells = |text: &Value| matches!(text, Value::String(text) if text.as_bytes() == b"sh");
    let of_shell = forks.iter().find(|fork| fork.event.argument("parent_comm").is_some_and(is_shells));
    let of_shell = of_shell.unwrap_or_else(|| panic!("{forks:?}"));
    assert_eq!(of_shell.event.category.as_bytes(), b"kernel:tp");
    let parent = i32::try_from(of_shell.event.thread.0).unwrap();
    assert_eq!(of_shell.event.argument("parent_pid"), Some(&Value::Int32(parent)));
}
