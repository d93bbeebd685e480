//! What the JSON of all commands has in common.
//= docs/json.md#rules

use crate::shell::exit::Failure;
use crate::shell::stdio::print_document;
use serde_json::Value;

/// The version of the objects that commands print: members may be added to it.
pub const VERSION: u32 = 1;

/// Prints one value in a line.
pub fn print(value: &Value) -> Result<(), Failure> {
    print_document(&format!("{value}\n"))
}
