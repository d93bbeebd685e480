//! Members of an object of JSON, as they stand there.

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

/// The members of an object, in order.
pub(crate) struct Members<'a>(pub Vec<(Cow<'a, str>, &'a RawValue)>);

/// Text that is borrowed if it has no escapes.
#[derive(Deserialize)]
pub(crate) struct Borrowed<'a>(#[serde(borrow)] pub Cow<'a, str>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(key) = map.next_key::<Borrowed<'de>>()? {
                    members.push((key.0, map.next_value()?));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

/// An object in which each name has the last of its values, as for browsers; none if no name is there twice.
pub(crate) fn distinct(object: &str) -> Option<String> {
    let Members(mut members) = serde_json::from_str(object).ok()?;
    let (count, mut names) = (members.len(), HashSet::new());
    let is_last: Vec<bool> = members.iter().rev().map(|(name, _)| names.insert(name.clone())).collect();
    let mut is_last = is_last.into_iter().rev();
    members.retain(|_| is_last.next().unwrap_or(true));
    if members.len() == count {
        return None;
    }
    let texts = members.iter().map(|(name, value)| format!("{}:{value}", serde_json::Value::from(&**name)));
    Some(format!("{{{}}}", texts.collect::<Vec<_>>().join(",")))
}

/// The members of two objects, of which each may be an empty text.
#[must_use]
pub fn joined(first: &str, second: &str) -> String {
    let [first, second] = [first, second].map(|object| {
        let members = object.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        members.unwrap_or_default()
    });
    let separator = if first.is_empty() || second.is_empty() { "" } else { "," };
    format!("{{{first}{separator}{second}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_two_objects_are_joined() {
        let joined = [("{\"a\":{}}", "{\"b\":\"}\"}"), ("", "{\"b\":1}"), ("{\"a\":1}", "{}"), ("", "")]
            .map(|(first, second)| joined(first, second));
        assert_eq!(joined, ["{\"a\":{},\"b\":\"}\"}", "{\"b\":1}", "{\"a\":1}", "{}"]);
    }

    #[test]
    fn the_last_value_of_a_name_counts() {
        assert_eq!(
            distinct(r#"{"a":1,"b":[1, {"c":2}],"\u0061":"x\n","d":null,"b":1.50}"#).as_deref(),
            Some(r#"{"a":"x\n","d":null,"b":1.50}"#)
        );
        for object in [r#"{"a":1,"b":{"a":2,"a":3}}"#, "{}", "[1,1]", "{", r#"{"a":}"#] {
            assert_eq!(distinct(object), None, "{object}");
        }
    }
}
