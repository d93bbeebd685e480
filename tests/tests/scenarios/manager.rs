//! The manager itself: its facts, its death, its end.

use rustix::process::Signal;
use std::time::{Duration, Instant};
use trace_protocol::controller::{ProvisionerRequest, ProvisionerResponse};
use trace_tests::archive::{ResolvedEvent, Value};
use trace_tests::build::program;
use trace_tests::{Archive, Sandbox, wait_for};

//= docs/protocol.md#the-managers-own-provider
#[test]
fn the_archive_says_who_made_it() {
    let sandbox = Sandbox::new();
    let emit = program("emit").to_str().unwrap();
    sandbox.record(&["--categories", "emit"], "emit", &["1", "1"]);
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    let [begin, end] = &archive.manager_events[..] else { panic!("{:?}", archive.manager_events) };
    assert_eq!((&*begin.name.to_str(), &*end.name.to_str()), ("recording", "recording_end"));
    assert!(begin.timestamp < end.timestamp);
    let text = |name: &str| match begin.argument(name) {
        Some(Value::String(text)) => text.to_str().into_owned(),
        other => panic!("{name} is {other:?}"),
    };
    assert_eq!(text("version"), env!("CARGO_PKG_VERSION"));
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(text("kernel"), format!("Linux {}", kernel.trim()));
    assert_eq!(text("host"), std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim());
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    assert_eq!(text("boot_id"), boot.trim());
    assert_eq!(text("clock_source"), zx_sim::ticks::source().name());
    assert_eq!(text("buffering_mode"), "streaming");
    assert_eq!(text("categories"), "emit");
    let trace = program("trace").to_str().unwrap();
    assert_eq!(text("command_line"), format!("{trace} record --categories emit -- {emit} 1 1"));
    assert_eq!(begin.argument("buffer_size_megabytes"), Some(&Value::Uint32(4)));
    let wall = |event: &ResolvedEvent| match event.argument("wall_clock_ns") {
        Some(Value::Uint64(nanos)) => *nanos,
        other => panic!("{other:?}"),
    };
    // The wall clock and the ticks measure the same span.
    let by_ticks = end.nanos().0 - begin.nanos().0;
    let by_wall = wall(end) - wall(begin);
    assert!(by_ticks.abs_diff(by_wall) < 50_000_000, "{by_ticks} {by_wall}");
    assert_eq!(begin.process.0, u64::from(sandbox.manager_pid().unwrap()));
    // The same as a row.
    let output = sandbox.trace(["query", "--format", "json", "SELECT * FROM traces", "trace.fxt"]);
    let mut rows: serde_json::Value = trace_tests::json(&output);
    for cost in ["instant_cost_ns", "duration_cost_ns", "counter_cost_ns"] {
        let cost = rows[0].as_object_mut().unwrap().remove(cost).unwrap();
        assert!(cost.as_f64().is_some_and(|cost| cost > 0.0), "{cost}");
    }
    let offset = wall(begin) as i64 - begin.nanos().0 as i64;
    let expected = serde_json::json!([{
        "host": text("host"), "boot_id": boot.trim(), "kernel": text("kernel"),
        "command_line": text("command_line"), "version": text("version"), "categories": "emit",
        "mode": "streaming", "clock_source": text("clock_source"),
        "ticks_per_second": zx_sim::ticks::Clock::load_or_create(&sandbox.runtime_dir()).unwrap().ticks_per_second,
        "start_ts": begin.nanos().0, "end_ts": end.nanos().0, "start_utc": wall(begin), "end_utc": wall(end),
        "utc_offset": offset, "generated": 13, "archived": 13, "lost": 0, "balanced": 1,
    }]);
    assert_eq!(rows, expected);
}

#[test]
fn no_metadata_leaves_the_facts_out() {
    let sandbox = Sandbox::new();
    sandbox.record(&["--no-metadata"], "emit", &["1", "1"]);
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    assert_eq!(archive.providers.values().collect::<Vec<_>>(), ["emit"]);
    assert!(archive.manager_events.is_empty());
    assert_eq!(archive.events.len(), 14);
}

#[test]
fn a_dead_manager_ends_the_recording_and_not_the_program() {
    let sandbox = Sandbox::new();
    let mut recording =
        sandbox.spawn("trace", &["record", "--", program("emit").to_str().unwrap(), "1", "1", "--wait"]);
    let pid: u32 = recording.line().parse().unwrap();
    trace_tests::sandbox::kill(sandbox.manager_pid().unwrap(), Signal::KILL);
    wait_for("the end of the recording", || (!recording.is_running()).then_some(()));
    assert!(std::path::Path::new(&format!("/proc/{pid}")).exists(), "the program went down with the manager");
    let output = recording.finish();
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("the trace manager is gone"), "{stderr}");
    // The buffer of the program stays for a recovery.
    let sessions: Vec<_> = std::fs::read_dir(sandbox.runtime_dir())
        .unwrap()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("session-"))
        .collect();
    assert_eq!(sessions.len(), 1);
    assert!(sessions[0].path().join("provider-1").exists());
    trace_tests::sandbox::kill(pid, Signal::KILL);
}

#[test]
fn buffers_are_gone_after_a_recording() {
    let sandbox = Sandbox::new();
    sandbox.record(&[], "emit", &["1", "1"]);
    let mut names: Vec<_> = std::fs::read_dir(sandbox.runtime_dir())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["lock", "manager.log", "provisioner", "registry", "ticks"]);
}

