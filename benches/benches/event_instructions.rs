//! How many instructions each kind of event takes, the loop around it included.
//!
//! Counted by callgrind and kept in `event_instructions.txt`. `--check` fails if a kind takes over 2 % more
//! than there, or if the attribute `#[trace]` takes more or fewer than the macro, or an event
//! after a hook was removed more or fewer than one without, or one of a program for which `TRACE_STARTUP` and
//! `TRACE_ECHO` could have been set; `--update` writes the file anew. Counts depend on the compiler, not on
//! the machine or its mood.

use std::collections::BTreeMap;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use trace_benches::callgrind::count;
use trace_engine::{
    AlertHandler, BufferMode, Categories, Config, Disposition, Region, Scope, ThreadKoids, WakeHandler,
    counter, duration, duration_begin, duration_end, engine, flow_begin, instant, set_event_hook,
};
use trace_macros::trace;
use trace_provider::{TraceProvider, startup};

/// Per cent that a count may grow.
const MARGIN: u64 = 2;

/// A kind of event: its name, whether its category is recorded, and what emits so many.
type Kind = (&'static str, bool, fn(u64));

/// Emits one event after the other, in a loop of its own.
macro_rules! repeat {
    ($number:ident => $emit:stmt) => {
        |times| {
            for $number in 0..times {
                let $number = black_box($number);
                $emit
            }
        }
    };
}

#[trace(crate = trace_engine, category = "bench", name = "call", args(number, text))]
#[inline(never)]
fn with_attribute(number: u64, text: &str) -> usize {
    black_box(text.len())
}

#[inline(never)]
fn by_hand(number: u64, text: &str) -> usize {
    duration!("bench", "call", "number" => number, "text" => text);
    black_box(text.len())
}

/// Kinds that take exactly as many instructions as each other.
const EQUAL: [[&str; 2]; 4] = [
    ["instant", "instant after a hook was removed"],
    ["instant", "instant of a program that is neither recorded from its first line nor printed"],
    ["call of a function with duration!", "call of a function with #[trace]"],
    ["call of a function with duration!, off", "call of a function with #[trace], off"],
];

const KINDS: [Kind; 16] = [
    // The loop around each of the others.
    ("nothing", true, repeat!(number => _ = number)),
    ("site off", false, repeat!(number => instant!("bench", "off", Scope::Thread, "number" => number))),
    ("instant", true, repeat!(_number => instant!("bench", "instant", Scope::Thread))),
    (EQUAL[0][1], true, repeat!(_number => instant!("bench", "hooked", Scope::Thread))),
    (EQUAL[1][1], true, repeat!(_number => instant!("bench", "ordinary", Scope::Thread))),
    ("duration begin", true, repeat!(_number => duration_begin!("bench", "begin"))),
    ("duration end", true, repeat!(_number => duration_end!("bench", "end"))),
    ("duration scope", true, repeat!(_number => { duration!("bench", "scope"); })),
    ("flow begin", true, repeat!(number => flow_begin!("bench", "flow", number))),
    ("counter", true, repeat!(number => counter!("bench", "counter", 0, "value" => number))),
    (
        "instant with an i64",
        true,
        repeat!(number => instant!("bench", "i64", Scope::Thread, "value" => number as i64)),
    ),
    (
        "instant with an i64 and 16 bytes of text",
        true,
        repeat!(number => {
            let text = black_box("sixteen bytes...");
            instant!("bench", "text", Scope::Thread, "value" => number as i64, "text" => text);
        }),
    ),
    (EQUAL[2][0], true, repeat!(number => _ = by_hand(number, black_box("text")))),
    (EQUAL[2][1], true, repeat!(number => _ = with_attribute(number, black_box("text")))),
    (EQUAL[3][0], false, repeat!(number => _ = by_hand(number, black_box("text")))),
    (EQUAL[3][1], false, repeat!(number => _ = with_attribute(number, black_box("text")))),
];

/// The place of the kind before which there was a hook.
const HOOKED: usize = 3;
/// The place of the kind before which a provider has looked whether its user wants either.
const ASKED: usize = 4;

fn run(place: usize, times: u64) {
    let (_, is_on, emit) = KINDS[place];
    if place == ASKED {
        startup::begin_by_environment();
        drop(TraceProvider::new("bench"));
    }
    let (region, words) = Region::on_heap(16 << 20);
    let categories = vec![if is_on { "bench" } else { "other" }.to_owned()];
    let config = Config {
        process: 1,
        process_name: "bench".into(),
        ticks_per_second: 1,
        categories: Categories::Listed(categories),
        alert: AlertHandler::default(),
        wake: WakeHandler::default(),
        thread_time: false,
        thread_koids: ThreadKoids::default(),
        mirror: None,
        privacy: false,
    };
    let engine = engine::initialize(region, BufferMode::Oneshot, config).expect("the engine is idle");
    engine.start(Disposition::Retain, &[]).expect("the engine is initialized");
    if place == HOOKED {
        set_event_hook(Some(Box::new(|_| true)));
        emit(1);
        set_event_hook(None);
    }
    emit(times);
    engine.terminate(Instant::now() + Duration::from_secs(5)).expect("the engine was started");
    drop(words);
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/event_instructions.txt")
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [run_word, place, times] = &arguments[..]
        && run_word == "--run"
    {
        run(place.parse().expect("a place"), times.parse().expect("a number"));
        return ExitCode::SUCCESS;
    }
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let kept = fs::read_to_string(file()).unwrap_or_default();
    let kept: BTreeMap<&str, u64> = kept
        .lines()
        .filter_map(|line| line.rsplit_once(": "))
        .filter_map(|(name, count)| Some((name, count.parse().ok()?)))
        .collect();
    let mut counts = String::new();
    let mut found_counts = BTreeMap::new();
    let mut is_over = false;
    println!("| event | instructions | kept |\n|---|---|---|");
    for (place, (name, ..)) in KINDS.iter().enumerate() {
        let found = match count(&[&place.to_string()]) {
            Ok(found) => found,
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        };
        let before = kept.get(name).copied();
        println!(
            "| {name} | {found} | {} |",
            before.map_or_else(|| "-".to_owned(), |count| count.to_string())
        );
        counts.push_str(&format!("{name}: {found}\n"));
        found_counts.insert(*name, found);
        if has("--check") && before.is_none_or(|before| found * 100 > before * (100 + MARGIN)) {
            eprintln!("{name}: {found} instructions; {before:?} are kept in {}", file().display());
            is_over = true;
        }
    }
    for [by_hand, with_attribute] in EQUAL {
        let [expected, found] = [by_hand, with_attribute].map(|name| found_counts[name]);
        if has("--check") && expected != found {
            eprintln!("{with_attribute}: {found} instructions; {by_hand}: {expected}");
            is_over = true;
        }
    }
    if has("--update") {
        fs::write(file(), counts).expect("the file can be written");
    }
    if is_over { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
