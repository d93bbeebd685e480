//! `trace check`: reports the problems of a trace.

use crate::args::analysis::Check;
use crate::connection;
use crate::files::account::{Account, has_offsets, problem_json};
use crate::files::input::{self, ImportReport, Scanned, name, open, scan};
use crate::files::several::each;
use crate::shell::exit::{Failure, NO, UNREADABLE};
use crate::shell::json::Answer;
use crate::shell::stdio::{self, say};
use crate::shell::table;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use trace_analysis::check::{Finding, Limits, NO_END, Problem, Report, TRUNCATED, Usage, check_chosen};
use trace_analysis::counted::Counted;
use trace_archive::recovery::Session;
use trace_format::shown::Shown;
use trace_reader::item::Nanos;

/// How many events and context switches have their times compared; further ones are ignored.
const MAX_CLOCK_TIMES: usize = 100_000_000;
/// The manager writes the manifest of a recording and the begin of its archive within this time, on the
/// busiest machine.
const SAME_BEGIN: Duration = Duration::from_secs(2);
/// Memory for what the events of each category and name take.
const MAX_USAGE_BYTES: usize = 16 << 20;

/// Checks traces; the exit code is the result.
pub fn run(options: &Check) -> Result<u8, Failure> {
    let mut blank = "";
    each(&options.inputs, |input| {
        let code = of_trace(options, input, blank);
        blank = if code.as_ref().is_err_and(|failure| failure.code == UNREADABLE) { blank } else { "\n" };
        code
    })
}

fn of_trace(options: &Check, input: &Path, blank: &str) -> Result<u8, Failure> {
    let limits = Limits {
        table_bytes: options.table_size.saturating_mul(1 << 20),
        open_spans: options.open_spans,
        clock_times: if options.clocks { MAX_CLOCK_TIMES } else { 0 },
        usage_bytes: if options.json { MAX_USAGE_BYTES } else { 0 },
    };
    let name = name(input);
    let selection = options.selecting.selection()?;
    let scanned = scan(open(input)?, input, "checking", &selection)?;
    let (Scanned { archive, disorder, report: import, chosen }, bar) = scanned;
    let report = check_chosen(archive, limits, &disorder, chosen.as_ref());
    bar.finish_and_clear();
    let mut report = report.map_err(|error| input::failed(input, &error))?;
    report.problems.extend(import.problems());
    report.bytes = import.bytes().unwrap_or(report.bytes);
    let is_growing = is_growing(&report);
    let mut options = options.clone();
    if is_growing {
        options.allow.extend([NO_END, TRUNCATED].map(str::to_owned));
    }
    let counted = |kind: &&str| !options.allow.iter().any(|allowed| allowed == kind);
    let has_problems = report.problems.iter().any(|problem| counted(&problem.kind));
    if is_growing {
        say!("trace: {}: still growing: its recording has not ended", Shown(&name));
    }
    if options.json {
        machine(input, &report, &options, is_growing, &import).give();
    } else {
        stdio::print_folded(&format!("{blank}{}", human(&name, &report, &options.allow, &import)))?;
    }
    match report.error {
        Some(error) => Err(input::failed(input, &error)),
        None => Ok(if has_problems || import.problem().is_some() { NO } else { 0 }),
    }
}

/// Whether all recordings that have no end are being recorded now, by a manager of this user's or one that
/// this user sees: the trace, or the one that it is a copy of, is still being written.
//= docs/check.md#report
fn is_growing(report: &Report) -> bool {
    if report.unended.is_empty() {
        return false;
    }
    let directories = connection::directories();
    let sessions = directories.iter().flat_map(|directory| connection::sessions_of(directory));
    let running: Vec<SystemTime> =
        sessions.filter(Session::has_manager).map(|session| session.began()).collect();
    report.unended.iter().all(|unended| {
        let Some(began) = unended.wall_clock_ns else { return false };
        let began = UNIX_EPOCH + Duration::from_nanos(began);
        running.iter().any(|running| {
            let apart = running.duration_since(began).or_else(|_| began.duration_since(*running));
            apart.is_ok_and(|apart| apart < SAME_BEGIN)
        })
    })
}

