//! Names of system calls.

use syscalls::Sysno;

/// The name of a system call of this machine's architecture.
#[must_use]
pub fn name(number: u64) -> Option<&'static str> {
    Sysno::new(usize::try_from(number).ok()?).map(|call| call.name())
}
