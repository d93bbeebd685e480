//! The results as JUnit's XML: each name is a test.
//= docs/ab.md#verdicts

use super::Comparison;
use super::text::{full, percent, why, word};
use trace_analysis::ab::comparison::Unjudged;
use trace_analysis::ab::judge::Verdict;
use trace_report::xml::escaped;

/// The document.
pub fn document(comparison: &Comparison) -> String {
    let found = &comparison.found;
    let enough = found.judgement.as_ref().is_some_and(|judgement| judgement.has_enough);
    let mut cases = Vec::new();
    let (mut failures, mut errors) = (0, 0);
    for row in &found.rows {
        let word = word(row.judged.verdict, comparison.statistic);
        let change = &row.judged.change;
        let message = format!(
            "{word}: {}, between {} and {}",
            percent(change.middle),
            percent(change.low),
            percent(change.high)
        );
        let result = match row.judged.verdict {
            Verdict::Slower => {
                failures += 1;
                format!("<failure message=\"{}\"/>", escaped(&message))
            }
            _ if !enough => {
                errors += 1;
                "<error message=\"incomplete: there are too few runs\"/>".to_owned()
            }
            _ => format!("<system-out>{}</system-out>", escaped(&message)),
        };
        cases.push((full(&row.name), result));
    }
    for (name, of) in &found.unjudged {
        let message = escaped(&why(of));
        let result = if matches!(of, Unjudged::Incomplete(_)) {
            errors += 1;
            format!("<error message=\"{message}\"/>")
        } else {
            format!("<skipped message=\"{message}\"/>")
        };
        cases.push((full(name), result));
    }
    let tests = cases.len();
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuite name=\"trace ab\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\">\n"
    );
    for (name, result) in cases {
        text += &format!("  <testcase classname=\"trace\" name=\"{}\">{result}</testcase>\n", escaped(&name));
    }
    text + "</testsuite>\n"
}
