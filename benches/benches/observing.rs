//! What an observer costs the program that is recorded, and how old an event is when an observer sees it.
//!
//! `stream` writes in streaming mode on one thread, with buffers of 4 MiB, with and without an observer in
//! turn: a million events in a second, where what counts is the time that it does not wait, and as fast as
//! it can, where program, manager and observer share what processors there are. The observer gets an update
//! every 100 ms. The age of an event counts up to the end of its update. `--test` makes it short.

use std::time::Duration;
use trace_benches::Cost;
use trace_protocol::BufferingMode;
use trace_protocol::VersionRange;
use trace_protocol::controller::observer::FRAME_HEADER_BYTES;
use trace_protocol::controller::{
    Counts, FrameKind, ObserveOptions, SessionRequest, SessionResponse, StartOptions, StopOptions,
    TraceConfig,
};
use trace_reader::{Item, Reader};
use trace_tests::Sandbox;
use trace_tests::client::Client;
use zx_sim::ticks::{self, Clock};
use zx_sim::{Error, Signals, Socket, wait_one};

const OPTIONS: ObserveOptions = ObserveOptions {
    versions: VersionRange::only(1),
    interval_milliseconds: 100,
    wants_records: true,
    program: None,
    open_for_ns: None,
};

/// What an observer has got.
#[derive(Default)]
struct Seen {
    records: Vec<u8>,
    /// The length of the records, and the time in ticks, at the end of each update.
    updates: Vec<(usize, u64)>,
    last: Option<Counts>,
}

fn watch(socket: &Socket) -> Seen {
    let mut seen = Seen::default();
    let mut buffer = Vec::new();
    let mut chunk = vec![0; 1 << 20];
    loop {
        match socket.read(&mut chunk) {
            Ok(0) | Err(Error::PeerClosed) => return seen,
            Ok(length) => buffer.extend_from_slice(&chunk[..length]),
            Err(Error::ShouldWait) => {
                let _ = wait_one(socket, Signals::READABLE | Signals::PEER_CLOSED, None);
            }
            Err(error) => panic!("{error}"),
        }
        let mut start = 0;
        while let Some(header) = buffer[start..].first_chunk::<FRAME_HEADER_BYTES>() {
            let (kind, length) = FrameKind::of_header(*header).expect("a frame");
            let contents = start + FRAME_HEADER_BYTES..start + FRAME_HEADER_BYTES + length;
            let Some(contents) = buffer.get(contents) else { break };
            match kind {
                FrameKind::Records => seen.records.extend_from_slice(contents),
                FrameKind::Counts => {
                    seen.last = Counts::decode(contents).ok();
                    seen.updates.push((seen.records.len(), ticks::now()));
                }
                _ => {}
            }
            start += FRAME_HEADER_BYTES + length;
        }
        buffer.drain(..start);
    }
}

/// What `stream` says of its run.
struct Took {
    seconds: f64,
    /// How long its thread did not wait.
    writing_seconds: f64,
}

/// Records `stream`; what it printed, and what an observer saw.
fn run(arguments: &[&str], is_observed: bool) -> (Took, Option<Seen>) {
    let sandbox = Sandbox::new();
    let _manager = sandbox.spawn("trace", &["manager"]);
    let client = Client::connect(&sandbox);
    let mut session =
        client.begin(TraceConfig { buffering_mode: BufferingMode::Streaming, ..TraceConfig::default() });
    let answer = session.ask(SessionRequest::StartTracing(StartOptions::default()));
    assert_eq!(answer, SessionResponse::StartTracing(Ok(())));
    let output = session.collect();
    let observer = is_observed.then(|| {
        let (observing, socket) = client.observe(OPTIONS);
        assert_eq!(observing.result, Ok(1));
        std::thread::spawn(move || watch(&socket))
    });
    let output_of = sandbox.spawn_recorded("stream", arguments).finish();
    assert!(output_of.status.success(), "{output_of:?}");
    let printed = String::from_utf8_lossy(&output_of.stdout).into_owned();
    let mut numbers = printed.split_whitespace().map(|number| number.parse::<f64>().expect("seconds"));
    let mut next = || numbers.next().expect("two numbers");
    let took = Took { seconds: next(), writing_seconds: next() };
    session.send(SessionRequest::StopTracing(StopOptions { write_results: true }));
    assert!(matches!(session.answer(), SessionResponse::StopTracing(Ok(_))));
    drop(session);
    drop(output.finish());
    (took, observer.map(|observer| observer.join().expect("the observer reads")))
}

fn main() {
    let is_test = std::env::args().any(|argument| argument == "--test");
    let (runs, events, seconds) = if is_test { (1, 200_000, 1) } else { (15, 4_000_000, 10) };
    println!("| events | observer | ns for an event: fastest | median |\n|---|---|---|---|");
    let writing: fn(&Took) -> f64 = |took| took.writing_seconds;
    for (rate, said, seconds_of) in
        [("1000000", "1 million in a second", writing), ("0", "as many as it can", |took| took.seconds)]
    {
        let mut costs = [Cost::new("none"), Cost::new("one")];
        for _ in 0..runs {
            for (cost, is_observed) in costs.iter_mut().zip([false, true]) {
                let (took, _) = run(&["1", &events.to_string(), rate], is_observed);
                cost.push(seconds_of(&took) / f64::from(events) * 1e9);
            }
        }
        for cost in &costs {
            println!("| {said} | {} | {:.2} | {:.2} |", cost.name, cost.minimum(), cost.median());
        }
        let [none, one] = &costs;
        println!(
            "| {said} | one / none | {:.3} | {:.3} |",
            one.minimum() / none.minimum(),
            one.median() / none.median()
        );
    }
    let (_, seen) = run(&["1", &(1_000_000 * seconds).to_string(), "1000000"], true);
    let seen = seen.expect("it was observed");
    let mut ages = ages(&seen);
    ages.sort();
    let at = |percent: usize| ages.get((ages.len() - 1) * percent / 100).copied().unwrap_or_default();
    let missed: u64 =
        seen.last.iter().flat_map(|counts| &counts.providers).map(|provider| provider.missed).sum();
    println!("\n| events | seen | missed | age, median ms | 99 % | oldest |\n|---|---|---|---|---|---|");
    let ms = |age: Duration| age.as_secs_f64() * 1e3;
    println!(
        "| {} | {} | {missed} | {:.0} | {:.0} | {:.0} |",
        1_000_000 * seconds,
        ages.len(),
        ms(at(50)),
        ms(at(99)),
        ms(at(100))
    );
}

/// How old each event was when its update was complete.
fn ages(seen: &Seen) -> Vec<Duration> {
    let rate = Clock::measure().ticks_per_second as f64;
    let mut reader = Reader::new(&seen.records[..]).expect("an archive");
    let mut ages = Vec::new();
    let mut update = 0;
    while let Some(record) = reader.next_item().expect("records") {
        let Item::Event(event) = record.item else { continue };
        while seen.updates.get(update).is_some_and(|(end, _)| record.offset.0 as usize >= *end) {
            update += 1;
        }
        if let Some((_, at)) = seen.updates.get(update) {
            ages.push(Duration::from_secs_f64(at.saturating_sub(event.time.ticks.0) as f64 / rate));
        }
    }
    ages
}