/// A report for people.
//= docs/check.md#report
fn human(name: &str, report: &Report, allowed: &[String], import: &ImportReport) -> String {
    let unread = import.problem();
    let mut text = format!(
        "{}: {}, {}, {}",
        Shown(name),
        Counted(report.bytes, "bytes"),
        Counted(report.records, "records"),
        Counted(report.events, "events")
    );
    if let Some((first, last)) = report.times {
        let _ = write!(text, " in {} s", seconds(Nanos(last.0 - first.0)));
    }
    text.push('\n');
    let header = ["id", "program", "records", "events", "first s", "last s"].map(str::to_owned);
    let rows = report.providers.iter().map(|provider| {
        let time = |time: Option<Nanos>| time.map_or_else(|| "-".to_owned(), seconds);
        [
            provider.id.to_string(),
            Shown(&provider.name).to_string(),
            provider.records.to_string(),
            provider.events.to_string(),
            time(provider.times.map(|times| times.0)),
            time(provider.times.map(|times| times.1)),
        ]
    });
    let rows: Vec<_> = std::iter::once(header).chain(rows).map(|row| table::cells(row, &[1])).collect();
    text.push_str(&table::lines(&rows, 2));
    let skipped = report.unknown.skipped().map(|(what, of_what)| ("skipped", what, of_what));
    for (done, what, of_what) in skipped.chain([("kept", "blobs", &report.unknown.blobs)]) {
        for (number, count) in of_what.types() {
            let _ =
                writeln!(text, "{done}: {count} {what} of type {number}, of a later version of the format");
        }
    }
    for remark in &report.remarks {
        let _ = writeln!(text, "{}: {} (a remark)", remark.kind, remark.count);
        report_places(&mut text, remark, import);
    }
    for (provider, clock) in &report.clocks {
        let _ = writeln!(
            text,
            "clock of program {provider}: {} of {} events while their thread ran",
            clock.judged - clock.outside,
            clock.judged
        );
    }
    for problem in &report.problems {
        let allowed = if allowed.iter().any(|kind| kind == problem.kind) { " (allowed)" } else { "" };
        let _ = writeln!(text, "{}: {}{allowed}", problem.kind, problem.count);
        report_places(&mut text, problem, import);
    }
    let kinds = report.problems.len();
    let is_allowed = |problem: &Problem| allowed.iter().any(|kind| kind == problem.kind);
    let all_allowed = match report.problems.iter().all(is_allowed) {
        true if report.problem_count() == 1 => ", allowed",
        true => ", all allowed",
        false => "",
    };
    let _ = match report.problem_count() {
        0 if unread.is_some() || report.error.is_some() => Ok(()),
        0 => writeln!(text, "clean"),
        1 => writeln!(text, "1 problem{all_allowed}"),
        count if kinds == 1 => writeln!(text, "{count} problems of 1 kind{all_allowed}"),
        count => writeln!(text, "{count} problems of {kinds} kinds{all_allowed}"),
    };
    if let Some(unread) = unread {
        let _ = writeln!(text, "{unread}");
    }
    text
}

/// The first places of a problem or a remark.
fn report_places(text: &mut String, problem: &Problem, import: &ImportReport) {
    let has_offsets = has_offsets(problem, import);
    for Finding { offset, provider, text: found } in &problem.first {
        let found = Shown(found);
        let _ = match has_offsets {
            true => writeln!(text, "  byte {offset}, program {provider}: {found}"),
            false => writeln!(text, "  {found}"),
        };
    }
    let more = problem.count.saturating_sub(problem.first.len() as u64);
    if more > 0 {
        let _ = writeln!(text, "  and {more} more");
    }
}

/// A report for programs.
//= docs/check.md#json
fn machine(file: &Path, report: &Report, options: &Check, is_growing: bool, import: &ImportReport) -> Answer {
    let programs: Vec<_> = report
        .providers
        .iter()
        .map(|provider| {
            json!({
                "id": provider.id.0,
                "name": provider.name,
                "records": provider.records,
                "events": provider.events,
                "start_ns": provider.times.map(|(first, _)| first.0),
                "end_ns": provider.times.map(|(_, last)| last.0),
            })
        })
        .collect();
    let clocks: Vec<_> = report
        .clocks
        .iter()
        .map(|(provider, clock)| {
            json!({
                "program_id": provider.0,
                "judged": clock.judged,
                "outside": clock.outside,
                "shift_ns": clock.shift,
            })
        })
        .collect();
    let all = &report.unknown;
    let types: Vec<_> = all
        .skipped()
        .chain([("blobs", &all.blobs)])
        .flat_map(|(what, of_what)| {
            of_what.types().map(move |(number, count)| (what, number, count)).collect::<Vec<_>>()
        })
        .map(|(what, number, count)| json!({"what": what, "type": number, "count": count}))
        .collect();
    let names = report.usage.iter().map(|usage| {
        let Usage { category, name, records, bytes } = usage;
        json!({"category": category, "name": name, "records": records, "bytes": bytes})
    });
    let mut result = json!({
        "records": report.records,
        "events": report.events,
        "programs": programs,
        "unknown": {
            "records": all.record_count(),
            "metadata": all.metadata.count(),
            "events": all.events.count(),
            "arguments": all.arguments.count(),
            "types": types,
        },
        "categories": categories(&report.usage),
        "names": names.collect::<Vec<_>>(),
        "remarks": report.remarks.iter().map(|remark| problem_json(remark, import)).collect::<Vec<_>>(),
        "is_growing": is_growing,
    });
    if options.clocks {
        result["clocks"] = clocks.into();
    }
    Account::of(file, report, import).allowing(&options.allow).answer(result)
}

/// What the events of each category take, the largest first.
fn categories(usage: &[Usage]) -> Vec<serde_json::Value> {
    let mut sums: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for Usage { category, records, bytes, .. } in usage {
        let sum = sums.entry(category).or_default();
        *sum = (sum.0 + records, sum.1 + bytes);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, (_, bytes))| std::cmp::Reverse(*bytes));
    let line = |(category, (records, bytes)): (&str, (u64, u64))| json!({"category": category, "records": records, "bytes": bytes});
    sums.into_iter().map(line).collect()
}

fn seconds(nanos: Nanos) -> String {
    format!("{}.{:09}", nanos.0 / 1_000_000_000, nanos.0 % 1_000_000_000)
}
