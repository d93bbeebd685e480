//! Whether the records of each provider add up: every generated record is in the trace, or was lost for a
//! reason.

use crate::item::{Item, Resolved};
use std::collections::BTreeMap;
use trace_format::loss::{LedgerRecord, LossRecord};
use trace_format::units::ProviderId;

/// How many providers are distinguished.
const MAX_PROVIDERS: usize = 4096;

/// The counts of one provider.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    /// Its own records.
    records: u64,
    /// The losses in its loss blobs.
    lost: u64,
}

/// The records and losses of all providers so far.
#[derive(Debug, Default)]
pub struct Balance {
    sums: BTreeMap<ProviderId, Sums>,
    /// The provider of the last record, and its records that are not in the sums yet.
    last: (ProviderId, u64),
}

impl Balance {
    /// Whether a record is one of those that a ledger counts: neither the collector's nor a piece of one.
    //= docs/format.md#ledger-blob
    #[inline]
    #[must_use]
    pub const fn counts(item: &Item<'_>) -> bool {
        !matches!(
            item,
            Item::Magic
                | Item::ProviderInfo { .. }
                | Item::ProviderSection
                | Item::ProviderEvent { .. }
                | Item::LargeBlobPart { .. }
                | Item::Damage { .. }
                | Item::Loss(_)
                | Item::Ledger(_)
        )
    }

    /// Counts a record, and a loss or the ledger of a provider with it. Returns how a ledger differs from
    /// what was counted.
    //= docs/format.md#ledger-blob
    #[inline]
    pub fn record(&mut self, record: &Resolved<'_>) -> Vec<String> {
        if record.provider != self.last.0 {
            self.settle(record.provider);
        }
        match &record.item {
            Item::Loss(loss) => self.loss(loss),
            Item::Ledger(ledger) => {
                self.settle(record.provider);
                return self.ledger(record.provider, ledger);
            }
            item => self.last.1 += u64::from(Self::counts(item)),
        }
        Vec::new()
    }

    #[cold]
    fn settle(&mut self, next: ProviderId) {
        let (provider, records) = std::mem::replace(&mut self.last, (next, 0));
        for (provider, records) in [(provider, records), (next, 0)] {
            if self.sums.len() < MAX_PROVIDERS || self.sums.contains_key(&provider) {
                self.sums.entry(provider).or_default().records += records;
            }
        }
    }

    fn loss(&mut self, loss: &LossRecord) {
        if loss.reason.has_count()
            && let Some(sums) = self.sums.get_mut(&loss.provider)
        {
            sums.lost = sums.lost.saturating_add(loss.count);
        }
    }

    fn ledger(&self, provider: ProviderId, ledger: &LedgerRecord) -> Vec<String> {
        let Some(Sums { records, lost }) = self.sums.get(&provider).copied() else {
            return Vec::new();
        };
        let mut problems = Vec::new();
        let known = ledger.archived.saturating_add(lost);
        if known.abs_diff(ledger.generated) > ledger.uncertain {
            let (generated, archived) = (ledger.generated, ledger.archived);
            problems
                .push(format!("{generated} records were generated, {archived} are archived and {lost} lost"));
        }
        if records != ledger.records {
            problems.push(format!("{records} records up to here, of {} that were archived", ledger.records));
        }
        problems
    }
}
