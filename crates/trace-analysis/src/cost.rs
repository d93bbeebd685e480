//! What tracing itself has taken of the programs' time, by what events cost before the recording began.

use trace_reader::{Event, Value};

/// What an event takes of its thread's time, in nanoseconds, as a trace tells it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventCosts {
    /// An instant.
    pub instant: f64,
    /// A complete duration.
    pub duration: f64,
    /// A counter.
    pub counter: f64,
}

/// Events by what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CostlyEvents {
    /// Complete durations.
    pub durations: u64,
    /// Counters.
    pub counters: u64,
    /// All others, which cost as much as an instant.
    pub others: u64,
}

impl EventCosts {
    /// Reads them from the begin of a recording.
    //= docs/protocol.md#the-managers-own-provider
    pub(crate) fn of(event: &Event<'_>) -> Option<Self> {
        let cost = |name: &str| match event.arguments.find(name)? {
            Value::Double(cost) if cost.is_finite() && cost >= 0.0 => Some(cost),
            _ => None,
        };
        Some(Self {
            instant: cost("instant_cost_ns")?,
            duration: cost("duration_cost_ns")?,
            counter: cost("counter_cost_ns")?,
        })
    }

    /// The time of some events together.
    #[must_use]
    pub fn total(&self, events: &CostlyEvents) -> f64 {
        self.duration * events.durations as f64
            + self.counter * events.counters as f64
            + self.instant * events.others as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_cost_by_their_kind() {
        let costs = EventCosts { instant: 10.0, duration: 25.0, counter: 20.0 };
        let events = CostlyEvents { durations: 100, counters: 10, others: 1 };
        assert!((costs.total(&events) - 2710.0).abs() < 1e-9);
        assert!(costs.total(&CostlyEvents::default()).abs() < 1e-9);
    }
}
