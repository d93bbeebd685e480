//! Plugins, several copies of the library, the beginnings and ends of programs, and children.

use super::programs::{events, record, shown};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use trace_format::slab::LossReason;
use trace_tests::sandbox::{Process, kill};
use trace_tests::scene::Scene;
use trace_tests::{Archive, Requirement, Sandbox, native};

fn text(path: &std::path::Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// Compiles the plugin under a name.
fn plugin(compiler: &str, sandbox: &Sandbox, name: &str) -> std::path::PathBuf {
    let output = sandbox.file(&format!("{name}.so"));
    let define = format!("-DPLUGIN_NAME=\"{name}\"");
    native::program(compiler, &["plugin.c"], &["-shared", "-fPIC", "-O2", &define], &output);
    output
}

#[test]
fn plugins_come_and_go() {
    if !Requirement::Compilers.is_met("plugins_come_and_go") {
        return;
    }
    let mut expected = Vec::new();
    for round in 0..3 {
        for (name, factor) in [("first", 10), ("second", 100)] {
            for number in [factor * round, factor * round + 1] {
                expected.push(format!("instant {{ scope: thread }} plugin/called number={number}i32"));
                expected.push(format!("complete plugin/{name} number={number}i32"));
            }
        }
        // It was really unloaded, or nothing would be shown by this.
        expected.push("instant { scope: thread } plugin/unloaded gone=true".to_owned());
    }
    for compiler in native::C {
        let sandbox = Sandbox::new();
        let plugins = ["first", "second"].map(|name| plugin(compiler, &sandbox, name));
        let program = sandbox.file("plugin_host");
        native::program(compiler, &["plugin_host.c"], &["-D_GNU_SOURCE"], &program);
        assert_eq!(events(&program, &[text(&plugins[0]), text(&plugins[1])]), expected, "{compiler}");
    }
}

#[test]
fn copies_of_the_library_are_one_provider() {
    let test = "copies_of_the_library_are_one_provider";
    if !Requirement::Compilers.is_met(test) || !Requirement::Binutils.is_met(test) {
        return;
    }
    let sandbox = Sandbox::new();
    let libraries = ["first", "second"].map(|name| {
        let output = sandbox.file(&format!("{name}.so"));
        let define = format!("-DCOPY_NAME=\"{name}\"");
        native::static_program("gcc", &["copy.c"], &["-shared", "-fPIC", "-O2", &define], &output);
        output
    });
    let program = sandbox.file("copy_host");
    native::program("gcc", &["copy_host.c"], &["-Wl,--as-needed"], &program);
    let needed = Command::new("readelf").arg("--dynamic").arg(&program).output().expect("readelf runs");
    assert!(!String::from_utf8_lossy(&needed.stdout).contains("libtrace"), "the program has a copy, too");
    for order in [[0, 1], [1, 0]] {
        let arguments = order.map(|index| text(&libraries[index]));
        let (_, archive) = record(&program, &arguments);
        let names: Vec<&String> =
            archive.providers.values().filter(|name| *name != "trace_manager").collect();
        assert_eq!(names, [["first", "second"][order[0]]], "one provider, by its first name");
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for event in &archive.events {
            *counts.entry(event.name()).or_default() += 1;
        }
        let expected = [("first", 100), ("second", 100)].map(|(name, count)| (name.to_owned(), count));
        assert_eq!(counts, expected.into());
    }
}

//= docs/buffer.md#descriptors
#[test]
fn descriptors_of_a_program_stay_its_own() {
    if !Requirement::Compilers.is_met("descriptors_of_a_program_stay_its_own") {
        return;
    }
    let sandbox = Sandbox::new();
    let program = sandbox.file("descriptors");
    native::program("gcc", &["descriptors.c"], &["-D_GNU_SOURCE"], &program);
    for first in ["0", "1", "2"] {
        let expected = ["descriptors/before", "trace/alert name=\"here\"", "descriptors/after"];
        let expected = expected.map(|event| format!("instant {{ scope: thread }} {event}"));
        assert_eq!(events(&program, &[first, text(&sandbox.file(first))]), expected, "{first}");
    }
}

#[test]
fn programs_trace_before_main_and_after_it() {
    if !Requirement::Compilers.is_met("programs_trace_before_main_and_after_it") {
        return;
    }
    let expected = [
        "instant { scope: thread } statics/initialiser",
        "instant { scope: thread } statics/main",
        "instant { scope: thread } statics/inline",
        "instant { scope: thread } statics/template value=1i32",
        "instant { scope: thread } statics/template value=\"text\"",
        "instant { scope: thread } statics/destructor",
        "instant { scope: thread } statics/exit",
    ];
    let sandbox = Sandbox::new();
    let program = sandbox.file("statics");
    for compiler in native::CXX {
        for optimization in ["-O0", "-O2"] {
            native::program(compiler, &["statics.cc"], &["-std=c++17", optimization], &program);
            assert_eq!(events(&program, &[]), expected, "{compiler} {optimization}");
            native::static_program(compiler, &["statics.cc"], &["-std=c++17", optimization], &program);
            assert_eq!(events(&program, &[]), expected, "{compiler} {optimization} static");
        }
    }
}

/// Runs a program that records itself, without a manager. Returns what it prints, what it says, and what is
/// recovered.
fn recover(program: &std::path::Path, arguments: &[&str], categories: Option<&str>) -> [String; 3] {
    let sandbox = Sandbox::new();
    let mut command = Command::new(program);
    command.args(arguments).env("TRACE_RUNTIME_DIR", sandbox.runtime_dir());
    categories.iter().for_each(|categories| _ = command.env("TRACE_STARTUP", categories));
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    let recovered = sandbox.trace(["recover", "-o", "start.fxt"]);
    let events = match recovered.status.success() {
        true => Archive::read(&sandbox.file("start.fxt")).events.iter().map(shown).collect(),
        false => Vec::new(),
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    [text(&output.stdout), text(&output.stderr), events.join("\n")]
}

//= docs/recording.md#from-the-first-line
#[test]
fn programs_record_themselves_from_their_static_constructors_on() {
    if !Requirement::Compilers.is_met("programs_record_themselves_from_their_static_constructors_on") {
        return;
    }
    let expected = "\
        instant { scope: thread } statics/before the provider\n\
        instant { scope: thread } statics/initialiser\n\
        instant { scope: thread } statics/main\n\
        instant { scope: thread } statics/inline\n\
        instant { scope: thread } statics/template value=1i32\n\
        instant { scope: thread } statics/template value=\"text\"\n\
        instant { scope: thread } statics/destructor\n\
        instant { scope: thread } statics/exit";
    let sandbox = Sandbox::new();
    let program = sandbox.file("statics");
    for compiler in native::CXX {
        native::program(compiler, &["statics.cc"], &["-std=c++17", "-O2"], &program);
        let found = recover(&program, &[], Some("stat*"));
        assert_eq!(found, ["", "", expected], "{compiler}");
        native::static_program(compiler, &["statics.cc"], &["-std=c++17", "-O2"], &program);
        let found = recover(&program, &[], Some("stat*"));
        assert_eq!(found, ["", "", expected], "{compiler} static");
        assert_eq!(recover(&program, &[], None), ["", "", ""]);
    }
}

//= docs/recording.md#from-the-first-line
#[test]
fn programs_decide_to_record_themselves() {
    if !Requirement::Compilers.is_met("programs_decide_to_record_themselves") {
        return;
    }
    let sandbox = Sandbox::new();
    let program = sandbox.file("starting");
    native::program("clang", &["starting.c"], &[], &program);
    let events = |names: &[&str]| {
        let lines = names.iter().map(|name| format!("instant {{ scope: thread }} {name}"));
        lines.collect::<Vec<_>>().join("\n")
    };
    let again = "trace: not recorded from the start: this process is recorded already";
    let found = recover(&program, &["--trace-startup=start,-other"], None);
    assert_eq!(found, ["10", again, &events(&["start/first", "start/last"])]);
    // Also without a provider.
    let found = recover(&program, &["-x", "--trace-startup", "alone"], None);
    assert_eq!(found, ["10", again, &events(&["start/first", "other/first", "start/last"])]);
    let found = recover(&program, &["--trace-startups"], None);
    assert_eq!(found, ["01", "", &events(&["start/last"])]);
    let found = recover(&program, &[], Some("start"));
    assert_eq!(found, ["00", again, &events(&["start/earlier", "start/first", "start/last"])]);
}

#[test]
fn children_are_recorded_by_themselves() {
    if !Requirement::Compilers.is_met("children_are_recorded_by_themselves") {
        return;
    }
    let sandbox = Sandbox::new();
    let program = sandbox.file("forking");
    native::program("clang", &["forking.c"], &["-D_GNU_SOURCE"], &program);
    let (_, archive) = record(&program, &[]);
    let mut by_provider: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for event in &archive.events {
        by_provider.entry(event.provider).or_default().push(event.name());
        let own = archive.events.iter().filter(|other| other.provider == event.provider);
        assert!(own.into_iter().all(|other| other.event.process == event.event.process), "{}", shown(event));
    }
    let mut found: Vec<Vec<String>> = by_provider.into_values().collect();
    found.sort();
    assert_eq!(found, [vec!["child", "child again"], vec!["other program"], vec!["parent", "parent"]]);

    // The same if they record themselves from the start, and if a hook sees each event.
    for variables in
        [&[("TRACE_STARTUP", "*")][..], &[("HOOKED", "1")], &[("TRACE_STARTUP", "*"), ("HOOKED", "1")]]
    {
        let mut command = sandbox.command("trace");
        command.args(["record", "--"]).arg(&program).envs(variables.iter().copied());
        let output = command.output().expect("trace runs");
        assert!(output.status.success(), "{output:?}");
        let archive = Archive::read(&sandbox.file("trace.fxt"));
        let mut names: Vec<String> = archive.events.iter().map(trace_tests::archive::Event::name).collect();
        names.sort();
        let expected = ["child", "child again", "other program", "parent", "parent"];
        assert_eq!(names, expected, "{variables:?}");
        std::fs::remove_file(sandbox.file("trace.fxt")).expect("it is there");
    }
}

/// What a handler has interrupted may hold what joining needs: its events are counted, each that is wanted.
//= docs/buffer.md#fork
#[test]
fn a_child_does_not_join_in_a_handler() {
    if !Requirement::Compilers.is_met("a_child_does_not_join_in_a_handler") {
        return;
    }
    let sandbox = Sandbox::new();
    let program = sandbox.file("child_handler");
    native::program("gcc", &["child_handler.c"], &["-D_GNU_SOURCE", "-O2", "-pthread"], &program);
    let arguments = ["record", "--categories", "child", "--fail-on-loss", "--"];
    let output = sandbox.command("trace").args(arguments).arg(&program).output().expect("trace runs");
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    let found: Vec<String> = archive.events.iter().map(shown).collect();
    let expected = [
        "instant { scope: thread } child/joined",
        "instant { scope: thread } child/in a handler",
        "complete child/scope in a handler",
    ];
    assert_eq!(found, expected);
    assert_eq!(archive.lost(LossReason::NotJoined), 8);
    assert_eq!(archive.losses.len(), 1, "{:?}", archive.losses);
    let _ = archive.generated();
}

/// Whichever thread is the first, none records before the recording is there.
//= docs/recording.md#from-the-first-line
//= docs/buffer.md#fork
#[test]
fn no_event_is_missing_of_threads_that_come_to_the_first_at_once() {
    if !Requirement::Compilers.is_met("no_event_is_missing_of_threads_that_come_to_the_first_at_once") {
        return;
    }
    let expected: Vec<(u64, u64)> = (0..4).flat_map(|thread| (0..2000).map(move |n| (thread, n))).collect();
    let check = |sandbox: &Sandbox, file: &str| {
        let events = Archive::read(&sandbox.file(file)).events;
        let number = |event: &trace_tests::archive::Event| (event.u64("thread"), event.u64("n"));
        let mut found: Vec<_> = events.iter().map(number).collect();
        found.sort_unstable();
        assert!(found == expected, "{} of {}", found.len(), expected.len());
    };
    let programs = Sandbox::new();
    let program = programs.file("crowd");
    native::program("gcc", &["crowd.c"], &["-D_GNU_SOURCE", "-pthread"], &program);
    for _ in 0..10 {
        let sandbox = Sandbox::new();
        let mut command = Command::new(&program);
        command.env("TRACE_RUNTIME_DIR", sandbox.runtime_dir()).env("TRACE_STARTUP", "*");
        assert!(command.status().expect("it runs").success());
        assert!(sandbox.trace(["recover", "-o", "start.fxt"]).status.success());
        check(&sandbox, "start.fxt");
        let mut command = sandbox.command("trace");
        let output = command.args(["record", "--"]).arg(&program).arg("child").output().expect("trace runs");
        assert!(output.status.success(), "{output:?}");
        check(&sandbox, "trace.fxt");
    }
}

/// A program that leaves its recording, and waits for a line behind the first one that it prints.
fn leaving(sandbox: &Sandbox, program: &Path, events: &str, how: &str) -> Process {
    let mut command = Command::new(program);
    command.args([events, how]).env("TRACE_RUNTIME_DIR", sandbox.runtime_dir()).env("TRACE_STARTUP", "*");
    Sandbox::spawn_command(command)
}

/// The numbers of the events that are recovered.
fn recovered(sandbox: &Sandbox) -> Vec<u64> {
    let output = sandbox.trace(["recover", "-o", "leaving.fxt"]);
    assert!(output.status.success(), "{output:?}");
    let numbers =
        Archive::read(&sandbox.file("leaving.fxt")).events.iter().map(|event| event.u64("n")).collect();
    std::fs::remove_file(sandbox.file("leaving.fxt")).expect("it was written");
    numbers
}

/// Whatever it does with descriptors and processes, its recording is neither deleted while it lives nor kept
/// from its user when it is dead.
//= docs/recovery.md#a-sessions-directory
#[test]
fn a_recording_is_held_by_its_program_alone() {
    if !Requirement::Compilers.is_met("a_recording_is_held_by_its_program_alone") {
        return;
    }
    let sandbox = Sandbox::new();
    let program = sandbox.file("leaving");
    native::program("gcc", &["leaving.c"], &["-D_GNU_SOURCE", "-O2"], &program);
    let is_refused = |sandbox: &Sandbox| {
        let output = sandbox.trace(["recover", "-o", "never.fxt"]);
        assert!(String::from_utf8_lossy(&output.stderr).contains("records itself into"), "{output:?}");
        assert_eq!(Scene::sessions_of(sandbox).len(), 1);
    };
    // A child that shares its memory counts as the program.
    let mut running = leaving(&sandbox, &program, "10000", "vfork");
    assert_eq!(running.line(), "ready");
    is_refused(&sandbox);
    running.say("end");
    running.succeed();
    assert_eq!(recovered(&sandbox), (0..10_001).collect::<Vec<_>>());
    // A child of its own keeps nothing of it.
    let mut running = leaving(&sandbox, &program, "1000", "child");
    let child: u32 = running.line().parse().expect("a number");
    assert_eq!(running.line(), "ready");
    is_refused(&sandbox);
    running.signal(Signal::KILL);
    let _ = running.finish();
    assert_eq!(recovered(&sandbox), (0..1000).collect::<Vec<_>>());
    kill(child, Signal::KILL);
}

/// A program that records nothing leaves nothing, however it ends.
//= docs/recording.md#from-the-first-line
#[test]
fn a_program_without_an_event_leaves_nothing() {
    if !Requirement::Compilers.is_met("a_program_without_an_event_leaves_nothing") {
        return;
    }
    let sandbox = Sandbox::new();
    let program = sandbox.file("leaving");
    native::program("gcc", &["leaving.c"], &["-D_GNU_SOURCE"], &program);
    leaving(&sandbox, &program, "0", "end").succeed();
    assert!(Scene::sessions_of(&sandbox).is_empty());
    let mut running = leaving(&sandbox, &program, "0", "wait");
    assert_eq!(running.line(), "ready");
    assert_eq!(Scene::sessions_of(&sandbox).len(), 1);
    running.signal(Signal::KILL);
    let _ = running.finish();
    let output = sandbox.trace(["recover", "--list"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("nothing to recover"), "{output:?}");
    assert!(Scene::sessions_of(&sandbox).is_empty());
}

/// It finds the recording that began when the library was loaded.
//= docs/recording.md#from-the-first-line
#[test]
fn a_first_event_in_a_handler_takes_nothing_of_the_program() {
    if !Requirement::Compilers.is_met("a_first_event_in_a_handler_takes_nothing_of_the_program") {
        return;
    }
    let sandbox = Sandbox::new();
    let program = sandbox.file("leaving");
    // However the library is linked, what begins the recording comes with its events.
    let unused = ["-ffunction-sections", "-Wl,--gc-sections"];
    for (is_static, more) in [(false, &[][..]), (true, &[]), (true, &unused), (true, &["-static"])] {
        let link = if is_static { native::static_program } else { native::program };
        link("gcc", &["leaving.c"], &[&["-D_GNU_SOURCE", "-O2"], more].concat(), &program);
        for _ in 0..10 {
            let mut running = leaving(&sandbox, &program, "10", "handler");
            assert_eq!(running.line(), "ready");
            running.say("end");
            running.succeed();
            assert_eq!(recovered(&sandbox), (0..11).collect::<Vec<_>>());
        }
    }
}

/// Whether or not it destroys its provider, and behind its last destructor.
//= docs/recording.md#from-the-first-line
#[test]
fn a_program_writes_what_it_has_recorded_when_it_ends() {
    if !Requirement::Compilers.is_met("a_program_writes_what_it_has_recorded_when_it_ends") {
        return;
    }
    let sandbox = Sandbox::new();
    let (starting, statics) = (sandbox.file("starting"), sandbox.file("statics"));
    native::program("clang", &["starting.c"], &[], &starting);
    native::static_program("g++", &["statics.cc"], &["-std=c++17", "-O2"], &statics);
    let run = |program: &std::path::Path, argument: &str, file: &str| {
        let mut command = Command::new(program);
        command.arg(argument).current_dir(sandbox.work_dir()).env("TRACE_RUNTIME_DIR", sandbox.runtime_dir());
        command.env("TRACE_STARTUP", "*").env("TRACE_STARTUP_FILE", file);
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it runs");
        let pid = child.id();
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{output:?}");
        (pid, String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let names = |file: &str| {
        let archive = Archive::read(&sandbox.file(file));
        archive.events.iter().map(trace_tests::archive::Event::name).collect::<Vec<_>>()
    };
    for argument in ["alone", "-x"] {
        let (pid, _) = run(&starting, argument, "end-%p.fxt");
        assert_eq!(names(&format!("end-{pid}.fxt")), ["earlier", "first", "first", "last"], "{argument}");
    }
    let (_, said) = run(&statics, "-x", "statics.fxt");
    assert_eq!(said, "");
    let all = names("statics.fxt");
    assert_eq!(
        (all.first().unwrap().as_str(), all.last().unwrap().as_str()),
        ("before the provider", "exit")
    );
    assert_eq!(all.len(), 8);
    // Nothing is left of these; what could not be written is.
    let list =
        || String::from_utf8(sandbox.trace(["recover", "--list", "--machine", "json"]).stdout).expect("text");
    assert_eq!(list().trim(), "[]");
    let (_, said) = run(&statics, "-x", "no/such/directory.fxt");
    let missing = sandbox.file("no/such/directory.fxt").display().to_string();
    assert!(said.contains(&format!("trace: nothing is written to {missing}: ")), "{said}");
    let output = sandbox.trace(["recover", "-o", "recovered.fxt"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(names("recovered.fxt"), all);
}
