//! How fast questions in SQL are answered, from the opening of an archive to the last row; against decoding
//! the same archive alone. Arguments are the names of questions, if not all are asked.

use std::hint::black_box;
use std::io::{self, Cursor, Read};
use trace_benches::archive::durations;
use trace_benches::{Cost, table};
use trace_convert::tables::sqlite::{Answers, Database};
use trace_convert::tables::{Cell, Trace};
use trace_reader::Reader;

/// Events of the archive; with `--test` a thousandth.
const EVENTS: u64 = 2_000_000;
const RUNS: usize = 7;

/// What is asked, and how many rows are the answer.
const QUESTIONS: [(&str, &str, u64); 9] = [
    ("rows", "SELECT count(*) FROM slices", 1),
    ("whole table", "SELECT sum(dur), min(ts), max(ts) FROM slices", 1),
    ("one name", "SELECT count(*), max(dur) FROM slices WHERE name = 'string number 9'", 1),
    (
        "longest of a name",
        "SELECT ts, dur FROM slices WHERE name = 'string number 9' ORDER BY dur DESC LIMIT 10",
        10,
    ),
    ("by name", "SELECT name, count(*), sum(dur) FROM slices GROUP BY name", 40),
    (
        "by name, five functions",
        "SELECT name, count(*), sum(dur), avg(dur), min(dur), max(dur) FROM slices GROUP BY name",
        40,
    ),
    ("by thread and name", "SELECT tid, name, sum(dur) FROM slices GROUP BY tid, name", 320),
    ("self-join", "SELECT count(*) FROM slices a JOIN slices b ON a.tid = b.tid AND a.ts = b.ts", 1),
    (
        "200 points in slices",
        "WITH RECURSIVE points (n, at) AS (SELECT 0, 16666667000000 UNION ALL \
         SELECT n + 1, at + 200000 FROM points WHERE n < 199) \
         SELECT count(*) FROM points JOIN slices ON tid = 1001 AND ts <= at AND ts_end > at",
        1,
    ),
];

/// Counts rows.
#[derive(Default)]
struct Counted(u64);

impl Answers for Counted {
    fn begin(&mut self, _: &[String]) -> io::Result<()> {
        Ok(())
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        self.0 += 1;
        black_box(cells);
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn trace(archive: &'static [u8]) -> Trace {
    let open = Box::new(move || Ok(Box::new(Cursor::new(archive)) as Box<dyn Read>));
    Trace { name: "archive".to_owned(), open, disorder: None, bytes: Some(archive.len() as u64) }
}

fn main() {
    let is_test = std::env::args().any(|argument| argument == "--test");
    let chosen: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let is_chosen = |name: &str| chosen.is_empty() || chosen.iter().any(|chosen| chosen == name);
    let (events, runs) = if is_test { (EVENTS / 1000, 1) } else { (EVENTS, RUNS) };
    let archive: &'static [u8] = durations(events).leak();
    let mut decoded = Cost::new("decoded");
    let mut costs = QUESTIONS.map(|(name, ..)| Cost::new(name));
    for _ in 0..runs {
        decoded.measure(events, |_| {
            let mut reader = Reader::new(black_box(archive)).expect("an archive");
            while reader.next_item().expect("a sound archive").is_some() {}
        });
        for (cost, (name, sql, rows)) in costs.iter_mut().zip(QUESTIONS) {
            if !is_chosen(name) {
                continue;
            }
            cost.measure(events, |_| {
                let database = Database::open(vec![trace(archive)]).expect("a database");
                let mut counted = Counted::default();
                database.ask(sql, &mut counted).expect("an answer");
                assert_eq!(counted.0, rows, "{name}");
            });
        }
    }
    let costs = costs.into_iter().filter(|cost| is_chosen(cost.name));
    let costs: Vec<Cost> = [decoded].into_iter().chain(costs).collect();
    println!("{events} slices, {} MB, {runs} runs; nanoseconds for each slice\n", archive.len() / 1_000_000);
    println!("{}", table(&costs));
    for cost in &costs {
        let (rate, seconds) = (1e3 / cost.median(), cost.median() * events as f64 / 1e9);
        println!("{}: {rate:.1} million slices/s at the median, {seconds:.2} s", cost.name);
    }
}
