//! Losses, as exporters show them: whose, when, why and how many.
//= docs/perfetto.md#losses

use std::borrow::Cow;
use std::collections::BTreeMap;
use trace_format::loss::LossRecord;
use trace_format::units::{ProviderId, Ticks, TicksPerSecond};
use trace_reader::{Item, MANAGER, Resolved, Thread};

/// The name of the instants, and of the track that has the intervals.
pub(crate) const LOST: &str = "lost";
/// Their category.
pub(crate) const CATEGORY: &str = "trace:loss";
/// Maximum number of providers whose tick rate and process are remembered.
const MAX_PROVIDERS: usize = 10_000;

/// One provider's loss for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    pub provider: ProviderId,
    pub provider_name: String,
    /// The first thread of the provider that recorded anything; none if no thread did.
    pub thread: Option<Thread>,
    pub reason: Cow<'static, str>,
    /// How many records; none if that is unknown.
    pub count: Option<u64>,
    /// Nanoseconds of the first and the last of the missing records; none if the archive does not say when.
    pub interval: Option<(u64, u64)>,
}

#[derive(Default)]
struct Provider {
    rate: Option<TicksPerSecond>,
    thread: Option<Thread>,
}

/// What has to be known of providers before their losses come.
#[derive(Default)]
pub(crate) struct Losses {
    providers: BTreeMap<ProviderId, Provider>,
    /// The provider of the last event: nothing new is learnt from its next one.
    last: Option<ProviderId>,
}

impl Losses {
    /// Learns from a record; returns the loss that it reports.
    #[inline]
    pub fn record(&mut self, record: &Resolved<'_>) -> Option<Lost> {
        match &record.item {
            Item::Event(event) => {
                if self.last != Some(record.provider) {
                    self.last = Some(record.provider);
                    if let Some(provider) = self.provider(record.provider) {
                        provider.thread.get_or_insert(event.thread);
                    }
                }
                None
            }
            Item::Initialization { rate } => {
                if let Some(provider) = self.provider(record.provider) {
                    provider.rate = Some(*rate);
                }
                None
            }
            Item::Loss(loss) => Some(self.loss(loss, record)),
            _ => None,
        }
    }

    fn provider(&mut self, id: ProviderId) -> Option<&mut Provider> {
        let has_room = self.providers.len() < MAX_PROVIDERS || self.providers.contains_key(&id);
        has_room.then(|| self.providers.entry(id).or_default())
    }

    fn loss(&self, loss: &LossRecord, record: &Resolved<'_>) -> Lost {
        let LossRecord { provider, reason, count, first, last } = *loss;
        let known = self.providers.get(&provider);
        // Of a program that was not recorded there is no other rate.
        let manager = self.providers.get(&MANAGER);
        let rate = known.and_then(|known| known.rate).or_else(|| manager.and_then(|manager| manager.rate));
        let rate = rate.unwrap_or(TicksPerSecond::NANOSECONDS);
        let at = |ticks: Ticks| ticks.to_nanos(rate).0;
        Lost {
            provider,
            provider_name: record.provider_name.to_str().into_owned(),
            thread: known.and_then(|known| known.thread),
            reason: reason.text().map_or_else(|| format!("reason {}", reason.0).into(), Cow::Borrowed),
            count: reason.has_count().then_some(count),
            interval: (last.0 > 0).then(|| (at(first), at(last).max(at(first)))),
        }
    }
}
