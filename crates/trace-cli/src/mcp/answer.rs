//! The text of an answer: a JSON object with as many rows as there is room for.
//!
//! The object is text in a response, which is JSON, too; what counts is its size there, with the escapes.
//= docs/mcp.md#limits

use super::protocol::MAX_ID_BYTES;
use serde_json::Value;
use trace_convert::tables::{Cell, csv_text};
use trace_format::shown::Shown;

/// Most bytes of a response, with its end of line.
pub const MAX_BYTES: usize = 8000;
/// What is around the text: the object of the protocol with its longest id.
const AROUND_BYTES: usize = 142 + MAX_ID_BYTES;
/// What a text may have.
const TEXT_BYTES: usize = MAX_BYTES - AROUND_BYTES;
/// What closes the text: brackets, and the next cursor.
const TAIL_BYTES: usize = 150;
/// Most bytes of a text in a row.
const CELL_BYTES: usize = 400;
/// The same in a row that has no room otherwise.
const LEAST_CELL_BYTES: usize = 8;
/// Most columns of a row.
pub const MAX_COLUMNS: usize = 32;
/// Most bytes of a column's name in the response.
const NAME_BYTES: usize = 40;

/// Bytes of a text within a JSON string.
pub fn cost(text: &str) -> usize {
    let of = |byte: u8| match byte {
        b'"' | b'\\' => 2,
        0..0x20 => 6,
        _ => 1,
    };
    text.bytes().map(of).sum()
}

/// Text for people and models: escaped, and cut after a number of bytes.
pub fn shown(text: &str, bytes: usize) -> String {
    let shown = Shown(text).to_string();
    if shown.len() <= bytes {
        return shown;
    }
    let end = shown.floor_char_boundary(bytes);
    format!("{}…(+{} bytes)", &shown[..end], shown.len() - end)
}

/// The same, cut until its size in a response is small enough.
pub fn shown_within(text: &str, limit: usize) -> String {
    let mut bytes = limit;
    loop {
        let shown = shown(text, bytes);
        if cost(&Value::from(shown.as_str()).to_string()) <= limit || bytes < LEAST_CELL_BYTES {
            return shown;
        }
        bytes -= bytes / 8 + 1;
    }
}

/// An answer that grows.
#[derive(Debug)]
pub struct Answer {
    text: String,
    cost: usize,
    /// What belongs to the rows that come last.
    group: Option<String>,
    rows: u64,
}

impl Answer {
    pub fn new() -> Self {
        Self { text: "{".to_owned(), cost: 1, group: None, rows: 0 }
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.cost += cost(text);
    }

    /// Adds a member in front of the rows.
    pub fn member(&mut self, name: &str, value: &Value) {
        let separator = if self.text.len() > 1 { "," } else { "" };
        self.push(&format!("{separator}\"{name}\":{value}"));
    }

