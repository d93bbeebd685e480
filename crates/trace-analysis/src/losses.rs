//! What is missing in a trace, so that no statistic is taken for the whole truth where it is not.

use crate::check::REMARKS;
use std::collections::BTreeMap;
use trace_format::loss::{LossCode, LossRecord};
use trace_format::units::ProviderId;
use trace_reader::{Balance, Item, ReadError, Recordings, Resolved, Warnings};

/// How many losses are distinguished; further ones are added to the last.
const MAX_LOSSES: usize = 10_000;
/// Problems of reading that take no event away.
const HARMLESS: [&str; 6] =
    ["end-before-begin", "no-magic", "not-utf8", "redefined-string", "redefined-thread", "zero-words"];

/// What one provider lost for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The provider's number.
    pub provider: ProviderId,
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: LossCode,
    /// How many records, where the reason [has a number](LossCode::has_count).
    pub count: u64,
}

impl Loss {
    /// The reason in words.
    #[must_use]
    pub fn reason_text(&self) -> String {
        self.reason.text().map_or_else(|| format!("reason {}", self.reason.0), str::to_owned)
    }
}

/// What is missing in a trace.
#[derive(Debug, Default)]
pub struct Losses {
    /// Names of the providers, at most 10 000.
    pub providers: Vec<String>,
    /// Losses that the trace reports.
    pub reported: Vec<Loss>,
    /// Providers whose records were counted by them and by the collector.
    pub ledgers: u64,
    /// How these counts differ.
    pub unbalanced: Vec<String>,
    /// Problems of reading, by kind.
    pub problems: Vec<(&'static str, u64)>,
    /// Recordings that have no end, at most 1000: the trace is cut off, or still being written.
    pub unended: u64,
    /// Why the rest of the trace could not be read.
    pub stopped: Option<ReadError>,
    /// What was to be recorded.
    pub recordings: Recordings,
}

impl Losses {
    /// How many records were lost, of the providers whose name fulfills a condition.
    #[must_use]
    pub fn lost(&self, has_name: impl Fn(&str) -> bool) -> u64 {
        let records = self.reported.iter().filter(|loss| loss.reason.has_count());
        records.filter(|loss| has_name(&loss.name)).fold(0, |sum, loss| sum.saturating_add(loss.count))
    }

    /// How many problems reading the trace met.
    #[must_use]
    pub fn errors(&self) -> u64 {
        let problems: u64 = self.problems.iter().map(|(_, count)| count).sum();
        problems + self.unbalanced.len() as u64 + self.unended + u64::from(self.stopped.is_some())
    }

    /// Whether losses may have happened that the trace does not report.
    #[must_use]
    pub fn may_be_more(&self) -> bool {
        let is_harmful = |(kind, _): &(&str, u64)| !HARMLESS.contains(kind);
        self.problems.iter().any(is_harmful)
            || !self.unbalanced.is_empty()
            || self.unended > 0
            || self.stopped.is_some()
            || self.recordings.are_without_programs()
            || self.reported.iter().any(|loss| !loss.reason.has_count())
    }

    /// What programs have counted, for people, if they have and it adds up.
    #[must_use]
    pub fn adds_up(&self) -> Option<String> {
        let whose = match self.ledgers {
            0 => return None,
            1 => "the program".to_owned(),
            count => format!("{count} programs"),
        };
        self.unbalanced.is_empty().then(|| format!("the records of {whose} add up"))
    }

    /// What is missing, in a few words each; nothing if the trace is whole.
    #[must_use]
    pub fn reasons(&self) -> Vec<String> {
        let mut reasons: Vec<String> = self
            .reported
            .iter()
            .map(|loss| {
                let (name, count, reason) = (&loss.name, loss.count, loss.reason_text());
                match loss.reason.has_count() {
                    true => format!("{name} (program {}) lost {count}: {reason}", loss.provider),
                    false => format!("{name} (program {}): {reason}", loss.provider),
                }
            })
            .collect();
        reasons.extend(self.unbalanced.iter().map(|text| format!("the records do not add up: {text}")));
        let problems = self.problems.iter().filter(|(kind, _)| !HARMLESS.contains(kind));
        reasons.extend(problems.map(|(kind, count)| format!("{kind}: {count}")));
        reasons.extend((self.unended > 0).then(|| {
            "the end of the recording is missing: the trace is cut off, or still being written".to_owned()
        }));
        let is_empty = self.recordings.are_without_programs();
        reasons.extend(is_empty.then(|| "no program was recorded".to_owned()));
        reasons.extend(self.stopped.as_ref().map(|_| "the rest of the trace could not be read".to_owned()));
        reasons
    }
}

/// Losses while a trace is read.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    balance: Balance,
    losses: BTreeMap<(ProviderId, LossCode), u64>,
    names: BTreeMap<ProviderId, String>,
    found: Losses,
}

impl Counting {
    #[inline]
    pub fn record(&mut self, record: &Resolved<'_>) {
        let unbalanced = self.balance.record(record);
        self.found.recordings.record(record);
        if matches!(record.item, Item::Event(_)) {
            return;
        }
        self.found.unbalanced.extend(unbalanced);
        match &record.item {
            Item::ProviderInfo { name } if self.names.len() < MAX_LOSSES => {
                self.names.insert(record.provider, name.to_str().into_owned());
            }
            Item::Loss(loss) => self.loss(loss),
            Item::Ledger(_) => self.found.ledgers += 1,
            _ => {}
        }
    }

    fn loss(&mut self, LossRecord { provider, reason, count, .. }: &LossRecord) {
        let mut key = (*provider, *reason);
        if self.losses.len() >= MAX_LOSSES && !self.losses.contains_key(&key) {
            key = self.losses.last_key_value().map_or(key, |(last, _)| *last);
        }
        let sum = self.losses.entry(key).or_default();
        *sum = sum.saturating_add(*count);
    }

    pub fn finish(mut self, warnings: &Warnings, stopped: Option<ReadError>) -> Losses {
        let names = self.names;
        self.found.providers = names.values().cloned().collect();
        let of = |provider| names.get(&provider).cloned().unwrap_or_default();
        let losses = self.losses.into_iter().filter(|(_, count)| *count > 0);
        self.found.reported = losses
            .map(|((provider, reason), count)| Loss { provider, name: of(provider), reason, count })
            .collect();
        let problems = warnings.by_kind().map(|(kind, count, _)| (kind, count));
        self.found.problems = problems.filter(|(kind, _)| !REMARKS.contains(kind)).collect();
        self.found.unended = self.found.recordings.without_end().len() as u64;
        self.found.stopped = stopped;
        self.found
    }
}
