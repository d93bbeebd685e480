//! An update as a line of JSON.
//= docs/json.md#live

use super::feed::Picture;
use super::layout::{program_of, rate};
use crate::shell::json;
use serde_json::{Value, json};
use trace_format::units::ProviderId;
use trace_protocol::BufferingMode;
use trace_protocol::controller::SessionState;

/// The line, without its end.
pub fn line(picture: &Picture) -> Value {
    let Picture { counts, snapshot } = picture;
    let nanos = u128::from(counts.ticks) * 1_000_000_000 / u128::from(counts.ticks_per_second.max(1));
    let programs = counts.providers.iter().map(|provider| {
        let progress = &provider.progress;
        let id = ProviderId(progress.id);
        json!({
            "id": progress.id,
            "name": progress.name,
            "pid": progress.pid,
            "records": progress.records,
            "events": snapshot.all_events.get(&id).copied().unwrap_or(0),
            "events_per_second": rate(snapshot.events.get(&id).copied().unwrap_or(0), snapshot.seconds),
            "lost": progress.dropped,
            "missed": provider.missed,
            "fill_percent": progress.fill,
            "held_bytes": progress.held,
            "damaged": progress.is_damaged,
            "ended": provider.has_ended,
        })
    });
    let program = |provider: ProviderId| {
        let found = program_of(picture, provider);
        (found.map(|(name, _)| name), found.map(|(_, pid)| pid))
    };
    let durations = snapshot.spans.iter().map(|span| {
        let (name, pid) = program(span.provider);
        json!({
            "program": name,
            "pid": pid,
            "category": span.category,
            "name": span.name,
            "kind": span.kind.text(),
            "count": span.count,
            "per_second": rate(span.count, snapshot.seconds),
            "total_ns": span.total_ns,
            "p50_ns": span.p50_ns,
            "p99_ns": span.p99_ns,
            "max_ns": span.max_ns,
        })
    });
    let counters = snapshot.counters.iter().map(|counter| {
        let (name, pid) = program(counter.provider);
        json!({
            "program": name,
            "pid": pid,
            "category": counter.category,
            "name": counter.name,
            "id": counter.id,
            "value": counter.series,
            "last": counter.values.last(),
            "values": counter.values,
        })
    });
    json!({
        "version": json::VERSION,
        "time_ns": u64::try_from(nanos).unwrap_or(u64::MAX),
        "update": counts.update,
        "skipped_updates": counts.dropped_updates,
        "state": state(counts.state),
        "buffering_mode": mode(counts.mode),
        "window_ns": (snapshot.seconds * 1e9) as u64,
        "programs": programs.collect::<Vec<_>>(),
        "programs_left_out": counts.left_out,
        "durations": durations.collect::<Vec<_>>(),
        "counters": counters.collect::<Vec<_>>(),
        "skipped": {"durations": snapshot.other_spans, "samples": snapshot.other_samples},
    })
}

/// The state of a session, in a word.
pub const fn state(state: SessionState) -> &'static str {
    match state {
        SessionState::Ready => "ready",
        SessionState::Initialized => "initialized",
        SessionState::Starting => "starting",
        SessionState::Started => "started",
        SessionState::Stopping => "stopping",
        SessionState::Stopped => "stopped",
        SessionState::Terminating => "terminating",
    }
}

/// A buffering mode, in a word.
pub const fn mode(mode: BufferingMode) -> &'static str {
    match mode {
        BufferingMode::Oneshot => "oneshot",
        BufferingMode::Circular => "circular",
        BufferingMode::Streaming => "streaming",
    }
}
