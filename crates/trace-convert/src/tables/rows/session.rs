//! The row of the trace itself, and the rows of alerts.
//! Sources: the instants that the manager writes about a session, and those of alerts.

use super::whose::Whose;
use super::{integer, providers::Sums};
use crate::tables::{Cell, Kind, Rows};
use std::io::{self, Read};
use trace_format::event::EventKind;
use trace_format::units::{ProviderId, TicksPerSecond};
use trace_reader::{Balance, Event, Item, Mark, ReadError, Reader, Resolved, Value};

/// Category of what is said about a session.
pub const CATEGORY: &[u8] = b"trace";
/// Texts of the manager about a session: names of arguments, in the order of the columns.
const TEXTS: [&str; 8] =
    ["host", "boot_id", "kernel", "command_line", "version", "categories", "buffering_mode", "clock_source"];

/// Arguments with what events cost.
const COSTS: [&str; 3] = ["instant_cost_ns", "duration_cost_ns", "counter_cost_ns"];

/// A point in time, and the wall clock then, in nanoseconds since 1970.
#[derive(Clone, Copy)]
struct Moment {
    at: u64,
    utc: Option<u64>,
}

impl Moment {
    fn of(event: &Event<'_>) -> Self {
        let utc = match event.arguments.find("wall_clock_ns") {
            Some(Value::Uint64(utc)) => Some(utc),
            _ => None,
        };
        Self { at: event.time.nanos().0, utc }
    }
}

/// What the manager says about the session. Of several, as in joined traces, the first one counts.
#[derive(Default)]
pub struct Session {
    texts: [Option<String>; TEXTS.len()],
    rate: Option<TicksPerSecond>,
    start: Option<Moment>,
    end: Option<Moment>,
    /// What has to be added to a time for the wall clock.
    utc_offset: Option<i64>,
    /// What events cost, in nanoseconds.
    costs: [Option<f64>; COSTS.len()],
    balance: Balance,
    /// Whether all ledgers add up, if there is one.
    is_balanced: Option<bool>,
}

impl Session {
    /// Counts a record.
    pub fn record(&mut self, record: &Resolved<'_>) {
        let is_ledger = matches!(record.item, Item::Ledger(_));
        let is_exact = self.balance.record(record).is_empty();
        if is_ledger {
            self.is_balanced = Some(self.is_balanced.unwrap_or(true) && is_exact);
        }
    }

    /// The wall clock at a time.
    pub fn utc(&self, at: u64) -> Cell<'static> {
        let utc = self.utc_offset.and_then(|offset| offset.checked_add_unsigned(at));
        Cell::from(utc)
    }

    /// Takes what an event of the category says about the session.
    pub fn event(&mut self, event: &Event<'_>, provider: ProviderId) {
        match Mark::of(provider, event) {
            Some(Mark::Begin) if self.start.is_none() => {
                let start = Moment::of(event);
                self.start = Some(start);
                self.utc_offset =
                    start.utc.and_then(|utc| i64::try_from(utc).ok()?.checked_sub_unsigned(start.at));
                self.costs = COSTS.map(|name| match event.arguments.find(name)? {
                    Value::Double(cost) if cost.is_finite() && cost >= 0.0 => Some(cost),
                    _ => None,
                });
                self.rate = Some(event.time.rate);
                self.texts = TEXTS.map(|name| match event.arguments.find(name)? {
                    Value::String(text) => Some(text.to_str().into_owned()),
                    _ => None,
                });
            }
            Some(Mark::End) => self.end = Some(Moment::of(event)),
            _ => {}
        }
    }

    /// Writes the row of the trace.
    pub fn finish(&self, sums: Sums, rows: &mut impl Rows) -> io::Result<()> {
        let [start, end] = [self.start, self.end];
        let at = |moment: Option<Moment>| moment.map_or(Cell::Null, |moment| integer(moment.at));
        let utc = |moment: Option<Moment>| moment.and_then(|moment| moment.utc);
        let [host, boot_id, kernel, command_line, version, categories, mode, clock] =
            self.texts.each_ref().map(|text| Cell::from(text.as_deref()));
        let [instant_cost, duration_cost, counter_cost] = self.costs.map(Cell::from);
        let cells = [
            host,
            boot_id,
            kernel,
            command_line,
            version,
            categories,
            mode,
            clock,
            self.rate.map_or(Cell::Null, |rate| integer(rate.0.get())),
            at(start),
            at(end),
            utc(start).map_or(Cell::Null, integer),
            utc(end).map_or(Cell::Null, integer),
            Cell::from(self.utc_offset),
            sums.generated.map_or(Cell::Null, integer),
            sums.archived.map_or(Cell::Null, integer),
            sums.lost.map_or(Cell::Null, integer),
            self.is_balanced.map_or(Cell::Null, |is_balanced| Cell::Integer(is_balanced.into())),
            instant_cost,
            duration_cost,
            counter_cost,
        ];
        rows.row(Kind::Traces, &cells)
    }
}

/// Records of an archive among which the manager says where it was recorded.
const ORIGIN_RECORDS: usize = 100_000;

/// Where and when a trace was recorded, as far as it says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The name of the machine.
    pub host: Option<String>,
    /// The wall clock at its beginning, in nanoseconds since 1970.
    pub start_utc: Option<u64>,
}

/// Reads the beginning of an archive.
///
/// # Errors
/// The input is no archive.
pub fn origin(mut input: impl Read) -> Result<Origin, ReadError> {
    origin_of(&mut input)
}

fn origin_of(input: &mut dyn Read) -> Result<Origin, ReadError> {
    let mut reader = Reader::new(input)?;
    let mut session = Session::default();
    for _ in 0..ORIGIN_RECORDS {
        // An error that comes later is found when all of it is read.
        let Ok(Some(record)) = reader.next_item() else { break };
        if let Item::Event(event) = &record.item
            && event.category.as_bytes() == CATEGORY
        {
            session.event(event, record.provider);
        }
        if session.start.is_some() {
            break;
        }
    }
    let [host, ..] = session.texts;
    Ok(Origin { host, start_utc: session.start.and_then(|start| start.utc) })
}

/// Writes the row of an alert, if the event is one.
//= docs/format.md#alerts
pub fn alert(event: &Event<'_>, whose: &Whose<'_>, utc: Cell<'_>, rows: &mut impl Rows) -> io::Result<()> {
    let is_alert = event.name.as_bytes() == b"alert" && matches!(event.kind, EventKind::Instant { .. });
    let Some(Value::String(name)) = event.arguments.find("name").filter(|_| is_alert) else {
        return Ok(());
    };
    let [pid, tid, process, thread] = whose.cells();
    let name = name.to_str();
    rows.row(
        Kind::Alerts,
        &[integer(event.time.nanos().0), pid, tid, process, thread, Cell::Text(&name), utc],
    )
}
