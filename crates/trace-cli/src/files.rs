//! Files that commands read and write.

pub mod analysis;
pub mod input;
pub mod output;
pub mod several;
