//! The results for people.
//= docs/ab.md#verdicts

use super::Comparison;
use crate::args::analysis::Sort;
use crate::files::analysis::{limited, more, table};
use clap::ValueEnum;
use std::cmp::Ordering;
use std::fmt::Write as _;
use trace_analysis::ab::carriers::{Part, carrier};
use trace_analysis::ab::comparison::{Row, Unjudged};
use trace_analysis::ab::judge::Verdict;
use trace_analysis::ab::looks::pairs_needed;
use trace_analysis::ab::run::Name;
use trace_analysis::counted::Counted;
use trace_format::shown::{Digits, Lasting, Shown};

/// How many names are listed for each reason not to judge them.
const MAX_UNJUDGED: usize = 5;
/// How many parts of a changed duration are shown.
const MAX_PARTS: usize = 3;

/// A verdict in a word.
pub const fn word(verdict: Verdict, statistic: Sort) -> &'static str {
    match (verdict, statistic) {
        (Verdict::Slower, Sort::Count) => "more",
        (Verdict::Faster, Sort::Count) => "fewer",
        (Verdict::Slower, _) => "slower",
        (Verdict::Faster, _) => "faster",
        (Verdict::Same, _) => "same",
        (Verdict::Undecided, _) => "undecided",
    }
}

/// The name of a statistic, as the option has it.
pub fn statistic(of: Sort) -> String {
    of.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// A part of the whole in percent.
pub fn percent(part: f64) -> String {
    format!("{} %", Digits(part * 100.0))
}

fn signed(part: f64) -> String {
    let sign = if part > 0.0 { "+" } else { "" };
    format!("{sign}{}", percent(part))
}

/// A name with its category.
pub fn full(name: &Name) -> String {
    if name.category.is_empty() { name.name.clone() } else { format!("{}:{}", name.category, name.name) }
}

/// The rows in the order in which they are shown: what is slower most comes first.
pub fn sorted(comparison: &Comparison) -> Vec<&Row> {
    let mut rows: Vec<&Row> = comparison.found.rows.iter().collect();
    let place = |row: &Row| match row.judged.verdict {
        Verdict::Slower => 0,
        Verdict::Faster => 1,
        Verdict::Undecided => 2,
        Verdict::Same => 3,
    };
    let size = |row: &Row| row.judged.change.middle.abs();
    let compare = |a: &&Row, b: &&Row| place(a).cmp(&place(b)).then(size(b).total_cmp(&size(a)));
    rows.sort_by(|a, b| compare(a, b).then(Ordering::Equal));
    rows
}

/// The smallest changes that would have been found in half of the names and in all of them.
pub fn power(comparison: &Comparison) -> Option<(f64, f64)> {
    let found = comparison.found.rows.iter().map(|row| row.smallest.unwrap_or(f64::INFINITY));
    let mut sizes: Vec<f64> = found.collect();
    sizes.sort_by(f64::total_cmp);
    let middle = sizes.get(sizes.len().checked_sub(1)? / 2)?;
    Some((*middle, *sizes.last()?))
}

/// Everything.
pub fn report(comparison: &Comparison, limit: Option<usize>) -> String {
    let mut text = String::new();
    if let Some(commands) = &comparison.commands {
        for (side, command) in ["old", "new"].iter().zip(commands) {
            let _ = writeln!(text, "{side}: {}", Shown(&command.join(" ")));
        }
    }
    let plan = &comparison.plan;
    let _ = writeln!(
        text,
        "{} of each, at most {}; {}; seed {}; changes up to {} do not count",
        Counted(comparison.pairs as u64, "runs"),
        plan.pairs,
        statistic(comparison.statistic),
        plan.seed,
        percent(plan.min_effect)
    );
    text.extend(comparison.found.missing.iter().map(|why| format!("lost: {}\n", Shown(why))));
    let rows = sorted(comparison);
    let (shown, hidden) = limited(limit, true, rows.len());
    if !rows.is_empty() {
        let header = ["", "category", "name", "old", "new", "change", "from", "to", "chance", "finds"];
        let cells: Vec<Vec<String>> =
            rows[..shown].iter().map(|row| cells(row, comparison.statistic)).collect();
        text += &table(&header, &cells, 3);
        text += &more(hidden);
    }
    text.extend(rows.iter().filter_map(|row| parts(row)));
    text += &unjudged(comparison);
    text + &conclusion(comparison)
}

fn cells(row: &Row, of: Sort) -> Vec<String> {
    let shown = |value: f64| match of {
        Sort::Count => Digits(value).to_string(),
        _ => Lasting(value).to_string(),
    };
    let change = &row.judged.change;
    vec![
        word(row.judged.verdict, of).to_owned(),
        Shown(&row.name.category).to_string(),
        Shown(&row.name.name).to_string(),
        shown(row.values.0),
        shown(row.values.1),
        signed(change.middle),
        signed(change.low),
        signed(change.high),
        chance(row.judged.probability),
        row.smallest.map_or_else(|| "-".to_owned(), percent),
    ]
}

fn chance(probability: f64) -> String {
    if probability >= 0.001 { Digits(probability).to_string() } else { format!("{probability:.0e}") }
}

/// The parts that account for a change.
//= docs/ab.md#parts
fn parts(row: &Row) -> Option<String> {
    let is_more = row.judged.verdict == Verdict::Slower;
    carrier(&row.parts, is_more)?;
    let sign = if is_more { 1.0 } else { -1.0 };
    let mut parts: Vec<&Part> = row.parts.iter().filter(|part| part.change * sign > 0.0).collect();
    parts.sort_by(|a, b| (b.change * sign).total_cmp(&(a.change * sign)));
    let all: f64 = parts.iter().map(|part| part.change).sum();
    let part = |part: &&Part| {
        let name = part.name.as_ref().map_or_else(|| "its own time".to_owned(), full);
        let sign = if part.change > 0.0 { "+" } else { "" };
        format!("{name} {:.0} % ({sign}{})", part.change / all * 100.0, Lasting(part.change))
    };
    let parts: Vec<String> = parts.iter().take(MAX_PARTS).map(part).collect();
    Some(format!("  {}: {}\n", Shown(&full(&row.name)), Shown(&parts.join(", "))))
}

/// Why a name was not judged.
pub fn why(of: &Unjudged) -> String {
    match of {
        Unjudged::Incomplete(why) => format!("incomplete: {why}"),
        Unjudged::Rare { old, new } => format!("not in each run: in {old} of the old, {new} of the new"),
        Unjudged::Zero => "its number is 0 in some run".to_owned(),
    }
}

fn unjudged(comparison: &Comparison) -> String {
    let mut reasons: Vec<(String, Vec<&Name>)> = Vec::new();
    for (name, of) in &comparison.found.unjudged {
        let why = why(of);
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, names)) => names.push(name),
            None => reasons.push((why, vec![name])),
        }
    }
    let line = |(why, names): &(String, Vec<&Name>)| {
        let mut shown: Vec<String> = names.iter().take(MAX_UNJUDGED).map(|name| full(name)).collect();
        if names.len() > MAX_UNJUDGED {
            shown.push(format!("and {} more", names.len() - MAX_UNJUDGED));
        }
        format!("not judged: {}: {}\n", Shown(&shown.join(", ")), Shown(why))
    };
    reasons.iter().map(line).collect()
}

