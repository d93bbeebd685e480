//! Rows of providers, and of what they have lost.

use super::integer;
use crate::tables::{Cell, Kind, Rows};
use std::collections::BTreeMap;
use std::io;
use trace_format::loss::{LedgerRecord, LossCode, LossRecord};
use trace_format::units::{ProviderId, Ticks, TicksPerSecond};
use trace_reader::Text;

#[derive(Default)]
struct Provider {
    name: String,
    rate: Option<TicksPerSecond>,
    /// Records that it has generated, and how many of them are in the archive.
    ledger: Option<(u64, u64)>,
    lost: u64,
}

/// What all providers have generated and lost.
#[derive(Clone, Copy, Debug)]
pub struct Sums {
    /// Records that providers with a ledger have generated.
    pub generated: Option<u64>,
    /// How many of them are in the archive.
    pub archived: Option<u64>,
    /// Records that are missing.
    pub lost: u64,
}

/// All providers of an archive.
#[derive(Default)]
pub struct Providers {
    by_id: BTreeMap<ProviderId, Provider>,
}

impl Providers {
    pub fn info(&mut self, id: ProviderId, name: Text<'_>) {
        self.by_id.entry(id).or_default().name = name.to_str().into_owned();
    }

    pub fn rate(&mut self, id: ProviderId, rate: TicksPerSecond) {
        self.by_id.entry(id).or_default().rate = Some(rate);
    }

    /// A ledger counts all runs up to it.
    pub fn ledger(&mut self, ledger: &LedgerRecord) {
        let provider = self.by_id.entry(ledger.provider).or_default();
        provider.ledger = Some((ledger.generated, ledger.archived));
    }

    /// The row of a loss.
    pub fn loss(&mut self, loss: &LossRecord) -> [Cell<'static>; 5] {
        let provider = self.by_id.entry(loss.provider).or_default();
        // That one counts counters.
        if loss.reason != LossCode::DAMAGED_COUNTERS {
            provider.lost = provider.lost.saturating_add(loss.count);
        }
        let rate = provider.rate;
        let at = |ticks: Ticks| rate.map_or(Cell::Null, |rate| integer(ticks.to_nanos(rate).0));
        [
            at(loss.first),
            at(loss.last),
            Cell::Integer(loss.provider.0.into()),
            loss.reason.text().map_or(Cell::Null, Cell::Text),
            integer(loss.count),
        ]
    }

    /// The sums of all providers.
    pub fn sums(&self) -> Sums {
        let lost = self.by_id.values().fold(0_u64, |lost, provider| lost.saturating_add(provider.lost));
        let sum = |value: fn((u64, u64)) -> u64| {
            self.by_id.values().filter_map(|provider| provider.ledger.map(value)).reduce(u64::saturating_add)
        };
        Sums { generated: sum(|(generated, _)| generated), archived: sum(|(_, archived)| archived), lost }
    }

    /// Writes the rows of all providers.
    pub fn finish(&self, rows: &mut impl Rows) -> io::Result<()> {
        for (id, provider) in &self.by_id {
            let of_ledger = |value: fn((u64, u64)) -> u64| {
                provider.ledger.map_or(Cell::Null, |ledger| integer(value(ledger)))
            };
            let cells = [
                Cell::Integer(id.0.into()),
                Cell::Text(&provider.name),
                of_ledger(|(generated, _)| generated),
                of_ledger(|(_, archived)| archived),
                integer(provider.lost),
            ];
            rows.row(Kind::Providers, &cells)?;
        }
        Ok(())
    }
}
