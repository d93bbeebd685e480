//! Every door of the tool gives one trace one answer.
//!
//! The commands that answer by themselves, and the readers of other software that read what `trace convert`
//! has written, are compared with a model of what a trace means, and so with each other. The traces are the
//! files in `tests/data/cases`, the files of the conformance corpus for which the model has rules, random
//! traces, and the shortest random traces to which a door once gave a wrong answer.
//!
//! `MEANING_TRACES` says how many random traces there are, 200 if it is not set, and `MEANING_SEED` is a word
//! that decides what is in them. A failure names the trace, its records, the door, and the rows that only the
//! model or only the door has. What readers see otherwise by a rule of theirs, or of the format, is in
//! `meaning/doors.rs`.
#![forbid(unsafe_code)]

#[path = "meaning/cases.rs"]
mod cases;
#[path = "meaning/commands.rs"]
mod commands;
#[path = "meaning/doors.rs"]
mod doors;
#[path = "meaning/generator.rs"]
mod generator;
#[path = "meaning/model.rs"]
mod model;
#[path = "kills/random.rs"]
mod random;
#[path = "meaning/readers.rs"]
mod readers;
#[path = "meaning/records.rs"]
mod records;
#[path = "meaning/rows.rs"]
mod rows;

use doors::{COMMANDS, Door, Format, Peer, READERS, classes, expected};
use model::Meaning;
use random::Random;
use readers::{Converted, converted_name};
use records::{Record, archive};
use rows::{Answer, Class, Rows};
use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Mutex;
use std::{fs, thread};
use trace_tests::Sandbox;

/// Random traces, unless `MEANING_TRACES` says otherwise.
const TRACES: u64 = 200;
/// Traces whose files exist at a time.
const BATCH: usize = 400;

/// A trace, and what it means.
struct Trace {
    label: String,
    meaning: Meaning,
    /// The bytes of the file, and its suffix.
    bytes: Vec<u8>,
    suffix: &'static str,
    /// Options of `trace filter`, whose result the doors get.
    filter: &'static [&'static str],
    /// Options of `trace convert`. If there are any, only converted files are looked at.
    convert: &'static [&'static str],
}

impl Trace {
    fn new(label: String, records: &[Record]) -> Self {
        let (meaning, bytes) = (Meaning::of(records), archive(records));
        Self { label, meaning, bytes, suffix: "fxt", filter: &[], convert: &[] }
    }
}

/// A class of which a door says something else than the model.
struct Difference {
    class: Class,
    text: String,
}

fn traces() -> u64 {
    std::env::var("MEANING_TRACES").map_or(TRACES, |text| text.parse().expect("MEANING_TRACES is a number"))
}

fn seed() -> String {
    std::env::var("MEANING_SEED").unwrap_or_default()
}

/// The random traces.
fn random_traces() -> impl Iterator<Item = Trace> {
    let seed = seed();
    (0..traces()).map(move |number| {
        // One in three.
        let has_unended = number % 3 == 2;
        let records = generator::trace(&mut Random::new(&seed, number), has_unended);
        Trace::new(format!("trace {number} of seed {seed:?}"), &records)
    })
}

#[test]
fn every_door_gives_one_answer() {
    let test = "every_door_gives_one_answer";
    let mut all = cases::cases().into_iter().chain(cases::corpus()).chain(random_traces());
    let mut count = 0;
    let mut in_order = 0;
    let mut found = Differences::new();
    loop {
        let batch: Vec<Trace> = all.by_ref().take(BATCH).collect();
        if batch.is_empty() {
            break;
        }
        count += batch.len();
        in_order += batch.iter().filter(|trace| trace.meaning.is_in_order()).count();
        let sandbox = Sandbox::new();
        for (door, answers) in ask_all(test, &sandbox, &batch) {
            for (trace, answer) in batch.iter().zip(answers) {
                for difference in compare(trace, door, &answer) {
                    found.entry((door, difference.class)).or_default().push(difference);
                }
            }
        }
    }
    let failures: Vec<String> = found.iter().filter_map(shortest).collect();
    assert!(failures.is_empty(), "{count} traces\n{}", failures.join("\n"));
    // Fuchsia's dialect of Catapult's format is compared with these alone: with all small ones among random
    // traces,
    // and with few of the large ones.
    assert!(in_order * 10 > count, "{in_order} of {count} traces are in order");
}

#[test]
fn the_model_gives_the_known_answers() {
    let cases = cases::cases();
    for (label, class, rows) in cases::ANSWERS {
        let case = cases.iter().find(|case| case.label == label).unwrap_or_else(|| panic!("no {label}"));
        let expected = expected(Door::Query, &case.meaning).answer;
        let found: Vec<_> = expected.get(&class).into_iter().flat_map(Rows::iter).collect();
        let rows: Vec<_> = rows.iter().map(|row| (*row, 1)).collect();
        assert_eq!(found, rows, "{label}");
    }
}

