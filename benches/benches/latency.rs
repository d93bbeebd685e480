//! How long a client waits for the manager, with 1, 10 and 100 programs that record, and how much memory the
//! manager takes.
//!
//! Real processes that write 2000 events in a second each; buffers of 4 MiB. `--test` makes it short.

use std::time::Instant;
use trace_benches::Cost;
use trace_protocol::controller::{
    ProvisionerRequest, ProvisionerResponse, SessionRequest, SessionResponse, StartOptions, StopOptions,
    TraceConfig,
};
use trace_tests::client::Client;
use trace_tests::{Sandbox, wait_for};

/// Milliseconds of something.
fn timed<T>(cost: &mut Cost, body: impl FnOnce() -> T) -> T {
    let begin = Instant::now();
    let result = body();
    cost.push(begin.elapsed().as_secs_f64() * 1e3);
    result
}

/// Most memory that a process has had, in MiB.
fn peak_memory(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default().to_owned();
    line.split_whitespace().nth(1).and_then(|text| text.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1024.0
}

fn main() {
    let is_test = std::env::args().any(|argument| argument == "--test");
    let (counts, runs): (&[usize], _) = if is_test { (&[1], 2) } else { (&[1, 10, 100], 10) };
    println!(
        "| providers | list ms | list while a client stalls ms | initialize and start ms | stop ms | manager, most MiB |\n\
         |---|---|---|---|---|---|"
    );
    for &count in counts {
        let sandbox = Sandbox::new();
        let manager = sandbox.spawn("trace", &["manager"]);
        let client = Client::connect(&sandbox);
        let spawn = |_| sandbox.spawn("stream", &["1", "1000000000", "2000"]);
        let _programs: Vec<_> = (0..count).map(spawn).collect();
        wait_for("the programs to register", || {
            let answer = client.ask(ProvisionerRequest::GetProviders);
            matches!(answer, ProvisionerResponse::Providers { listed, .. } if listed.len() == count)
                .then_some(())
        });
        let (mut list, mut start, mut stop) = (Cost::new("list"), Cost::new("start"), Cost::new("stop"));
        for _ in 0..runs {
            timed(&mut list, || client.ask(ProvisionerRequest::GetProviders));
            let mut session = timed(&mut start, || {
                let mut session = client.begin(TraceConfig::default());
                let answer = session.ask(SessionRequest::StartTracing(StartOptions::default()));
                assert_eq!(answer, SessionResponse::StartTracing(Ok(())));
                session
            });
            let output = session.collect();
            let answer = timed(&mut stop, || {
                session.ask(SessionRequest::StopTracing(StopOptions { write_results: true }))
            });
            let SessionResponse::StopTracing(Ok(result)) = answer else { panic!("{answer:?}") };
            assert_eq!(result.provider_stats.len(), count);
            drop(session);
            drop(output.finish());
        }
        let mut stalled = Cost::new("stalled");
        // More data than a socket holds, for a client that does not read.
        let full = sandbox.spawn_recorded("stream", &["1", "200000", "0"]);
        let mut session = client.begin(TraceConfig::default());
        let answer = session.ask(SessionRequest::StartTracing(StartOptions::default()));
        assert_eq!(answer, SessionResponse::StartTracing(Ok(())));
        assert!(full.finish().status.success());
        session.send(SessionRequest::StopTracing(StopOptions { write_results: true }));
        (0..10 * runs)
            .for_each(|_| drop(timed(&mut stalled, || client.ask(ProvisionerRequest::GetProviders))));
        drop(session);
        let memory = peak_memory(manager.pid());
        println!(
            "| {count} | {:.2} | {:.2} | {:.1} | {:.1} | {memory:.1} |",
            list.median(),
            stalled.median(),
            start.median(),
            stop.median()
        );
    }
}
