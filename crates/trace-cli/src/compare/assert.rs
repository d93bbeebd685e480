//! `trace assert`: whether a trace keeps limits.
//= docs/stats.md#assertions

pub mod junit;

use crate::args::analysis::Assert;
use crate::files::account;
use crate::files::analysis;
use crate::files::input::{is_stdin, name, stopped};
use crate::files::output::{OutputFile, refuse_input};
use crate::files::several::each;
use crate::shell::exit::{Failure, NO, UNDECIDED};
use crate::shell::stdio::{self, say};
use serde_json::{Value as Json, json};
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use trace_analysis::assertion::evaluate::{Evaluation, Finding, Outcome, Verdict};
use trace_analysis::assertion::{Assertion, Dimension, Function, ParseError, Source, Value};
use trace_config::near;
use trace_format::shown::{Digits, Lasting, Shown};

/// Maximum number of changes between similar names.
const MAX_CHANGES: usize = 4;

/// An assertion, as it was written and with its result.
struct Judged {
    text: String,
    outcome: Outcome,
}

/// Checks the assertions; the exit code is the result.
//= docs/stats.md#exit-codes
pub fn run(options: &Assert) -> Result<u8, Failure> {
    let (traces, texts) = traces_and_assertions(options);
    let assertions = parse(options, &traces, &texts)?;
    if let Some(path) = &options.junit {
        traces.iter().chain(&options.file).try_for_each(|input| refuse_input(input, path))?;
    }
    let junit = options.junit.as_deref().map(OutputFile::create).transpose()?;
    let mut suites = String::new();
    let code = each(&traces, |input| {
        let (judged, unread) = match judge(options, input, &assertions, traces.len() > 1) {
            Ok(judged) => judged,
            Err(failure) => (Vec::new(), Some(failure)),
        };
        suites += &junit::suite(&name(input), &judged, unread.as_ref().map(|failure| &*failure.text));
        if let Some(failure) = unread {
            return Err(failure);
        }
        Ok(match verdict(&judged) {
            Verdict::Passed => 0,
            Verdict::Incomplete => UNDECIDED,
            Verdict::Failed => NO,
        })
    });
    if let Some(mut file) = junit {
        let text = junit::document(&suites, traces.len());
        let written = file.file().write_all(text.as_bytes());
        written.map_err(|error| Failure::new(format!("cannot write the results: {error}")))?;
        file.finish()?;
    }
    code
}

/// The traces and the assertions among the arguments. The first one is a trace, and so is whatever is a file;
/// if assertions stand behind `--`, all others are traces.
fn traces_and_assertions(options: &Assert) -> (Vec<PathBuf>, Vec<&str>) {
    let is_trace = |word: &Path| !options.assertions.is_empty() || is_stdin(word) || word.is_file();
    let (mut traces, mut texts) = (Vec::new(), Vec::new());
    for (number, word) in options.words.iter().enumerate() {
        match word.to_str() {
            Some(text) if number > 0 && !is_trace(Path::new(word)) => texts.push(text),
            // What is no text can only be the name of a trace.
            _ => traces.push(PathBuf::from(word)),
        }
    }
    texts.extend(options.assertions.iter().map(String::as_str));
    (traces, texts)
}

/// Judges a trace, and prints the results; returns why it could not be read to its end, too.
fn judge(
    options: &Assert,
    input: &Path,
    assertions: &[Assertion],
    is_one_of_several: bool,
) -> Result<(Vec<Judged>, Option<Failure>), Failure> {
    let selection = options.selecting.selection()?;
    let accounting = account::begin(options.json, input, &selection)?;
    let read = analysis::read(input, "reading", &selection, |archive, disorder, chosen| {
        Evaluation::of(archive, disorder, chosen.as_ref(), assertions)
    });
    let (mut evaluation, report) = read?;
    for (kind, count) in report.counts() {
        evaluation.missing.push(format!("{kind}: {count}"));
        evaluation.errors += count;
    }
    let judged = assertions.iter().map(|assertion| {
        let mut outcome = evaluation.verdict(assertion);
        outcome.findings.iter_mut().for_each(|finding| suggest(finding, &evaluation));
        Judged { text: assertion.to_string(), outcome }
    });
    let judged: Vec<Judged> = judged.collect();
    if let Some(accounting) = accounting {
        accounting.finish().answer(machine(&judged)).give();
    } else {
        let file = is_one_of_several.then(|| name(input));
        let lines = judged.iter().map(|judged| human(file.as_deref(), judged));
        stdio::print_folded(&lines.collect::<String>())?;
    }
    let why = evaluation.walked.losses.stopped.as_ref();
    Ok((judged, why.map(|why| stopped(input, why, "the results are of what comes before"))))
}

/// The verdict on all of them.
fn verdict(judged: &[Judged]) -> Verdict {
    judged.iter().map(|judged| judged.outcome.verdict).max().unwrap_or(Verdict::Passed)
}

