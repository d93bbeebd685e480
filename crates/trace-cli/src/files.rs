//! Files that commands read and write.

pub mod account;
pub mod analysis;
pub mod input;
pub mod output;
pub mod several;
