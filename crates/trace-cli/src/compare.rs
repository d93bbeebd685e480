//! Commands that judge: traces against limits and each other, and programs by their traces.

pub mod ab;
pub mod assert;
pub mod check;
pub mod diff;
pub mod measure;
