//! What `--json` prints: one document of all commands, whose exit code is in it.
//!
//! A command gives its answer when it has it, and may fail afterwards. So the answer waits until the exit
//! code is known.
//= docs/json.md#rules

use crate::shell::exit::{Failure, UNREADABLE};
use crate::shell::stdio::print_document;
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::{Mutex, PoisonError};

/// The version of the documents: members may be added to it.
pub const VERSION: u32 = 1;

/// The kind of problem of a trace that could not be read to its end.
const UNREAD: &str = "unread";
/// The kind of problem of a command that could not do everything.
const FAILED: &str = "failed";

static ANSWER: Mutex<Option<Answer>> = Mutex::new(None);

/// What a command has to say to programs.
#[derive(Debug, Default)]
pub struct Answer {
    /// The traces that it has read or written.
    pub traces: Vec<Value>,
    /// What was asked for.
    pub result: Value,
    /// What of the traces was lost.
    pub losses: Vec<Value>,
    /// What is wrong with them.
    pub problems: Vec<Value>,
    /// The command that was recorded has ended with the exit code.
    is_commands_code: bool,
    form: Form,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Form {
    #[default]
    Document,
    /// A list of the results of several traces.
    List,
    /// Only the result, as `ffx --machine json` prints it.
    Bare,
    /// The result and what comes before it are printed already.
    #[cfg(feature = "query")]
    Rest,
}

#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    command: &'a str,
    traces: Vec<Value>,
    result: Value,
    #[serde(flatten)]
    rest: Rest,
}

#[derive(Serialize)]
struct Rest {
    losses: Vec<Value>,
    problems: Vec<Value>,
    exit: Exit,
}

#[derive(Serialize)]
struct Exit {
    code: u8,
    of: &'static str,
}

impl Answer {
    /// With a result and nothing else.
    pub fn of(result: Value) -> Self {
        Self { result, ..Self::default() }
    }

    /// As `ffx --machine json` prints it, if that was asked for.
    #[must_use]
    pub fn bare_if(self, is_bare: bool) -> Self {
        Self { form: if is_bare { Form::Bare } else { self.form }, ..self }
    }

    /// Keeps it until the command ends. Of several traces, the results are a list.
    pub fn give(self) {
        let mut answer = ANSWER.lock().unwrap_or_else(PoisonError::into_inner);
        match answer.as_mut() {
            Some(Self { form: Form::List, traces, result, losses, problems, .. }) => {
                traces.extend(self.traces);
                losses.extend(self.losses);
                problems.extend(self.problems);
                result.as_array_mut().expect("a list").push(self.result);
            }
            _ => *answer = Some(self),
        }
    }
}

/// The begin of a document whose result follows in pieces; what comes behind it is printed at the end.
#[cfg(feature = "query")]
pub fn begin(command: &str, traces: &[Value]) -> String {
    Answer { form: Form::Rest, ..Answer::default() }.give();
    let traces = Value::from(traces);
    format!("{{\n\"version\": {VERSION},\n\"command\": \"{command}\",\n\"traces\": {traces},\n\"result\": ")
}

/// The command takes several traces, and answers for each of them.
pub fn expect_several() {
    let answer = Answer { form: Form::List, ..Answer::of(Value::Array(Vec::new())) };
    *ANSWER.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
}

/// The command has failed for one of several traces. If it could not be read to its end, its answer may say
/// so.
pub fn add_failure(file: &str, failure: &Failure) {
    if let Some(answer) = ANSWER.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        let kind = if failure.code == UNREADABLE { UNREAD } else { FAILED };
        let is_it = |problem: &Value| problem["kind"] == kind && problem["file"] == file;
        if !answer.problems.iter().any(is_it) {
            let mut problem = problem(kind, None, Some(&failure.text), None);
            problem["file"] = file.into();
            answer.problems.push(problem);
        }
    }
}

/// Adds to a document that was begun what its traces have lost, and what is wrong with them.
pub fn add(losses: Vec<Value>, problems: Vec<Value>) {
    if let Some(answer) = ANSWER.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        answer.losses.extend(losses);
        answer.problems.extend(problems);
    }
}

/// The command that was recorded has ended with the exit code that `trace record` has.
pub fn code_is_the_commands() {
    if let Some(answer) = ANSWER.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        answer.is_commands_code = true;
    }
}

/// The command has ended: prints its answer, if it has one. A failure behind the answer is a problem, unless
/// one of these says already that a trace could not be read.
pub fn finish(command: &str, result: &Result<u8, Failure>) -> Result<(), Failure> {
    let answer = ANSWER.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(Answer { traces, result: found, losses, mut problems, is_commands_code, form }) = answer else {
        return Ok(());
    };
    let code = match result {
        Ok(code) => *code,
        Err(failure) => {
            let is_known = problems.iter().any(|problem| problem["kind"] == UNREAD);
            problems.extend((!is_known).then(|| problem(FAILED, None, Some(&failure.text), None)));
            failure.code
        }
    };
    if form == Form::List && traces.is_empty() {
        return Ok(());
    }
    let of = if is_commands_code { "command" } else { "trace" };
    let rest = Rest { losses, problems, exit: Exit { code, of } };
    let failed = |error: serde_json::Error| Failure::new(error.to_string());
    let text = match form {
        Form::Bare => found.to_string(),
        Form::Document | Form::List => {
            let document = Document { version: VERSION, command, traces, result: found, rest };
            serde_json::to_string_pretty(&document).map_err(failed)?
        }
        #[cfg(feature = "query")]
        Form::Rest => {
            let rest = serde_json::to_string_pretty(&rest).map_err(failed)?;
            // Behind the result of what was begun.
            format!(",{}", rest.trim_start_matches('{'))
        }
    };
    print_document(&(text + "\n"))
}

/// One problem of no trace, or of one that the caller names. `count` is null where it is not known, `at_byte`
/// where it has no place.
//= docs/json.md#the-document
pub fn problem(kind: &str, count: Option<u64>, text: Option<&str>, at_byte: Option<u64>) -> Value {
    json!({"file": null, "kind": kind, "count": count, "text": text, "at_byte": at_byte, "places": []})
}

/// The problem of a trace of which a part could not be read.
pub fn unread(why: &str) -> Value {
    problem(UNREAD, None, Some(why), None)
}

/// Prints one value in a line, of commands that print many.
pub fn print_line(value: &Value) -> Result<(), Failure> {
    print_document(&format!("{value}\n"))
}
