//! What the commands of the tool say about a trace.

use super::doors::{
    Door, Lengths, Name, counter_row, flow_row, log_row, name_row, name_text, parent_row, self_row, slice_row,
};
use super::model::{Meaning, Slice};
use super::rows::{Answer, Class, Rows};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use trace_tests::Sandbox;

/// The questions of [`Door::Query`], whose answers come one after the other.
const QUESTIONS: &str = "\
    SELECT s.pid, s.tid, s.thread, s.category, s.name, s.ts, s.dur, s.self_dur, s.parent_id, p.name AS parent FROM slices s \
    LEFT JOIN slices p ON s.parent_id = p.id WHERE s.async_id IS NULL; \
    SELECT pid, category, name, ts, dur FROM slices WHERE async_id IS NOT NULL; \
    SELECT pid, tid, category, name, ts FROM instants; \
    SELECT pid, tid, message, ts FROM logs; \
    SELECT pid, category, name, counter_id, series, ts, value FROM counters; \
    SELECT pid, tid, category, name, ts, flow_id, phase FROM flows";

/// Kinds of `trace check` about what belongs together. The others are not about the meaning of a trace.
const KINDS: [&str; 14] = [
    "crossing-async",
    "mismatched-async-end",
    "mismatched-end",
    "open-scope",
    "overlapping-durations",
    "unmatched-async-begin",
    "unmatched-async-end",
    "unmatched-async-instant",
    "unmatched-begin",
    "unmatched-end",
    "unmatched-flow-begin",
    "unmatched-flow-end",
    "unmatched-flow-step",
    "spans-full",
];

/// What a command says about a file, or why it says nothing.
pub fn ask(sandbox: &Sandbox, door: Door, file: &str, meaning: &Meaning) -> Result<Answer, String> {
    match door {
        Door::Check => check(sandbox, file),
        Door::Query => query(sandbox, file),
        Door::Csv => csv(sandbox, file),
        Door::Folded => folded(sandbox, file, meaning),
        Door::Speedscope => speedscope(sandbox, file, meaning),
        Door::Firefox => firefox(sandbox, file, meaning),
        Door::Stats => stats(sandbox, file),
        Door::Assert => assert(sandbox, file, meaning),
        Door::Measure => measure(sandbox, file, meaning),
        Door::Export(..) => unreachable!("readers see converted files"),
    }
}

/// Runs a command, which may exit with one of these codes, and reads the JSON that it prints.
fn run(sandbox: &Sandbox, arguments: &[&str], codes: &[i32]) -> Result<Vec<Value>, String> {
    let output = sandbox.trace(arguments);
    let code = output.status.code();
    if !code.is_some_and(|code| codes.contains(&code)) {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{} exits with {code:?}: {}", arguments[0], stderr.trim()));
    }
    let values = serde_json::Deserializer::from_slice(&output.stdout).into_iter();
    values.collect::<Result<_, _>>().map_err(|error| format!("{}: {error}", arguments[0]))
}

pub fn text<'a>(row: &'a Value, column: &str) -> &'a str {
    row[column].as_str().unwrap_or("")
}

/// A number, which is text where JavaScript cannot hold it.
pub fn number(row: &Value, column: &str) -> u64 {
    let of_text = || row[column].as_str().and_then(|text| text.parse().ok());
    row[column].as_u64().or_else(of_text).unwrap_or(u64::MAX)
}

fn list<'a>(value: &'a Value, member: &str) -> &'a [Value] {
    value[member].as_array().map_or(&[], |list| list)
}

fn check(sandbox: &Sandbox, file: &str) -> Result<Answer, String> {
    let report = run(sandbox, &["check", "--json", file], &[0, 1])?;
    let report = report.first().ok_or("check prints nothing")?;
    let mut rows = Rows::default();
    for found in list(report, "problems").iter().chain(list(&report["result"], "remarks")) {
        let kind = text(found, "kind");
        if KINDS.contains(&kind) {
            rows.add(format!("{kind} {}", found["count"]));
        }
    }
    Ok(Answer::from([(Class::Problems, rows)]))
}