#[test]
fn a_manager_on_demand_ends_by_itself() {
    let sandbox = Sandbox::new();
    let manager = sandbox.spawn("trace", &["manager", "--on-demand", "--idle-timeout", "0.2"]);
    let output = manager.finish();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(!sandbox.runtime_dir().join("provisioner").exists());
}

/// Who has connected is served, however close that was to the manager's end. The pauses between clients are
/// about as long as what the manager waits for one.
#[test]
fn a_manager_on_demand_does_not_leave_a_client_behind() {
    let sandbox = Sandbox::new();
    let mut served = 0;
    for round in 0..30 {
        let mut manager = sandbox.spawn("trace", &["manager", "--on-demand", "--idle-timeout", "0.001"]);
        let path = sandbox.runtime_dir().join("provisioner");
        // A manager goes on for a client that always comes back in time.
        let mut left = 100;
        while left > 0 && manager.is_running() {
            let Ok(channel) = zx_sim::Channel::connect(&path) else { continue };
            left -= 1;
            let client = trace_tests::client::Client(channel);
            let answer = client.ask(ProvisionerRequest::GetProviders);
            assert_eq!(answer, ProvisionerResponse::Providers { listed: Vec::new(), left_out: 0 });
            served += 1;
            let (answered, pause) = (Instant::now(), Duration::from_micros(700 + 20 * round));
            while answered.elapsed() < pause {
                std::hint::spin_loop();
            }
        }
        assert_eq!(manager.finish().status.code(), Some(0));
    }
    assert!(served > 0, "none of them was fast enough");
}

#[test]
fn one_manager_in_a_directory() {
    let sandbox = Sandbox::new();
    let first = sandbox.spawn("trace", &["manager"]);
    wait_for("the first manager", || sandbox.runtime_dir().join("provisioner").exists().then_some(()));
    let output = sandbox.trace(["manager"]);
    assert_eq!(output.status.code(), Some(3));
    let expected = format!(
        "trace: a manager is already running in {} (pid {})\n",
        sandbox.runtime_dir().display(),
        first.pid()
    );
    assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
}

/// A program that a client starts finds the socket for programs, however slowly the manager begins.
#[test]
fn there_is_no_socket_for_clients_before_that_for_programs() {
    let sandbox = Sandbox::new();
    // Nothing can be put in its place.
    let in_the_way = sandbox.runtime_dir().join("registry").join("something");
    std::fs::create_dir_all(&in_the_way).unwrap();
    let output = sandbox.trace(["manager"]);
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    assert!(!sandbox.runtime_dir().join("provisioner").exists());
}

/// With nothing to do the manager does nothing: for half a second it is not even woken.
#[test]
fn an_idle_manager_is_not_woken() {
    let sandbox = Sandbox::new();
    let manager = sandbox.spawn("trace", &["manager"]);
    let client = trace_tests::client::Client::connect(&sandbox);
    let mut emit = sandbox.spawn("emit", &["1", "1", "--wait"]);
    emit.line();
    let listed = || match client.ask(ProvisionerRequest::GetProviders) {
        ProvisionerResponse::Providers { listed, .. } => (listed.len() == 1).then_some(()),
        other => panic!("{other:?}"),
    };
    wait_for("the program to register", listed);
    let switches = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", manager.pid())).unwrap();
        status.lines().filter(|line| line.contains("ctxt_switches")).map(str::to_owned).collect::<Vec<_>>()
    };
    let mut last = (switches(), Instant::now());
    wait_for("half a second of rest", || {
        let now = switches();
        if now != last.0 {
            last = (now, Instant::now());
        }
        (last.1.elapsed() >= Duration::from_millis(500)).then_some(())
    });
    drop(emit);
}

/// What a program records can be changed through its own descriptor only.
//= docs/ARCHITECTURE.md#invariants
#[test]
fn the_manager_can_only_read_buffers() {
    let sandbox = Sandbox::new();
    let manager = sandbox.spawn("trace", &["manager"]);
    wait_for("the manager", || sandbox.runtime_dir().join("provisioner").exists().then_some(()));
    let mut emit = sandbox.spawn("emit", &["1", "1", "--wait"]);
    let _ = emit.line();
    sandbox.wait_for_providers(1);
    assert!(sandbox.trace(["start", "-o", "t.fxt"]).status.success());
    let process = format!("/proc/{}", manager.pid());
    let is_buffer = |number: &String| {
        let target = std::fs::read_link(format!("{process}/fd/{number}")).unwrap_or_default();
        target.to_string_lossy().contains("/session-") && target.ends_with("provider-1")
    };
    let numbers = std::fs::read_dir(format!("{process}/fd")).expect("its descriptors");
    let numbers =
        numbers.map(|entry| entry.expect("a descriptor").file_name().to_string_lossy().into_owned());
    let buffers: Vec<String> = numbers.filter(is_buffer).collect();
    assert_eq!(buffers.len(), 1, "{buffers:?}");
    let facts = std::fs::read_to_string(format!("{process}/fdinfo/{}", buffers[0])).expect("its flags");
    let flags = facts.lines().find_map(|line| line.strip_prefix("flags:")).expect("flags").trim();
    let flags = i32::from_str_radix(flags, 8).expect("an octal number");
    assert_eq!(flags & 3, 0, "{facts}");
    assert!(sandbox.trace(["stop"]).status.success());
    emit.succeed();
}
