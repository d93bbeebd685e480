//! The tools, and what a client may know about them: names, descriptions, and schemas of their arguments.
//= docs/mcp.md#tools

mod compare;
mod overview;
mod query;
mod top;
mod window;

use super::answer::{Answer, MAX_COLUMNS};
use super::archive::{Archive, Open, Window};
use super::cursor::{ARGUMENT, Call};
use super::error::CallError;
use serde_json::{Map, Value, json};
use std::io;
use trace_config::near;
use trace_convert::tables::sqlite::{Answers, AskError, VIEWS};
use trace_convert::tables::{Cell, TABLES};

/// The tool that only a permission offers.
pub const RECORD: &str = "record";
/// The tool that describes a trace.
pub const OVERVIEW: &str = "overview";

/// What a client says to its model before anything is asked.
pub const INSTRUCTIONS: &str = "Examine traces of programs: what each thread did, when, and for how long. Begin with \
    overview: without arguments it lists the traces, with one it says how long that is, what is missing in it and \
    which processes and categories it has. Then top shows which names took the time, window what happened around a \
    moment, query answers SQL, and compare shows what changed between two traces. All times are nanoseconds. Answers \
    are JSON: rows under columns; losses says what is missing in the window, so check it before concluding that \
    something did not happen. If an answer has next, repeat the call with the same arguments and that as cursor.";

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn integer(description: &str) -> Value {
    json!({"type": "integer", "description": description})
}

/// Properties that several tools have.
fn with_common(mut properties: Value, traces: &[(&str, &str)]) -> Value {
    for (name, description) in traces {
        properties[*name] = text(description);
    }
    properties[ARGUMENT] = text("next of the previous page, with the same other arguments");
    properties
}

fn tool(name: &str, title: &str, description: &str, properties: Value, required: &[&str]) -> Value {
    let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    let is_reading = name != RECORD;
    let annotations = json!({"readOnlyHint": is_reading, "openWorldHint": !is_reading});
    json!({"name": name, "title": title, "description": description, "inputSchema": schema, "annotations": annotations})
}

const TRACE: (&str, &str) = ("trace", "Path of the trace, as overview lists it");
const FILTERS: [(&str, &str); 2] = [
    ("category", "Only this category; * stands for any text"),
    ("process", "Only this process: its pid, or its name with *"),
];

/// The description of `query`, with all tables.
fn query_description() -> String {
    let table = |table: &trace_convert::tables::Table| {
        let columns: Vec<&str> = table.columns.iter().map(|(name, _)| *name).collect();
        format!("{}({})", table.name, columns.join(" "))
    };
    let tables: Vec<String> = TABLES.iter().map(table).collect();
    let views = VIEWS.map(|view| format!("{}({})", view.name, view.columns.join(" ")));
    format!(
        "Answer one SELECT (SQLite's SQL) over the tables of a trace. Times and dur are ns. slices and sched also have \
         ts_end. dur is NULL if something had not ended. args is JSON: json_extract(args, '$.size'). slices have id, \
         parent_id, depth, self_dur (without children); async_id is set for asynchronous operations. Functions: \
         percentile(x, p), hist(x). Texts of a row are cut after 400 bytes: use substr(). Tables: {}. Views: {}",
        tables.join("; "),
        views.join("; ")
    )
}

/// All tools, as `tools/list` has them.
pub fn definitions(may_record: bool) -> Value {
    let mut filters = json!({});
    for (name, description) in FILTERS {
        filters[name] = text(description);
    }
    filters["from_ns"] = integer("Begin of the window (default: that of the trace)");
    filters["to_ns"] = integer("End of the window (default: that of the trace)");
    let mut top = filters.clone();
    top["sort"] = json!({"type": "string", "enum": top::SORTS, "default": "total",
        "description": "What the names with the most come first by; self is without children"});
    top["limit"] = json!({"type": "integer", "minimum": 1, "description": "Names altogether (default: all)"});
    let mut window = filters;
    window["name"] = text("Only events with this name; * stands for any text");
    window["tid"] = integer("Only this thread");
    window["min_dur_ns"] = integer("Only slices at least this long, and no instants, counters and logs");
    let sort = json!({"type": "string", "enum": compare::SORTS, "default": "total",
        "description": "What the names that changed most come first by"});
    let mut tools = vec![
        tool(
            OVERVIEW,
            "Overview of a trace",
            "What a trace has: its length, what is missing in it, warnings, and its processes and categories with their \
             numbers of events. Without trace: the traces that can be read.",
            with_common(json!({}), &[("trace", "Path of a trace; leave it out for a list")]),
            &[],
        ),
        tool(
            "top",
            "Names with the most time",
            "Durations summed up by category and name: count, total, self (without children on the same thread), median, \
             99th percentile and maximum, in ns. Counts each that overlaps with the window, as a whole.",
            with_common(top, &[TRACE]),
            &["trace"],
        ),
        tool(
            "window",
            "What happened in a window of time",
            "Slices, instants, counters, log messages and time on CPUs that overlap with a window, for each thread in the \
             order of time. Take a short window, or filters: to find one, use top and query first.",
            with_common(window, &[TRACE]),
            &["trace"],
        ),
        tool(
            "query",
            "SQL over a trace",
            &query_description(),
            with_common(json!({"sql": text("One SELECT; add ORDER BY so that pages are stable")}), &[TRACE]),
            &["trace", "sql"],
        ),
        tool(
            "compare",
            "Differences of two traces",
            "Durations by category and name in two traces, those first that changed most. Two runs of one program differ, too: this does not show what is chance.",
            with_common(
                json!({"sort": sort}),
                &[("before", "Path of a trace"), ("after", "Path of another trace")],
            ),
            &["before", "after"],
        ),
    ];
    if may_record {
        tools.push(record());
    }
    tools.into()
}

