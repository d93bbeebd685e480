//! Tables: fields by ordinal, so that either side may know more fields than the other.
//!
//! A table is a list of (ordinal, bytes) in ascending order of the ordinals; the bytes of a field are a value
//! (`codec`), and nothing may follow it. A field whose type is a table holds the bytes of that
//! table.

use crate::codec::{Decode, Encode, decode_whole, encode};
use crate::error::{ProtocolError, check_limit};
use crate::limits::{MAX_CATEGORIES, MAX_CATEGORY_NAME_BYTES, MAX_UNLISTED_NAMES};

/// A field of a table: its number on the wire and its name in errors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    pub ordinal: u16,
    pub name: &'static str,
}

impl Field {
    pub(crate) const fn new(ordinal: u16, name: &'static str) -> Field {
        Field { ordinal, name }
    }
}

/// How long a list of strings and each of its strings may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListLimits {
    pub list: &'static str,
    pub entries: usize,
    pub entry: &'static str,
    pub bytes: usize,
}

impl ListLimits {
    /// A list of categories.
    pub(crate) const CATEGORIES: ListLimits = ListLimits {
        list: "categories in a list",
        entries: MAX_CATEGORIES,
        entry: "category name bytes",
        bytes: MAX_CATEGORY_NAME_BYTES,
    };

    /// Providers that a request waits for, with their processes.
    #[cfg(feature = "controller")]
    pub(crate) const WAITED_FOR: ListLimits =
        ListLimits { list: "providers waited for", entries: 100, entry: "provider bytes", bytes: 200 };

    /// Names of categories that a list has no room for.
    pub(crate) const UNLISTED: ListLimits = ListLimits {
        list: "unlisted categories",
        entries: MAX_UNLISTED_NAMES,
        entry: "category name bytes",
        bytes: MAX_CATEGORY_NAME_BYTES,
    };

    fn check<S: AsRef<str>>(self, strings: &[S]) -> Result<(), ProtocolError> {
        check_limit(self.list, self.entries, strings.len())?;
        strings.iter().try_for_each(|string| check_limit(self.entry, self.bytes, string.as_ref().len()))
    }
}

/// Collects the fields of a table; they are written in ascending order.
pub(crate) struct TableWriter {
    name: &'static str,
    fields: Vec<(u16, Vec<u8>)>,
}

impl TableWriter {
    pub(crate) fn new(name: &'static str) -> TableWriter {
        TableWriter { name, fields: Vec::new() }
    }

    /// Adds a field.
    pub(crate) fn put<T: Encode + ?Sized>(&mut self, field: Field, value: &T) {
        let is_in_order = self.fields.last().is_none_or(|(last, _)| *last < field.ordinal);
        debug_assert!(is_in_order, "{}: field {} comes too late", self.name, field.name);
        self.fields.push((field.ordinal, encode(value)));
    }

    /// Adds a field that is present.
    pub(crate) fn put_some<T: Encode>(&mut self, field: Field, value: Option<&T>) {
        if let Some(value) = value {
            self.put(field, value);
        }
    }

    /// Adds a list of strings within limits, unless it is empty.
    pub(crate) fn put_strings(
        &mut self,
        field: Field,
        strings: &[String],
        limits: ListLimits,
    ) -> Result<(), ProtocolError> {
        if strings.is_empty() {
            return Ok(());
        }
        limits.check(strings)?;
        self.put(field, strings);
        Ok(())
    }

    /// Adds a field whose type is a table.
    #[cfg(feature = "controller")]
    pub(crate) fn put_table(&mut self, field: Field, table: TableWriter) {
        self.fields.push((field.ordinal, table.finish()));
    }

    /// Adds a list of tables, unless it is empty.
    #[cfg(feature = "controller")]
    pub(crate) fn put_tables(&mut self, field: Field, tables: Vec<TableWriter>) {
        if !tables.is_empty() {
            self.put(field, &tables.into_iter().map(TableWriter::finish).collect::<Vec<_>>());
        }
    }

    /// The bytes of the table.
    pub(crate) fn finish(self) -> Vec<u8> {
        encode(&self.fields)
    }
}

/// The fields of a received table.
pub(crate) struct Table<'a> {
    name: &'static str,
    fields: Vec<(u16, &'a [u8])>,
}

impl<'a> Table<'a> {
    pub(crate) fn decode(name: &'static str, bytes: &'a [u8]) -> Result<Table<'a>, ProtocolError> {
        let fields: Vec<(u16, &'a [u8])> =
            decode_whole(bytes).ok_or(ProtocolError::NotATable { table: name })?;
        if !fields.is_sorted_by(|left, right| left.0 < right.0) {
            return Err(ProtocolError::NotATable { table: name });
        }
        Ok(Table { name, fields })
    }

