//! Columns of messages, as JSON.

use std::fmt::Write;

/// Appends a list: what `each` appends for every item, with commas between.
pub fn list<T>(out: &mut String, items: impl IntoIterator<Item = T>, mut each: impl FnMut(&mut String, T)) {
    out.push('[');
    for (place, item) in items.into_iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        each(out, item);
    }
    out.push(']');
}

/// Appends a list of numbers.
pub fn numbers(out: &mut String, numbers: impl IntoIterator<Item = u64>) {
    list(out, numbers, |out, number| _ = write!(out, "{number}"));
}

/// Appends times as differences: the first from a base, which may be later, the others from the one before.
pub fn times(out: &mut String, base: u64, times: impl IntoIterator<Item = u64>) {
    let mut before = base;
    list(out, times, |out, at: u64| {
        let difference = i128::from(at) - i128::from(before);
        before = at;
        _ = write!(out, "{difference}");
    });
}

/// Appends values: `null` for those that JSON has no number for.
pub fn values(out: &mut String, values: impl IntoIterator<Item = f64>) {
    list(out, values, |out, value: f64| {
        _ = if value.is_finite() { write!(out, "{value:?}") } else { out.write_str("null") };
    });
}

/// Appends a text.
pub fn text(out: &mut String, text: &str) {
    _ = write!(out, "{}", serde_json::Value::from(text));
}

/// Appends a member's name, behind a comma unless it is the first.
pub fn member(out: &mut String, name: &str) {
    if !out.ends_with('{') {
        out.push(',');
    }
    _ = write!(out, "\"{name}\":");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_json() {
        let mut out = String::from("{");
        member(&mut out, "t");
        times(&mut out, 100, [90, 90, 120]);
        member(&mut out, "v");
        values(&mut out, [1.0, f64::NAN, -1e300, 0.1]);
        member(&mut out, "n");
        numbers(&mut out, [0, u64::MAX]);
        member(&mut out, "s");
        text(&mut out, "a\n\"b\u{202e}");
        out.push('}');
        assert_eq!(
            out,
            "{\"t\":[-10,0,30],\"v\":[1.0,null,-1e300,0.1],\"n\":[0,18446744073709551615],\"s\":\"a\\n\\\"b\u{202e}\"}"
        );
        assert!(serde_json::from_str::<serde_json::Value>(&out).is_ok());
    }
}
