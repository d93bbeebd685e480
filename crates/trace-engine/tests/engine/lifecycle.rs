//! Random sequences of what a manager may ask for, from Initialize to Terminate, in an order that makes sense
//! or does not: each call succeeds exactly when it may, and the buffer holds what it should at the end.

use super::support::Trace;
use std::time::{Duration, Instant};
use trace_engine::engine::State;
use trace_engine::{
    AlertHandler, BufferMode, Categories, Config, Disposition, Region, Scope, ThreadKoids, WakeHandler,
    engine, instant,
};

const SEQUENCES: u64 = 10_000;
const BUFFER_BYTES: usize = 16 << 10;
/// Steps of a sequence before it is ended.
const STEPS: u64 = 12;
const MODES: [BufferMode; 3] = [BufferMode::Oneshot, BufferMode::Circular, BufferMode::Streaming];
const DISPOSITIONS: [Disposition; 3] =
    [Disposition::ClearEntire, Disposition::ClearNondurable, Disposition::Retain];

/// Xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

fn initialize_another() -> bool {
    let (region, _words) = Region::on_heap(BUFFER_BYTES);
    let config = Config {
        process: 1,
        process_name: "another".into(),
        ticks_per_second: 1,
        categories: Categories::Listed(Vec::new()),
        alert: AlertHandler::new(|_| {}),
        wake: WakeHandler::default(),
        thread_time: false,
        thread_koids: ThreadKoids::default(),
        mirror: None,
        privacy: false,
    };
    engine::initialize(region, BufferMode::Oneshot, config).is_ok()
}

fn deadline() -> Instant {
    Instant::now() + Duration::from_secs(5)
}

fn run(seed: u64) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mode = MODES[random.below(3) as usize];
    let trace = Trace::start_in(mode, BUFFER_BYTES);
    let (mut state, mut kept) = (State::Started, Vec::new());
    for step in 0..STEPS {
        match random.below(6) {
            0 | 1 => {
                instant!("lifecycle", "event", Scope::Thread, "step" => step);
                if state == State::Started {
                    kept.push(step);
                }
            }
            2 | 3 => {
                let disposition = DISPOSITIONS[random.below(3) as usize];
                assert_eq!(
                    trace.engine.start(disposition, &[]).is_ok(),
                    state == State::Stopped,
                    "seed {seed}"
                );
                if state == State::Stopped && disposition != Disposition::Retain {
                    kept.clear();
                }
                state = State::Started;
            }
            4 => {
                let stopped = trace.engine.stop(deadline());
                assert_eq!(stopped.is_ok(), state == State::Started, "seed {seed}");
                assert!(stopped.is_ok_and(|stopped| stopped.stragglers == 0) || state == State::Stopped);
                state = State::Stopped;
            }
            _ => assert!(!initialize_another(), "seed {seed}: there is a trace already"),
        }
        assert_eq!(engine::state(), state, "seed {seed}");
    }
    trace.engine.terminate(deadline()).unwrap();
    assert!(
        trace.engine.terminate(deadline()).is_err() && trace.engine.start(Disposition::Retain, &[]).is_err()
    );
    // Of no use to anybody, and harmless.
    instant!("lifecycle", "event", Scope::Thread, "step" => STEPS);
    let read = trace.read_terminated();
    let found: Vec<u64> = read.events.iter().map(|event| event.u64("step")).collect();
    assert_eq!(found, kept, "seed {seed}: {mode:?}");
}

//= docs/buffer.md#dispositions
#[test]
fn any_sequence_from_initialize_to_terminate_keeps_what_it_should() {
    (1..=SEQUENCES).for_each(run);
}
