//! Measurements of a test specification.

use crate::args::bad_value::BadValue;
use serde::Deserialize;
use std::fmt;
use trace_analysis::assertion::Kind;
use trace_analysis::samples::{Anchor, Exactly, Quantity};
use trace_format::shown::Shown;

/// A measurement of a test specification.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(try_from = "Members")]
pub struct Measurement {
    /// Its label in results.
    pub label: String,
    pub unit: String,
    pub kind: Quantity,
    pub split_first: bool,
    pub expected_sample_count: Option<u64>,
}

/// All members of any kind of measurement.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Members {
    r#type: String,
    output_test_name: Option<String>,
    #[serde(default)]
    pub split_first: bool,
    pub expected_sample_count: Option<u64>,
    event_name: Option<String>,
    event_category: Option<String>,
    event_kind: Option<Kind>,
    argument_name: Option<String>,
    argument_unit: Option<String>,
    first_event_name: Option<String>,
    first_event_category: Option<String>,
    first_event_anchor: Option<Anchor>,
    second_event_name: Option<String>,
    second_event_category: Option<String>,
    second_event_anchor: Option<Anchor>,
}

impl TryFrom<Members> for Measurement {
    type Error = BadValue;

    fn try_from(members: Members) -> Result<Self, BadValue> {
        let of = members.r#type;
        let need = |member: &str, value: Option<String>| value.ok_or_else(|| format!("{of} needs {member}"));
        let has_event = members.event_name.is_some() || members.event_category.is_some();
        let has_kind = members.event_kind.is_some();
        let has_argument = members.argument_name.is_some() || members.argument_unit.is_some();
        let has_pair = [&members.first_event_name, &members.first_event_category]
            .into_iter()
            .any(Option::is_some)
            || [&members.second_event_name, &members.second_event_category].into_iter().any(Option::is_some)
            || [members.first_event_anchor, members.second_event_anchor]
                .into_iter()
                .any(|anchor| anchor.is_some());
        let refuse = |is_wrong: bool, what: &str| match is_wrong {
            true => Err(format!("{of} has no {what}")),
            false => Ok(()),
        };
        let (kind, label, unit) = match of.as_str() {
            "duration" => {
                refuse(has_argument, "argument")?;
                refuse(has_pair, "first or second event")?;
                let event = exactly(
                    need("event_name", members.event_name)?,
                    need("event_category", members.event_category)?,
                );
                let label = label(&event);
                (Quantity::Duration(event, members.event_kind), label, "ms".to_owned())
            }
            "time_between" => {
                refuse(has_kind, "event_kind")?;
                refuse(has_argument, "argument")?;
                refuse(has_event, "event_name or event_category")?;
                let first = exactly(
                    need("first_event_name", members.first_event_name)?,
                    need("first_event_category", members.first_event_category)?,
                );
                let second = exactly(
                    need("second_event_name", members.second_event_name)?,
                    need("second_event_category", members.second_event_category)?,
                );
                let label = format!("{} to {}", label(&first), label(&second));
                let kind = Quantity::TimeBetween {
                    first,
                    first_anchor: members.first_event_anchor.unwrap_or_default(),
                    second,
                    second_anchor: members.second_event_anchor.unwrap_or_default(),
                };
                (kind, label, "ms".to_owned())
            }
            "argument_value" => {
                refuse(has_kind, "event_kind")?;
                refuse(has_pair, "first or second event")?;
                let event = exactly(
                    need("event_name", members.event_name)?,
                    need("event_category", members.event_category)?,
                );
                let argument = need("argument_name", members.argument_name)?;
                let label = format!("{}, {argument}", label(&event));
                let unit = need("argument_unit", members.argument_unit)?;
                (Quantity::ArgumentValue { event, argument }, label, unit)
            }
            other => {
                return Err(
                    format!("type is {other:?}, expected duration, time_between or argument_value").into()
                );
            }
        };
        Ok(Self {
            label: members.output_test_name.unwrap_or(label),
            unit,
            kind,
            split_first: members.split_first,
            expected_sample_count: members.expected_sample_count,
        })
    }
}

impl Measurement {
    /// Checks the values of its members.
    pub fn check(&self) -> Result<(), BadValue> {
        match self.expected_sample_count {
            Some(0) => Err(format!("{}: expected_sample_count is 0, expected 1 or more", self.label).into()),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Measurement {
    /// What it measures, for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Quantity::Duration(event, _) => write!(f, "{}", event_text(event)),
            Quantity::TimeBetween { first, second, .. } => {
                write!(f, "{} to {}", event_text(first), event_text(second))
            }
            Quantity::ArgumentValue { event, argument } => {
                write!(f, "{} of {}", Shown(argument), event_text(event))
            }
        }
    }
}

fn exactly(name: String, category: String) -> Exactly {
    Exactly { name, category }
}

fn label(event: &Exactly) -> String {
    format!("{} ({})", event.name, event.category)
}

/// An event, for people.
fn event_text(event: &Exactly) -> String {
    format!("{} of category {}", Shown(&event.name), Shown(&event.category))
}
