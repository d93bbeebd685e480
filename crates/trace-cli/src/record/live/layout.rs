//! The screen as lines of text: programs, durations, counters, in the room that there is.
//= docs/live.md#what-is-shown

use super::feed::Picture;
use super::machine;
use super::own::State;
use super::table::{self, Column, cut, number, text};
use indicatif::HumanCount;
use trace_analysis::counted::Counted;
use trace_analysis::live::{LiveCounter, LiveSpan};
use trace_format::shown::{Digits, Lasting, Shown};
use trace_format::units::ProviderId;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Values of a counter that are drawn at most.
const MAX_BARS: usize = 30;
const PROGRAMS: [Column; 7] = [
    text("program", 9),
    number("pid", 3),
    number("records", 8),
    number("events/s", 7),
    number("fill", 5),
    number("lost", 6),
    number("missed", 2),
];
const SPANS: [Column; 8] = [
    text("duration", 9),
    text("program", 2),
    number("count", 6),
    number("/s", 3),
    number("total", 5),
    number("p50", 7),
    number("p99", 8),
    number("max", 4),
];
const COUNTERS: [Column; 4] = [text("counter", 9), text("program", 2), number("value", 8), text("", 5)];

/// The name and the process of a provider, if it is among those of the update.
pub fn program_of(picture: &Picture, provider: ProviderId) -> Option<(&str, u64)> {
    let found = picture.counts.providers.iter().find(|found| found.progress.id == provider.0)?;
    Some((&found.progress.name, found.progress.pid))
}

/// So many of something in a second; 0 where no time has passed.
pub fn rate(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}

/// What is shown of a picture.
#[derive(Clone, Copy, Debug)]
pub struct View {
    pub width: usize,
    pub height: usize,
    /// One program alone.
    pub only: Option<ProviderId>,
    /// The recording of the command's own.
    pub own: Option<State>,
}

/// The lines of the screen, at most as many as it has.
pub fn lines(picture: Option<&Picture>, view: View) -> Vec<String> {
    let Some(picture) = picture else {
        let text = if view.own.is_some() { "trace live: waiting for the recording" } else { "trace live" };
        return vec![cut(text, view.width).into_owned()];
    };
    let mut lines = vec![cut(&title(picture, view), view.width).into_owned()];
    let programs = programs(picture, view);
    let spans: Vec<&LiveSpan> =
        picture.snapshot.spans.iter().filter(|span| is_shown(view, span.provider)).collect();
    let counters: Vec<&LiveCounter> =
        picture.snapshot.counters.iter().filter(|counter| is_shown(view, counter.provider)).collect();
    // A blank line and a header for each, and the title.
    let room = view.height.saturating_sub(lines.len() + 2 * 3);
    let [for_programs, for_spans, for_counters] = shares([programs.len(), spans.len(), counters.len()], room);
    section(&mut lines, view, "programs", &PROGRAMS, programs, for_programs);
    let rows = spans.iter().map(|span| span_row(picture, span)).collect();
    section(&mut lines, view, "durations", &SPANS, rows, for_spans);
    let rows = counters.iter().map(|counter| counter_row(picture, counter, view.width)).collect();
    section(&mut lines, view, "counters", &COUNTERS, rows, for_counters);
    lines.truncate(view.height);
    lines
}

fn is_shown(view: View, provider: ProviderId) -> bool {
    view.only.is_none_or(|only| only == provider)
}

/// How many rows each table gets: what it needs, or its share of the room.
fn shares(needed: [usize; 3], room: usize) -> [usize; 3] {
    let mut shares = [0; 3];
    let mut left = room;
    loop {
        let before = left;
        for (share, needed) in shares.iter_mut().zip(needed) {
            if *share < needed && left > 0 {
                *share += 1;
                left -= 1;
            }
        }
        if left == before {
            return shares;
        }
    }
}

fn section(
    lines: &mut Vec<String>,
    view: View,
    things: &str,
    columns: &[Column],
    mut rows: Vec<Vec<String>>,
    room: usize,
) {
    if rows.is_empty() || room == 0 {
        return;
    }
    // The line about the others takes a row, if there is more than one.
    let shown = if rows.len() > room && room > 1 { room - 1 } else { room };
    let hidden = if room > 1 { rows.len().saturating_sub(shown) } else { 0 };
    rows.truncate(shown);
    lines.push(String::new());
    lines.extend(table::lines(columns, &rows, view.width));
    if hidden > 0 {
        let more = format!("… {}", Counted(hidden as u64, &format!("more {things}")));
        lines.push(cut(&more, view.width).into_owned());
    }
}

