//! The fields of Perfetto's messages as Perfetto publishes them: numbers, names and types.
//!
//! The file of facts is written by `tests/perfetto/published.py`.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Messages, and below each an indented line for each field.
const PUBLISHED: &str = include_str!("published.txt");

/// A field: its number, its name, and its type with `repeated` and `packed` where they apply.
pub(crate) type Field = (u32, &'static str, &'static str);

static MESSAGES: LazyLock<HashMap<&str, Vec<Field>>> = LazyLock::new(|| {
    let mut messages: HashMap<&str, Vec<Field>> = HashMap::new();
    let mut message = "";
    for line in PUBLISHED.lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix("  ") {
            Some(field) => messages.entry(message).or_default().extend(parsed(field)),
            None => message = line,
        }
    }
    messages
});

fn parsed(field: &'static str) -> Option<Field> {
    let (number, rest) = field.split_once(' ')?;
    let (name, kind) = rest.split_once(' ')?;
    Some((number.parse().ok()?, name, kind))
}

/// The fields of a message, in the order of their numbers; none of a message that is not in the file.
pub(crate) fn fields(message: &str) -> &'static [Field] {
    MESSAGES.get(message).map_or(&[], Vec::as_slice)
}

/// The name of a message's field.
pub(crate) fn name(message: &str, number: u32) -> Option<&'static str> {
    let fields = fields(message);
    let found = fields.binary_search_by_key(&number, |(number, ..)| *number).ok()?;
    fields.get(found).map(|(_, name, _)| *name)
}

#[cfg(test)]
pub(crate) mod tests;
