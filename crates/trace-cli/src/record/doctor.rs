//! `trace doctor`: checks whether this machine can record, and suggests a command for each failed check.

mod checks;
pub mod self_trace;

use crate::args::Doctor;
use crate::shell::exit::{Failure, NO};
use crate::shell::json::Answer;
use crate::shell::stdio::{print, say};
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
        print(&text(&findings))?;
    }
    match findings.iter().filter(|finding| !finding.works && !finding.is_optional).count() {
        0 => Ok(()),
        1 => Err(Failure::with_code(NO, "one required check failed")),
        count => Err(Failure::with_code(NO, format!("{count} required checks failed"))),
    }
}

fn text(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.capability.len()).max().unwrap_or(0);
    let mut text = String::new();
    for finding in findings {
        let mark = match (finding.works, finding.is_optional) {
            (true, _) => console::style("OK  ").green(),
            (false, true) => console::style("WARN").yellow(),
            (false, false) => console::style("FAIL").red().bold(),
        };
        text.push_str(&format!("{mark}  {:<width$}  {}\n", finding.capability, Shown(&finding.detail)));
        if let Some(fix) = &finding.fix {
            text.push_str(&format!("      {:<width$}  fix: {}\n", "", Shown(fix)));
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
            Finding::fails("kernel events", "may not be used", Some("sudo trace ktrace".to_owned()))
                .optional(),
            Finding::fails("process descriptors", "not there", None),
        ];
        insta::assert_snapshot!(text(&findings), @r"
        OK    clock                tsc
        WARN  kernel events        may not be used
                                   fix: sudo trace ktrace
        FAIL  process descriptors  not there
        ");
    }
}
