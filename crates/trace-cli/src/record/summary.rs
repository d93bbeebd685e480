//! The summary after a recording.

mod advice;
pub mod machine;
mod rows;

use crate::connection;
use crate::shell::stdio;
use crate::shell::table;
use std::path::Path;
use trace_analysis::counted::Counted;
use trace_format::loss::LossCode;
use trace_format::shown::Shown;
use trace_protocol::controller::{Lost, ProviderDisposition, ProviderStats};

/// The results of a recording.
pub struct Summary<'a> {
    /// The statistics of each program.
    pub providers: &'a [ProviderStats],
    /// The path of the trace, for people.
    pub place: &'a str,
    /// There were no events, and the existing file stays.
    pub is_unchanged: bool,
    /// Its size, if it is known.
    pub file_bytes: Option<u64>,
    /// Why no program took part, if that is known.
    pub absence: Option<&'a str>,
    /// The names of the programs that were asked for; none means all.
    pub programs: &'a [String],
    /// The requested size of buffers, in MiB.
    pub buffer_size: u32,
    /// What there is room for together, in MiB, if that is known.
    pub room: Option<u64>,
}

/// Whether something of a program is missing.
pub fn has_lost(provider: &ProviderStats) -> bool {
    provider.records_dropped.is_some_and(|records| records > 0)
        || !provider.problem.is_empty()
        || is_untraced(provider)
        || provider.disposition == ProviderDisposition::BrokeProtocol
}

/// Whether a program wanted to be recorded and could not be.
pub fn is_untraced(provider: &ProviderStats) -> bool {
    let untraced = [
        ProviderDisposition::NotTraced,
        ProviderDisposition::Refused,
        ProviderDisposition::GaveUp,
        ProviderDisposition::DidNotStart,
    ];
    untraced.iter().any(|untraced| provider.disposition == *untraced)
}

/// Maximum number of programs that are named in a line.
const MAX_LABELS: usize = 20;

