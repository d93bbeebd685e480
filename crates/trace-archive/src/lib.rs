//! The contents of an archive: framing records, the parts of each provider's buffer, losses and what is known
//! of the session; and the manifest from which an archive is recovered when manager and client are gone.
//!
//! | module | is |
//! |---|---|
//! | [`framing`] | the records that open an archive and each provider's part |
//! | [`session_info`] | the manager's own provider: when, where and how the session was recorded |
//! | [`program_info`] | what the manager knows of the programs of providers, and how they ended |
//! | [`transfer`] | moves a provider's buffer into an archive, a batch at a time |
//! | [`losses`] | reports each record that a provider lost once, with reason and time |
//! | [`manifest`] | the file beside the buffers that says what of them an archive has |
//! | [`missing`] | programs of which an unknown part is missing |
//! | [`gave_up`] | notes of programs that no manager knew of |
//! | [`open_scopes`] | the scopes that a program had open |
//! | [`own`] | what a program has recorded by itself |
//! | [`recovery`] | joins the client's file and the buffers into one archive |
//! | [`confirm`] | the client's confirmations of what it has written |
//! | [`output`] | files that appear under their names when they are complete |
//!
//! The manager, the `trace` command and recordings inside one process use it. It opens no socket and starts
//! no thread.
#![forbid(unsafe_code)]

pub mod confirm;
mod files;
pub mod framing;
pub mod gave_up;
pub mod losses;
pub mod manifest;
pub mod missing;
pub mod open_scopes;
pub mod output;
pub mod own;
mod problem;
pub mod program_info;
pub mod recovery;
mod seen;
pub mod session_info;
#[cfg(test)]
mod testing;
pub mod transfer;

pub use problem::problem;
