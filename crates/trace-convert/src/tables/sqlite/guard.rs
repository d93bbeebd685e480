//! Restricts statements: they may read the traces, and create views and temporary tables. SQLite asks for
//! permission for each action of a statement, and actions that are not listed here are refused: statements
//! may be untrusted, and must not read or write any file except the traces.

use super::{QueryError, TABLES};
use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Tables that list views and indexes. SQLite refuses any other way to change them.
const SCHEMAS: [&str; 2] = ["sqlite_master", "sqlite_temp_master"];
/// Tables of SQLite's about its own file, which holds none of a trace's rows.
const INTERNAL: [&str; 2] = ["dbstat", "sqlite_dbpage"];
/// Functions that do more than compute.
const FUNCTIONS: [&str; 2] = ["load_extension", "fts3_tokenizer"];

/// The authorizer of statements.
#[derive(Clone, Debug, Default)]
pub(super) struct Guard {
    /// The last refused action.
    refused: Arc<Mutex<Option<String>>>,
    /// Whether everything is permitted, since no statement of the user's runs.
    is_paused: Arc<AtomicBool>,
}

impl Guard {
    /// Authorizes everything that is prepared from now on.
    pub fn watch(connection: &mut Connection) -> rusqlite::Result<Self> {
        let guard = Self::default();
        let watching = guard.clone();
        connection.authorizer(Some(move |context: AuthContext<'_>| watching.judge(&context)))?;
        Ok(guard)
    }

    fn refused(&self) -> MutexGuard<'_, Option<String>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Permits everything while a function runs.
    pub fn pause<R>(&self, run: impl FnOnce() -> R) -> R {
        self.is_paused.store(true, Ordering::Relaxed);
        let result = run();
        self.is_paused.store(false, Ordering::Relaxed);
        result
    }

    fn judge(&self, context: &AuthContext<'_>) -> Authorization {
        let is_temporary = context.database_name == Some("temp");
        if self.is_paused.load(Ordering::Relaxed) || is_permitted(context.action, is_temporary) {
            return Authorization::Allow;
        }
        self.refused().get_or_insert_with(|| name(context.action));
        Authorization::Deny
    }

    /// The error, or the refused action that has led to it.
    pub fn explain(&self, error: rusqlite::Error) -> QueryError {
        self.refused().take().map_or(QueryError::Sql(error), QueryError::Refused)
    }
}

fn is_permitted(action: AuthAction<'_>, is_temporary: bool) -> bool {
    match action {
        AuthAction::Read { table_name, .. } => !INTERNAL.contains(&table_name),
        AuthAction::Select
        | AuthAction::Recursive
        | AuthAction::CreateView { .. }
        | AuthAction::CreateTempView { .. }
        | AuthAction::CreateTempIndex { .. }
        | AuthAction::Reindex { .. }
        | AuthAction::DropView { .. }
        | AuthAction::DropTempView { .. }
        | AuthAction::CreateTempTable { .. }
        | AuthAction::DropTempTable { .. }
        | AuthAction::DropTempIndex { .. } => true,
        AuthAction::Function { function_name } => {
            !FUNCTIONS.iter().any(|name| name.eq_ignore_ascii_case(function_name))
        }
        AuthAction::Insert { table_name } | AuthAction::Update { table_name, .. } => {
            is_temporary || SCHEMAS.contains(&table_name)
        }
        // Dropping a view deletes its entry, too; there are no other tables than the traces'.
        AuthAction::Delete { table_name } => {
            is_temporary || TABLES.iter().all(|table| table.name != table_name)
        }
        _ => false,
    }
}

/// The action in SQL.
fn name(action: AuthAction<'_>) -> String {
    match action {
        // VACUUM attaches the file that it writes.
        AuthAction::Attach { filename } => format!("ATTACH or VACUUM with the file {filename:?}"),
        AuthAction::Detach { database_name } => format!("DETACH {database_name}"),
        AuthAction::Pragma { pragma_name, .. } => format!("PRAGMA {pragma_name}"),
        AuthAction::Function { function_name } => format!("the function {function_name}"),
        // Where ANALYZE keeps what it has found.
        AuthAction::CreateTable { table_name } if table_name.starts_with("sqlite_stat") => {
            "ANALYZE".to_owned()
        }
        AuthAction::CreateTable { table_name } => format!("CREATE TABLE {table_name}"),
        AuthAction::CreateIndex { index_name, .. } => format!("CREATE INDEX {index_name}"),
        AuthAction::CreateVtable { table_name, module_name } => {
            format!("CREATE VIRTUAL TABLE {table_name} USING {module_name}")
        }
        AuthAction::CreateTrigger { trigger_name, .. }
        | AuthAction::CreateTempTrigger { trigger_name, .. } => {
            format!("CREATE TRIGGER {trigger_name}")
        }
        AuthAction::DropTable { table_name } | AuthAction::DropVtable { table_name, .. } => {
            format!("DROP TABLE {table_name}")
        }
        AuthAction::AlterTable { table_name, .. } => format!("ALTER TABLE {table_name}"),
        AuthAction::Read { table_name, .. } => format!("reading {table_name}"),
        AuthAction::Insert { table_name } => format!("INSERT INTO {table_name}"),
        AuthAction::Update { table_name, .. } => format!("UPDATE {table_name}"),
        AuthAction::Delete { table_name } => format!("DELETE FROM {table_name}"),
        AuthAction::Transaction { .. } | AuthAction::Savepoint { .. } => "a transaction".to_owned(),
        other => format!("{other:?}"),
    }
}
