//! Alerts, as a client receives them.

use crate::error::{ProtocolError, check_limit};
use crate::limits::{MAX_ALERT_NAME_BYTES, MAX_PROVIDER_NAME_BYTES};
use crate::table::{Field, Table, TableWriter};

const NAME: Field = Field::new(1, "alert name bytes");
const PROVIDER: Field = Field::new(2, "provider name bytes");
const PID: Field = Field::new(3, "pid");
const DROPPED: Field = Field::new(4, "dropped");

/// An alert that a provider has raised.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Alert {
    /// Its name, at most 14 bytes.
    pub name: String,
    /// Name of the provider, at most 100 bytes. Managers of earlier releases leave it empty.
    pub provider: String,
    /// The provider's process; 0 where `provider` is empty.
    pub pid: u64,
    /// How many alerts were dropped since the previous answer, because no client watched.
    pub dropped: u64,
}

impl Alert {
    /// Adds the fields, except those with their default.
    pub(super) fn put(&self, table: &mut TableWriter) -> Result<(), ProtocolError> {
        check_limit(NAME.name, MAX_ALERT_NAME_BYTES, self.name.len())?;
        check_limit(PROVIDER.name, MAX_PROVIDER_NAME_BYTES, self.provider.len())?;
        table.put(NAME, &self.name);
        table.put_some(PROVIDER, Some(&self.provider).filter(|name| !name.is_empty()));
        table.put_some(PID, Some(&self.pid).filter(|pid| **pid != 0));
        table.put_some(DROPPED, Some(&self.dropped).filter(|dropped| **dropped != 0));
        Ok(())
    }

    pub(super) fn find(table: &Table<'_>) -> Result<Self, ProtocolError> {
        Ok(Self {
            name: table.require_string(NAME, MAX_ALERT_NAME_BYTES)?,
            provider: table.string(PROVIDER, MAX_PROVIDER_NAME_BYTES)?.unwrap_or_default(),
            pid: table.find(PID)?.unwrap_or(0),
            dropped: table.find(DROPPED)?.unwrap_or(0),
        })
    }
}
