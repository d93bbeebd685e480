//! The options with which nothing would have been lost.

use std::collections::BTreeMap;
use trace_format::loss::LossCode;
use trace_format::slab::LossReason;
use trace_protocol::BufferingMode;
use trace_protocol::controller::{Lost, ProviderStats};

const MEBIBYTE: f64 = (1 << 20) as f64;
/// What a program wrote once it may write again, and a little more.
const MARGIN: f64 = 1.25;
/// Beyond that a buffer is not the answer.
const MOST_MIB: u64 = 1024;

/// It is missing although somebody wanted it.
pub fn is_loss(lost: &Lost) -> bool {
    let [overwritten, cleared] = [LossReason::Overwritten, LossReason::Cleared].map(LossCode::from);
    ![overwritten, cleared, LossCode::DAMAGED_COUNTERS].contains(&LossCode(lost.reason))
}

fn is(lost: &Lost, reason: LossReason) -> bool {
    lost.reason == LossCode::from(reason).0
}

/// What would have helped a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Help {
    /// A buffer of so many mebibytes.
    Buffer(u64),
    /// Handing over while it records.
    Streaming,
}

/// Options, if any would have helped everybody.
pub fn flags(providers: &[ProviderStats], buffer_size: u32) -> Option<String> {
    let helps: Vec<(&str, Help)> = providers
        .iter()
        .filter_map(|provider| Some((provider.name.as_str(), help(provider, buffer_size)?)))
        .collect();
    if helps.is_empty() {
        return None;
    }
    let mut sizes: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, help) in &helps {
        match help {
            Help::Buffer(size) => {
                let known = sizes.entry(name).or_default();
                *known = (*known).max(*size);
            }
            // It helps the others, too.
            Help::Streaming => return Some("--buffering-mode streaming".to_owned()),
        }
    }
    let has_others = providers.iter().any(|provider| !sizes.contains_key(provider.name.as_str()));
    if has_others && sizes.len() == 1 {
        return sizes.first_key_value().map(|(name, size)| format!("--provider-buffer-size {name}:{size}MB"));
    }
    sizes.values().max().map(|size| format!("--buffer-size {size}MB"))
}

fn help(provider: &ProviderStats, buffer_size: u32) -> Option<Help> {
    let count = |reason| {
        provider
            .losses
            .iter()
            .filter(|lost| is(lost, reason))
            .map(|lost| lost.records)
            .fold(0, u64::saturating_add)
    };
    let size = provider.buffer_bytes.unwrap_or(u64::from(buffer_size) << 20) as f64;
    let late = count(LossReason::NotSaved).saturating_add(count(LossReason::NotRetired));
    let (full, durable) = (count(LossReason::Full), count(LossReason::DurableFull));
    let factor = if durable > 0 {
        // How many definitions were still to come nobody knows.
        4.0
    } else if late > 0 {
        2.0
    } else if full > 0 {
        let generated = provider.records_generated? as f64;
        let kept = generated - full as f64;
        if kept <= 0.0 {
            return Some(Help::Streaming);
        }
        MARGIN * generated / kept
    } else {
        return None;
    };
    let needed = (size * factor / MEBIBYTE).ceil() as u64;
    match provider.buffering_mode {
        Some(BufferingMode::Oneshot) | None if needed > MOST_MIB => Some(Help::Streaming),
        _ => Some(Help::Buffer(needed.min(4096))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(name: &str, losses: &[(LossReason, u64)]) -> ProviderStats {
        let lost: u64 = losses.iter().map(|(_, records)| records).sum();
        ProviderStats {
            name: name.into(),
            records_generated: Some(1000 + lost),
            losses: losses
                .iter()
                .map(|(reason, records)| Lost { reason: LossCode::from(*reason).0, records: *records })
                .collect(),
            buffer_bytes: Some(4 << 20),
            ..ProviderStats::default()
        }
    }

    #[test]
    fn the_flag_is_the_one_that_helps() {
        let of = |providers: &[ProviderStats]| flags(providers, 4);
        assert_eq!(of(&[provider("a", &[])]), None);
        // What has gone round is no loss.
        assert_eq!(of(&[provider("a", &[(LossReason::Overwritten, 50_000)])]), None);
        // Nothing helps against records that are too large.
        assert_eq!(of(&[provider("a", &[(LossReason::TooLarge, 5)])]), None);
        let full = |name: &str, lost| provider(name, &[(LossReason::Full, lost)]);
        assert_eq!(of(&[full("a", 1000)]).unwrap(), "--buffer-size 10MB");
        assert_eq!(of(&[full("a", 1000), provider("b", &[])]).unwrap(), "--provider-buffer-size a:10MB");
        assert_eq!(of(&[full("a", 1000), full("b", 3000)]).unwrap(), "--buffer-size 20MB");
        assert_eq!(of(&[full("a", 10_000_000)]).unwrap(), "--buffering-mode streaming");
        assert_eq!(of(&[provider("a", &[(LossReason::NotSaved, 3)])]).unwrap(), "--buffer-size 8MB");
        assert_eq!(of(&[provider("a", &[(LossReason::DurableFull, 3)])]).unwrap(), "--buffer-size 16MB");
    }
}
