//! The events of a document in pieces, as Chromium's `Flush` passes them: without brackets, and without a
//! comma at either end.

use std::io::{self, Write};

/// Largest piece of more than one event.
pub const MAX_BYTES: usize = 100 << 10;
/// Between two events.
const BETWEEN: &[u8] = b",\n";

/// Takes an array of events in JSON and passes them on.
pub struct Pieces<D> {
    deliver: D,
    piece: Vec<u8>,
    event: Vec<u8>,
    /// Brackets and braces that are open.
    depth: usize,
    is_in_text: bool,
    is_escaped: bool,
}

impl<D: FnMut(&[u8], bool)> Pieces<D> {
    /// Passes each piece to a function, with whether it is the last one.
    pub fn new(deliver: D) -> Self {
        let (piece, event) = (Vec::with_capacity(MAX_BYTES), Vec::new());
        Self { deliver, piece, event, depth: 0, is_in_text: false, is_escaped: false }
    }

    /// Passes on the last piece, which may be empty.
    pub fn finish(mut self) {
        (self.deliver)(&self.piece, true);
    }

    fn byte(&mut self, byte: u8) {
        let was_in_event = self.depth > 1;
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' => self.is_escaped = true,
            b'"' => self.is_in_text = !self.is_in_text,
            _ if self.is_in_text => {}
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        if was_in_event || self.depth > 1 {
            self.event.push(byte);
            if self.depth == 1 {
                self.end_event();
            }
        }
    }

    fn end_event(&mut self) {
        let length = self.piece.len() + BETWEEN.len() + self.event.len();
        if !self.piece.is_empty() {
            if length > MAX_BYTES {
                (self.deliver)(&self.piece, false);
                self.piece.clear();
            } else {
                self.piece.extend_from_slice(BETWEEN);
            }
        }
        self.piece.append(&mut self.event);
    }
}

impl<D: FnMut(&[u8], bool)> Write for Pieces<D> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        bytes.iter().for_each(|byte| self.byte(*byte));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(document: &str, at_a_time: usize) -> Vec<(String, bool)> {
        let mut found = Vec::new();
        let mut pieces =
            Pieces::new(|piece, is_last| found.push((String::from_utf8(piece.to_vec()).unwrap(), is_last)));
        for bytes in document.as_bytes().chunks(at_a_time) {
            pieces.write_all(bytes).unwrap();
        }
        pieces.finish();
        found
    }

    #[test]
    fn events_are_whole_whatever_is_in_their_texts() {
        let document = r#"[{"name":"]}\"{\\","args":{"list":[1,{}]}},{"name":"\\"}]"#;
        let expected = "{\"name\":\"]}\\\"{\\\\\",\"args\":{\"list\":[1,{}]}},\n{\"name\":\"\\\\\"}";
        for at_a_time in [1, 7, 1000] {
            assert_eq!(pieces(document, at_a_time), [(expected.to_owned(), true)]);
        }
        assert_eq!(pieces("[]", 1), [(String::new(), true)]);
    }

    #[test]
    fn a_piece_is_bounded_unless_it_is_one_event() {
        let small = format!("{{\"name\":\"{}\"}}", "x".repeat(40_000));
        let large = format!("{{\"name\":\"{}\"}}", "y".repeat(2 * MAX_BYTES));
        let found = pieces(&format!("[{small},{small},{small},{large},{small}]"), 64 << 10);
        let two = format!("{small},\n{small}");
        let expected = [(two, false), (small.clone(), false), (large, false), (small, true)];
        assert_eq!(found, expected);
    }
}
