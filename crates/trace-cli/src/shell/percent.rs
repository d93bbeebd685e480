//! Percent-encoding.

/// A text in which all characters but plain ones are written as `%` and two digits for each byte.
pub fn encoded(text: &str, is_plain: impl Fn(char) -> bool) -> String {
    let mut encoded = String::new();
    for char in text.chars() {
        match is_plain(char) {
            true => encoded.push(char),
            false => {
                let mut bytes = [0; 4];
                char.encode_utf8(&mut bytes).bytes().for_each(|byte| encoded += &format!("%{byte:02X}"));
            }
        }
    }
    encoded
}
