//! Where the next page of an answer begins.
//!
//! The server keeps nothing: a cursor is the number of the row, and a checksum of that, of the call and of
//! the traces. One of another call, or of a trace that has changed since, is refused.

use super::error::CallError;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// The argument that has it.
pub const ARGUMENT: &str = "cursor";

/// What a cursor belongs to.
pub struct Call<'a> {
    pub tool: &'a str,
    pub arguments: &'a Map<String, Value>,
    /// The hashes of the traces, or what else the answer is made from.
    pub of: &'a [&'a str],
}

impl Call<'_> {
    fn check(&self, row: u64) -> u64 {
        let mut arguments = self.arguments.clone();
        arguments.remove(ARGUMENT);
        // The members are sorted.
        let text = Value::from(arguments).to_string();
        let mut hash = Sha256::new();
        for part in [self.tool, &text].iter().chain(self.of) {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.update(row.to_le_bytes());
        let bytes = hash.finalize();
        bytes.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    }

    /// The cursor of a page that begins with a row.
    pub fn encode(&self, row: u64) -> String {
        format!("{row:x}-{:016x}", self.check(row))
    }

    /// The first row of the page that is asked for.
    pub fn row(&self) -> Result<u64, CallError> {
        let text = match self.arguments.get(ARGUMENT) {
            None | Some(Value::Null) => return Ok(0),
            Some(Value::String(text)) => text,
            Some(_) => return Err(CallError::expected(ARGUMENT, "text")),
        };
        let row = text.split_once('-').and_then(|(row, _)| u64::from_str_radix(row, 16).ok());
        row.filter(|row| self.encode(*row) == *text).ok_or(CallError::Cursor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn arguments(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    //= docs/mcp.md#pages
    #[test]
    fn a_cursor_is_for_one_call_of_one_trace() {
        let first = arguments(json!({"trace": "a.fxt", "sql": "SELECT 1"}));
        let of =
            |arguments: &Map<String, Value>, hash: &[&str]| Call { tool: "query", arguments, of: hash }.row();
        assert_eq!(of(&first, &["h"]).unwrap(), 0);
        let cursor = Call { tool: "query", arguments: &first, of: &["h"] }.encode(17);
        let with =
            |sql: &str, cursor: &str| arguments(json!({"trace": "a.fxt", "sql": sql, "cursor": cursor}));
        assert_eq!(of(&with("SELECT 1", &cursor), &["h"]).unwrap(), 17);
        assert!(of(&with("SELECT 2", &cursor), &["h"]).is_err());
        assert!(of(&with("SELECT 1", &cursor), &["i"]).is_err());
        let far = cursor.replace("11-", "12-");
        for wrong in ["", "-", "11", "11-", far.as_str(), "zz-0", &format!(" {cursor}"), &"1".repeat(99)] {
            assert!(of(&with("SELECT 1", wrong), &["h"]).is_err(), "{wrong}");
        }
        assert!(of(&arguments(json!({"cursor": 17})), &[]).is_err());
    }
}
