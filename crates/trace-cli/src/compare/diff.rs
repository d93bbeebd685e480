//! `trace diff`: which durations changed between two traces.
//= docs/stats.md#differences

use crate::args::analysis::Diff;
use crate::files::account;
use crate::files::analysis::{self, balance, contents, limited, losses, more, table};
use crate::files::input::is_stdin;
use crate::look::stats::{by_name, spread_json, unread};
use crate::shell::exit::Failure;
use crate::shell::json::Answer;
use crate::shell::stdio;
use serde_json::{Value, json};
use trace_analysis::diff::{Change, STATISTICS, changes};
use trace_analysis::stats::{Spread, Statistic, Stats};
use trace_format::shown::{Digits, Lasting, Shown};

/// Of each side there is one recording.
const CHANCE: &str =
    "one recording of each does not show what is chance; trace ab makes many, and says what has changed\n";

/// Prints the differences of two traces.
pub fn run(options: &Diff) -> Result<(), Failure> {
    if is_stdin(&options.before) && is_stdin(&options.after) {
        return Err(Failure::usage("stdin cannot be both traces"));
    }
    let selection = options.selecting.selection()?;
    let accounts = [&options.before, &options.after]
        .map(|trace| account::begin(options.json, trace, &selection).transpose());
    let (before, after) = (by_name(&options.before, &selection)?, by_name(&options.after, &selection)?);
    let changes = changes(&before, &after, options.sort.statistic());
    let (shown, hidden) = limited(options.limit, !options.json && !options.csv, changes.len());
    let shown = &changes[..shown];
    if options.json {
        let mut answer = Answer::of(machine(&before, &after, shown));
        for accounting in accounts.into_iter().flatten() {
            accounting?.finish().add_to(&mut answer);
        }
        answer.give();
    } else if options.csv {
        stdio::print_document(&lines(shown, options.spreadsheet))?;
    } else {
        let mut text = String::new();
        for (path, stats) in [(&options.before, &before), (&options.after, &after)] {
            text += &contents(path, &stats.walked);
            text += &losses(&stats.walked.losses);
        }
        let cells: Vec<Vec<String>> = shown.iter().map(cells).collect();
        let header =
            ["", "category", "name", "total", "change", "mean", "change", "p99", "change", "count", "change"];
        text += &table(&header, &cells, 3);
        text += &more(hidden);
        text += if changes.is_empty() { "" } else { CHANCE };
        stdio::print_folded(&text)?;
    }
    unread(&options.before, &before)?;
    unread(&options.after, &after)
}

/// Whether a name is only in one of the traces, or all of it in both.
fn kind(change: &Change<'_>) -> &'static str {
    match (change.before, change.after) {
        (None, _) => "new",
        (_, None) => "gone",
        _ => "",
    }
}

/// A row for people: of each number the value after, and by how much it has changed.
fn cells(change: &Change<'_>) -> Vec<String> {
    let mut cells =
        vec![kind(change).to_owned(), Shown(change.category).to_string(), Shown(change.name).to_string()];
    for statistic in STATISTICS {
        let shown = |value: f64| match statistic {
            Statistic::Count => Digits(value).to_string(),
            _ => Lasting(value).to_string(),
        };
        let [before, after] = [change.before, change.after].map(|spread| statistic.or_zero(spread));
        let by = change.by(statistic);
        let sign = if by > 0.0 { "+" } else { "" };
        let percent = if before > 0.0 && after > 0.0 && by != 0.0 {
            format!(" ({sign}{:.0}%)", by / before * 100.0)
        } else {
            String::new()
        };
        cells.extend([
            shown(after),
            if by == 0.0 { "=".to_owned() } else { format!("{sign}{}{percent}", shown(by)) },
        ]);
    }
    cells
}

fn operation_or_duration(change: &Change<'_>) -> &'static str {
    if change.is_operation { "operation" } else { "duration" }
}

/// For programs.
//= docs/stats.md#json
fn machine(before: &Stats, after: &Stats, changes: &[Change<'_>]) -> Value {
    let of = |stats: &Stats| {
        let walked = &stats.walked;
        json!({
            "events": walked.events, "balance": balance(&walked.losses),
        })
    };
    let spread = |spread: Option<&Spread>, change: &Change<'_>| {
        spread.map(|spread| spread_json(spread, change.is_operation))
    };
    let changes = changes.iter().map(|change| {
        json!({
            "kind": operation_or_duration(change),
            "category": change.category,
            "name": change.name,
            "before": spread(change.before, change),
            "after": spread(change.after, change),
            "total_change_ns": change.by(Statistic::Total),
            "mean_change_ns": change.by(Statistic::Mean),
            "p99_change_ns": change.by(Statistic::Percentile(99.0)),
            "count_change": change.by(Statistic::Count),
        })
    });
    let changes: Vec<Value> = changes.collect();
    json!({"before": of(before), "after": of(after), "changes": changes})
}

fn lines(changes: &[Change<'_>], is_for_spreadsheet: bool) -> String {
    let names: Vec<String> = ["total_ns", "mean_ns", "p99_ns", "count"]
        .iter()
        .flat_map(|name| [format!("{name}_before"), format!("{name}_after")])
        .collect();
    let header: Vec<&str> =
        ["kind", "category", "name"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let rows = changes.iter().map(|change| {
        let mut cells = vec![
            operation_or_duration(change).to_owned(),
            change.category.to_owned(),
            change.name.to_owned(),
        ];
        for statistic in STATISTICS {
            for spread in [change.before, change.after] {
                cells.push(
                    spread.map_or_else(String::new, |spread| statistic.or_zero(Some(spread)).to_string()),
                );
            }
        }
        cells
    });
    analysis::csv(&header, rows, is_for_spreadsheet)
}
