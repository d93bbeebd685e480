//! The last seconds, in buckets.

use super::{BUCKET_NS, LiveSpan, WINDOW_BUCKETS};
use crate::assertion::{Function, Kind, Mixed, Selector};
use crate::names::Whats;
use crate::quantiles::{Budget, Quantiles};
use crate::spans::Span;
use foldhash::fast::RandomState;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, VecDeque};
use trace_format::units::ProviderId;
use trace_model::Shape;

/// A provider's category and name, and what has it.
type Key = (ProviderId, u32, Kind);

/// Names of durations that a bucket distinguishes.
const MAX_NAMES: usize = 1000;
/// Memory for classes of percentiles in each bucket.
const BUDGET_BYTES: usize = 4 << 20;
/// Memory for classes when a window is summed up.
const SUM_BYTES: usize = 32 << 20;
/// Providers that a bucket distinguishes.
const MAX_PROVIDERS: usize = 10_000;

/// The last buckets, the oldest first. Indices are consecutive.
#[derive(Debug, Default)]
pub(super) struct Window {
    buckets: VecDeque<Bucket>,
    /// The number of the first bucket.
    first: u64,
    /// The time of the first event of all.
    begun: Option<u64>,
}

#[derive(Debug)]
struct Bucket {
    events: HashMap<ProviderId, u64, RandomState>,
    spans: HashMap<Key, Sum, RandomState>,
    others: u64,
    budget: Budget,
}

impl Default for Bucket {
    fn default() -> Self {
        Self {
            events: HashMap::default(),
            spans: HashMap::default(),
            others: 0,
            budget: Budget::of_bytes(BUDGET_BYTES),
        }
    }
}

#[derive(Debug, Default)]
struct Sum {
    count: u64,
    total_ns: u64,
    max_ns: u64,
    lengths: Quantiles,
}

impl Window {
    /// The bucket of a time; none if it is older than the window. A time ahead moves the window on.
    fn bucket(&mut self, at: u64) -> Option<&mut Bucket> {
        let index = at / BUCKET_NS;
        if self.buckets.is_empty() || index >= self.first + 2 * WINDOW_BUCKETS {
            self.forget_before(at);
        }
        let place = usize::try_from(index.checked_sub(self.first)?).ok()?;
        while self.buckets.len() <= place {
            self.buckets.push_back(Bucket::default());
        }
        self.buckets.get_mut(place)
    }

    pub fn event(&mut self, provider: ProviderId, at: u64) {
        self.begun = Some(self.begun.map_or(at, |begun| begun.min(at)));
        if let Some(bucket) = self.bucket(at)
            && (bucket.events.len() < MAX_PROVIDERS || bucket.events.contains_key(&provider))
        {
            *bucket.events.entry(provider).or_default() += 1;
        }
    }

    pub fn span(&mut self, provider: ProviderId, span: &Span) {
        let Some(bucket) = self.bucket(span.end) else {
            return;
        };
        let key = (provider, span.what, Kind::of(span.shape));
        if bucket.spans.len() >= MAX_NAMES && !bucket.spans.contains_key(&key) {
            bucket.others += 1;
            return;
        }
        let sum = bucket.spans.entry(key).or_default();
        let length = span.duration();
        sum.count += 1;
        sum.total_ns = sum.total_ns.saturating_add(length);
        sum.max_ns = sum.max_ns.max(length);
        sum.lengths.push(length as f64, &mut bucket.budget);
    }

    /// A duration turns out to be a poll.
    pub fn becomes_poll(&mut self, provider: ProviderId, span: &Span) {
        if self.take_back(provider, span) {
            self.span(provider, &Span { shape: Shape::Poll, ..*span });
        }
    }

    /// A duration is none, or not yet. Whether it was in the window.
    pub fn take_back(&mut self, provider: ProviderId, span: &Span) -> bool {
        let Some(bucket) = self.bucket(span.end) else { return false };
        let Some(sum) = bucket.spans.get_mut(&(provider, span.what, Kind::Slice)) else { return false };
        let length = span.duration();
        sum.count = sum.count.saturating_sub(1);
        sum.total_ns = sum.total_ns.saturating_sub(length);
        sum.lengths.remove(length as f64);
        if length == sum.max_ns {
            sum.max_ns = sum.lengths.percentile(100.0).unwrap_or(0.0) as u64;
        }
        if sum.count == 0 {
            bucket.spans.remove(&(provider, span.what, Kind::Slice));
        }
        true
    }

    /// Forgets what is not in the window that ends at a time.
    pub fn forget_before(&mut self, now_ns: u64) {
        let oldest = (now_ns / BUCKET_NS + 1).saturating_sub(WINDOW_BUCKETS);
        while self.first < oldest && self.buckets.pop_front().is_some() {
            self.first += 1;
        }
        if self.buckets.is_empty() {
            self.first = oldest;
        }
    }