fn query(sandbox: &Sandbox, file: &str) -> Result<Answer, String> {
    let answers = run(sandbox, &["query", "--json", QUESTIONS, file], &[0])?;
    let answer = answers.first().ok_or("query prints nothing")?;
    let of = |number: usize| answer["result"][number]["rows"].as_array().cloned().unwrap_or_default();
    Ok(of_tables([of(0), of(1), of(2), of(3), of(4), of(5)]))
}

/// What the tables say: slices, operations, instants, log records, counters, and parts of flows.
fn of_tables([slices, operations, instants, logs, counters, flows]: [Vec<Value>; 6]) -> Answer {
    let mut answer = Answer::new();
    let thread = |row: &Value| format!("{}/{}", row["pid"], row["tid"]);
    let mut add = |class: Class, row: String| answer.entry(class).or_default().add(row);
    for row in &slices {
        let (category, name) = (text(row, "category"), text(row, "name"));
        let slice = slice_row(thread(row), category, name, number(row, "ts"), row["dur"].as_u64());
        let parent = (!row["parent_id"].is_null()).then(|| text(row, "parent"));
        add(Class::Parents, parent_row(&slice, parent));
        add(Class::SelfTimes, self_row(&slice, row["self_dur"].as_u64()));
        add(Class::Slices, slice);
        row["thread"].as_str().into_iter().for_each(|thread| add(Class::Names, name_row(thread, name)));
    }
    for row in &operations {
        let (category, name) = (text(row, "category"), text(row, "name"));
        let length = row["dur"].as_u64();
        add(Class::Operations, slice_row(&row["pid"], category, name, number(row, "ts"), length));
    }
    for row in &instants {
        let (category, name) = (text(row, "category"), text(row, "name"));
        add(Class::Instants, slice_row(thread(row), category, name, number(row, "ts"), Some(0)));
    }
    for row in &logs {
        add(Class::Logs, log_row(thread(row), text(row, "message"), number(row, "ts")));
    }
    for row in &counters {
        let (category, name, series) = (text(row, "category"), text(row, "name"), text(row, "series"));
        let name = format!("{category}:{name}#{}.{series}", row["counter_id"]);
        let value = row["value"].as_f64().unwrap_or(f64::NAN);
        add(Class::Counters, counter_row(&row["pid"], &name, number(row, "ts"), value));
    }
    for row in &flows {
        let (category, name, phase) = (text(row, "category"), text(row, "name"), text(row, "phase"));
        let (at, id) = (number(row, "ts"), number(row, "flow_id"));
        add(Class::Flows, flow_row(thread(row), category, name, at, id, phase));
    }
    answer
}

/// The same of tables in files.
fn csv(sandbox: &Sandbox, file: &str) -> Result<Answer, String> {
    let directory = format!("{file}.tables");
    succeed(sandbox, &["convert", "--format", "csv", file, &directory])?;
    let table = |name: &str| -> Result<Vec<Value>, String> {
        let path = sandbox.file(&directory).join(name).with_extension("csv");
        let mut reader = csv::Reader::from_path(path).map_err(|error| error.to_string())?;
        let rows: Result<Vec<BTreeMap<String, String>>, _> = reader.deserialize().collect();
        let rows = rows.map_err(|error| error.to_string())?;
        Ok(rows.into_iter().map(|row| row.into_iter().map(field).collect()).collect())
    };
    let mut slices = table("slices")?;
    let names: BTreeMap<u64, Value> =
        slices.iter().map(|row| (number(row, "id"), row["name"].clone())).collect();
    for row in &mut slices {
        row["parent"] = names.get(&number(row, "parent_id")).cloned().unwrap_or_default();
    }
    let (operations, slices) = slices.into_iter().partition(|row| row["async_id"].is_u64());
    let [instants, logs, counters, flows] =
        ["instants", "logs", "counters", "flows"].map(table).map(Result::unwrap_or_default);
    Ok(of_tables([slices, operations, instants, logs, counters, flows]))
}