/// The assertions of the file, and then those of the command line.
fn parse(options: &Assert, traces: &[PathBuf], texts: &[&str]) -> Result<Vec<Assertion>, Failure> {
    let mut assertions = Vec::new();
    if let Some(file) = &options.file {
        if is_stdin(file) && traces.iter().any(|trace| is_stdin(trace)) {
            return Err(Failure::usage("stdin cannot be both the assertions and the trace"));
        }
        let text = content(file)?;
        let lines = Assertion::parse_all(&text);
        let lines = lines.map_err(|error| refused(&format!("{}: {error}", name(file)), &error))?;
        assertions.extend(lines.into_iter().map(|(_, assertion)| assertion));
    }
    for text in texts {
        let assertion = Assertion::parse(text);
        assertions.push(assertion.map_err(|error| refused(&format!("assertion: {error}"), &error))?);
    }
    if assertions.is_empty() {
        return Err(Failure::usage("there is no assertion"));
    }
    Ok(assertions)
}

fn content(file: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let read = match is_stdin(file) {
        true => io::stdin().read_to_string(&mut text).map(|_| ()),
        false => fs::read_to_string(file).map(|content| text = content),
    };
    read.map_err(|error| Failure::usage(format!("cannot read {}: {error}", name(file))))?;
    // Some programs begin UTF-8 text with a mark.
    Ok(text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_owned))
}

/// Shows the line, with a caret below what is wrong in it.
fn refused(text: &str, error: &ParseError) -> Failure {
    error.shown().lines().for_each(|line| say!("{}", line.replace('\t', " ")));
    Failure::usage(text)
}

/// Adds the name that may have been meant.
fn suggest(finding: &mut Finding, evaluation: &Evaluation) {
    let Value::Of(_, source) = &finding.comparison.value else { return };
    let Some(wanted) = source.selector().name.exact().filter(|_| finding.is_missing) else { return };
    let whats = &evaluation.walked.whats;
    let names = (1..whats.len()).map(|number| whats.name(number as u32));
    let near = near::nearest(wanted, names.filter(|name| *name != wanted), MAX_CHANGES, str::to_owned);
    if let Some(near) = near {
        let hint = format!("did you mean {near}?");
        match finding.why.first_mut() {
            Some(why) => why.push_str(&format!("; {hint}")),
            // A count of nothing passes, and may still be of a mistyped name.
            None => finding.why.push(format!("no such event; {hint}")),
        }
    }
}

const fn verdict_text(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Passed => "passed",
        Verdict::Incomplete => "incomplete",
        Verdict::Failed => "failed",
    }
}

/// What was found, for people.
fn found(finding: &Finding) -> String {
    let is_size = finding.comparison.limit.unit.is_some_and(|unit| unit.factor().0 == Dimension::Size);
    let value = finding.value.map(|value| match &finding.comparison.value {
        Value::Of(Function::Count | Function::Rate, _) | Value::Lost(_) | Value::Errors => {
            Digits(value).to_string()
        }
        Value::Of(_, Source::Counter(..)) if is_size => format!("{} B", Digits(value)),
        Value::Of(_, Source::Counter(..)) => Digits(value).to_string(),
        Value::Of(..) => Lasting(value).to_string(),
    });
    let parts: Vec<String> = value.into_iter().chain(finding.why.iter().cloned()).collect();
    parts.join("; ")
}

/// The result of one assertion, with what was found for each of its comparisons.
fn details(judged: &Judged) -> String {
    match &*judged.outcome.findings {
        [finding] => found(finding),
        findings => {
            let parts =
                findings.iter().map(|finding| format!("{}: {}", finding.comparison.value, found(finding)));
            parts.collect::<Vec<_>>().join(", ")
        }
    }
}

/// A line for people, with the name of one of several traces.
fn human(file: Option<&str>, judged: &Judged) -> String {
    let verdict = verdict_text(judged.outcome.verdict);
    let file = file.map_or_else(String::new, |file| format!("{}: ", Shown(file)));
    format!("{verdict:<10}  {file}{}: {}\n", Shown(&judged.text), Shown(&details(judged)))
}

/// For programs.
//= docs/stats.md#json
fn machine(all: &[Judged]) -> Json {
    let assertions = all.iter().map(|judged| {
        let comparisons = judged.outcome.findings.iter().map(|finding| {
            json!({
                "text": finding.comparison.to_string(),
                "verdict": verdict_text(finding.verdict),
                "value": finding.value,
                "limit": finding.comparison.limit.base(),
                "why": finding.why,
            })
        });
        json!({
            "text": judged.text,
            "verdict": verdict_text(judged.outcome.verdict),
            "comparisons": comparisons.collect::<Vec<_>>(),
        })
    });
    let assertions: Vec<Json> = assertions.collect();
    json!({"verdict": verdict_text(verdict(all)), "assertions": assertions})
}
