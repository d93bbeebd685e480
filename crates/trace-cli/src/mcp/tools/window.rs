//! `window`: what happened in a window of time, thread by thread.

use super::{Arguments, like, page};
use crate::mcp::archive::{Open, Window};
use crate::mcp::error::CallError;

/// The columns that say which thread a row is of.
const GROUP: usize = 4;

pub fn call(open: &mut Open, arguments: &Arguments<'_>) -> Result<String, CallError> {
    let mut conditions = arguments.conditions()?;
    let of_events = arguments.text("category")?.is_some() || arguments.text("name")?.is_some();
    if let Some(name) = arguments.text("name")? {
        conditions.push(like("name", name));
    }
    if let Some(tid) = arguments.integer("tid")? {
        conditions.push(format!("tid = {tid}"));
    }
    let least = arguments.integer("min_dur_ns")?;
    let archive = open.archive(arguments.required("trace")?)?;
    let window = arguments.window(&archive)?;
    let Window { from, to, .. } = window;
    let during = |more: Option<String>| {
        let mut all = vec![format!("ts <= {to} AND (ts_end >= {from} OR dur IS NULL)")];
        all.extend(conditions.iter().cloned());
        all.extend(more);
        all.join(" AND ")
    };
    let at = || {
        let mut all = vec![format!("ts BETWEEN {from} AND {to}")];
        all.extend(conditions.iter().cloned());
        all.join(" AND ")
    };
    let long = least.map(|least| format!("(dur >= {least} OR dur IS NULL)"));
    let whose = "pid, tid, process, thread";
    let mut parts = vec![format!(
        "SELECT {whose}, kind AS what, ts, dur, depth, category, name, \
         args AS detail FROM slices WHERE {}",
        during(long.clone())
    )];
    if least.is_none() {
        parts.push(format!(
            "SELECT {whose}, 'instant', ts, NULL, NULL, category, name, args FROM instants WHERE {}",
            at()
        ));
        parts.push(format!(
            "SELECT {whose}, 'counter', ts, NULL, NULL, category, name, series || ' = ' || coalesce(integer, value) \
             FROM counters WHERE {}",
            at()
        ));
    }
    // These have neither a category nor a name.
    if !of_events {
        parts.push(format!(
            "SELECT {whose}, 'running', ts, dur, NULL, NULL, 'cpu ' || cpu, end_state FROM sched WHERE {}",
            during(long)
        ));
        if least.is_none() {
            parts.push(format!(
                "SELECT {whose}, 'log', ts, NULL, NULL, NULL, NULL, message FROM logs WHERE {}",
                at()
            ));
        }
    }
    let sql = format!("{} ORDER BY pid, tid, ts, depth, what, name", parts.join(" UNION ALL "));
    page(&archive, arguments, &sql, archive.answer(window, Some(&sql)), GROUP)
}
