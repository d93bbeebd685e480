//! The fields of an event and their positions, from the kernel's `format` files; nothing about them is
//! assumed.
//= docs/kernel.md#formats

/// An event of the kernel's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// Its name.
    pub name: String,
    /// The number in front of its payload, which differs from boot to boot.
    pub id: u16,
    /// Its fields, those that all events have first.
    pub fields: Vec<Field>,
}

/// A field of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its position and kind.
    pub place: FieldLocation,
}

/// The position of a field in the payload, and its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldLocation {
    /// Its offset.
    pub offset: u16,
    /// Its bytes; 0 for text that extends to the payload's end.
    pub size: u16,
    /// Its kind.
    pub kind: Kind,
}

/// The kind of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number.
    Unsigned,
    /// A number that may be negative.
    Signed,
    /// An address.
    Pointer,
    /// One bit.
    Bool,
    /// Text, up to a zero.
    Text,
    /// The position of text: offset and length, of 16 bits each.
    TextElsewhere,
    /// The same, counted from the end of this field.
    TextBehind,
    /// Something else, such as a list.
    Other,
}

impl Format {
    /// Parses a `format` file; none if it is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let line = |head: &str| text.lines().find_map(|line| line.strip_prefix(head));
        Some(Self {
            name: line("name:")?.trim().to_owned(),
            id: line("ID:")?.trim().parse().ok()?,
            fields: fields(text),
        })
    }

    /// The position of the field with this name.
    #[must_use]
    pub fn place(&self, name: &str) -> Option<FieldLocation> {
        self.fields.iter().find(|field| field.name == name).map(|field| field.place)
    }
}

/// The lines of a text that describe fields.
pub(crate) fn fields(text: &str) -> Vec<Field> {
    text.lines().filter_map(field).collect()
}

/// `field:unsigned int name[4]; offset:8; size:4; signed:0;`
fn field(line: &str) -> Option<Field> {
    let mut parts = line.trim().split(';').map(str::trim);
    let declaration = parts.next()?.strip_prefix("field:")?;
    let number = |part: Option<&str>, head: &str| part?.strip_prefix(head)?.parse::<u16>().ok();
    let offset = number(parts.next(), "offset:")?;
    let size = number(parts.next(), "size:")?;
    let is_signed = number(parts.next(), "signed:").unwrap_or(0) == 1;
    let (before, array) = match declaration.split_once('[') {
        // In `__data_loc char[] name` the brackets are part of the type.
        Some((before, behind)) if behind.trim_end().ends_with(']') => (before, true),
        _ => (declaration, false),
    };
    let (kind, name) = before.rsplit_once([' ', '*'])?;
    let is_text = |kind: &str| kind.split_whitespace().any(|word| word.trim_end_matches("[]") == "char");
    let kind = if declaration.starts_with("__data_loc") {
        if is_text(kind) { Kind::TextElsewhere } else { Kind::Other }
    } else if declaration.starts_with("__rel_loc") {
        if is_text(kind) { Kind::TextBehind } else { Kind::Other }
    } else if array {
        if is_text(kind) { Kind::Text } else { Kind::Other }
    } else if before.contains('*') {
        Kind::Pointer
    } else if kind.trim() == "bool" {
        Kind::Bool
    } else if !matches!(size, 1 | 2 | 4 | 8) {
        Kind::Other
    } else if is_signed {
        Kind::Signed
    } else {
        Kind::Unsigned
    };
    Some(Field { name: name.trim().to_owned(), place: FieldLocation { offset, size, kind } })
}

impl FieldLocation {
    /// The field's bytes; none if the payload ends before.
    #[must_use]
    pub fn bytes<'a>(&self, payload: &'a [u8]) -> Option<&'a [u8]> {
        let bytes = payload.get(usize::from(self.offset)..)?;
        if self.size == 0 { Some(bytes) } else { bytes.get(..usize::from(self.size)) }
    }

    /// The number without its sign.
    #[inline]
    #[must_use]
    pub fn unsigned(&self, payload: &[u8]) -> u64 {
        let bytes = payload.get(usize::from(self.offset)..).unwrap_or_default();
        match self.size {
            4 => bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes).into()),
            8 => bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)),
            2 => bytes.first_chunk().map_or(0, |bytes| u16::from_le_bytes(*bytes).into()),
            1 => bytes.first().copied().unwrap_or(0).into(),
            _ => 0,
        }
    }

    /// The number, with its sign if it has one.
    #[inline]
    #[must_use]
    pub fn signed(&self, payload: &[u8]) -> i64 {
        let value = self.unsigned(payload);
        match (self.kind, self.size) {
            (Kind::Signed, 1) => (value as i8).into(),
            (Kind::Signed, 2) => (value as i16).into(),
            (Kind::Signed, 4) => (value as i32).into(),
            _ => value as i64,
        }
    }

    /// The text, up to the first zero: the bytes after it are left over from earlier events.
    #[inline]
    #[must_use]
    pub fn text<'a>(&self, payload: &'a [u8]) -> &'a [u8] {
        let place = || {
            let word = self.unsigned(payload);
            ((word & 0xffff) as usize, (word >> 16) as usize)
        };
        let bytes = match self.kind {
            Kind::Text => self.bytes(payload),
            Kind::TextElsewhere => {
                let (offset, length) = place();
                payload.get(offset..offset + length)
            }
            Kind::TextBehind => {
                let (offset, length) = place();
                let start = usize::from(self.offset) + usize::from(self.size) + offset;
                payload.get(start..start + length)
            }
            _ => None,
        };
        cut(bytes.unwrap_or_default())
    }
}

/// Text up to its first zero.
#[must_use]
pub fn cut(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len())]
}

#[cfg(test)]
mod tests;