fn record() -> Value {
    let strings =
        |description: &str| json!({"type": "array", "items": {"type": "string"}, "description": description});
    tool(
        RECORD,
        "Record a trace",
        "Record a command, or all running programs that can be recorded, into a new file, and answer with its overview. \
         Needs command or duration_s.",
        json!({
            "output": text("Path of the new trace, which ends in .fxt"),
            "command": strings("The command and its arguments, run in the first directory; recorded until it ends"),
            "duration_s": {"type": "number", "exclusiveMinimum": 0, "maximum": super::record::MAX_SECONDS,
                "description": "Longest time, in seconds (default with a command: 60)"},
            "categories": strings("Only these categories, such as app, net:*, kernel:sched or -noisy"),
        }),
        &["output"],
    )
}

/// Calls a tool that reads.
pub fn call(
    open: &mut Open,
    tool: &str,
    arguments: &Map<String, Value>,
    note: Option<&str>,
) -> Result<String, CallError> {
    let arguments = Arguments { tool, arguments };
    arguments.check_names()?;
    match tool {
        OVERVIEW => overview::call(open, &arguments, note),
        "top" => top::call(open, &arguments),
        "window" => window::call(open, &arguments),
        "query" => query::call(open, &arguments),
        "compare" => compare::call(open, &arguments),
        _ => Err(CallError::NoTool),
    }
}

/// The arguments of a call.
pub struct Arguments<'a> {
    pub tool: &'a str,
    pub arguments: &'a Map<String, Value>,
}

impl Arguments<'_> {
    /// Refuses arguments that the schema does not have.
    pub fn check_names(&self) -> Result<(), CallError> {
        let tools = definitions(true);
        let found = tools.as_array().and_then(|tools| tools.iter().find(|tool| tool["name"] == self.tool));
        let properties = found.and_then(|tool| tool["inputSchema"]["properties"].as_object());
        let known: Vec<&str> =
            properties.into_iter().flat_map(|all| all.keys().map(String::as_str)).collect();
        let Some(unknown) = self.arguments.keys().find(|name| !known.contains(&name.as_str())) else {
            return Ok(());
        };
        let near = near::nearest(unknown, known.iter().copied(), 3, str::to_owned).map(str::to_owned);
        Err(CallError::NoArgument { name: unknown.clone(), near, known: known.join(", ") })
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.arguments.get(name).filter(|value| !value.is_null())
    }

    pub fn text(&self, name: &str) -> Result<Option<&str>, CallError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(CallError::expected(name, "text")),
        }
    }

    pub fn required(&self, name: &str) -> Result<&str, CallError> {
        self.text(name)?.ok_or_else(|| CallError::Missing { argument: name.to_owned() })
    }

    pub fn integer(&self, name: &str) -> Result<Option<i64>, CallError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        value.as_i64().map(Some).ok_or_else(|| CallError::expected(name, "a whole number"))
    }

    /// One of some words; the first if it is missing.
    pub fn word<'a>(&self, name: &str, words: &[&'a str]) -> Result<&'a str, CallError> {
        let Some(word) = self.text(name)? else { return Ok(words[0]) };
        let known = words.iter().find(|known| **known == word);
        known.copied().ok_or_else(|| CallError::expected(name, format!("one of {}", words.join(", "))))
    }

    /// The window of time.
    fn window(&self, archive: &Archive) -> Result<Window, CallError> {
        let window = archive.window(self.integer("from_ns")?, self.integer("to_ns")?);
        if window.from > window.to {
            return Err(CallError::Window { from: window.from, to: window.to });
        }
        Ok(window)
    }

    fn has_window(&self) -> bool {
        self.get("from_ns").is_some() || self.get("to_ns").is_some()
    }

    fn cursor<'a>(&'a self, of: &'a [&'a str]) -> Call<'a> {
        Call { tool: self.tool, arguments: self.arguments, of }
    }

    /// Conditions in SQL for the category, and for the process.
    fn conditions(&self) -> Result<Vec<String>, CallError> {
        let mut conditions = Vec::new();
        if let Some(category) = self.text("category")? {
            conditions.push(like("category", category));
        }
        let process = match self.get("process") {
            Some(Value::Number(pid)) => Some(pid.to_string()),
            _ => self.text("process")?.map(str::to_owned),
        };
        if let Some(process) = process {
            conditions.push(match process.parse::<u64>() {
                // Numbers have 63 bits and a sign there.
                Ok(pid) => format!("pid = {}", pid as i64),
                Err(_) => like("process", &process),
            });
        }
        Ok(conditions)
    }
}

