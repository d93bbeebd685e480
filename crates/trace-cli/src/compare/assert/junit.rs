//! Results as JUnit's XML, which systems for continuous integration show.
//= docs/stats.md#junit

use super::{Judged, details};
use trace_analysis::assertion::evaluate::Verdict;
use trace_report::xml::escaped;

/// The suite of the assertions on a trace: what the trace cannot tell is an error there, and so is why it
/// could not be read to its end.
pub(super) fn suite(trace: &str, all: &[Judged], unread: Option<&str>) -> String {
    let count = |verdict| all.iter().filter(|judged| judged.outcome.verdict == verdict).count();
    let more = usize::from(unread.is_some());
    let (tests, failures, errors) =
        (all.len() + more, count(Verdict::Failed), count(Verdict::Incomplete) + more);
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
    if let Some(why) = unread.map(escaped) {
        let result = format!("<error message=\"{why}\"/>");
        text += &format!("  <testcase classname=\"trace\" name=\"read\">{result}</testcase>\n");
    }
    text + "</testsuite>\n"
}

/// The document of one suite, or of several.
pub(super) fn document(suites: &str, count: usize) -> String {
    let head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    match count {
        1 => format!("{head}{suites}"),
        _ => format!("{head}<testsuites>\n{suites}</testsuites>\n"),
    }
}
