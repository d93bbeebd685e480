//! How the trace was recorded, in Chrome's documents.
//= docs/catapult.md#other-data

use crate::json::Json;
use std::io::Write;
use trace_reader::{Event, Mark, Value};

/// The members that the arguments of the begin of a recording become, with the names of the arguments.
const MEMBERS: [(&str, &str); 6] = [
    ("host", "host"),
    ("kernel", "kernel"),
    ("boot_id", "boot_id"),
    ("clock", "clock_source"),
    ("wall_clock_ns", "wall_clock_ns"),
    ("recorded_by_version", "version"),
];

/// The members, of the first recording.
#[derive(Default)]
pub(super) struct Recording {
    members: Option<String>,
}

impl Recording {
    /// Learns from the begin of a recording.
    pub fn learn(&mut self, mark: Mark, event: &Event<'_>) {
        if self.members.is_some() || mark != Mark::Begin {
            return;
        }
        let mut json = Json::new(Vec::new());
        for (member, argument) in MEMBERS {
            let Some(value @ (Value::String(_) | Value::Uint64(_))) = event.arguments.find(argument) else {
                continue;
            };
            json.raw("\"");
            json.raw(member);
            json.raw("\":");
            // Text, because JavaScript would round it.
            if let Value::Uint64(number) = value {
                json.integer_behind("\"", number);
                json.raw("\"");
            } else {
                json.value(&value);
            }
            json.raw(",");
        }
        json.thousandths_behind("\"wall_clock_at_us\":", event.time.nanos().0);
        self.members = Some(json.take());
    }

    /// Writes the section, if the trace says how it was recorded.
    pub fn write<W: Write>(&self, json: &mut Json<W>) {
        if let Some(members) = &self.members {
            json.raw(",\"otherData\":{");
            json.raw(members);
            json.raw(",\"converted_by_version\":\"");
            json.raw(env!("CARGO_PKG_VERSION"));
            json.raw("\"}");
        }
    }
}
