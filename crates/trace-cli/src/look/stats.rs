//! `trace stats`: where the time of a trace went, and what is missing in it.
//= docs/stats.md#statistics

use crate::args::analysis::{By as ByOption, Stats as Options};
use crate::files::account;
use crate::files::analysis::{self, balance, contents, limited, losses, more, table};
use crate::files::input::{OpenFile, name, open, stopped};
use crate::files::several::each;
use crate::shell::exit::Failure;
use crate::shell::stdio;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use trace_analysis::cost::EventCosts;
use trace_analysis::counted::Counted;
use trace_analysis::stats::{By, Counter, Instants, Options as Summing, Row, Spread, Stats};
use trace_analysis::walk::Walked;
use trace_format::scopes::Ending;
use trace_format::shown::{Digits, Lasting, Shown};
use trace_model::Selection;

/// The percentiles that are shown.
const PERCENTS: [f64; 3] = [50.0, 95.0, 99.0];

/// Prints the statistics of traces.
pub fn run(options: &Options) -> Result<u8, Failure> {
    let mut is_first = true;
    each(&options.inputs, |input| {
        let accounting = account::begin(options.json, input, &options.selecting.selection()?)?;
        let stats = read(options, input)?;
        let is_first = std::mem::take(&mut is_first);
        if let Some(accounting) = accounting {
            accounting.finish().answer(machine(&stats, options)).give();
        } else if options.csv {
            let text = lines(input, &stats, options);
            let rows = text.split_once('\n').map_or("", |(_, rows)| rows);
            stdio::print_document(if is_first { &text } else { rows })?;
        } else {
            let blank = if is_first { "" } else { "\n" };
            stdio::print_folded(&format!("{blank}{}", human(input, &stats, options)))?;
        }
        unread(input, &stats).map(|()| 0)
    })
}

/// Tells the statistics of a new recording, in its summary's place.
pub fn report(path: &Path) -> Result<(), Failure> {
    let options = Options::of_recording();
    let stats = read(&options, path)?;
    stdio::report(&human(path, &stats, &options));
    unread(path, &stats)
}

/// The sums by name of what is selected of a trace.
pub fn by_name(path: &Path, selection: &Selection) -> Result<Stats, Failure> {
    summed_up(open(path)?, path, selection, By::Name)
}

/// The sums by name of an open file, which errors call by a name.
#[cfg(feature = "query")]
pub fn by_name_of(file: OpenFile, path: &Path) -> Result<Stats, Failure> {
    summed_up(file, path, &Selection::default(), By::Name)
}

/// An error if the trace could not be read to its end.
pub fn unread(path: &Path, stats: &Stats) -> Result<(), Failure> {
    match &stats.walked.losses.stopped {
        Some(why) => Err(stopped(path, why, "the statistics are of what comes before")),
        None => Ok(()),
    }
}

fn read(options: &Options, input: &Path) -> Result<Stats, Failure> {
    let by = match options.by {
        ByOption::Name => By::Name,
        ByOption::Category => By::Category,
        ByOption::Process => By::Process,
        ByOption::Thread => By::Thread,
    };
    let selection = options.selecting.selection()?;
    summed_up(open(input)?, input, &selection, by)
}

/// The sums of a trace, with what its import could not read among its losses.
fn summed_up(file: OpenFile, path: &Path, selection: &Selection, by: By) -> Result<Stats, Failure> {
    let read = |archive, disorder: &_, chosen| Stats::of(archive, disorder, &Summing { by, chosen });
    let (mut stats, report) = analysis::read_file(file, path, "reading", selection, read)?;
    stats.walked.losses.problems.extend(report.counts());
    stats.walked.bytes = report.bytes().unwrap_or(stats.walked.bytes);
    Ok(stats)
}

