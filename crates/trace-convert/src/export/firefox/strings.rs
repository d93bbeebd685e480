//! The texts that a profile refers to by number.

use crate::export::threads::Names;
use crate::json::Json;
use std::io::{self, Write};

/// Memory for different texts.
const MAX_BYTES: usize = 64 << 20;

/// All texts, numbered.
pub struct Strings(Names);

impl Default for Strings {
    fn default() -> Self {
        Self(Names::new(MAX_BYTES))
    }
}

impl Strings {
    /// The number of a text.
    pub fn number(&mut self, text: &str) -> u32 {
        self.0.number("", text)
    }

    /// How often there was no room for a text.
    pub fn dropped(&self) -> u64 {
        self.0.dropped
    }

    pub fn write<W: Write>(&self, json: &mut Json<W>) -> io::Result<()> {
        json.raw("[");
        for (place, (_, text)) in self.0.list().iter().enumerate() {
            json.raw(if place == 0 { "" } else { "," });
            json.string(text.as_bytes());
            json.flush_if_full()?;
        }
        json.raw("]");
        Ok(())
    }
}
