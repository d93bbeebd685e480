//! The results for programs.
//= docs/ab.md#json

use super::Comparison;
use super::text::{power, sorted, statistic, why, word};
use crate::files::analysis::limited;
use crate::shell::exit::{NO, UNDECIDED};
use crate::shell::json::{Answer, problem};
use serde_json::{Value, json};
use trace_analysis::ab::carriers::Part;
use trace_analysis::ab::comparison::{Row, Unjudged};
use trace_analysis::ab::run::Name;

/// The answer for programs.
pub fn answer(comparison: &Comparison, limit: Option<usize>) -> Answer {
    let found = &comparison.found;
    let rows = sorted(comparison);
    let (shown, _) = limited(limit, false, rows.len());
    let names: Vec<Value> = rows[..shown].iter().map(|row| of_row(row, comparison)).collect();
    let unjudged = found.unjudged.iter().map(|(name, of)| {
        let mut value = of_name(name);
        value["incomplete"] = matches!(of, Unjudged::Incomplete(_)).into();
        value["why"] = why(of).into();
        value
    });
    let unjudged: Vec<Value> = unjudged.collect();
    let verdict = match comparison.code() {
        NO => "failed",
        UNDECIDED => "incomplete",
        _ => "passed",
    };
    let power = power(comparison).map(|(half, all)| json!({"half": finite(half), "all": finite(all)}));
    let result = json!({
        "verdict": verdict,
        "commands": comparison.commands,
        "runs": comparison.pairs,
        "judged_runs": found.judgement.as_ref().map(|judgement| judgement.look.pairs),
        "planned_runs": comparison.plan.pairs,
        "seed": comparison.plan.seed,
        "statistic": statistic(comparison.statistic),
        "min_effect": comparison.plan.min_effect,
        "smallest_change": power,
        "names": names,
        "not_judged": unjudged,
    });
    let missing = found.missing.iter().map(|text| problem("missing", None, Some(text), None));
    let mut answer = Answer::of(result);
    answer.problems.extend(missing);
    answer
}

fn finite(size: f64) -> Option<f64> {
    size.is_finite().then_some(size)
}

fn of_name(name: &Name) -> Value {
    let kind = if name.is_operation { "operation" } else { "duration" };
    json!({"kind": kind, "category": name.category, "name": name.name})
}

fn of_row(row: &Row, comparison: &Comparison) -> Value {
    let part = |part: &Part| {
        json!({
            "category": part.name.as_ref().map(|name| &name.category),
            "name": part.name.as_ref().map(|name| &name.name),
            "before_ns": part.before,
            "after_ns": part.after,
            "change_ns": part.change,
        })
    };
    let mut value = of_name(&row.name);
    let change = &row.judged.change;
    let more = json!({
        "verdict": word(row.judged.verdict, comparison.statistic),
        "before": row.values.0,
        "after": row.values.1,
        "change": change.middle,
        "change_low": change.low,
        "change_high": change.high,
        "probability": row.judged.probability,
        "smallest_change": row.smallest,
        "parts": row.parts.iter().map(part).collect::<Vec<_>>(),
    });
    if let (Value::Object(value), Value::Object(more)) = (&mut value, more) {
        value.extend(more);
    }
    value
}
