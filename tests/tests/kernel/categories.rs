//! What comes of each category, from a program that does known things.

use std::collections::{BTreeMap, BTreeSet};
use trace_format::event::EventKind;
use trace_tests::archive::{Event, Value};
use trace_tests::kernel::alone;
use trace_tests::{Archive, Requirement, Sandbox, native};

const PAGE_BYTES: u64 = 4096;

fn of<'a>(archive: &'a Archive, category: &str) -> Vec<&'a Event> {
    archive.events.iter().filter(|event| event.event.category.as_bytes() == category.as_bytes()).collect()
}

fn pointer(event: &Event, name: &str) -> u64 {
    match event.event.argument(name) {
        Some(Value::Pointer(value)) => *value,
        other => panic!("{name} is {other:?}"),
    }
}

fn text(event: &Event, name: &str) -> String {
    match event.event.argument(name) {
        Some(Value::String(text)) => text.to_str().into_owned(),
        other => panic!("{name} is {other:?}"),
    }
}

/// The thread's begins and ends of a name, which take turns.
fn calls(archive: &Archive, thread: u64, name: &str) -> usize {
    let found = of(archive, "kernel:syscall");
    let found = found.iter().filter(|event| event.event.thread.0 == thread && event.name() == name);
    let kinds: Vec<EventKind> = found.map(|event| event.event.kind).collect();
    let (pairs, rest) = kinds.as_chunks::<2>();
    assert!(pairs.iter().all(|pair| *pair == [EventKind::DurationBegin, EventKind::DurationEnd]), "{name}");
    assert!(rest.is_empty(), "{name}");
    pairs.len()
}

//= docs/kernel.md#categories
//= docs/kernel.md#records
#[test]
fn every_category_shows_what_a_program_does() {
    let test = "every_category_shows_what_a_program_does";
    if !Requirement::Tracefs.is_met(test) || !Requirement::Compilers.is_met(test) {
        return;
    }
    let _alone = alone();
    let sandbox = Sandbox::new();
    let program = sandbox.file("busy");
    native::program("gcc", &["busy.c"], &["-O1", "-pthread"], &program);
    let program = program.to_str().unwrap();
    // A terminal's line goes through the kernel's work queue.
    let shell = format!("{program} && script --quiet --command 'echo line' /dev/null > /dev/null");
    let output = sandbox.trace(["record", "--categories", "kernel", "--", "sh", "-c", &shell]);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    let pages = u64::from_str_radix(said.trim().trim_start_matches("0x"), 16).expect("an address");
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    let busy =
        archive.processes.iter().find(|(_, name)| *name == "busy").map(|(process, _)| *process).unwrap();

    let faults = of(&archive, "kernel:vm");
    let touched = pages..pages + 100 * PAGE_BYTES;
    let of_pages: Vec<_> = faults
        .iter()
        .filter(|fault| fault.event.thread.0 == busy && touched.contains(&pointer(fault, "vaddr")))
        .collect();
    let distinct: BTreeSet<u64> = of_pages.iter().map(|fault| pointer(fault, "vaddr") / PAGE_BYTES).collect();
    assert_eq!(distinct.len(), 100);
    assert!(of_pages.iter().all(|fault| fault.name() == "page_fault" && text(fault, "flags").contains("wu")));

    assert_eq!(calls(&archive, busy, "getppid"), 17);
    assert_eq!(calls(&archive, busy, "exit_group"), 1);

    let cpus: BTreeMap<u64, &String> = archive
        .threads
        .iter()
        .filter(|(_, name)| name.starts_with("cpu-"))
        .map(|(id, name)| (*id, name))
        .collect();
    let interrupts = of(&archive, "kernel:irq");
    assert!(interrupts.iter().any(|event| event.name() == "softirq" && text(event, "name") == "TIMER"));
    for event in &interrupts {
        assert!(event.event.process.0 == 0 && cpus.contains_key(&event.event.thread.0), "{event:?}");
        if let EventKind::DurationComplete { end } = event.event.kind {
            assert!(end >= event.event.timestamp);
        }
    }

    // Who waits for its own memory's lock is one of its threads.
    let waits = of(&archive, "kernel:contention");
    let begins = waits.iter().filter(|event| event.event.kind == EventKind::DurationBegin);
    assert!(begins.clone().all(|event| event.name() == "contention" && pointer(event, "lock") != 0));
    assert!(begins.clone().any(|event| event.event.process.0 == busy), "{}", waits.len());

    let work = of(&archive, "kernel:workqueue");
    let names: BTreeSet<String> = work.iter().map(|event| event.name()).collect();
    assert!(names.contains("flush_to_ldisc"), "{names:?}");
    assert!(names.iter().all(|name| !name.starts_with("0x")), "{names:?}");

    let resident = of(&archive, "kernel:memory");
    let is_busys = |event: &&&Event| event.event.process.0 == busy && event.event.argument("anon").is_some();
    assert!(resident.iter().filter(is_busys).count() > 0);
    for event in of(&archive, "kernel:power") {
        assert!(matches!(event.event.kind, EventKind::Counter { .. }), "{event:?}");
        assert!(["cpu_idle", "cpu_frequency"].contains(&event.name().as_str()), "{event:?}");
    }
    assert!(!archive.scheduling.is_empty());

    // All but one.
    let output = sandbox.trace(["record", "--categories", "kernel,-kernel:syscall", "--", program]);
    assert!(output.status.success(), "{output:?}");
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    assert!(of(&archive, "kernel:syscall").is_empty() && !of(&archive, "kernel:vm").is_empty());
}