/// A condition in SQL: a column is a text, in which `*` stands for any.
fn like(column: &str, text: &str) -> String {
    if !text.contains('*') {
        return format!("{column} = {}", literal(text));
    }
    // These stand for themselves.
    let pattern = text.replace('[', "[[]").replace('?', "[?]");
    format!("{column} GLOB {}", literal(&pattern))
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''").replace('\0', ""))
}

/// Adds a page of the rows of a statement to an answer.
fn page(
    archive: &Archive,
    arguments: &Arguments<'_>,
    sql: &str,
    answer: Answer,
    grouped: usize,
) -> Result<String, CallError> {
    let of = [archive.sha256.as_str()];
    let cursor = arguments.cursor(&of);
    let first = cursor.row()?;
    let mut page = Page { answer, left: first, is_full: false, refused: None, grouped, names: Vec::new() };
    let asked = archive.database.select(sql, &mut page);
    if let Some(why) = page.refused {
        return Err(why);
    }
    match asked {
        Err(AskError::Write(_)) if page.is_full => {}
        Err(error) => return Err(CallError::Ask(error)),
        Ok(()) => {}
    }
    let next = page.is_full.then(|| cursor.encode(first + page.answer.rows()));
    Ok(page.answer.finish(next))
}

/// Takes the rows of a statement, from one on, until the answer is full.
struct Page {
    answer: Answer,
    /// Rows to skip.
    left: u64,
    is_full: bool,
    refused: Option<CallError>,
    /// So many columns at the beginning say what group a row is of.
    grouped: usize,
    names: Vec<String>,
}

impl Answers for Page {
    fn begin(&mut self, columns: &[String]) -> io::Result<()> {
        if columns.len() > MAX_COLUMNS {
            self.refused = Some(CallError::Columns { found: columns.len(), most: MAX_COLUMNS });
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let (group, columns) = columns.split_at(self.grouped.min(columns.len()));
        self.names = group.to_vec();
        self.answer.columns(columns.iter().map(String::as_str));
        Ok(())
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        if self.left > 0 {
            self.left -= 1;
            return Ok(());
        }
        let (group, cells) = cells.split_at(self.names.len());
        let members = self.names.iter().zip(group).map(|(name, cell)| {
            format!("{}:{}", Value::from(name.as_str()), super::answer::value(cell, 100))
        });
        let group = members.collect::<Vec<_>>().join(",");
        self.is_full = !self.answer.row_of((!group.is_empty()).then_some(&group), cells);
        // No further rows are computed.
        if self.is_full { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::answer::MAX_BYTES;

    //= docs/mcp.md#limits
    #[test]
    fn the_list_of_tools_is_an_answer_like_others() {
        let list = json!({"tools": definitions(true)}).to_string();
        assert!(list.len() + 200 < MAX_BYTES, "{}", list.len());
    }

    #[test]
    fn every_tool_describes_all_of_its_arguments() {
        let names = |may_record| {
            let tools = definitions(may_record);
            let names =
                tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
            names.collect::<Vec<_>>()
        };
        assert_eq!(names(false), ["overview", "top", "window", "query", "compare"]);
        assert_eq!(names(true).last().unwrap(), RECORD);
        for tool in definitions(true).as_array().unwrap() {
            for (name, property) in tool["inputSchema"]["properties"].as_object().unwrap() {
                assert!(property["description"].as_str().unwrap().len() > 10, "{name}");
            }
        }
    }

    #[test]
    fn texts_are_quoted_in_conditions() {
        assert_eq!(like("name", "it's"), "name = 'it''s'");
        assert_eq!(like("name", "a*[b]?"), "name GLOB 'a*[[]b][?]'");
    }
}
