//! Small traces of Perfetto's packets, made field by field: also of fields that the importer does not know,
//! and of what no encoder would write.

/// A message, encoded as it grows.
#[derive(Clone, Debug, Default)]
pub struct Message(Vec<u8>);

fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

impl Message {
    /// Adds a number.
    #[must_use]
    pub fn number(mut self, field: u64, value: u64) -> Self {
        varint(&mut self.0, field << 3);
        varint(&mut self.0, value);
        self
    }

    /// Adds text, or any bytes.
    #[must_use]
    pub fn text(mut self, field: u64, text: impl AsRef<[u8]>) -> Self {
        let text = text.as_ref();
        varint(&mut self.0, field << 3 | 2);
        varint(&mut self.0, text.len() as u64);
        self.0.extend_from_slice(text);
        self
    }

    /// Adds a message.
    #[must_use]
    pub fn message(self, field: u64, message: &Self) -> Self {
        self.text(field, &message.0)
    }
}

/// A file of these packets.
#[must_use]
pub fn trace(packets: &[Message]) -> Vec<u8> {
    packets.iter().fold(Message::default(), |trace, packet| trace.message(1, packet)).0
}
