//! Repairs almost valid JSON, as other programs write it and other readers accept it.
//= docs/import.md#what-is-no-json

/// Numbers that JSON has no form for; `-Infinity` comes before the one that it ends with.
const WORDS: [&str; 3] = ["NaN", "-Infinity", "Infinity"];

/// Larger values are not repaired: the result may be six times as large.
pub(super) const MAX_MENDED_BYTES: usize = 1 << 20;

/// Repairs a value; none if it has nothing to repair.
///
/// Commas before the end of a list or an object are removed, numbers that are not finite become text, control
/// characters in text become escapes, and invalid UTF-8 or half of a surrogate pair becomes U+FFFD.
pub(super) fn mended(value: &[u8]) -> Option<String> {
    if value.len() > MAX_MENDED_BYTES {
        return None;
    }
    let text = String::from_utf8_lossy(value);
    let mut rest = &*text;
    let mut json = String::with_capacity(text.len());
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string(rest, &mut json),
            ',' if rest[1..].trim_start().starts_with(['}', ']']) => 1,
            _ => match WORDS.iter().find(|word| rest.starts_with(**word)) {
                Some(word) => {
                    json.extend(["\"", word, "\""]);
                    word.len()
                }
                None => {
                    json.push(first);
                    first.len_utf8()
                }
            },
        };
        rest = &rest[length..];
    }
    (json.as_bytes() != value).then_some(json)
}

/// Repairs the string at the beginning of a text; returns its length.
fn string(text: &str, json: &mut String) -> usize {
    let mut at = 1;
    json.push('"');
    while let Some(next) = text[at..].chars().next() {
        let rest = &text[at..];
        at += match next {
            '"' => {
                json.push(next);
                return at + 1;
            }
            '\\' => escape(rest, json),
            '\0'..' ' => {
                json.push_str(&format!("\\u{:04x}", u32::from(next)));
                1
            }
            _ => {
                json.push(next);
                next.len_utf8()
            }
        };
    }
    at
}

/// Repairs the escape at the beginning of a text; returns its length.
fn escape(text: &str, json: &mut String) -> usize {
    let code = |text: &str| u32::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok();
    let behind = text.get(6..).and_then(code);
    let length = match (code(text), behind) {
        (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => 12,
        (Some(0xd800..0xe000), _) => {
            json.push_str("\\ufffd");
            return 6;
        }
        (Some(_), _) => 6,
        // The backslash, and the character after it.
        (None, _) => text.char_indices().nth(2).map_or(text.len(), |(at, _)| at),
    };
    json.push_str(&text[..length]);
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/import.md#what-is-no-json
    #[test]
    fn what_other_programs_write_becomes_json() {
        for (value, expected) in [
            (&br#"{"a":[1,],"b":2 , }"#[..], r#"{"a":[1],"b":2  }"#),
            (b"{\"a\":\"x\ny\x01,}\"}", r#"{"a":"x\u000ay\u0001,}"}"#),
            (
                br#"{"a":NaN,"b":[Infinity,-Infinity],"NaN":"NaN"}"#,
                r#"{"a":"NaN","b":["Infinity","-Infinity"],"NaN":"NaN"}"#,
            ),
            (b"{\"a\":\"b\xffad\"}", "{\"a\":\"b\u{fffd}ad\"}"),
            (
                br#"{"a":"\ud83d\ude00 \ud800 \udc00\ud800\u0041 \\ud800"}"#,
                r#"{"a":"\ud83d\ude00 \ufffd \ufffd\ufffd\u0041 \\ud800"}"#,
            ),
        ] {
            let mended = mended(value).unwrap();
            assert_eq!(mended, expected);
            serde_json::from_str::<serde_json::Value>(&mended).unwrap();
        }
    }

    #[test]
    fn nothing_else_is_changed() {
        for value in
            [r#"{"a":"\u00e9\"\\ NaN,}","b":[1,2,{"c":null}]}"#, "{\"a\":}", "\"\\", "\"\\u12", "{\"é\\é"]
        {
            assert_eq!(mended(value.as_bytes()), None, "{value}");
        }
    }
}