impl Summary<'_> {
    /// A line for each program and one for all, with advice where something is missing.
    pub fn text(&self) -> String {
        let mut text = self.table();
        for group in rows::groups(self.providers) {
            if let Some(warning) = lost(&group) {
                text.push_str(&format!("trace: {warning}\n"));
            }
        }
        for provider in self.providers.iter().filter(|provider| !provider.open_scopes.is_empty()) {
            let (end, open) = (Shown(&provider.disposition), Shown(&provider.open_scopes));
            text.push_str(&format!("trace: {}: {end}; {open}\n", rows::label(&[provider])));
        }
        for (problem, with_it) in problems(self.providers) {
            // The manager's directory is the client's choice.
            let is_full = with_it.iter().any(|provider| provider.is_out_of_space);
            let advice = match is_full {
                true => format!("; {}{}", self.smaller(), connection::advice()),
                false => String::new(),
            };
            let warning = console::style("warning").for_stderr().yellow();
            let mut labels: Vec<String> =
                with_it.iter().take(MAX_LABELS).map(|provider| rows::label(&[provider])).collect();
            let more = with_it.len() - labels.len();
            labels.extend((more > 0).then(|| format!("{more} more")));
            let count =
                if with_it.len() > 1 { format!("{} programs: ", with_it.len()) } else { String::new() };
            let labels = labels.join(", ");
            text.push_str(&format!("trace: {warning}: {count}{labels}: {}{advice}\n", Shown(problem)));
        }
        for line in advice::lines(self.providers, self.buffer_size, self.room) {
            text.push_str(&format!("trace: {line}\n"));
        }
        let events = self.providers.iter().filter_map(|provider| provider.events_archived);
        let events = events.fold(0, u64::saturating_add);
        let count = self.providers.len();
        let (events, programs) = (Counted(events, "events"), Counted(count as u64, "programs"));
        let size = self.file_bytes.map_or_else(String::new, |bytes| format!(" ({bytes} bytes)"));
        let place = Shown(self.place);
        text.push_str(&match self.is_unchanged {
            true if Path::new(self.place).exists() => {
                format!("trace: {events} of {programs}; {place} stays as it was\n")
            }
            true => format!("trace: {events} of {programs}; {place} is not made\n"),
            false => format!("trace: {events} of {programs} in {place}{size}\n"),
        });
        text
    }

    /// Where there was no room for buffers of all programs, the size that all of them could have.
    fn smaller(&self) -> String {
        let each = self.room.map_or(0, |room| room / self.providers.len().max(1) as u64);
        match (1..u64::from(self.buffer_size)).contains(&each) {
            true => format!("record with --buffer-size {each}MiB, or "),
            false => String::new(),
        }
    }

    fn table(&self) -> String {
        if self.providers.is_empty() {
            let names = Shown(&self.programs.join(", ")).to_string();
            let why = match self.absence {
                _ if !self.programs.is_empty() => {
                    format!(": none called {names} ran meanwhile; trace list-programs shows what runs")
                }
                Some(absence) => format!(": {absence}"),
                None => String::new(),
            };
            return format!("trace: no program took part{why}\n");
        }
        let header = ["program", "pid", "events", "bytes", "fill", "lost", "end"].map(str::to_owned);
        let groups = rows::groups(self.providers);
        let rows = groups.iter().map(|group| rows::row(group));
        let rows: Vec<_> =
            std::iter::once(header).chain(rows).map(|row| table::cells(row, &[0, 6])).collect();
        table::within(&rows, 0, stdio::stderr_width())
    }

    /// The details that ffx prints of each provider with `--verbose`.
    pub fn details(&self) -> String {
        let mut text = String::new();
        for provider in self.providers {
            text.push_str(&format!("\"{}\" (pid: {}) trace stats\n", Shown(&provider.name), provider.pid));
            if let Some(count) = provider.buffer_wrapped_count {
                text.push_str(&format!("Buffer wrapped count: {count}\n"));
            }
            if let Some(dropped) = provider.records_dropped {
                text.push_str(&format!("# records dropped: {dropped}\n"));
            }
            if let Some(percent) = provider.percentage_durable_buffer_used {
                text.push_str(&format!("Durable buffer used: {percent:.2}%\n"));
            }
            if let Some(bytes) = provider.non_durable_bytes_written {
                text.push_str(&format!("Bytes written to non-durable buffer: {bytes:#x}\n"));
            }
        }
        text
    }
}

/// Every problem with the providers that have it, in the order in which they come.
fn problems(providers: &[ProviderStats]) -> Vec<(&str, Vec<&ProviderStats>)> {
    let mut problems: Vec<(&str, Vec<&ProviderStats>)> = Vec::new();
    for provider in providers.iter().filter(|provider| !provider.problem.is_empty()) {
        match problems.iter_mut().find(|(problem, _)| *problem == provider.problem) {
            Some((_, with_it)) => with_it.push(provider),
            None => problems.push((&provider.problem, vec![provider])),
        }
    }
    problems
}

/// The losses of a row's programs, by reason. Events overwritten in circular mode are not counted.
fn lost(group: &[&ProviderStats]) -> Option<String> {
    let dropped = rows::sum(group, |provider| provider.records_dropped).filter(|dropped| *dropped > 0)?;
    let reasons: Vec<String> = rows::losses(group)
        .iter()
        .filter(|lost| advice::is_loss(lost))
        .map(|lost| format!("{} {}", lost.records, reason(*lost)))
        .collect();
    let reasons = if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join(", ")) };
    let warning = console::style("warning").for_stderr().red();
    Some(format!("{warning}: {} lost {}{reasons}", rows::label(group), Counted(dropped, "records")))
}

