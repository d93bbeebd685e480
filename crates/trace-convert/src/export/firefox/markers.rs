//! What markers carry: fields of schemas, which say how they are shown.
//!
//! A schema belongs to the names and types of some arguments; its fields have keys of their own, because an
//! argument may have any name, such as `type`.
//= docs/firefox.md#arguments

use crate::json::Json;
use crate::members::Members;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;

/// Schemas of different arguments; markers with further ones have them as text.
const MAX_SCHEMAS: usize = 1000;
/// Numbers that the viewer's doubles cannot hold are text.
pub(super) const MAX_INTEGER: u64 = 1 << 53;
/// Fields that are shown in the marker's description.
const MAX_DESCRIBED: usize = 8;

/// How a field is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Format {
    Text,
    Integer,
    Decimal,
    FlowId,
    LastFlowId,
}

impl Format {
    const fn name(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Integer => "integer",
            Self::Decimal => "decimal",
            Self::FlowId => "flow-id",
            Self::LastFlowId => "terminating-flow-id",
        }
    }
}

/// What a schema is for, and its fields.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Schema {
    kind: &'static str,
    /// Whether markers of it never overlap each other partly.
    is_nested: bool,
    fields: Vec<(String, Format)>,
}

/// All schemas, numbered.
#[derive(Default)]
pub struct Schemas {
    numbers: BTreeMap<Schema, usize>,
    /// Markers whose arguments are text, because there were too many schemas.
    pub as_text: u64,
}

/// A flow's part in a marker.
pub struct FlowPart {
    /// The number of the text of its id.
    pub id: u32,
    pub is_last: bool,
}

impl Schemas {
    /// Writes the data of a marker.
    pub fn write<W: Write>(
        &mut self,
        kind: &'static str,
        is_nested: bool,
        arguments: &str,
        flow: Option<FlowPart>,
        json: &mut Json<W>,
    ) {
        let mut values = parsed(arguments);
        if let Some(FlowPart { id, is_last }) = flow {
            let format = if is_last { Format::LastFlowId } else { Format::FlowId };
            values.insert(0, ("flow".to_owned(), format, id.to_string()));
        }
        let fields = values.iter().map(|(name, format, _)| (name.clone(), *format)).collect();
        let mut schema = Schema { kind, is_nested, fields };
        if self.numbers.len() >= MAX_SCHEMAS && !self.numbers.contains_key(&schema) {
            self.as_text += 1;
            values = vec![("arguments".to_owned(), Format::Text, arguments.to_owned())];
            schema.fields = vec![("arguments".to_owned(), Format::Text)];
        }
        let next = self.numbers.len();
        let number = *self.numbers.entry(schema).or_insert(next);
        json.raw("{\"type\":\"");
        json.raw(kind);
        json.integer_behind(" ", number);
        json.raw("\"");
        for (place, (_, format, value)) in values.iter().enumerate() {
            json.integer_behind(",\"f", place);
            json.raw("\":");
            match format {
                Format::Text => json.string(value.as_bytes()),
                _ => json.raw(value),
            }
        }
        json.raw("}");
    }

    /// Writes all schemas.
    pub fn write_list<W: Write>(&self, json: &mut Json<W>) {
        let mut schemas: Vec<_> = self.numbers.iter().collect();
        schemas.sort_by_key(|(_, number)| **number);
        json.raw("[");
        for (schema, number) in schemas {
            json.raw(if *number == 0 { "{\"name\":\"" } else { ",{\"name\":\"" });
            json.raw(schema.kind);
            json.integer_behind(" ", *number);
            json.raw(
                "\",\"tooltipLabel\":\"{marker.name}\",\"chartLabel\":\"{marker.name}\",\"tableLabel\":",
            );
            let mut label = String::new();
            for (place, (name, _)) in schema.fields.iter().take(MAX_DESCRIBED).enumerate() {
                let separator = if place == 0 { "" } else { ", " };
                // The braces of a label enclose what is replaced.
                let name = name.replace('{', "(").replace('}', ")");
                label += &format!("{separator}{name}={{marker.data.f{place}}}");
            }
            json.string(label.as_bytes());
            json.raw(",\"display\":[\"marker-chart\",\"marker-table\",\"timeline-overview\"],\"fields\":[");
            for (place, (name, format)) in schema.fields.iter().enumerate() {
                json.raw(if place == 0 { "{\"key\":\"f" } else { ",{\"key\":\"f" });
                json.integer(place);
                json.string_behind("\",\"label\":", name.as_bytes());
                json.raw(",\"format\":\"");
                json.raw(format.name());
                json.raw("\"}");
            }
            json.raw(if schema.is_nested { "],\"isStackBased\":true}" } else { "]}" });
        }
        json.raw("]");
    }
}

/// The arguments of an event: their names, formats and values.
fn parsed(arguments: &str) -> Vec<(String, Format, String)> {
    if arguments.is_empty() {
        return Vec::new();
    }
    let Ok(Members(members)) = serde_json::from_str(arguments) else {
        // No object: the text of a log entry.
        return vec![("message".to_owned(), Format::Text, arguments.to_owned())];
    };
    let of = |value: Value| match value {
        Value::String(text) => (Format::Text, text),
        Value::Number(number) if number.is_f64() => (Format::Decimal, number.to_string()),
        Value::Number(number) => {
            let size = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
            let is_exact = size.is_some_and(|size| size <= MAX_INTEGER);
            (if is_exact { Format::Integer } else { Format::Text }, number.to_string())
        }
        value => (Format::Text, value.to_string()),
    };
    // A name may occur more than once.
    let fields = members.into_iter().map(|(name, value)| {
        let (format, value) = of(serde_json::from_str(value.get()).unwrap_or_default());
        (name.into_owned(), format, value)
    });
    fields.collect()
}
