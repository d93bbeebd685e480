//! Rows of providers, and of what they have lost.

use super::{MANAGER, integer};
use crate::tables::{Cell, Kind, Rows};
use std::collections::BTreeMap;
use std::io;
use trace_format::kernel_object::PROCESS_ARGUMENT;
use trace_format::loss::{LedgerRecord, LossRecord};
use trace_format::program_info::{
    COMMAND_LINE_ARGUMENT, END_ARGUMENT, ENDED_ARGUMENT, OPEN_ARGUMENT, PARENT_ARGUMENT, PROVIDER_ARGUMENT,
    REGISTERED_ARGUMENT,
};
use trace_format::units::{ProviderId, Ticks, TicksPerSecond};
use trace_reader::{Arguments, Text, Value};

/// Maximum memory of what is said about programs, in bytes. Real archives have less than a megabyte.
const MAX_BYTES: usize = 64 << 20;
/// Memory of a provider besides its texts.
const ENTRY_BYTES: usize = 256;

#[derive(Default)]
struct Provider {
    name: String,
    rate: Option<TicksPerSecond>,
    /// Records that it has generated, and how many of them are in the archive.
    ledger: Option<(u64, u64)>,
    lost: u64,
    /// More is missing, without a number.
    has_unknown_loss: bool,
    program: Program,
}

/// What the manager says about a provider's program.
#[derive(Default)]
struct Program {
    pid: Option<u64>,
    parent_pid: Option<u64>,
    command_line: Option<String>,
    /// When it registered and when it ended, in ticks of the manager.
    start: Option<Ticks>,
    end: Option<Ticks>,
    how: Option<String>,
}

/// What all providers have generated and lost.
#[derive(Clone, Copy, Debug)]
pub struct Sums {
    /// Records that providers with a ledger have generated.
    pub generated: Option<u64>,
    /// How many of them are in the archive.
    pub archived: Option<u64>,
    /// Records that are missing; none if that is unknown.
    pub lost: Option<u64>,
}

impl Provider {
    /// Records that are missing; none if that is unknown.
    fn lost(&self) -> Option<u64> {
        (!self.has_unknown_loss).then_some(self.lost)
    }
}

/// All providers of an archive.
#[derive(Default)]
pub struct Providers {
    by_id: BTreeMap<ProviderId, Provider>,
    /// Memory of what is said about programs.
    bytes: usize,
}

impl Providers {
    pub fn info(&mut self, id: ProviderId, name: Text<'_>) {
        self.by_id.entry(id).or_default().name = name.to_str().into_owned();
    }

    pub fn rate(&mut self, id: ProviderId, rate: TicksPerSecond) {
        self.by_id.entry(id).or_default().rate = Some(rate);
    }

    /// The manager describes the program of a provider. What was said first counts. False if there is no room
    /// for it.
    //= docs/protocol.md#provider-descriptions
    #[must_use]
    pub fn describe(&mut self, arguments: &Arguments<'_>) -> bool {
        let Some(Value::Uint32(id)) = arguments.find(PROVIDER_ARGUMENT) else {
            return true;
        };
        // Why its spans have no end is no description.
        if arguments.find(OPEN_ARGUMENT).is_some() {
            return true;
        }
        let length = |name: &str| match arguments.find(name) {
            Some(Value::String(text)) => text.as_bytes().len(),
            _ => 0,
        };
        let bytes = ENTRY_BYTES + length(COMMAND_LINE_ARGUMENT) + length(END_ARGUMENT);
        if self.bytes + bytes > MAX_BYTES {
            return false;
        }
        self.bytes += bytes;
        let koid = |name: &str| match arguments.find(name)? {
            Value::Koid(koid) => Some(koid.0),
            _ => None,
        };
        let ticks = |name: &str| match arguments.find(name)? {
            Value::Uint64(ticks) => Some(Ticks(ticks)),
            _ => None,
        };
        let text = |name: &str| match arguments.find(name)? {
            Value::String(text) => Some(text.to_str().into_owned()),
            _ => None,
        };
        let program = &mut self.by_id.entry(ProviderId(id)).or_default().program;
        program.pid = program.pid.or_else(|| koid(PROCESS_ARGUMENT));
        program.parent_pid = program.parent_pid.or_else(|| koid(PARENT_ARGUMENT));
        program.start = program.start.or_else(|| ticks(REGISTERED_ARGUMENT));
        program.command_line = program.command_line.take().or_else(|| text(COMMAND_LINE_ARGUMENT));
        program.end = program.end.or_else(|| ticks(ENDED_ARGUMENT));
        program.how = program.how.take().or_else(|| text(END_ARGUMENT));
        true
    }

    /// A ledger counts all runs up to it.
    pub fn ledger(&mut self, ledger: &LedgerRecord) {
        let provider = self.by_id.entry(ledger.provider).or_default();
        provider.ledger = Some((ledger.generated, ledger.archived));
    }

    /// The row of a loss.
    pub fn loss(&mut self, loss: &LossRecord) -> [Cell<'static>; 5] {
        let manager_rate = self.by_id.get(&MANAGER).and_then(|manager| manager.rate);
        let provider = self.by_id.entry(loss.provider).or_default();
        let count = loss.reason.has_count().then_some(loss.count);
        match count {
            Some(count) => provider.lost = provider.lost.saturating_add(count),
            None => provider.has_unknown_loss = true,
        }
        // Of a program that was not recorded there is no other rate.
        let rate = provider.rate.or(manager_rate);
        let at = |ticks: Ticks| rate.map_or(Cell::Null, |rate| integer(ticks.to_nanos(rate).0));
        [
            at(loss.first),
            at(loss.last),
            Cell::Integer(loss.provider.0.into()),
            loss.reason.text().into(),
            count.map_or(Cell::Null, integer),
        ]
    }

    /// The sums of all providers.
    pub fn sums(&self) -> Sums {
        let mut lost = self.by_id.values().map(Provider::lost);
        let lost = lost.try_fold(0_u64, |sum, lost| Some(sum.saturating_add(lost?)));
        let sum = |value: fn((u64, u64)) -> u64| {
            self.by_id.values().filter_map(|provider| provider.ledger.map(value)).reduce(u64::saturating_add)
        };
        Sums { generated: sum(|(generated, _)| generated), archived: sum(|(_, archived)| archived), lost }
    }

    /// Writes the rows of all providers.
    pub fn finish(&self, rows: &mut impl Rows) -> io::Result<()> {
        let rate = self.by_id.get(&MANAGER).and_then(|manager| manager.rate);
        for (id, provider) in &self.by_id {
            let of_ledger = |value: fn((u64, u64)) -> u64| {
                provider.ledger.map_or(Cell::Null, |ledger| integer(value(ledger)))
            };
            let program = &provider.program;
            let at = |ticks: Option<Ticks>| {
                let nanos = ticks.zip(rate).map(|(ticks, rate)| ticks.to_nanos(rate).0);
                nanos.map_or(Cell::Null, integer)
            };
            let cells = [
                Cell::Integer(id.0.into()),
                Cell::Text(&provider.name),
                of_ledger(|(generated, _)| generated),
                of_ledger(|(_, archived)| archived),
                provider.lost().map_or(Cell::Null, integer),
                program.pid.into(),
                program.parent_pid.into(),
                program.command_line.as_deref().into(),
                at(program.start),
                at(program.end),
                program.how.as_deref().into(),
            ];
            rows.row(Kind::Programs, &cells)?;
        }
        Ok(())
    }
}