    /// The value of a field, if it is present.
    pub(crate) fn find<T: Decode<'a>>(&self, field: Field) -> Result<Option<T>, ProtocolError> {
        let Some(bytes) = self.bytes(field) else {
            return Ok(None);
        };
        decode_whole(bytes)
            .map(Some)
            .ok_or(ProtocolError::MalformedField { table: self.name, field: field.name })
    }

    /// Whether a field is present.
    #[cfg(feature = "controller")]
    pub(crate) fn has(&self, field: Field) -> bool {
        self.bytes(field).is_some()
    }

    /// A list of strings within limits; empty if the field is missing.
    pub(crate) fn strings(&self, field: Field, limits: ListLimits) -> Result<Vec<String>, ProtocolError> {
        let strings: Vec<&str> = self.find(field)?.unwrap_or_default();
        limits.check(&strings)?;
        Ok(strings.into_iter().map(str::to_owned).collect())
    }

    /// A string of at most `limit` bytes.
    pub(crate) fn string(&self, field: Field, limit: usize) -> Result<Option<String>, ProtocolError> {
        let Some(text) = self.find::<&str>(field)? else {
            return Ok(None);
        };
        check_limit(field.name, limit, text.len())?;
        Ok(Some(text.to_owned()))
    }

    /// A string that has no default.
    pub(crate) fn require_string(&self, field: Field, limit: usize) -> Result<String, ProtocolError> {
        self.string(field, limit)?.ok_or(self.missing(field))
    }

    /// A field whose type is a table, if it is present.
    #[cfg(feature = "controller")]
    pub(crate) fn find_table(&self, field: Field) -> Result<Option<Table<'a>>, ProtocolError> {
        self.bytes(field).map(|bytes| Table::decode(field.name, bytes)).transpose()
    }

    /// The bytes of a field whose type is a table; an empty table if it is missing.
    #[cfg(feature = "controller")]
    pub(crate) fn table(&self, field: Field) -> Result<Table<'a>, ProtocolError> {
        match self.bytes(field) {
            Some(bytes) => Table::decode(field.name, bytes),
            None => Ok(Table { name: field.name, fields: Vec::new() }),
        }
    }

    /// A list of tables; empty if the field is missing.
    #[cfg(feature = "controller")]
    pub(crate) fn tables(&self, field: Field) -> Result<Vec<Table<'a>>, ProtocolError> {
        let tables: Vec<&'a [u8]> = self.find(field)?.unwrap_or_default();
        tables.into_iter().map(|bytes| Table::decode(field.name, bytes)).collect()
    }

    fn bytes(&self, field: Field) -> Option<&'a [u8]> {
        let position = self.fields.binary_search_by_key(&field.ordinal, |(ordinal, _)| *ordinal);
        let (_, bytes) = self.fields.get(position.ok()?)?;
        Some(bytes)
    }

    fn missing(&self, field: Field) -> ProtocolError {
        ProtocolError::MissingField { table: self.name, field: field.name }
    }

    /// The value of a field that has no default.
    pub(crate) fn require<T: Decode<'a>>(&self, field: Field) -> Result<T, ProtocolError> {
        self.find(field)?.ok_or(self.missing(field))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Field = Field::new(1, "first");
    const SECOND: Field = Field::new(200, "second");

    #[test]
    fn unknown_fields_are_skipped() {
        let mut writer = TableWriter::new("sample");
        writer.put(FIRST, &7u32);
        writer.put(Field::new(2, "unknown"), "surprise");
        writer.put(SECOND, &true);
        let bytes = writer.finish();

        let table = Table::decode("sample", &bytes).unwrap();

        assert_eq!(table.find(FIRST), Ok(Some(7u32)));
        assert_eq!(table.require(SECOND), Ok(true));
        assert_eq!(table.find::<u8>(Field::new(3, "absent")), Ok(None));
        assert_eq!(
            table.require::<u8>(Field::new(3, "absent")),
            Err(ProtocolError::MissingField { table: "sample", field: "absent" })
        );
    }

    #[test]
    fn bytes_behind_a_value_are_an_error() {
        let bytes = encode(&vec![(1u16, vec![5u8, 6u8])]);
        let table = Table::decode("sample", &bytes).unwrap();
        assert_eq!(
            table.find::<u8>(FIRST),
            Err(ProtocolError::MalformedField { table: "sample", field: "first" })
        );
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(Table::decode("sample", &longer).is_err());
    }

    #[test]
    fn fields_ascend_and_occur_once() {
        for ordinals in [[2u16, 1], [1, 1]] {
            let fields: Vec<(u16, Vec<u8>)> = ordinals.map(|ordinal| (ordinal, vec![0])).to_vec();
            let bytes = encode(&fields);
            assert_eq!(
                Table::decode("sample", &bytes).err(),
                Some(ProtocolError::NotATable { table: "sample" })
            );
        }
    }

    #[test]
    fn a_huge_announced_count_is_an_error_not_an_allocation() {
        let bytes = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        assert!(Table::decode("sample", &bytes).is_err());
    }
}
