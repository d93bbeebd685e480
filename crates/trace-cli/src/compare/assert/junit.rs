//! Results as JUnit's XML, which systems for continuous integration show.
//= docs/stats.md#junit

use super::{Judged, details};
use trace_analysis::assertion::evaluate::Verdict;
use trace_report::xml::escaped;

/// The suite of the assertions on a trace: what the trace cannot tell is an error there.
pub(super) fn suite(trace: &str, all: &[Judged]) -> String {
    let count = |verdict| all.iter().filter(|judged| judged.outcome.verdict == verdict).count();
    let (tests, failures, errors) = (all.len(), count(Verdict::Failed), count(Verdict::Incomplete));
    let mut text = format!(
        "<testsuite name=\"{}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\">\n",
        escaped(trace)
    );
    for judged in all {
        let (name, message) = (escaped(&judged.text), escaped(&details(judged)));
        let result = match judged.outcome.verdict {
            Verdict::Passed => format!("<system-out>{message}</system-out>"),
            Verdict::Incomplete => format!("<error message=\"{message}\"/>"),
            Verdict::Failed => format!("<failure message=\"{message}\"/>"),
        };
        text += &format!("  <testcase classname=\"trace\" name=\"{name}\">{result}</testcase>\n");
    }
    text + "</testsuite>\n"
}

/// The suite of a trace that cannot be read.
pub(super) fn unread(trace: &str, why: &str) -> String {
    let (trace, why) = (escaped(trace), escaped(why));
    format!(
        "<testsuite name=\"{trace}\" tests=\"1\" failures=\"0\" errors=\"1\">\n  \
         <testcase classname=\"trace\" name=\"read\"><error message=\"{why}\"/></testcase>\n</testsuite>\n"
    )
}

/// The document of one suite, or of several.
pub(super) fn document(suites: &str, count: usize) -> String {
    let head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    match count {
        1 => format!("{head}{suites}"),
        _ => format!("{head}<testsuites>\n{suites}</testsuites>\n"),
    }
}