/// The answer, and what it is worth.
fn conclusion(comparison: &Comparison) -> String {
    let rows = &comparison.found.rows;
    let Some(judgement) = &comparison.found.judgement else {
        return "incomplete: no name could be judged\n".to_owned();
    };
    let names = Counted(rows.len() as u64, "names").to_string();
    let mut text = String::new();
    if !judgement.has_enough {
        let needed = pairs_needed(rows.len());
        let verb = if rows.len() == 1 { "needs" } else { "need" };
        return format!("incomplete: {names} {verb} at least {needed} runs of each\n");
    }
    if let Some((half, all)) = power(comparison) {
        let finite = |size: f64| if size.is_finite() { percent(size) } else { "any size".to_owned() };
        let _ = match all.is_finite() {
            true => writeln!(
                text,
                "power: changes of {} in half of the names and {} in all would have been found 9 times out of 10",
                finite(half),
                finite(all)
            ),
            false => writeln!(
                text,
                "power: changes of {} in half of the names would have been found 9 times out of 10",
                finite(half)
            ),
        };
    }
    let count = |verdict| rows.iter().filter(|row| row.judged.verdict == verdict).count();
    let counts = [Verdict::Slower, Verdict::Faster, Verdict::Undecided, Verdict::Same].map(|verdict| {
        let count = count(verdict);
        (count > 0).then(|| format!("{count} {}", word(verdict, comparison.statistic)))
    });
    let counts: Vec<String> = counts.into_iter().flatten().collect();
    let _ = writeln!(text, "of {names}: {}", counts.join(", "));
    text
}