/// The rows in the order of a column, as many as are shown, and how many are not.
fn sorted<'a>(rows: &'a [Row], options: &Options, is_for_people: bool) -> (Vec<&'a Row>, usize) {
    let statistic = options.sort.statistic();
    let mut sorted: Vec<(f64, &Row)> =
        rows.iter().map(|row| (statistic.or_zero(Some(&row.spread)), row)).collect();
    sorted.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (shown, hidden) = limited(options.limit, is_for_people, sorted.len());
    (sorted.into_iter().take(shown).map(|(_, row)| row).collect(), hidden)
}

/// Names of the columns that say what a row is about.
fn group_columns(by: ByOption) -> &'static [&'static str] {
    match by {
        ByOption::Name => &["category", "name"],
        ByOption::Category => &["category"],
        ByOption::Process => &["pid", "process"],
        ByOption::Thread => &["pid", "process", "tid", "thread"],
    }
}

fn group_cells(row: &Row, by: ByOption) -> Vec<String> {
    let text = |text: &Option<String>| Shown(text.as_deref().unwrap_or_default()).to_string();
    let id = |id: Option<u64>| id.map_or_else(String::new, |id| id.to_string());
    let group = &row.group;
    match by {
        ByOption::Name => vec![text(&group.category), text(&group.name)],
        ByOption::Category => vec![text(&group.category)],
        ByOption::Process => vec![id(group.pid), text(&group.process)],
        ByOption::Thread => vec![id(group.pid), text(&group.process), id(group.tid), text(&group.thread)],
    }
}

/// For people.
fn human(input: &Path, stats: &Stats, options: &Options) -> String {
    let walked = &stats.walked;
    let mut text = losses(&walked.losses) + &contents(input, walked) + &cost(walked);
    for (title, rows, has_own) in [
        ("durations", &stats.durations, true),
        ("asynchronous operations", &stats.operations, false),
        ("polls of operations", &stats.polls, true),
    ] {
        if rows.is_empty() {
            continue;
        }
        let mut header = group_columns(options.by).to_vec();
        let texts = header.len();
        header.extend(["count", "total"]);
        header.extend(has_own.then_some("self"));
        header.extend(["min", "mean", "p50", "p95", "p99", "max"]);
        let (shown, hidden) = sorted(rows, options, true);
        let cells = shown.iter().map(|row| {
            let mut cells = group_cells(row, options.by);
            cells.extend(spread_cells(&row.spread, has_own));
            cells
        });
        text += &format!("{title}\n{}{}", table(&header, &cells.collect::<Vec<_>>(), texts), more(hidden));
        let unfinished: u64 = rows.iter().map(|row| row.spread.unfinished).sum();
        if unfinished > 0 {
            text += &format!("  not ended: {unfinished}{}\n", why_open(rows));
        }
    }
    text += &instants(stats, options);
    text += &counters(stats, options);
    for (count, what) in [
        (walked.unmatched_ends, "ends without a beginning"),
        (walked.dropped_begins, "spans beyond those that can be open"),
        (walked.other_names, "events of names that are too many to distinguish"),
        (stats.other_samples, "samples of counters that are too many to distinguish"),
    ] {
        if count > 0 {
            text += &format!("skipped: {}\n", Counted(count, what));
        }
    }
    text
}

/// What the trace says of spans that have not ended.
fn why_open(rows: &[Row]) -> String {
    let mut reasons = BTreeMap::<Ending, u64>::new();
    for (ending, count) in rows.iter().flat_map(|row| &row.spread.open) {
        *reasons.entry(*ending).or_default() += count;
    }
    let mut parts: Vec<String> =
        reasons.iter().map(|(ending, count)| format!("{count} {}", ending.text())).collect();
    let longest = rows.iter().filter_map(|row| row.spread.open_for).max();
    parts.extend(longest.map(|longest| format!("the longest for {} by then", Lasting(longest as f64))));
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
}

/// What tracing itself has taken.
fn cost(walked: &Walked) -> String {
    let Some(costs) = walked.costs else { return String::new() };
    let EventCosts { instant, duration: complete, counter } = costs;
    let (total, instant) = (Lasting(costs.total(&walked.costly)), Lasting(instant));
    let (complete, counter) = (Lasting(complete), Lasting(counter));
    format!(
        "tracing: about {total} of the programs' time (an instant {instant}, a duration {complete}, a counter {counter})\n"
    )
}