fn title(picture: &Picture, view: View) -> String {
    let counts = &picture.counts;
    let providers = || counts.providers.iter();
    let dropped: u64 = providers().map(|provider| provider.progress.dropped).fold(0, u64::saturating_add);
    let events: u64 = picture.snapshot.events.values().sum();
    let what = match view.own {
        Some(State::Stopping) => "stopping",
        Some(State::Recording) | None => machine::state(counts.state),
    };
    let mut title = format!(
        "trace live: {what}, {} | {} | {} events/s | {} lost",
        machine::mode(counts.mode),
        Counted(counts.providers.len() as u64, "programs"),
        HumanCount(rate(events, picture.snapshot.seconds) as u64),
        HumanCount(dropped),
    );
    if let Some((name, pid)) = view.only.and_then(|only| program_of(picture, only)) {
        title += &format!(" | only {} (pid {pid})", Shown(name));
    }
    if counts.dropped_updates > 0 {
        title += &format!(" | {}", Counted(counts.dropped_updates, "skipped updates"));
    }
    if counts.left_out > 0 {
        title += &format!(" | {} not shown", Counted(counts.left_out, "programs"));
    }
    title + " | q quits, Tab: next program"
}

fn programs(picture: &Picture, view: View) -> Vec<Vec<String>> {
    let mut providers: Vec<_> = picture.counts.providers.iter().collect();
    let events = |id: u32| picture.snapshot.events.get(&ProviderId(id)).copied().unwrap_or(0);
    // The busiest first, as far as they are shown.
    providers.sort_by_key(|provider| (std::cmp::Reverse(events(provider.progress.id)), provider.progress.id));
    let shown = providers.into_iter().filter(|provider| is_shown(view, ProviderId(provider.progress.id)));
    let row = |provider: &trace_protocol::controller::ObservedProvider| {
        let progress = &provider.progress;
        let fill = match (provider.has_ended, progress.is_damaged) {
            (true, _) => "ended".to_owned(),
            (_, true) => "damaged".to_owned(),
            _ => format!("{:.0} %", progress.fill),
        };
        vec![
            Shown(&progress.name).to_string(),
            progress.pid.to_string(),
            HumanCount(progress.records).to_string(),
            HumanCount(rate(events(progress.id), picture.snapshot.seconds) as u64).to_string(),
            fill,
            HumanCount(progress.dropped).to_string(),
            HumanCount(provider.missed).to_string(),
        ]
    };
    shown.map(row).collect()
}

/// A category and a name, as one text.
fn label(category: &str, name: &str) -> String {
    format!("{}/{}", Shown(category), Shown(name))
}

fn program_name(picture: &Picture, provider: ProviderId) -> String {
    program_of(picture, provider)
        .map_or_else(|| format!("#{}", provider.0), |(name, _)| Shown(name).to_string())
}

fn span_row(picture: &Picture, span: &LiveSpan) -> Vec<String> {
    let time = |nanos: Option<f64>| nanos.map_or_else(|| "-".to_owned(), |nanos| Lasting(nanos).to_string());
    vec![
        label(&span.category, &span.name),
        program_name(picture, span.provider),
        HumanCount(span.count).to_string(),
        HumanCount(rate(span.count, picture.snapshot.seconds).round() as u64).to_string(),
        Lasting(span.total_ns as f64).to_string(),
        time(span.p50_ns),
        time(span.p99_ns),
        Lasting(span.max_ns as f64).to_string(),
    ]
}

fn counter_row(picture: &Picture, counter: &LiveCounter, width: usize) -> Vec<String> {
    let id = if counter.id == 0 { String::new() } else { format!("#{}", counter.id) };
    let series = Shown(&counter.series);
    vec![
        format!("{}{id} {series}", label(&counter.category, &counter.name)),
        program_name(picture, counter.provider),
        counter.values.last().map_or_else(String::new, |value| Digits(*value).to_string()),
        sparkline(&counter.values, MAX_BARS.min(width / 3)),
    ]
}

/// The last values as bars between the lowest and the highest of them.
fn sparkline(values: &[f64], most: usize) -> String {
    let values = &values[values.len().saturating_sub(most)..];
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let bar = |value: &f64| {
        // Halves, so that the range of the largest numbers is finite.
        let range = high / 2.0 - low / 2.0;
        let share = if range > 0.0 { (value / 2.0 - low / 2.0) / range } else { 0.0 };
        BARS[((share * 8.0) as usize).min(7)]
    };
    values.iter().map(bar).collect()
}

#[cfg(test)]
mod tests;
