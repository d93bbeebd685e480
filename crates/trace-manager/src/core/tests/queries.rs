//! What the daemon asks about sessions.

use super::*;
use trace_protocol::memory::{MemoryDumpLevel, MemoryDumps};

#[test]
fn a_session_is_there_until_it_is_over() {
    let core = Bench::new().core;
    assert!(!core.has_session() && !core.has(CLIENT) && !core.is_terminating(CLIENT));
    let mut bench = Bench::started(&[A]);
    assert!(bench.core.has_session() && bench.core.has(CLIENT) && !bench.core.has(ClientId(8)));
    assert!(!bench.core.is_terminating(CLIENT));
    bench.event(Event::ClientClosed { client: CLIENT });
    assert!(bench.core.has(CLIENT) && bench.core.is_terminating(CLIENT));
}

//= docs/protocol.md#flush
#[test]
fn a_stream_is_flushed_and_memory_dumped_while_it_records() {
    let dumps = Some(MemoryDumps { interval_milliseconds: 5, level: MemoryDumpLevel::Light });
    let config = TraceConfig {
        buffering_mode: BufferingMode::Streaming,
        write_period_milliseconds: Some(250),
        memory_dumps: dumps,
        ..TraceConfig::default()
    };
    let bench = Bench::configured(&[A], config.clone());
    assert_eq!((bench.core.write_period(CLIENT), bench.core.memory_dumps(CLIENT)), (None, None));
    let oneshot = TraceConfig { buffering_mode: BufferingMode::Oneshot, ..config.clone() };
    assert_eq!(Bench::started_with(&[A], oneshot).core.write_period(CLIENT), None);
    let mut bench = Bench::started_with(&[A], config);
    assert_eq!(bench.core.write_period(CLIENT), Some(Duration::from_millis(250)));
    assert_eq!(bench.core.memory_dumps(CLIENT), dumps);
    let flush = |bench: &mut Bench| {
        bench.core.flush_quiet(CLIENT);
        bench.drain()
    };
    assert_eq!(flush(&mut bench), [Action::FlushTracee(A)]);
    let save = |bench: &mut Bench, half| {
        assert_eq!(bench.core.saved_halves(A), u64::from(half));
        bench.send(A, FifoRequest::SaveBuffer { wrapped_count: half, durable_data_end: 16 });
        assert_eq!(bench.core.saved_halves(A), u64::from(half));
        assert_eq!(bench.core.handed_over_halves(A), u64::from(half) + 1);
        bench.transferred(A);
    };
    // What a flush has brought does not count, what comes by itself does.
    save(&mut bench, 0);
    assert_eq!(flush(&mut bench), [Action::FlushTracee(A)]);
    save(&mut bench, 1);
    save(&mut bench, 2);
    assert_eq!(flush(&mut bench), []);
    assert_eq!(flush(&mut bench), [Action::FlushTracee(A)]);
    assert_eq!(flush(&mut bench), [Action::FlushTracee(A)]);
    assert_eq!(bench.core.saved_halves(A), 3);
}

//= docs/protocol.md#flush
#[test]
fn a_client_may_flush_what_streams_while_it_is_recorded() {
    let flush = |bench: &mut Bench| bench.event(Event::Flush { client: CLIENT });
    let reply = |result| Action::ReplyFlush(CLIENT, result);
    assert_eq!(flush(&mut Bench::new()), [reply(Err(FlushError::NotInitialized))]);
    assert_eq!(flush(&mut Bench::started(&[A])), [reply(Ok(()))]);
    let streaming = TraceConfig { buffering_mode: BufferingMode::Streaming, ..TraceConfig::default() };
    let mut bench = Bench::configured(&[A, B], streaming);
    bench.start();
    bench.send(A, started());
    assert_eq!(flush(&mut bench), [reply(Err(FlushError::NotStarted))]);
    // The other has not started in time.
    bench.pass(Duration::from_secs(5));
    assert_eq!(flush(&mut bench), [Action::FlushTracee(A), reply(Ok(()))]);
    bench.stop(true);
    assert_eq!(flush(&mut bench), [reply(Err(FlushError::Aborted))]);
}
