//! What the document of `--json` says of a trace beside the answer: its size and times, what was lost, and
//! its problems. Whichever command reads a trace, they are what `trace check` finds.
//= docs/json.md#the-document

use crate::files::input::{self, ImportReport, Scanned, name, open, problem, scan_quietly};
use crate::shell::exit::Failure;
use crate::shell::json::{self, Answer};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use trace_analysis::check::{Finding, Limits, Problem, Report, TRUNCATED, UNDECODABLE, check_chosen};
use trace_format::loss::{LossCode, LossRecord};
use trace_format::units::ProviderId;
use trace_model::Selection;
use trace_reader::item::Nanos;

/// What a trace has beside the answer.
#[derive(Debug, Default)]
pub struct Account {
    trace: Value,
    pub losses: Vec<Value>,
    pub problems: Vec<Value>,
}

/// An account that is made while the command reads the trace, too.
pub struct Accounting {
    path: PathBuf,
    making: JoinHandle<Option<Account>>,
}

/// Begins the account of a trace, for a document. An input that can be read once is copied for that.
pub fn begin(is_json: bool, path: &Path, selection: &Selection) -> Result<Option<Accounting>, Failure> {
    if !is_json {
        return Ok(None);
    }
    input::keep(path)?;
    let (trace, selection) = (path.to_owned(), selection.clone());
    let thread = thread::Builder::new().name("trace-account".to_owned());
    let making = thread.spawn(move || of_trace(&trace, &selection).ok());
    let making = making.map_err(|error| Failure::new(format!("cannot start a thread: {error}")))?;
    Ok(Some(Accounting { path: path.to_owned(), making }))
}

/// The account of a whole trace that was read already.
fn of_trace(path: &Path, selection: &Selection) -> Result<Account, Failure> {
    let Scanned { archive, disorder, report: import, chosen } = scan_quietly(open(path)?, path, selection)?;
    let report = check_chosen(archive, Limits::default(), &disorder, chosen.as_ref());
    let mut report = report.map_err(|error| input::failed(path, &error))?;
    report.problems.extend(import.problems());
    report.bytes = import.bytes().unwrap_or(report.bytes);
    Ok(Account::of(path, &report, &import))
}

impl Accounting {
    /// Waits for it. The command reports why a trace cannot be read.
    pub fn finish(self) -> Account {
        let trace = || trace_json(&name(&self.path), None, None);
        // An account that has failed is of a trace that the command cannot read either.
        self.making.join().ok().flatten().unwrap_or_else(|| Account { trace: trace(), ..Account::default() })
    }
}

impl Account {
    /// What a check has found.
    pub fn of(path: &Path, report: &Report, import: &ImportReport) -> Self {
        let file = &name(path);
        let rate = |id: ProviderId| {
            let rate = |id| report.providers.iter().find(|program| program.id == id).and_then(|of| of.rate);
            rate(id).or_else(|| rate(ProviderId(0)))
        };
        let loss = |loss: &LossRecord| {
            let program = report.providers.iter().find(|program| program.id == loss.provider);
            let times =
                rate(loss.provider).map(|rate| [loss.first, loss.last].map(|ticks| ticks.to_nanos(rate)));
            let name = program.map_or("", |program| &program.name);
            loss_json(file, name, loss.provider.0, loss.reason, loss.count, times)
        };
        let found = report.problems.iter().map(|problem| problem_json(problem, import));
        let unread = report.error.as_ref().map(|error| json::unread(&problem(error)));
        let problems = found.chain(import.invalid()).chain(unread).map(|mut problem| {
            problem["file"] = file.as_str().into();
            problem
        });
        Self {
            trace: trace_json(file, Some(report.bytes), report.times.map(|(first, last)| [first.0, last.0])),
            losses: report.losses.iter().map(loss).collect(),
            problems: problems.collect(),
        }
    }

    /// Whether the trace ends too early.
    pub fn is_cut_off(&self) -> bool {
        self.problems.iter().any(|problem| problem["kind"] == TRUNCATED)
    }

    /// Marks the problems that are allowed.
    #[must_use]
    pub fn allowing(mut self, kinds: &[String]) -> Self {
        for problem in &mut self.problems {
            problem["is_allowed"] = kinds.iter().any(|kind| problem["kind"] == kind.as_str()).into();
        }
        self
    }

    /// An answer about the trace.
    pub fn answer(self, result: Value) -> Answer {
        let mut answer = Answer::of(result);
        self.add_to(&mut answer);
        answer
    }

    /// Adds it to an answer.
    pub fn add_to(self, answer: &mut Answer) {
        answer.traces.push(self.trace);
        answer.losses.extend(self.losses);
        answer.problems.extend(self.problems);
    }
}

/// A problem or a remark, with its first places.
//= docs/check.md#json
pub fn problem_json(problem: &Problem, import: &ImportReport) -> Value {
    let has_offsets = has_offsets(problem, import);
    let place = |found: &Finding| {
        let at_byte = has_offsets.then_some(found.offset.0);
        json!({"at_byte": at_byte, "program_id": found.provider.0, "text": found.text})
    };
    let first = problem.first.first();
    let (text, at_byte) =
        (first.map(|first| &*first.text), first.filter(|_| has_offsets).map(|first| first.offset.0));
    let mut found = json::problem(problem.kind, Some(problem.count), text, at_byte);
    found["places"] = problem.first.iter().map(place).collect();
    found
}

/// Whether the places of a problem are those in the file: what an import has made is elsewhere.
//= docs/check.md#report
pub fn has_offsets(problem: &Problem, import: &ImportReport) -> bool {
    import.bytes().is_none() || [TRUNCATED, UNDECODABLE].contains(&problem.kind)
}

/// A trace: its name, its size and its times, as far as they are known.
pub fn trace_json(file: &str, bytes: Option<u64>, times: Option<[u64; 2]>) -> Value {
    let [first, last] = times.map_or([None; 2], |times| times.map(Some));
    json!({"file": file, "bytes": bytes, "start_ns": first, "end_ns": last})
}

/// What one program lost for one reason, for programs.
//= docs/json.md#rules
pub fn loss_json(
    file: &str,
    program: &str,
    id: u32,
    reason: LossCode,
    count: u64,
    times: Option<[Nanos; 2]>,
) -> Value {
    json!({
        "file": file,
        "program": program,
        "program_id": id,
        "code": reason.0,
        "reason": reason.text(),
        "count": reason.has_count().then_some(count),
        "first_ns": times.map(|[first, _]| first.0),
        "last_ns": times.map(|[_, last]| last.0),
    })
}
