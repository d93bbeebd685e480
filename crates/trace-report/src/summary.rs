//! The first screen as JSON: sums of the whole trace, losses, waits and problems.

use crate::blocks::{Activity, Folded, Folding};
use crate::collector::Collector;
use crate::waits::Wait;
use serde_json::{Value, json};
use trace_analysis::check::{Problem, Report};
use trace_analysis::stats::{Counter, Row, Stats};

/// Rows of each kind that the page shows.
const MAX_ROWS: usize = 500;

/// What the passes have found.
pub struct Findings<'a> {
    pub name: &'a str,
    pub stats: &'a Stats,
    pub check: &'a Report,
    /// Problems of an import.
    pub imported: &'a [Problem],
    pub collector: &'a Collector,
    pub ready: &'a [Wait],
    pub flows: &'a [Wait],
    pub activity: &'a Activity,
    /// Which slices are drawn together.
    pub folded: Option<(Folding, Folded)>,
    /// The page has only what is selected.
    pub is_part: bool,
    /// The base of all times.
    pub base: u64,
}

fn rows(rows: &[Row]) -> Value {
    let mut sorted: Vec<&Row> = rows.iter().collect();
    sorted.sort_by_key(|row| std::cmp::Reverse((row.spread.own, row.spread.total)));
    let shown = sorted.iter().take(MAX_ROWS).map(|Row { group, spread }| {
        json!([
            group.category,
            group.name,
            spread.count,
            spread.total as f64,
            spread.own as f64,
            spread.min,
            spread.percentile(50.0),
            spread.percentile(95.0),
            spread.max,
            spread.unfinished,
        ])
    });
    json!({"rows": shown.collect::<Vec<_>>(), "more": rows.len().saturating_sub(MAX_ROWS)})
}

/// Problems with the text of their first occurrence.
fn problems(problems: &[Problem]) -> impl Iterator<Item = Value> {
    problems.iter().map(|problem| {
        json!([problem.kind, problem.count, problem.first.first().map(|finding| &finding.text)])
    })
}

impl Findings<'_> {
    fn counters(&self) -> Value {
        let counters = &self.stats.counters;
        let shown = counters.iter().take(MAX_ROWS).map(|of| {
            let Counter { pid, process, category, name, id, series, count, first, last, min, max, mean } = of;
            json!([
                process.clone().unwrap_or_else(|| pid.to_string()),
                category,
                name,
                id.to_string(),
                series,
                count,
                first,
                last,
                min,
                max,
                mean,
            ])
        });
        json!({"rows": shown.collect::<Vec<_>>(), "more": counters.len().saturating_sub(MAX_ROWS)})
    }

    fn waits(&self, waits: &[Wait]) -> Value {
        let of = |wait: &Wait| {
            let flow = wait.flow.map(|(from, what)| {
                let (_, name) = self.collector.whats.list()[what as usize];
                json!([from, self.collector.texts.text(name)])
            });
            json!([wait.length, wait.from.saturating_sub(self.base), wait.thread, flow])
        };
        waits.iter().map(of).collect()
    }

    fn losses(&self) -> Value {
        let at = |time: Option<u64>| time.map(|time| time.saturating_sub(self.base));
        let collector = self.collector;
        let intervals = collector.losses.iter().map(|loss| {
            let of_provider = |(provider, _): &&(u64, u64)| *provider == loss.provider;
            let pids = collector.provider_processes.iter().filter(of_provider);
            let pids: Vec<String> = pids.map(|(_, pid)| pid.to_string()).collect();
            let name = collector.providers.get(&loss.provider);
            json!([at(loss.first), at(loss.last), name, loss.reason, loss.count, pids])
        });
        let losses = &self.stats.walked.losses;
        json!({
            "reasons": losses.reasons(),
            "ledgers": losses.ledgers,
            "is_whole": losses.reported.is_empty() && !losses.may_be_more(),
            "intervals": intervals.collect::<Vec<_>>(),
            "dropped": collector.dropped_losses,
        })
    }

    /// All of it.
    pub fn json(&self) -> Value {
        let Self { stats, check, collector, .. } = self;
        let session_info: serde_json::Map<String, Value> = collector
            .session_info
            .iter()
            .map(|(name, text)| ((*name).to_owned(), text.as_str().into()))
            .collect();
        let (first, last) = collector.times.unwrap_or_default();
        let problems: Vec<Value> = problems(&check.problems).chain(problems(self.imported)).collect();
        json!({
            "name": self.name,
            "is_part": self.is_part,
            "bytes": check.bytes,
            "records": check.records,
            "events": stats.walked.events,
            "base": first.to_string(),
            "length": last - first,
            "unit": collector.unit.max(1),
            "session": session_info,
            "cost": stats.walked.costs.map(|costs| {
                json!([costs.total(&stats.walked.costly), costs.instant, costs.duration, costs.counter])
            }),
            "losses": self.losses(),
            // The work of an asynchronous program is in polls.
            "slices": rows(&[&stats.durations[..], &stats.polls].concat()),
            "operations": rows(&stats.operations),
            "instants": stats.instants.iter().map(|of| of.count).sum::<u64>(),
            "counters": self.counters(),
            "ready": self.waits(self.ready),
            "waited": [collector.waits.count, collector.waits.sum as f64],
            "flows": self.waits(self.flows),
            "problems": problems,
            "remarks": self::problems(&check.remarks).collect::<Vec<_>>(),
            "stopped": check.error.as_ref().map(ToString::to_string),
            "dropped_flows": collector.dropped_flows,
            "dropped_names": collector.texts.dropped,
            "folded": self.folded.map(|(folding, folded)| {
                json!({"cut": folding.cut, "count": folded.count, "sum": folded.sum})
            }),
            "activity": self.activity.busiest().iter()
                .map(|(process, parts)| json!([process, parts.iter().map(|part| part.round()).collect::<Vec<_>>()]))
                .collect::<Vec<_>>(),
        })
    }
}
