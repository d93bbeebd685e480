//! The line that shows the progress of a recording, at a terminal.

use crate::args::values::Mode;
use crate::shell::stdio::{self, say};
use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressStyle};
use std::time::{Duration, Instant};
use trace_analysis::counted::Counted;
use trace_protocol::controller::ProviderProgress;

/// How often it is updated.
pub const INTERVAL: Duration = Duration::from_millis(250);

/// One line at the bottom of a terminal; nothing elsewhere.
pub struct StatusLine {
    bar: ProgressBar,
    began: Instant,
    /// The number of records at the last update.
    last: Option<(Instant, u64)>,
    mode: Mode,
}

impl StatusLine {
    /// None without a terminal on standard error whose lines can change.
    pub fn new(mode: Mode) -> Option<Self> {
        if !stdio::has_terminal() || stdio::is_dumb() {
            return None;
        }
        let bar = ProgressBar::with_draw_target(None, stdio::progress_target());
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        Some(Self { bar, began: Instant::now(), last: None, mode })
    }

    /// Shows the progress of all providers, and how much of the archive has come.
    pub fn show(&mut self, providers: &[ProviderProgress], archived: u64) {
        let now = Instant::now();
        let records = providers.iter().map(|provider| provider.records).fold(0, u64::saturating_add);
        let rate = self.last.map(|(then, before)| {
            records.saturating_sub(before) as f64 / (now - then).as_secs_f64().max(1e-3)
        });
        self.last = Some((now, records));
        let parts = line(now - self.began, providers, rate.unwrap_or(0.0), archived, self.mode);
        self.bar.set_message(parts.within(stdio::stderr_width().unwrap_or(usize::MAX)));
        self.bar.tick();
    }

    /// Prints a message above it.
    pub fn say(&self, text: &str) {
        self.bar.suspend(|| say!("{text}"));
    }

    /// Removes it.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

fn line(elapsed: Duration, providers: &[ProviderProgress], rate: f64, archived: u64, mode: Mode) -> Parts {
    let sum = |of: fn(&ProviderProgress) -> u64| providers.iter().map(of).fold(0, u64::saturating_add);
    let dropped = sum(|provider| provider.dropped);
    let mebibytes = sum(|provider| provider.bytes).max(archived) as f64 / f64::from(1 << 20);
    let fill = providers.iter().map(|provider| provider.fill).fold(0.0, f32::max);
    let elapsed = if elapsed.as_secs() < 60 {
        format!("{:.1} s", elapsed.as_secs_f64())
    } else {
        HumanDuration(elapsed).to_string()
    };
    let lost = format!("{} lost", HumanCount(dropped));
    let lost = console::style(lost).for_stderr();
    let lost = if dropped > 0 { lost.red().bold() } else { lost };
    let damaged = providers.iter().filter(|provider| provider.is_damaged).count();
    let full = providers.iter().filter(|provider| mode == Mode::Oneshot && provider.dropped > 0).count();
    let mut parts = vec![(7, format!("recording {elapsed}"))];
    parts.extend((full > 0).then(|| (6, format!("{full} of {} FULL, no longer recorded", providers.len()))));
    parts.extend([
        (2, Counted(providers.len() as u64, "programs").to_string()),
        (3, format!("{} events/s", HumanCount(rate as u64))),
        (1, format!("{mebibytes:.1} MiB")),
        (4, format!("buffer {fill:.0} %")),
        (6, lost.to_string()),
    ]);
    parts.extend((damaged > 0).then(|| (5, format!("counters of {damaged} damaged"))));
    Parts(parts)
}

/// What the line says, with ranks: where there is no room, the lowest are left out first.
struct Parts(Vec<(u8, String)>);

impl Parts {
    fn within(mut self, width: usize) -> String {
        loop {
            let parts: Vec<&str> = self.0.iter().map(|(_, part)| part.as_str()).collect();
            let line = parts.join(" | ");
            let ranks = (0..self.0.len()).min_by_key(|place| self.0[*place].0);
            match ranks.filter(|_| self.0.len() > 1 && console::measure_text_width(&line) > width) {
                Some(lowest) => _ = self.0.remove(lowest),
                None => return console::truncate_str(&line, width, "").into_owned(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_in_one_line() {
        console::set_colors_enabled_stderr(false);
        let provider = |records, dropped, fill| ProviderProgress {
            records,
            dropped,
            fill,
            bytes: 3 << 20,
            ..ProviderProgress::default()
        };
        let providers = [provider(10, 0, 12.0), provider(20, 1234, 99.6)];
        let within =
            |mode, width| line(Duration::from_millis(2500), &providers, 12_345.6, 0, mode).within(width);
        let text = |mode| within(mode, 120);
        let expected = "recording 2.5 s | 2 programs | 12,345 events/s | 6.0 MiB | buffer 100 % | 1,234 lost";
        assert_eq!(text(Mode::Streaming), expected);
        let full = expected.replace(" | 2 p", " | 1 of 2 FULL, no longer recorded | 2 p");
        assert_eq!(text(Mode::Oneshot), full);
        let short = "recording 2.5 s | 2 programs | 12,345 events/s | buffer 100 % | 1,234 lost";
        assert_eq!(within(Mode::Streaming, 80), short);
        let short = "recording 2.5 s | 1 of 2 FULL, no longer recorded | buffer 100 % | 1,234 lost";
        assert_eq!(within(Mode::Oneshot, 80), short);
        for width in 0..120 {
            assert!(console::measure_text_width(&within(Mode::Oneshot, width)) <= width, "{width}");
        }
        let text = line(Duration::from_secs(61), &providers[..1], 0.0, 5 << 20, Mode::Oneshot).within(120);
        assert_eq!(text, "recording 61 seconds | 1 program | 0 events/s | 5.0 MiB | buffer 12 % | 0 lost");
    }
}
