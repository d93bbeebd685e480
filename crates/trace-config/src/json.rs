//! JSON, with comments, as a tree.

use crate::position;
use crate::tree::{Field, Kind, Value, Wrong};
use jsonc_parser::ast::{self, ObjectPropName};

/// Reads the members of an object, with comments and commas before closing brackets.
pub fn parse(text: &str) -> Result<Vec<Field>, Wrong> {
    let plain = position::without_comments(text)?;
    // This parser bounds the depth and names the place of an error exactly; the other one has all places.
    if let Err(error) = serde_json::from_str::<serde_json::Value>(&plain) {
        let at = position::offset(&plain, &error).unwrap_or_default();
        return Err(Wrong::new(at, position::message(&error)));
    }
    let tree = jsonc_parser::parse_to_ast(&plain, &Default::default(), &Default::default());
    match tree.map_err(|error| Wrong::new(0, error.to_string()))?.value {
        Some(ast::Value::Object(object)) => fields(&object),
        _ => Err(Wrong::new(0, "expected an object, { ... }")),
    }
}

fn fields(object: &ast::Object<'_>) -> Result<Vec<Field>, Wrong> {
    let mut fields: Vec<Field> = Vec::with_capacity(object.properties.len());
    for property in &object.properties {
        let (at, name) = match &property.name {
            ObjectPropName::String(text) => (text.range.start, text.value.to_string()),
            ObjectPropName::Word(word) => (word.range.start, word.value.to_owned()),
        };
        fields.push(Field { at, name, value: value(&property.value)? });
    }
    Ok(fields)
}

fn value(found: &ast::Value<'_>) -> Result<Value, Wrong> {
    let (range, kind) = match found {
        ast::Value::StringLit(text) => (text.range, Kind::Text(text.value.as_bytes().to_vec())),
        ast::Value::NumberLit(number) => (number.range, Kind::Number(number.value.to_owned())),
        ast::Value::BooleanLit(truth) => (truth.range, Kind::Word(truth.value.to_string())),
        ast::Value::NullKeyword(null) => (null.range, Kind::Word("null".to_owned())),
        ast::Value::Object(object) => (object.range, Kind::Message(fields(object)?)),
        ast::Value::Array(array) => {
            (array.range, Kind::List(array.elements.iter().map(value).collect::<Result<_, _>>()?))
        }
    };
    Ok(Value { at: range.start, kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_have_their_places() {
        let fields = parse("{ // one\n \"a\": [1, \"\\u00e4\",], \"b\": {\"c\": true}, }").unwrap();
        let names: Vec<_> =
            fields.iter().map(|field| (field.at, field.name.as_str(), field.value.at)).collect();
        assert_eq!(names, [(10, "a", 15), (31, "b", 36)]);
        let list: Vec<_> = fields[0].value.each().map(ToString::to_string).collect();
        assert_eq!(list, ["1", "\"\u{e4}\""]);
        assert_eq!(fields[1].value.message().unwrap()[0].value.truth(), Ok(true));
        assert_eq!(parse("{\"a\": }"), Err(Wrong::new(7, "expected value")));
        assert_eq!(parse("[]"), Err(Wrong::new(0, "expected an object, { ... }")));
        assert!(parse(&"{\"a\":".repeat(1000)).unwrap_err().message.contains("recursion limit"));
        assert!(parse("{'a': 1}").is_err());
    }
}