/// A field of a line, as `trace query` would print it.
fn field((column, text): (String, String)) -> (String, Value) {
    let is_text = ["process", "thread", "category", "name", "message", "series", "phase"].contains(&&*column);
    let value = match (text.parse::<u64>(), text.parse::<f64>()) {
        _ if text.is_empty() => Value::Null,
        (Ok(number), _) if !is_text => number.into(),
        (_, Ok(number)) if !is_text => number.into(),
        _ => text.into(),
    };
    (column, value)
}

/// Runs a command that has to succeed.
fn succeed(sandbox: &Sandbox, arguments: &[&str]) -> Result<Vec<u8>, String> {
    let output = sandbox.trace(arguments);
    let reason = || format!("{}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    if output.status.success() { Ok(output.stdout.clone()) } else { Err(reason()) }
}

/// Stacks of slices with their own times.
fn folded(sandbox: &Sandbox, file: &str, meaning: &Meaning) -> Result<Answer, String> {
    // Without slices that have own time there is no file.
    if meaning.slices.iter().all(|slice| slice.own.unwrap_or(0) == 0) {
        return Ok(Answer::new());
    }
    let arguments = ["convert", "--format", "folded", "--stacks", "slices", "--by-thread", file, "-"];
    let text = succeed(sandbox, &arguments)?;
    let mut rows = Rows::default();
    for line in String::from_utf8_lossy(&text).lines() {
        // How spaces in names are written is not compared.
        let (stack, own) = line.rsplit_once(' ').unwrap_or((line, ""));
        rows.add(format!("{} {own}", stack.replace(' ', "_")));
    }
    Ok(Answer::from([(Class::Stacks, rows)]))
}

/// Profiles of threads: what begins and ends on a stack. What overlaps has a further profile.
fn speedscope(sandbox: &Sandbox, file: &str, meaning: &Meaning) -> Result<Answer, String> {
    if meaning.slices.is_empty() {
        return Ok(Answer::new());
    }
    let to = format!("{file}.speedscope.json");
    succeed(sandbox, &["convert", "--format", "speedscope", file, &to])?;
    let text = std::fs::read(sandbox.file(&to)).map_err(|error| error.to_string())?;
    let document: Value = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    let frames = list(&document["shared"], "frames");
    // Times count from a moment that the file does not name: here from the begin of the first slice.
    let opened = list(&document, "profiles").iter().flat_map(|profile| list(profile, "events"));
    let first_opened = opened.map(|event| number(event, "at")).min().unwrap_or(0);
    let first = meaning.slices.iter().map(|slice| slice.begin).min().unwrap_or(0) - first_opened;
    let mut expected: BTreeMap<String, usize> = BTreeMap::new();
    for Slice { thread, category, name, begin, end, .. } in &meaning.slices {
        let row = slice_row(thread, category, name, *begin, end.map(|end| end - begin));
        *expected.entry(row).or_default() += 1;
    }
    let (mut slices, mut parents) = (Rows::default(), Rows::default());
    for profile in list(&document, "profiles") {
        // "process 100 / thread 201 (overlapping, 2)"
        let numbers: Vec<&str> = text_numbers(profile["name"].as_str().unwrap_or(""));
        let track = format!("{}/{}", numbers.first().unwrap_or(&""), numbers.get(1).unwrap_or(&""));
        let mut stack: Vec<(usize, u64)> = Vec::new();
        let name = |frame: usize| frames.get(frame).map_or("", |frame| self::text(frame, "name"));
        for event in list(profile, "events") {
            let (frame, at) = (number(event, "frame") as usize, first + number(event, "at"));
            if event["type"] == "O" {
                stack.push((frame, at));
                continue;
            }
            let (opened, begin) = stack.pop().ok_or("speedscope: a stack is empty")?;
            if opened != frame {
                return Err("speedscope: an end of another frame".to_owned());
            }
            let category = frames.get(frame).map_or("", |frame| self::text(frame, "file"));
            let row = slice_row(&track, category, name(frame), begin, Some(at - begin));
            // The format has no open slices: they end with the profile.
            let ended = expected.entry(row.clone()).or_default();
            let is_open = number(event, "at") == number(profile, "endValue") && *ended == 0;
            *ended = ended.saturating_sub(1);
            let open_row = slice_row(&track, category, name(frame), begin, None);
            let row = if is_open && expected.contains_key(&open_row) { open_row } else { row };
            parents.add(parent_row(&row, stack.last().map(|(outer, _)| name(*outer))));
            slices.add(row);
        }
    }
    Ok(Answer::from([(Class::Slices, slices), (Class::Parents, parents)]))
}

fn firefox(sandbox: &Sandbox, file: &str, meaning: &Meaning) -> Result<Answer, String> {
    if meaning.slices.is_empty() {
        return Ok(Answer::new());
    }
    let to = format!("{file}.firefox.json");
    succeed(sandbox, &["convert", "--format", "firefox", file, &to])?;
    let profile = std::fs::read(sandbox.file(&to)).map_err(|error| error.to_string())?;
    let profile: Value = serde_json::from_slice(&profile).map_err(|error| error.to_string())?;
    let (strings, categories) = (&profile["shared"]["stringArray"], &profile["meta"]["categories"]);
    let text_at = |list: &Value, place: &Value| {
        place.as_u64().map(|place| &list[place as usize]).and_then(Value::as_str).unwrap_or("?").to_owned()
    };
    // Milliseconds with six decimals.
    let nanos = |value: &Value| value.as_f64().map(|ms| (ms * 1e6).round() as u64);
    let mut answer = Answer::new();
    let markers = |thread: &Value| {
        let markers = thread["markers"].clone();
        let count = markers["length"].as_u64().unwrap_or(0) as usize;
        (0..count).map(move |place| {
            ["data", "name", "category", "startTime", "endTime"].map(|column| markers[column][place].clone())
        })
    };
    // Times count from a moment that the file does not name.
    let threads = list(&profile, "threads");
    let starts = threads.iter().flat_map(markers).filter_map(|[_, _, _, start, _]| nanos(&start));
    let first = meaning.first().unwrap_or(0) - starts.min().unwrap_or(0);
    for thread in threads {
        let track = format!("{}/{}", text(thread, "pid"), number(thread, "tid"));
        for [data, name, category, start, end] in markers(thread) {
            let name = text_at(strings, &name);
            let category = match category.as_u64() {
                Some(0) => String::new(),
                place => text(&categories[place.unwrap_or(0) as usize], "name").to_owned(),
            };
            let begin = first + nanos(&start).ok_or("firefox: a marker without a time")?;
            let length = nanos(&end).map(|end| first + end - begin);
            let kind =
                text(&data, "type").trim_end_matches(|letter: char| letter.is_ascii_digit()).trim_end();
            let mut add = |class: Class, row: String| answer.entry(class).or_default().add(row);
            match kind {
                "slice" => add(Class::Slices, slice_row(&track, &category, &name, begin, length)),
                "operation" => {
                    let process = text(thread, "pid");
                    add(Class::Operations, slice_row(process, &category, &name, begin, length));
                }
                "instant" => add(Class::Instants, slice_row(&track, &category, &name, begin, Some(0))),
                _ => match kind.strip_prefix("flow ") {
                    Some(phase) => {
                        let id = text_at(strings, &data["f0"]);
                        let id = u64::from_str_radix(id.trim_start_matches("0x"), 16).unwrap_or(u64::MAX);
                        add(Class::Flows, flow_row(&track, &category, &name, begin, id, phase));
                    }
                    None if kind == "log" => {}
                    None => return Err(format!("firefox: a marker of type {kind}")),
                },
            }
        }
    }
    Ok(answer)
}

/// The numbers in a text.
fn text_numbers(text: &str) -> Vec<&str> {
    text.split(|letter: char| !letter.is_ascii_digit()).filter(|word| !word.is_empty()).collect()
}

fn stats(sandbox: &Sandbox, file: &str) -> Result<Answer, String> {
    let report = run(sandbox, &["stats", "--json", file], &[0])?;
    let report = report.first().ok_or("stats prints nothing")?;
    let (mut sums, mut self_sums) = (Rows::default(), Rows::default());
    for (kind, table) in [("slice", "durations"), ("operation", "operations"), ("poll", "polls")] {
        for row in list(&report["result"][table], "rows") {
            let name = format!("{kind} {}:{}", text(row, "category"), text(row, "name"));
            let lengths = Lengths {
                ended: number(row, "count"),
                open: number(row, "unfinished"),
                sum: number(row, "total_ns"),
                greatest: number(row, "max_ns"),
                own: number(row, "self_ns"),
            };
            if lengths.ended > 0 {
                sums.add(lengths.row(&name));
                if kind != "operation" {
                    self_sums.add(lengths.self_row(&name));
                }
            }
            if lengths.open > 0 {
                sums.add(format!("{name}: {} open", lengths.open));
            }
        }
    }
    Ok(Answer::from([(Class::Sums, sums), (Class::SelfSums, self_sums)]))
}

/// Every value is compared with 0, so that the report has it.
fn assert(sandbox: &Sandbox, file: &str, meaning: &Meaning) -> Result<Answer, String> {
    let (slices, operations) = meaning.names();
    // A name without a category stands for that name in any category: no test has it in another one.
    let name_of = |(category, name): &Name| match &**category {
        "" => format!("\"{name}\""),
        category => format!("{category}:\"{name}\""),
    };
    let mut assertions = Vec::new();
    for name in slices.keys().chain(operations.keys()) {
        let name = name_of(name);
        assertions.extend([
            format!("count({name}) >= 0"),
            format!("sum({name}) >= 0ns"),
            format!("max({name}) >= 0ns"),
        ]);
    }
    assertions.extend(slices.keys().map(|name| format!("sum(self({})) >= 0ns", name_of(name))));
    if assertions.is_empty() {
        return Ok(Answer::new());
    }
    let mut arguments = vec!["assert", "--json", file];
    arguments.extend(assertions.iter().map(String::as_str));
    let report = run(sandbox, &arguments, &[0, 1, 3])?;
    let report = report.first().ok_or("assert prints nothing")?;
    let mut values = list(&report["result"], "assertions").iter().map(|assertion| {
        // A sum of no length is none.
        assertion["comparisons"][0]["value"].as_f64().unwrap_or(0.0) as u64
    });
    let mut value = || values.next().ok_or("assert prints too few values");
    let (mut sums, mut self_sums) = (Rows::default(), Rows::default());
    for name in slices.keys().chain(operations.keys()) {
        let (ended, sum, greatest) = (value()?, value()?, value()?);
        let lengths = Lengths { ended, sum, greatest, ..Lengths::default() };
        sums.add(lengths.in_all(&name_text(name)));
    }
    for name in slices.keys() {
        let lengths = Lengths { own: value()?, ..Lengths::default() };
        self_sums.add(lengths.self_row(&name_text(name)));
    }
    Ok(Answer::from([(Class::Sums, sums), (Class::SelfSums, self_sums)]))
}

fn measure(sandbox: &Sandbox, file: &str, meaning: &Meaning) -> Result<Answer, String> {
    let (slices, operations) = meaning.names();
    let names: Vec<&Name> = slices.keys().chain(operations.keys()).collect();
    if names.is_empty() {
        return Ok(Answer::new());
    }
    let measure: Vec<Value> = names
        .iter()
        .map(|(category, name)| json!({"type": "duration", "event_name": name, "event_category": category}))
        .collect();
    let specification = format!("{file}.spec.json");
    let written = std::fs::write(
        sandbox.file(&specification),
        json!({"test_name": "meaning", "measure": measure}).to_string(),
    );
    written.map_err(|error| error.to_string())?;
    let arguments = ["measure", "--json", "--spec-file", &specification, file];
    let report = run(sandbox, &arguments, &[0, 1])?;
    let report = report.first().ok_or("measure prints nothing")?;
    let mut rows = Rows::default();
    for (name, result) in names.into_iter().zip(list(&report["result"], "results")) {
        let mut lengths = Lengths::default();
        for milliseconds in list(result, "values") {
            let length = (milliseconds.as_f64().unwrap_or(f64::NAN) * 1e6).round() as u64;
            lengths.ended += 1;
            lengths.sum += length;
            lengths.greatest = lengths.greatest.max(length);
        }
        rows.add(lengths.row(&name_text(name)));
    }
    Ok(Answer::from([(Class::Sums, rows)]))
}
