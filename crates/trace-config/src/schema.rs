//! Known keys: the types of their values, and whether a recording does what they ask for.

use crate::tree::{Field, Value, Wrong, unknown};

/// A key of a message.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Its name.
    pub name: &'static str,
    expected: Expected,
    is_repeated: bool,
    fate: Fate,
}

/// The types of values.
#[derive(Clone, Copy, Debug)]
pub enum Expected {
    /// Any: the value is not looked at.
    Any,
    /// A whole number up to this.
    Whole(u64),
    /// True or false.
    Truth,
    /// Text in quotes.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Fields in braces.
    Message(&'static [Known]),
}

/// What becomes of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It becomes an option.
    Used,
    /// A message names it.
    Lacking,
    /// It changes nothing that is recorded.
    Idle,
    /// It asks for less than a recording has: the file is refused.
    Refused(&'static str),
}

/// A number of 32 bits.
pub const WHOLE: Expected = Expected::Whole(u32::MAX as u64);

/// A key that becomes an option.
pub const fn key(name: &'static str, expected: Expected) -> Known {
    Known { name, expected, is_repeated: false, fate: Fate::Used }
}

/// A key that becomes an option, and may be repeated.
pub const fn many(name: &'static str, expected: Expected) -> Known {
    Known { name, expected, is_repeated: true, fate: Fate::Used }
}

/// A key that a message names.
pub const fn lacking(name: &'static str) -> Known {
    Known { name, expected: Expected::Any, is_repeated: true, fate: Fate::Lacking }
}

/// A key that changes nothing that is recorded.
pub const fn idle(name: &'static str) -> Known {
    Known { name, expected: Expected::Any, is_repeated: true, fate: Fate::Idle }
}

/// A key that asks for protection which a recording does not give, with what to do instead.
//= docs/configurations.md#privacy
pub const fn protecting(name: &'static str, instead: &'static str) -> Known {
    Known { name, expected: Expected::Any, is_repeated: true, fate: Fate::Refused(instead) }
}

/// Why such a key is refused.
pub fn unprotected(at: usize, name: &str, instead: &str) -> Wrong {
    Wrong::new(at, format!("{name} protects what a recording would have: {instead}"))
}

/// Checks fields against the known ones of a message, and collects those that nothing is recorded for.
pub fn check(fields: &[Field], message: &'static [Known], lacks: &mut Vec<Wrong>) -> Result<(), Wrong> {
    for (index, field) in fields.iter().enumerate() {
        let known = message.iter().find(|known| known.name == field.name).ok_or_else(|| {
            let names: Vec<&str> = message.iter().map(|known| known.name).collect();
            Wrong::new(field.at, unknown("key", &field.name, &names))
        })?;
        if !known.is_repeated && fields[..index].iter().any(|other| other.name == field.name) {
            return Err(Wrong::new(field.at, format!("{} is already set", field.name)));
        }
        match (known.is_repeated, &field.value) {
            (true, value) if !matches!(known.expected, Expected::Any) => {
                value.each().try_for_each(|value| check_value(value, known.expected, lacks))?;
            }
            (_, value) => check_value(value, known.expected, lacks)?,
        }
        match known.fate {
            _ if field.value.is_nothing() => {}
            Fate::Lacking => lacks.push(Wrong::new(field.at, field.name.clone())),
            Fate::Refused(instead) => return Err(unprotected(field.at, &field.name, instead)),
            Fate::Used | Fate::Idle => {}
        }
    }
    Ok(())
}

fn check_value(value: &Value, expected: Expected, lacks: &mut Vec<Wrong>) -> Result<(), Wrong> {
    match expected {
        Expected::Any => Ok(()),
        Expected::Whole(most) => value.whole(most).map(drop),
        Expected::Truth => value.truth().map(drop),
        Expected::Text => value.text().map(drop),
        Expected::Word(known) => value.word(known).map(drop),
        Expected::Message(message) => check(value.message()?, message, lacks),
    }
}

/// The value of a key that is given at most once.
pub fn find<'a>(fields: &'a [Field], name: &str) -> Option<&'a Value> {
    fields.iter().find(|field| field.name == name).map(|field| &field.value)
}

/// The values of a key that may be repeated, those of lists one by one.
pub fn each<'a>(fields: &'a [Field], name: &'a str) -> impl Iterator<Item = &'a Value> {
    fields.iter().filter(move |field| field.name == name).flat_map(|field| field.value.each())
}

/// A whole number, if it is given and not zero.
pub fn number(fields: &[Field], name: &str) -> Result<Option<u64>, Wrong> {
    Ok(find(fields, name).map(|value| value.whole(u64::MAX)).transpose()?.filter(|number| *number > 0))
}

/// Whether a truth value is given, and true.
pub fn is_set(fields: &[Field], name: &str) -> Result<bool, Wrong> {
    Ok(find(fields, name).map(Value::truth).transpose()? == Some(true))
}