fn spread_cells(spread: &Spread, has_own: bool) -> Vec<String> {
    let time = |nanos: Option<f64>| nanos.map_or_else(|| "-".to_owned(), |nanos| Lasting(nanos).to_string());
    let some = |nanos: f64| time(Some(nanos).filter(|_| spread.count > 0));
    let mut cells = vec![spread.count.to_string(), Lasting(spread.total as f64).to_string()];
    cells.extend(has_own.then(|| Lasting(spread.own as f64).to_string()));
    cells.extend([some(spread.min as f64), time(spread.mean())]);
    cells.extend(PERCENTS.map(|percent| time(spread.percentile(percent))));
    cells.push(some(spread.max as f64));
    cells
}

fn instants(stats: &Stats, options: &Options) -> String {
    if stats.instants.is_empty() {
        return String::new();
    }
    let mut sorted: Vec<&Instants> = stats.instants.iter().collect();
    sorted.sort_by_key(|of| std::cmp::Reverse(of.count));
    let (shown, hidden) = limited(options.limit, true, sorted.len());
    let rows = sorted
        .iter()
        .take(shown)
        .map(|of| vec![Shown(&of.category).to_string(), Shown(&of.name).to_string(), of.count.to_string()]);
    let rows: Vec<Vec<String>> = rows.collect();
    format!("instants\n{}{}", table(&["category", "name", "count"], &rows, 2), more(hidden))
}

