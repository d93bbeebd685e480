//! The environment of the program, as set by its caller.

use crate::sys;
use std::ffi::OsString;

/// The value of a variable, in a program that trusts its caller. None in one that has privileges its caller
/// does not have, such as a set-uid program: there the environment is ignored.
//= docs/protocol.md#users
#[must_use]
pub fn variable(name: &str) -> Option<OsString> {
    if sys::is_set_uid() { None } else { std::env::var_os(name) }
}
