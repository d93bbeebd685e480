//! `trace doctor`: checks whether this machine can record, and suggests a command for each failed check.

mod checks;
pub mod self_trace;

use crate::args::Doctor;
use crate::shell::exit::{Failure, NO};
use crate::shell::json::Answer;
use crate::shell::stdio::{print, say, stdout_width};
use crate::shell::table;
use serde_json::json;
use trace_format::shown::Shown;

/// The result of checking a capability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The capability.
    pub capability: &'static str,
    /// Whether it works.
    pub works: bool,
    /// Recording works without it.
    pub is_optional: bool,
    /// The observation.
    pub detail: String,
    /// The one command that helps, if one does.
    pub fix: Option<String>,
}

impl Finding {
    fn works(capability: &'static str, detail: impl Into<String>) -> Self {
        Self { capability, works: true, is_optional: false, detail: detail.into(), fix: None }
    }

    /// With the command that helps, if there is one. It must neither delete anything nor grant privileges to
    /// other users, and is the one that `record` names.
    fn fails(capability: &'static str, detail: impl Into<String>, fix: Option<String>) -> Self {
        Self { capability, works: false, is_optional: false, detail: detail.into(), fix }
    }

    /// Marks a capability that only some recordings need.
    fn optional(self) -> Self {
        Self { is_optional: true, ..self }
    }
}

/// Runs all checks, and reports the results.
pub fn run(options: &Doctor) -> Result<(), Failure> {
    let mut findings = checks::all();
    if !options.no_self_trace {
        say!("trace: recording for two seconds to see that it works");
        findings.push(self_trace::run()?);
    }
    if options.machinery.is_json() {
        let list: Vec<_> = findings.iter().map(machine).collect();
        Answer::of(list.into()).bare_if(options.machinery.is_bare()).give();
    } else {
        print(&text(&findings, stdout_width()))?;
    }
    match findings.iter().filter(|finding| !finding.works && !finding.is_optional).count() {
        0 => Ok(()),
        1 => Err(Failure::with_code(NO, "one required check failed")),
        count => Err(Failure::with_code(NO, format!("{count} required checks failed"))),
    }
}

/// A table whose texts are folded in a width. A command that helps stays in one line, so that it can be
/// copied.
//= docs/command-line.md#tables
fn text(findings: &[Finding], width: Option<usize>) -> String {
    let row = |finding: &Finding| {
        let mark = match (finding.works, finding.is_optional) {
            (true, _) => console::style("OK  ").green(),
            (false, true) => console::style("WARN").yellow(),
            (false, false) => console::style("FAIL").red().bold(),
        };
        let [name, detail] = [finding.capability, &Shown(&finding.detail).to_string()].map(table::text);
        vec![table::number(mark.to_string()), name, detail]
    };
    let rows: Vec<_> = findings.iter().map(row).collect();
    let column = findings.iter().map(|finding| finding.capability.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (finding, lines) in findings.iter().zip(table::rows_within(&rows, 0, width)) {
        text.push_str(&lines);
        if let Some(fix) = &finding.fix {
            text.push_str(&format!("      {:<column$}  fix: {}\n", "", Shown(fix)));
        }
    }
    text
}

fn machine(finding: &Finding) -> serde_json::Value {
    json!({
        "capability": finding.capability,
        "works": finding.works,
        "is_optional": finding.is_optional,
        "detail": finding.detail,
        "fix": finding.fix,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_read_well() {
        console::set_colors_enabled(false);
        let findings = [
            Finding::works("clock", "tsc"),
            Finding::fails(
                "kernel events",
                "may not be used by this user",
                Some("sudo trace ktrace".to_owned()),
            )
            .optional(),
            Finding::fails("process descriptors", "not there", None),
        ];
        insta::assert_snapshot!(text(&findings, None), @r"
        OK    clock                tsc
        WARN  kernel events        may not be used by this user
                                   fix: sudo trace ktrace
        FAIL  process descriptors  not there
        ");
        insta::assert_snapshot!(text(&findings, Some(47)), @r"
        OK    clock                tsc
        WARN  kernel events        may not be used by
                                   this user
                                   fix: sudo trace ktrace
        FAIL  process descriptors  not there
        ");
    }
}