fn counters(stats: &Stats, options: &Options) -> String {
    if stats.counters.is_empty() {
        return String::new();
    }
    let (shown, hidden) = limited(options.limit, true, stats.counters.len());
    let rows = stats.counters.iter().take(shown).map(|of| {
        let name = if of.id == 0 { of.name.clone() } else { format!("{}#{}", of.name, of.id) };
        let process = of.process.clone().unwrap_or_else(|| of.pid.to_string());
        let texts = [&process, &of.category, &name, &of.series];
        let mut cells: Vec<String> = texts.map(|text| Shown(text).to_string()).into();
        cells.push(of.count.to_string());
        cells.extend([of.first, of.last, of.min, of.max, of.mean].map(|value| Digits(value).to_string()));
        cells
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let header = ["process", "category", "name", "value", "count", "first", "last", "min", "max", "mean"];
    format!("counters\n{}{}", table(&header, &rows, 4), more(hidden))
}

/// The numbers of some spans, for programs.
pub fn spread_json(spread: &Spread, is_operation: bool) -> Value {
    let some = |nanos: u64| (spread.count > 0).then_some(nanos);
    let whole = |nanos: u128| u64::try_from(nanos).unwrap_or(u64::MAX);
    let open = spread.open.iter().map(|(ending, count)| (ending.text().to_owned(), json!(count)));
    json!({
        "count": spread.count,
        "unfinished": spread.unfinished,
        "open": open.collect::<serde_json::Map<_, _>>(),
        "longest_open_ns": spread.open_for,
        "total_ns": whole(spread.total),
        "self_ns": (!is_operation).then(|| whole(spread.own)),
        "min_ns": some(spread.min),
        "mean_ns": spread.mean(),
        "p50_ns": spread.percentile(50.0),
        "p95_ns": spread.percentile(95.0),
        "p99_ns": spread.percentile(99.0),
        "max_ns": some(spread.max),
    })
}

/// For programs.
//= docs/stats.md#json
fn machine(stats: &Stats, options: &Options) -> Value {
    let walked = &stats.walked;
    let rows = |rows: &[Row], is_operation: bool| {
        let (shown, _) = sorted(rows, options, false);
        let shown = shown.into_iter().map(|row| {
            let mut value = spread_json(&row.spread, is_operation);
            let group = &row.group;
            for (member, text) in [
                ("category", &group.category),
                ("name", &group.name),
                ("process", &group.process),
                ("thread", &group.thread),
            ] {
                if group_columns(options.by).contains(&member) {
                    value[member] = json!(text);
                }
            }
            for (member, id) in [("pid", group.pid), ("tid", group.tid)] {
                if let Some(id) = id {
                    value[member] = id.into();
                }
            }
            value
        });
        Value::from(shown.collect::<Vec<_>>())
    };
    let instants = stats.instants.iter();
    let instants: Vec<Value> = instants
        .map(|Instants { category, name, count }| json!({"category": category, "name": name, "count": count}))
        .collect();
    let counters: Vec<Value> = stats
        .counters
        .iter()
        .map(|Counter { pid, process, category, name, id, series, count, first, last, min, max, mean }| {
            json!({
                "pid": pid, "process": process, "category": category, "name": name, "id": id, "value": series,
                "count": count, "first": first, "last": last, "min": min, "max": max, "mean": mean,
            })
        })
        .collect();
    let seconds = walked.seconds();
    json!({
        "events": walked.events,
        "events_per_second": (seconds > 0.0).then(|| walked.events as f64 / seconds),
        "balance": balance(&walked.losses),
        "tracing": walked.costs.map(|costs| json!({
            "total_ns": costs.total(&walked.costly),
            "instant_cost_ns": costs.instant,
            "duration_cost_ns": costs.duration,
            "counter_cost_ns": costs.counter,
        })),
        "durations": {"by": by_text(options.by), "rows": rows(&stats.durations, false)},
        "operations": {"by": by_text(options.by), "rows": rows(&stats.operations, true)},
        "polls": {"by": by_text(options.by), "rows": rows(&stats.polls, false)},
        "instants": instants,
        "counters": counters,
        "skipped": {
            "unmatched_ends": walked.unmatched_ends,
            "dropped_begins": walked.dropped_begins,
            "other_names": walked.other_names,
            "other_samples": stats.other_samples,
        },
    })
}

const fn by_text(by: ByOption) -> &'static str {
    match by {
        ByOption::Name => "name",
        ByOption::Category => "category",
        ByOption::Process => "process",
        ByOption::Thread => "thread",
    }
}

/// Columns of the comma-separated values behind those that say what a row is about.
const CSV_COLUMNS: [&str; 10] = [
    "count",
    "unfinished",
    "total_ns",
    "self_ns",
    "min_ns",
    "mean_ns",
    "p50_ns",
    "p95_ns",
    "p99_ns",
    "max_ns",
];

/// Durations, operations and polls as comma-separated values.
fn lines(input: &Path, stats: &Stats, options: &Options) -> String {
    // Of several traces, each row says of which it is.
    let trace = &(options.inputs.len() > 1).then(|| name(input));
    let column = trace.as_ref().map(|_| "trace");
    let header: Vec<&str> = column
        .iter()
        .chain(&["kind"])
        .chain(group_columns(options.by))
        .chain(&CSV_COLUMNS)
        .copied()
        .collect();
    let kinds = [
        ("duration", &stats.durations, false),
        ("operation", &stats.operations, true),
        ("poll", &stats.polls, false),
    ];
    let rows = kinds.into_iter().flat_map(|(kind, rows, is_operation)| {
        let (shown, _) = sorted(rows, options, false);
        shown.into_iter().map(move |row| {
            let group = &row.group;
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            let id = |id: Option<u64>| id.map_or_else(String::new, |id| id.to_string());
            let cell = |column: &&str| match *column {
                "category" => text(&group.category),
                "name" => text(&group.name),
                "pid" => id(group.pid),
                "process" => text(&group.process),
                "tid" => id(group.tid),
                _ => text(&group.thread),
            };
            let mut cells: Vec<String> = trace.iter().cloned().chain([kind.to_owned()]).collect();
            cells.extend(group_columns(options.by).iter().map(cell));
            let spread = spread_json(&row.spread, is_operation);
            cells.extend(CSV_COLUMNS.map(|column| match &spread[column] {
                Value::Null => String::new(),
                value => value.to_string(),
            }));
            cells
        })
    });
    analysis::csv(&header, rows, options.spreadsheet)
}