type Differences = BTreeMap<(Door, Class), Vec<Difference>>;

/// What differs. The shortest trace shows it best.
fn shortest(((door, class), differences): (&(Door, Class), &Vec<Difference>)) -> Option<String> {
    let shortest = differences.iter().min_by_key(|difference| difference.text.len())?;
    Some(format!("{door}, {class:?}, {} times: {}", differences.len(), shortest.text))
}

/// What every door says about each trace. Doors without a reader are missing.
fn ask_all(test: &str, sandbox: &Sandbox, traces: &[Trace]) -> BTreeMap<Door, Vec<Result<Answer, String>>> {
    let files: Vec<String> = (0..traces.len()).map(|number| format!("trace-{number}")).collect();
    let next = Mutex::new(0..traces.len());
    let take = || next.lock().expect("no panic").next();
    let answered: Mutex<BTreeMap<usize, Vec<Result<Answer, String>>>> = Mutex::default();
    let ask_some = || {
        while let Some(number) = take() {
            let answers = ask_commands(sandbox, &files[number], &traces[number]);
            answered.lock().expect("no panic").insert(number, answers);
        }
    };
    thread::scope(|scope| {
        (0..thread::available_parallelism().map_or(1, NonZero::get))
            .for_each(|_| drop(scope.spawn(ask_some)));
    });
    let mut all: BTreeMap<Door, Vec<Result<Answer, String>>> = BTreeMap::new();
    for answers in answered.into_inner().expect("no panic").into_values() {
        for (door, answer) in COMMANDS.into_iter().zip(answers) {
            all.entry(door).or_default().push(answer);
        }
    }
    let read = |peer: Peer, formats: &[Format]| {
        let of_format =
            |format: Format| files.iter().map(move |file| sandbox.file(&converted_name(file, format)));
        let paths = formats.iter().flat_map(|format| of_format(*format));
        // What could not be converted cannot be read.
        let converted = paths.zip(traces.iter().cycle()).filter(|(path, _)| path.exists());
        let converted: Vec<Converted<'_>> =
            converted.map(|(path, trace)| Converted { path, meaning: &trace.meaning }).collect();
        readers::read(test, peer, &converted).map(|answers| (converted, answers))
    };
    let read: Vec<_> = thread::scope(|scope| {
        let threads =
            READERS.map(|(peer, formats)| scope.spawn(move || (peer, formats, read(peer, formats))));
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    for (peer, formats, answers) in read {
        let Some((converted, answers)) = answers else { continue };
        let answers: BTreeMap<PathBuf, Answer> =
            converted.into_iter().map(|converted| converted.path).zip(answers).collect();
        for format in formats {
            let paths = files.iter().map(|file| sandbox.file(&converted_name(file, *format)));
            let of_files =
                paths.map(|path| answers.get(&path).cloned().ok_or("it was not converted".to_owned()));
            all.insert(Door::Export(*format, peer), of_files.collect());
        }
    }
    all
}

/// What each command says about a trace, which it also converts for the readers.
fn ask_commands(sandbox: &Sandbox, name: &str, trace: &Trace) -> Vec<Result<Answer, String>> {
    let mut file = format!("{name}.{}", trace.suffix);
    fs::write(sandbox.file(&file), &trace.bytes).expect("a file");
    if !trace.filter.is_empty() {
        let filtered = format!("{name}.filtered.fxt");
        sandbox.trace([&["filter"], trace.filter, &[&file, &filtered]].concat());
        file = filtered;
    }
    if trace.convert.is_empty() {
        sandbox.trace(["report", &file, "-o", &converted_name(name, Format::Page)]);
    }
    for format in Format::CONVERTED {
        let to = converted_name(name, format);
        sandbox.trace([&["convert", "--format", format.name()], trace.convert, &[&file, &to]].concat());
    }
    COMMANDS.map(|door| commands::ask(sandbox, door, &file, &trace.meaning)).into()
}

/// What a door says otherwise than the model.
fn compare(trace: &Trace, door: Door, answer: &Result<Answer, String>) -> Vec<Difference> {
    let Trace { label, meaning, .. } = trace;
    let is_converted = matches!(door, Door::Export(format, _) if format != Format::Page);
    if !trace.convert.is_empty() && !is_converted {
        return Vec::new();
    }
    let expected = expected(door, meaning);
    let records: String = meaning.records.iter().map(|record| format!("  {record}\n")).collect();
    let differs = |class: Class| {
        let difference = match answer {
            Ok(answer) => {
                let (missing, extra) = expected.difference(answer, class)?;
                format!("  only the model: {missing}\n  only the door: {extra}\n")
            }
            Err(error) => format!("  {error}\n"),
        };
        Some(Difference { class, text: format!("{label}\n{records}{difference}") })
    };
    classes(door, meaning).into_iter().filter_map(differs).collect()
}
