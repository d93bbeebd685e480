//! `trace snapshot`: saves the buffers of the running recording, which continues.

use crate::args::running::Snapshot as Options;
use crate::connection::{self, NOTHING_RECORDED};
use crate::files::account::trace_json;
use crate::record::destination::{self, Worth};
use crate::record::summary;
use crate::settings::checks;
use crate::shell::caller;
use crate::shell::exit::Failure;
use crate::shell::json::Answer;
use crate::shell::stdio::say;
use std::time::Duration;
use trace_analysis::counted::Counted;
use trace_client::Snapshot;
use trace_format::shown::{Lasting, Shown};
use trace_protocol::controller::ProviderStats;
use trace_reader::tail::Coverage;

/// Saves a snapshot, perhaps only its end, and reports the time that it covers.
pub fn run(options: &Options) -> Result<(), Failure> {
    checks::of_json(options.json, options.output.as_deref())?;
    caller::begin(None)?;
    let mut destination = destination::create(options.output.clone(), "snapshot")?;
    let mut connection = connection::find()?.ok_or_else(|| Failure::nothing_recorded(NOTHING_RECORDED))?;
    let mut snapshot = options.program.as_deref().map_or_else(Snapshot::default, Snapshot::of);
    if let Some(last) = options.last {
        snapshot = snapshot.last(last.0);
    }
    let taken = snapshot.take(&mut connection).map_err(|error| match (error, &options.program) {
        (trace_client::Error::NothingRecorded, Some(program)) => Failure::nothing_recorded(format!(
            "no recording has the program {}: trace list-programs shows which one a program belongs to",
            Shown(program)
        )),
        (error, _) => error.into(),
    })?;
    let coverage = taken.write(&mut destination.sink()?)?;
    let stats = taken.providers;
    let is_providers = |coverage: &&Coverage| stats.iter().any(|stats| stats.id == coverage.provider.0);
    let events: u64 = coverage.iter().filter(is_providers).map(|coverage| coverage.events).sum();
    let worth = if events > 0 { Worth::Events } else { Worth::NoEvents };
    let finished = destination::finish(destination, worth)?;
    for line in describe(&stats, &coverage) {
        say!("{line}");
    }
    if options.json {
        let mut answer = Answer::of(machine(&stats, &coverage));
        let file = (!finished.is_unchanged).then_some(&*finished.place);
        answer.traces.extend(file.map(|file| trace_json(file, None, None)));
        summary::machine::add_losses(&mut answer, &finished.place, &stats);
        answer.give();
    }
    let events = Counted(events, "events");
    match finished.is_unchanged {
        true => say!("trace: {events}; {} stays as it was", finished.place),
        false => say!("trace: {events} in {}", finished.place),
    }
    Ok(())
}

/// The same for programs.
fn machine(stats: &[ProviderStats], coverage: &[Coverage]) -> serde_json::Value {
    let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let programs = stats.iter().map(|stats| {
        let found = coverage.iter().find(|coverage| coverage.provider.0 == stats.id);
        let mut program = summary::machine::program(stats);
        // Of the whole buffer, not of the last part of it.
        program["events"] = found.map_or(0, |found| found.events).into();
        program["covered_ns"] = found.and_then(|found| found.covered).map(nanos).into();
        program["ended_ns_ago"] =
            found.filter(|_| stats.ended_ticks.is_some()).map(|found| nanos(found.ended)).into();
        program
    });
    let programs: Vec<_> = programs.collect();
    let events: u64 = programs.iter().filter_map(|program| program["events"].as_u64()).sum();
    serde_json::json!({"events": events, "programs": programs})
}