    /// Begins the rows, whose columns have names.
    pub fn columns<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        let names: Vec<Value> = names.into_iter().map(|name| shown_within(name, NAME_BYTES).into()).collect();
        self.member("columns", &names.into());
        self.push(",\"rows\":[");
    }

    /// Adds a row, if it has room.
    pub fn row(&mut self, cells: &[Cell<'_>]) -> bool {
        self.row_of(None, cells)
    }

    /// Adds a row of a group, which is an object with these members, and with rows of its own.
    pub fn row_of(&mut self, group: Option<&str>, cells: &[Cell<'_>]) -> bool {
        let is_new = self.group.as_deref() != group;
        let between = match (group.filter(|_| is_new), self.rows) {
            (Some(group), 0) => format!("{{{group},\"rows\":["),
            (Some(group), _) => format!("]}},{{{group},\"rows\":["),
            (None, 0) => String::new(),
            (None, _) => ",".to_owned(),
        };
        let mut bytes = CELL_BYTES;
        loop {
            let row: Vec<Value> = cells.iter().map(|cell| value(cell, bytes)).collect();
            let text = format!("{between}{}", Value::from(row));
            if self.cost + cost(&text) + TAIL_BYTES <= TEXT_BYTES {
                self.push(&text);
                self.group = group.map(str::to_owned);
                self.rows += 1;
                return true;
            }
            // A page has at least one row.
            if self.rows > 0 || bytes <= LEAST_CELL_BYTES {
                return false;
            }
            bytes /= 2;
        }
    }

    /// How many rows there are.
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// The text, with the cursor of the next page if there is one.
    pub fn finish(mut self, next: Option<String>) -> String {
        let end = if self.group.is_some() { "]}]" } else { "]" };
        self.push(end);
        if let Some(next) = next {
            self.member("next", &next.into());
        }
        self.push("}");
        self.text
    }
}

pub fn value(cell: &Cell<'_>, bytes: usize) -> Value {
    match *cell {
        Cell::Null => Value::Null,
        Cell::Integer(value) => value.into(),
        Cell::Unsigned(value) => value.into(),
        Cell::Double(value) if value.is_finite() => value.into(),
        Cell::Double(_) => csv_text(cell).into(),
        Cell::Text(text) => shown(text, bytes).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response_bytes(text: &str) -> usize {
        let id = "x".repeat(MAX_ID_BYTES);
        let result = serde_json::json!({"content": [{"type": "text", "text": text}], "isError": false,
            "resultType": "complete"});
        serde_json::json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string().len() + 1
    }

    //= docs/mcp.md#limits
    #[test]
    fn a_full_page_is_within_the_limit_and_uses_it() {
        for cell in ["a", "\"\\\n\u{7}", "größer \u{202e}", &"\"".repeat(3000), &"\\".repeat(500)] {
            let mut answer = Answer::new();
            answer.member("trace", &"\"\"\"".into());
            answer.columns(["\"name\"", "n"]);
            while answer.row(&[Cell::Text(cell), Cell::Integer(1)]) {}
            let rows = answer.rows();
            assert!(rows > 0);
            let text = answer.finish(Some("f".repeat(33)));
            let parsed: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(parsed["rows"].as_array().unwrap().len() as u64, rows);
            let bytes = response_bytes(&text);
            assert!((MAX_BYTES - 2200..=MAX_BYTES).contains(&bytes), "{bytes} with {cell}");
        }
    }

    #[test]
    fn the_widest_row_has_room_on_a_page_of_its_own() {
        let mut answer = Answer::new();
        answer.member("sql", &"x".repeat(3000).into());
        let names = vec!["\"".repeat(100); MAX_COLUMNS];
        answer.columns(names.iter().map(String::as_str));
        let long = "\"\u{7}".repeat(1000);
        assert!(answer.row(&vec![Cell::Text(&long); MAX_COLUMNS]));
        assert!(!answer.row(&[Cell::Text(&long)]) || answer.rows() == 2);
        assert!(response_bytes(&answer.finish(None)) <= MAX_BYTES);
    }

    #[test]
    fn groups_have_rows_of_their_own() {
        let mut answer = Answer::new();
        answer.columns(["n"]);
        for (group, n) in [("\"tid\":1", 1), ("\"tid\":1", 2), ("\"tid\":2", 3)] {
            assert!(answer.row_of(Some(group), &[Cell::Integer(n)]));
        }
        let expected =
            r#"{"columns":["n"],"rows":[{"tid":1,"rows":[[1],[2]]},{"tid":2,"rows":[[3]]}],"next":"x"}"#;
        assert_eq!(answer.finish(Some("x".to_owned())), expected);
        let mut answer = Answer::new();
        answer.columns(["n"]);
        assert_eq!(answer.finish(None), r#"{"columns":["n"],"rows":[]}"#);
    }

    #[test]
    fn long_texts_say_how_much_is_missing() {
        assert_eq!(shown("größer", 3), "gr…(+6 bytes)");
        assert_eq!(shown("a\nb", 10), "a\\nb");
        assert_eq!(shown_within("abc", 100), "abc");
        let quotes = "\"".repeat(1000);
        let text = shown_within(&quotes, 300);
        assert!(cost(&Value::from(text.as_str()).to_string()) <= 300 && text.len() > 50);
    }
}
