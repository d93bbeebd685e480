//! Progress of a recording, for display.

use super::{put_in_two, tables_in_two};
use crate::error::{ProtocolError, check_limit};
use crate::limits::{MAX_LISTED_PROVIDERS, MAX_PROVIDER_NAME_BYTES};
use crate::table::{Field, Table, TableWriter};

const PROVIDERS: Field = Field::new(1, "providers");
const FURTHER_PROVIDERS: Field = Field::new(2, "further providers");
const ID: Field = Field::new(1, "id");
const NAME: Field = Field::new(2, "provider name bytes");
const PID: Field = Field::new(3, "pid");
const RECORDS: Field = Field::new(4, "records");
const BYTES: Field = Field::new(5, "bytes");
const DROPPED: Field = Field::new(6, "dropped");
const FILL: Field = Field::new(7, "fill");
const DAMAGED: Field = Field::new(8, "damaged");
const HELD: Field = Field::new(9, "held");

/// A provider's recording so far, according to its buffer; a thread's last records show a little later.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProviderProgress {
    /// The manager's number for it.
    pub id: u32,
    /// At most 100 bytes.
    pub name: String,
    /// Process id.
    pub pid: u64,
    /// Records written since the session began.
    pub records: u64,
    /// Bytes in its buffer, and of halves that are in the archive.
    pub bytes: u64,
    /// Records that found no room.
    pub dropped: u64,
    /// How full the fuller of its regions is, in percent.
    pub fill: f32,
    /// Its buffer's counters hold values that no writer can have counted; the fields computed from them are
    /// 0.
    pub is_damaged: bool,
    /// Bytes of its buffer that are in use and not in the archive.
    pub held: u64,
}

/// Adds a list of at most [`MAX_LISTED_PROVIDERS`] providers; the rest is omitted.
pub(super) fn put(table: &mut TableWriter, providers: &[ProviderProgress]) -> Result<(), ProtocolError> {
    let providers = providers.iter().take(MAX_LISTED_PROVIDERS).map(ProviderProgress::encode);
    put_in_two(table, PROVIDERS, FURTHER_PROVIDERS, providers.collect::<Result<Vec<_>, _>>()?);
    Ok(())
}

/// The list that [`put`] has added.
pub(super) fn find(table: &Table<'_>) -> Result<Vec<ProviderProgress>, ProtocolError> {
    let providers = tables_in_two(table, PROVIDERS, FURTHER_PROVIDERS, MAX_LISTED_PROVIDERS)?;
    providers.iter().map(ProviderProgress::decode).collect()
}

impl ProviderProgress {
    pub(super) fn encode(&self) -> Result<TableWriter, ProtocolError> {
        check_limit(NAME.name, MAX_PROVIDER_NAME_BYTES, self.name.len())?;
        let mut table = TableWriter::new("ProviderProgress");
        table.put(ID, &self.id);
        table.put(NAME, &self.name);
        table.put(PID, &self.pid);
        table.put(RECORDS, &self.records);
        table.put(BYTES, &self.bytes);
        table.put(DROPPED, &self.dropped);
        table.put(FILL, &self.fill);
        table.put_some(DAMAGED, self.is_damaged.then_some(&true));
        table.put_some(HELD, Some(&self.held).filter(|held| **held > 0));
        Ok(table)
    }

    pub(super) fn decode(table: &Table<'_>) -> Result<Self, ProtocolError> {
        Ok(Self {
            id: table.require(ID)?,
            name: table.require_string(NAME, MAX_PROVIDER_NAME_BYTES)?,
            pid: table.require(PID)?,
            records: table.find(RECORDS)?.unwrap_or(0),
            bytes: table.find(BYTES)?.unwrap_or(0),
            dropped: table.find(DROPPED)?.unwrap_or(0),
            fill: table.find(FILL)?.unwrap_or(0.0),
            is_damaged: table.find(DAMAGED)?.unwrap_or(false),
            held: table.find(HELD)?.unwrap_or(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/protocol.md#progress
    #[test]
    fn damage_is_a_field_that_older_peers_do_not_know() {
        let sound =
            ProviderProgress { id: 1, name: "a".to_owned(), records: 7, ..ProviderProgress::default() };
        let damaged = ProviderProgress { is_damaged: true, ..sound.clone() };
        let round = |progress: &ProviderProgress| {
            let mut table = TableWriter::new("test");
            put(&mut table, std::slice::from_ref(progress)).unwrap();
            let bytes = table.finish();
            (find(&Table::decode("test", &bytes).unwrap()).unwrap(), bytes.len())
        };
        let (found, bytes) = round(&sound);
        assert_eq!(found, [sound]);
        let (found, more_bytes) = round(&damaged);
        assert_eq!(found, [damaged]);
        assert!(more_bytes > bytes);
    }
}
