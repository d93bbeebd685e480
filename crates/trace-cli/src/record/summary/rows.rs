//! The rows of the summary: one for each program, or one for many programs with one name.

use std::collections::BTreeMap;
use trace_format::shown::Shown;
use trace_protocol::controller::{Lost, ProviderStats};

/// More programs with one name than these share a row.
const MAX_OF_A_NAME: usize = 20;
/// Maximum number of different ends in a row.
const MAX_ENDS: usize = 3;
/// Number of cells in a row.
pub(super) const COLUMNS: usize = 7;

/// Programs that are one row.
pub(super) type Group<'a> = Vec<&'a ProviderStats>;

/// The programs of each row, in the order in which the first of each comes.
pub(super) fn groups(providers: &[ProviderStats]) -> Vec<Group<'_>> {
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for provider in providers {
        *count.entry(&provider.name).or_default() += 1;
    }
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut place: BTreeMap<&str, usize> = BTreeMap::new();
    for provider in providers {
        let is_folded = count.get(&*provider.name).is_some_and(|count| *count > MAX_OF_A_NAME);
        match place.get(&*provider.name).and_then(|at| groups.get_mut(*at)).filter(|_| is_folded) {
            Some(group) => group.push(provider),
            None => {
                place.insert(&provider.name, groups.len());
                groups.push(vec![provider]);
            }
        }
    }
    groups
}

/// The programs of a row, in a warning.
pub(super) fn label(group: &[&ProviderStats]) -> String {
    match group {
        [provider] => format!("{} (pid {})", Shown(&provider.name), provider.pid),
        [first, ..] => format!("{} ({} programs)", Shown(&first.name), group.len()),
        [] => String::new(),
    }
}

/// The cells of a row.
pub(super) fn row(group: &[&ProviderStats]) -> [String; COLUMNS] {
    let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
    let fill = |provider: &ProviderStats| {
        let durable = provider.percentage_durable_buffer_used.unwrap_or(0.0);
        provider.percentage_rolling_buffer_used.map(|rolling| rolling.max(durable))
    };
    let fill = group.iter().filter_map(|provider| fill(provider)).reduce(f32::max);
    [
        group.first().map_or_else(String::new, |first| Shown(&first.name).to_string()),
        match group {
            [provider] => provider.pid.to_string(),
            _ => format!("{} programs", group.len()),
        },
        number(sum(group, |provider| provider.events_archived)),
        number(sum(group, |provider| provider.bytes_archived)),
        fill.map_or_else(|| "-".to_owned(), |percent| format!("{percent:.0} %")),
        number(sum(group, |provider| provider.records_dropped)),
        ends(group),
    ]
}

/// Records that all of them lost, by reason.
pub(super) fn losses(group: &[&ProviderStats]) -> Vec<Lost> {
    let mut losses: BTreeMap<u16, u64> = BTreeMap::new();
    for lost in group.iter().flat_map(|provider| &provider.losses) {
        let records = losses.entry(lost.reason).or_default();
        *records = records.saturating_add(lost.records);
    }
    losses.into_iter().map(|(reason, records)| Lost { reason, records }).collect()
}

/// A total over all of them; none if none has it.
pub(super) fn sum(group: &[&ProviderStats], of: fn(&ProviderStats) -> Option<u64>) -> Option<u64> {
    group.iter().filter_map(|provider| of(provider)).reduce(u64::saturating_add)
}

/// How they ended; of several, the most frequent ends with their numbers.
fn ends(group: &[&ProviderStats]) -> String {
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for provider in group {
        *count.entry(&provider.disposition).or_default() += 1;
    }
    if let (Some((end, _)), 1) = (count.first_key_value(), count.len()) {
        return Shown(end).to_string();
    }
    let mut count: Vec<(&str, usize)> = count.into_iter().collect();
    count.sort_by_key(|(end, number)| (std::cmp::Reverse(*number), *end));
    let others: usize = count.iter().skip(MAX_ENDS).map(|(_, number)| number).sum();
    let mut ends: Vec<String> =
        count.iter().take(MAX_ENDS).map(|(end, number)| format!("{number} {}", Shown(end))).collect();
    ends.extend((others > 0).then(|| format!("{others} otherwise")));
    ends.join(", ")
}
