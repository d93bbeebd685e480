//! Joins the recordings of programs that recorded themselves into one archive.

use super::join::end_of;
use super::{Error, Leftover, Recovered};
use crate::{framing, program_info, session_info};
use std::io::Write;
use trace_format::units::Ticks;

/// Writes an archive of programs that recorded themselves, numbered from 1. Each is reported when it is done.
/// The leftovers are not changed.
///
/// # Errors
/// The archive cannot be written. A buffer that cannot be read is reported in its statistics.
//= docs/recording.md#from-the-first-line
pub fn recover_startups(
    leftovers: &[Leftover],
    out: &mut impl Write,
    mut report: impl FnMut(&Recovered),
) -> Result<(), Error> {
    let failed = |error| Error::Io { what: "cannot write the archive".to_owned(), error };
    let buffers = || {
        leftovers.iter().flat_map(|leftover| {
            let buffers = leftover.session.manifest.buffers.values().filter(|buffer| buffer.is_started);
            buffers.map(move |buffer| (leftover, buffer))
        })
    };
    let mut bytes = Vec::new();
    framing::magic(&mut bytes);
    let first = buffers().min_by_key(|(leftover, _)| leftover.session.manifest.session.wall_clock_ns);
    if let Some((leftover, buffer)) = first {
        let at = Ticks(buffer.provider.registered.unwrap_or(0));
        session_info::startup(&leftover.session.manifest.session, at, &mut bytes);
    }
    out.write_all(&bytes).map_err(failed)?;
    let mut ends = Vec::new();
    for (id, (leftover, buffer)) in (1..).zip(buffers()) {
        let (stats, unread) = leftover.recover_buffer(buffer, id, 0, true, out).map_err(failed)?;
        ends.extend(end_of(&stats));
        report(&Recovered { stats, halves_before: (None, None), unread });
    }
    let mut bytes = Vec::new();
    program_info::ended(&ends, &mut bytes);
    session_info::recovered(&mut bytes);
    out.write_all(&bytes).map_err(failed)
}