fn reason(lost: Lost) -> String {
    LossCode(lost.reason).text().map_or_else(|| format!("reason {}", lost.reason), |text| format!("({text})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(name: &str, dropped: u64) -> ProviderStats {
        let losses = [Lost { reason: 0, records: dropped }, Lost { reason: 1, records: 9 }];
        ProviderStats {
            name: name.into(),
            pid: 42,
            events_archived: Some(1000),
            bytes_archived: Some(16_000),
            records_dropped: Some(dropped),
            records_generated: Some(1000 + dropped),
            losses: losses.into_iter().filter(|_| dropped > 0).collect(),
            percentage_rolling_buffer_used: Some(62.4),
            percentage_durable_buffer_used: Some(1.5),
            buffer_bytes: Some(4 << 20),
            needed_rolling_bytes: Some(14_000_000).filter(|_| dropped > 0),
            disposition: "ended".into(),
            ..ProviderStats::default()
        }
    }

    fn text(providers: &[ProviderStats]) -> String {
        console::set_colors_enabled_stderr(false);
        let summary = Summary {
            providers,
            place: "t.fxt",
            is_unchanged: false,
            file_bytes: Some(33_000),
            programs: &[],
            absence: Some("it links none"),
            buffer_size: 4,
            room: None,
        };
        summary.text()
    }

    #[test]
    fn a_row_for_each_provider_and_advice_for_a_loss() {
        insta::assert_snapshot!(text(&[provider("app", 0), provider("renderer", 3000)]), @r"
        program   pid  events  bytes  fill  lost  end
        app        42    1000  16000  62 %     0  ended
        renderer   42    1000  16000  62 %  3000  ended
        trace: warning: renderer (pid 42) lost 3000 records: 3000 (buffer full)
        trace: nothing would have been lost with: --program-buffer-size renderer:18MiB
        trace: 2000 events of 2 programs in t.fxt (33000 bytes)
        ");
    }

    #[test]
    fn many_programs_of_one_name_are_one_row() {
        let mut providers: Vec<_> = (0..20).map(|pid| ProviderStats { pid, ..provider("cc", 0) }).collect();
        assert_eq!(text(&providers).lines().count(), 22);
        providers.insert(3, provider("make", 0));
        let killed =
            |disposition: &str| ProviderStats { disposition: disposition.into(), ..provider("cc", 3) };
        providers.extend(["left", "killed by SIGKILL", "left", "exit status 2"].map(killed));
        insta::assert_snapshot!(text(&providers), @r"
        program          pid  events   bytes  fill  lost  end
        cc       24 programs   24000  384000  62 %    12  20 ended, 2 left, 1 exit status 2, 1 otherwise
        make              42    1000   16000  62 %     0  ended
        trace: warning: cc (24 programs) lost 12 records: 12 (buffer full)
        trace: nothing would have been lost with: --program-buffer-size cc:18MiB
        trace: 25000 events of 25 programs in t.fxt (33000 bytes)
        ");
    }

    #[test]
    fn providers_with_the_same_problem_are_counted_and_named_in_one_line() {
        let late = |pid| ProviderStats { pid, problem: "it was late".into(), ..provider("app", 0) };
        let other = ProviderStats { problem: "it is gone".into(), ..provider("other", 0) };
        insta::assert_snapshot!(text(&[late(1), other, late(2)]), @r"
        program  pid  events  bytes  fill  lost  end
        app        1    1000  16000  62 %     0  ended
        other     42    1000  16000  62 %     0  ended
        app        2    1000  16000  62 %     0  ended
        trace: warning: 2 programs: app (pid 1), app (pid 2): it was late
        trace: warning: other (pid 42): it is gone
        trace: 3000 events of 3 programs in t.fxt (33000 bytes)
        ");
    }

    #[test]
    fn no_provider_took_part() {
        insta::assert_snapshot!(text(&[]), @r"
        trace: no program took part: it links none
        trace: 0 events of 0 programs in t.fxt (33000 bytes)
        ");
    }

    #[test]
    fn details_are_ffxs() {
        let mut provider = provider("app", 0);
        provider.buffer_wrapped_count = Some(2);
        provider.non_durable_bytes_written = Some(0x1234);
        let summary = Summary {
            providers: &[provider],
            place: "",
            is_unchanged: false,
            file_bytes: None,
            programs: &[],
            absence: None,
            buffer_size: 4,
            room: None,
        };
        insta::assert_snapshot!(summary.details(), @r#"
        "app" (pid: 42) trace stats
        Buffer wrapped count: 2
        # records dropped: 0
        Durable buffer used: 1.50%
        Bytes written to non-durable buffer: 0x1234
        "#);
    }
}