/// A line for each program: the time that its part covers, and how it ended. A last one reports the time that
/// all of them cover.
fn describe(stats: &[ProviderStats], coverage: &[Coverage]) -> Vec<String> {
    let mut lines = Vec::new();
    // How long ago the parts begin and end.
    let mut parts: Vec<(Duration, Duration)> = Vec::new();
    for stats in stats {
        let found = coverage.iter().find(|coverage| coverage.provider.0 == stats.id);
        let covered = found.and_then(|found| Some((found, found.covered?)));
        let what = match covered {
            _ if !stats.problem.is_empty() => Shown(&stats.problem).to_string(),
            Some((found, covered)) => {
                parts.push((found.ended + covered, found.ended));
                let events = Counted(found.events, "events");
                match stats.ended_ticks {
                    Some(_) => format!(
                        "{} {} ago, the last {} before that, {events}",
                        Shown(&stats.disposition),
                        lasting(found.ended),
                        lasting(covered)
                    ),
                    None => format!("the last {}, {events}", lasting(covered)),
                }
            }
            None => "nothing".to_owned(),
        };
        lines.push(format!("trace: {} (pid {}): {what}", Shown(&stats.name), stats.pid));
    }
    let first = parts.iter().map(|(begin, _)| *begin).min();
    let last = parts.iter().map(|(_, end)| *end).max();
    if let (Some(first), Some(last), 2..) = (first, last, parts.len()) {
        lines.push(if first <= last {
            "trace: no period is covered by all programs".to_owned()
        } else if last.is_zero() {
            format!("trace: all programs cover the last {}", lasting(first))
        } else {
            format!("trace: all programs cover the time from {} to {} ago", lasting(first), lasting(last))
        });
    }
    lines
}

fn lasting(duration: Duration) -> Lasting {
    Lasting(duration.as_nanos() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace_reader::item::ProviderId;

    #[test]
    fn the_time_of_each_programs_part_is_reported() {
        let stats =
            |id, name: &str| ProviderStats { id, name: name.into(), pid: 42, ..ProviderStats::default() };
        let coverage = |provider, covered, events| Coverage {
            provider: ProviderId(provider),
            covered,
            ended: Duration::ZERO,
            events,
        };
        let lines = describe(
            &[stats(1, "app"), stats(2, "quick"), stats(3, "mute")],
            &[
                coverage(1, Some(Duration::from_millis(9876)), 5000),
                coverage(2, Some(Duration::from_micros(1500)), 1),
            ],
        );
        insta::assert_snapshot!(lines.join("\n"), @r"
        trace: app (pid 42): the last 9.876 s, 5000 events
        trace: quick (pid 42): the last 1.5 ms, 1 event
        trace: mute (pid 42): nothing
        trace: all programs cover the last 1.5 ms
        ");
    }

    /// A part that begins and ends the given number of milliseconds ago.
    fn part(id: u32, begin: u64, end: u64) -> (ProviderStats, Coverage) {
        let is_over = end > 0;
        let stats = ProviderStats {
            id,
            name: format!("app {id}"),
            pid: 42,
            disposition: if is_over { "ended" } else { "recording" }.into(),
            ended_ticks: is_over.then_some(7),
            ..ProviderStats::default()
        };
        let covered = Some(Duration::from_millis(begin - end));
        let ended = Duration::from_millis(end);
        (stats, Coverage { provider: ProviderId(id), covered, ended, events: 5 })
    }

    //= docs/protocol.md#snapshot
    #[test]
    fn what_all_parts_cover_is_what_is_in_each_of_them() {
        let lines = |parts: &[(ProviderStats, Coverage)]| {
            let (stats, coverage): (Vec<_>, Vec<_>) = parts.iter().cloned().unzip();
            describe(&stats, &coverage).join("\n")
        };
        insta::assert_snapshot!(lines(&[part(1, 9000, 0), part(2, 5000, 2000), part(3, 4000, 500)]), @r"
        trace: app 1 (pid 42): the last 9 s, 5 events
        trace: app 2 (pid 42): ended 2 s ago, the last 3 s before that, 5 events
        trace: app 3 (pid 42): ended 500 ms ago, the last 3.5 s before that, 5 events
        trace: all programs cover the time from 4 s to 2 s ago
        ");
        insta::assert_snapshot!(lines(&[part(1, 1000, 0), part(2, 5000, 2000)]), @r"
        trace: app 1 (pid 42): the last 1 s, 5 events
        trace: app 2 (pid 42): ended 2 s ago, the last 3 s before that, 5 events
        trace: no period is covered by all programs
        ");
        let mut given_up = part(1, 5000, 2000);
        given_up.0.problem = "it is not kept".to_owned();
        insta::assert_snapshot!(lines(&[given_up]), @"trace: app 1 (pid 42): it is not kept");
    }
}
