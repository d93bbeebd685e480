//! What is said after a recording.

use std::path::Path;
use trace_protocol::controller::ProviderStats;

/// A line for each provider and one for all, with advice where something is missing.
pub fn text(providers: &[ProviderStats], path: &Path, file_bytes: u64, has_command: bool) -> String {
    let rows: Vec<[String; 6]> = providers.iter().map(row).collect();
    let header = ["provider", "pid", "events", "bytes", "dropped", "end"].map(str::to_owned);
    let mut text = String::new();
    if rows.is_empty() {
        text.push_str("trace: no provider took part");
        text.push_str(if has_command {
            ": the program links no trace provider, or ended before it made one; \
             call trace_provider::TraceProvider::new(\"name\") first thing in main\n"
        } else {
            ": no running program has a trace provider\n"
        });
    } else {
        let widths: Vec<usize> = (0..6)
            .map(|column| rows.iter().chain([&header]).map(|row| row[column].len()).max().unwrap_or(0))
            .collect();
        for row in std::iter::once(&header).chain(&rows) {
            let cells: Vec<String> = (0..6)
                .map(|column| match column {
                    0 | 5 => format!("{:<width$}", row[column], width = widths[column]),
                    _ => format!("{:>width$}", row[column], width = widths[column]),
                })
                .collect();
            text.push_str(cells.join("  ").trim_end());
            text.push('\n');
        }
    }
    for provider in providers {
        if let Some(dropped) = provider.records_dropped.filter(|dropped| *dropped > 0) {
            text.push_str(&format!(
                "trace: warning: {} dropped {dropped} records: its buffer was full; \
                 record fewer categories or a shorter time\n",
                label(provider)
            ));
        }
        if !provider.problem.is_empty() {
            // The manager's directory is the client's to choose.
            let advice = if provider.problem.starts_with("no room in") {
                "; set TRACE_RUNTIME_DIR to a directory with more room"
            } else {
                ""
            };
            text.push_str(&format!("trace: warning: {}: {}{advice}\n", label(provider), provider.problem));
        }
    }
    let events: u64 = providers.iter().filter_map(|provider| provider.events_archived).sum();
    let count = providers.len();
    let noun = if count == 1 { "provider" } else { "providers" };
    text.push_str(&format!(
        "trace: {events} events of {count} {noun} in {} ({file_bytes} bytes)\n",
        path.display()
    ));
    text
}

fn label(provider: &ProviderStats) -> String {
    format!("{} (pid {})", provider.name, provider.pid)
}

fn row(provider: &ProviderStats) -> [String; 6] {
    let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
    [
        provider.name.clone(),
        provider.pid.to_string(),
        number(provider.events_archived),
        number(provider.bytes_archived),
        number(provider.records_dropped),
        provider.disposition.clone(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(name: &str, dropped: u64) -> ProviderStats {
        ProviderStats {
            name: name.into(),
            pid: 42,
            events_archived: Some(1000),
            bytes_archived: Some(16_000),
            records_dropped: Some(dropped),
            disposition: "ended".into(),
            ..ProviderStats::default()
        }
    }

    #[test]
    fn a_row_for_each_provider_and_advice_for_a_loss() {
        let text = text(&[provider("app", 0), provider("renderer", 7)], Path::new("t.fxt"), 33_000, true);
        assert_eq!(
            text,
            "provider  pid  events  bytes  dropped  end\n\
             app        42    1000  16000        0  ended\n\
             renderer   42    1000  16000        7  ended\n\
             trace: warning: renderer (pid 42) dropped 7 records: its buffer was full; record fewer categories \
             or a shorter time\n\
             trace: 2000 events of 2 providers in t.fxt (33000 bytes)\n"
        );
    }

    #[test]
    fn nobody_took_part() {
        let text = text(&[], Path::new("t.fxt"), 8, true);
        assert!(
            text.starts_with("trace: no provider took part: the program links no trace provider"),
            "{text}"
        );
        assert!(text.ends_with("trace: 0 events of 0 providers in t.fxt (8 bytes)\n"), "{text}");
    }
}