    /// The length of the window that ends at a time: less than all buckets at first, and in the last one.
    pub fn seconds(&self, now_ns: u64) -> f64 {
        let oldest = (now_ns / BUCKET_NS + 1).saturating_sub(WINDOW_BUCKETS) * BUCKET_NS;
        let begin = self.begun.map_or(oldest, |begun| begun.max(oldest));
        now_ns.saturating_sub(begin) as f64 / 1e9
    }

    pub fn events(&self) -> BTreeMap<ProviderId, u64> {
        let mut events = BTreeMap::new();
        for (provider, count) in self.buckets.iter().flat_map(|bucket| &bucket.events) {
            *events.entry(*provider).or_default() += count;
        }
        events
    }

    /// A value of what is selected; none if there is none.
    pub fn value_of(
        &self,
        function: Function,
        selector: &Selector,
        whats: &Whats,
    ) -> Result<Option<f64>, Mixed> {
        let mut budget = Budget::of_bytes(SUM_BYTES);
        let mut all = Sum::default();
        // How many operations and durations each selected name has; none of a name that is not selected.
        let mut counts: HashMap<u32, Option<[u64; 2]>, RandomState> = HashMap::default();
        for ((_, what, kind), sum) in self.buckets.iter().flat_map(|bucket| &bucket.spans) {
            let count = counts.entry(*what).or_insert_with(|| {
                selector.matches(whats.category(*what), whats.name(*what)).then_some([0; 2])
            });
            let Some(count) = count.as_mut().filter(|_| selector.is_for(*kind)) else { continue };
            count[usize::from(*kind == Kind::Slice)] += sum.count;
            all.count += sum.count;
            all.total_ns = all.total_ns.saturating_add(sum.total_ns);
            all.max_ns = all.max_ns.max(sum.max_ns);
            all.lengths.merge(&sum.lengths, &mut budget);
        }
        let selected = counts.into_iter().filter_map(|(what, count)| Some((what, count?)));
        let mixed = selected.filter(|(_, count)| selector.kind.is_none() && !count.contains(&0));
        if let Some((what, [operations, slices])) = mixed.min_by_key(|(what, _)| *what) {
            return Err(Mixed { name: whats.name(what).to_owned(), operations, slices });
        }
        let is_there = all.count > 0;
        Ok(match function {
            Function::Count => Some(all.count as f64),
            Function::Sum => is_there.then_some(all.total_ns as f64),
            Function::Max => is_there.then_some(all.max_ns as f64),
            Function::Mean => is_there.then(|| all.total_ns as f64 / all.count as f64),
            Function::Percentile(percent) => {
                all.lengths.percentile(percent).map(|found| found.min(all.max_ns as f64))
            }
            // The window has neither.
            Function::Rate | Function::Min => None,
        })
    }

    /// The names with most time, polls left out, and how many durations have none.
    pub fn top(&self, most: usize, whats: &Whats) -> (Vec<LiveSpan>, u64) {
        let mut sums: HashMap<Key, (u64, u64, u64), RandomState> = HashMap::default();
        let spans = self.buckets.iter().flat_map(|bucket| &bucket.spans);
        for (key, sum) in spans.filter(|(key, _)| key.2 != Kind::Poll) {
            let (count, total, max) = sums.entry(*key).or_default();
            *count += sum.count;
            *total = total.saturating_add(sum.total_ns);
            *max = sum.max_ns.max(*max);
        }
        let mut keys: Vec<_> = sums.into_iter().collect();
        keys.sort_by_key(|(key, (_, total, _))| (Reverse(*total), *key));
        keys.truncate(most);
        let mut budget = Budget::of_bytes(SUM_BYTES);
        let span = |(key, (count, total_ns, max_ns)): (Key, _)| {
            let mut lengths = Quantiles::default();
            for sum in self.buckets.iter().filter_map(|bucket| bucket.spans.get(&key)) {
                lengths.merge(&sum.lengths, &mut budget);
            }
            LiveSpan {
                provider: key.0,
                category: whats.category(key.1).to_owned(),
                name: whats.name(key.1).to_owned(),
                kind: key.2,
                count,
                total_ns,
                max_ns,
                p50_ns: lengths.percentile(50.0),
                p99_ns: lengths.percentile(99.0),
            }
        };
        let spans = keys.into_iter().map(span).collect();
        (spans, self.buckets.iter().map(|bucket| bucket.others).sum())
    }
}

#[cfg(test)]
impl Window {
    pub fn len(&self) -> usize {
        self.buckets.len()
    }
}
