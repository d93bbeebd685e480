//! What programs write into `trace_marker`.

use trace_tests::kernel::{ROOT, alone, has_markers};
use trace_tests::{Archive, Sandbox, native};

/// Kind, name and arguments of the events of a category.
fn shown(archive: &Archive, category: &str) -> Vec<String> {
    let of_category =
        archive.events.iter().filter(|event| event.event.category.as_bytes() == category.as_bytes());
    of_category
        .map(|event| {
            let kind = format!("{:?}", event.event.kind);
            let kind = kind.split([' ', '{']).next().unwrap().to_owned();
            let arguments: Vec<String> = event
                .event
                .arguments
                .iter()
                .map(|(name, value)| format!(" {}={value:?}", name.to_str()))
                .collect();
            format!("{kind} {:?}{}", event.name(), arguments.concat())
        })
        .collect()
}

//= docs/kernel.md#markers
#[test]
fn markers_of_a_shell_script_have_exact_names() {
    if !has_markers("markers_of_a_shell_script_have_exact_names") {
        return;
    }
    let _alone = alone();
    let sandbox = Sandbox::new();
    let script = format!(
        "m() {{ echo \"$1\" > {ROOT}/trace_marker; }}; \
         m \"B|$$|load | all\"; m \"C|$$|queue|7\"; m E; m \"S|$$|job|12\"; m \"F|$$|job|12\"; \
         m \"I|$$|now\"; m \"N|$$|track|then\"; m \"G|$$|net|get|3\"; m \"H|$$|net|get|3\"; m 'no marker'"
    );
    let output = sandbox.trace(["record", "--categories", "atrace,kernel:probe", "--", "sh", "-c", &script]);
    assert!(output.status.success(), "{output:?}");
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    assert_eq!(
        shown(&archive, "atrace"),
        [
            "DurationBegin \"load | all\"",
            "Counter \"queue\" value=Int64(7)",
            "DurationEnd \"\"",
            "AsyncBegin \"job\"",
            "AsyncEnd \"job\"",
            "Instant \"now\"",
            "Instant \"then\" track=String(Text([116, 114, 97, 99, 107]))",
            "AsyncBegin \"get\"",
            "AsyncEnd \"get\"",
        ]
    );
    assert_eq!(
        shown(&archive, "kernel:probe"),
        [format!("Instant \"print\" text=String(Text({:?}))", b"no marker")]
    );
    // All are the script's, whose process the kernel has told of.
    let mut processes: Vec<u64> = archive.events.iter().map(|event| event.event.process.0).collect();
    processes.dedup();
    assert_eq!(processes.len(), 1);
    assert_eq!(archive.processes[&processes[0]], "sh");
}

//= docs/kernel.md#markers
#[test]
fn markers_of_a_c_program_have_exact_names() {
    let test = "markers_of_a_c_program_have_exact_names";
    if !has_markers(test) || !native::has_compilers(test) {
        return;
    }
    let _alone = alone();
    let sandbox = Sandbox::new();
    let program = sandbox.file("markers");
    native::program(
        "gcc",
        &["markers.c"],
        &["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"],
        &program,
    );
    let program = program.to_str().unwrap();
    let output = sandbox.trace(["record", "--categories", "atrace", "--", program]);
    assert!(output.status.success(), "{output:?}");
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    assert_eq!(
        shown(&archive, "atrace"),
        [
            "DurationBegin \"native section\"",
            "Counter \"native counter\" value=Int64(-12345678901)",
            "AsyncBegin \"native job\"",
            "AsyncEnd \"native job\"",
            "DurationEnd \"\"",
        ]
    );
}
