//! An archive of what a program has recorded by itself, written by the program.

use crate::recovery::{Error, Session};
use crate::transfer::{Part, Progress, ProviderBuffer, Transfer};
use crate::{framing, session_info};
use std::io::{self, Write};
use std::num::NonZeroU64;
use std::path::Path;
use trace_format::scopes::Ending;
use trace_format::units::{ProviderId, Ticks, TicksPerSecond};
use trace_protocol::BufferingMode;
use trace_protocol::controller::ProviderStats;
use zx_sim::{Vmo, ticks};

/// Writes an archive of the only buffer in a directory, which is in a file of this name. It is read twice if
/// it may be written meanwhile. Returns the findings in it.
///
/// # Errors
/// It is no directory of a program's own recording; the buffer cannot be read; or the archive cannot be
/// written.
pub fn write(
    directory: &Path,
    file: &str,
    is_quiet: bool,
    out: &mut impl Write,
) -> Result<ProviderStats, Error> {
    let failed = |error| Error::Io { what: "cannot write the archive".to_owned(), error };
    let session = Session::read(directory)?;
    let info = &session.manifest.session;
    let buffer = session.manifest.buffers.values().next().ok_or_else(|| Error::Io {
        what: directory.display().to_string(),
        error: io::Error::other("it has no buffer"),
    })?;
    let provider = &buffer.provider;
    let rate = TicksPerSecond(NonZeroU64::new(info.ticks_per_second).unwrap_or(NonZeroU64::MIN));
    let of = ProviderBuffer {
        id: ProviderId(provider.id),
        name: provider.name.clone(),
        size: provider.bytes,
        mode: info.mode().map_or(BufferingMode::Oneshot, BufferingMode::from),
        rate,
        is_accounted: true,
        period: None,
        may_be_blank: false,
        program: provider.program_info(),
        open_until: Some(Ticks(ticks::now())),
        ending: Some(if is_quiet { Ending::Stop } else { Ending::Snapshot }),
    };
    let mut batch = Vec::new();
    framing::magic(&mut batch);
    session_info::startup(info, Ticks(provider.registered.unwrap_or(0)), &mut batch);
    let vmo = Vmo::open(&directory.join(file))?;
    let mut transfer = Transfer::new(of, Progress::of(vmo), Part::Rest { is_quiet });
    loop {
        let is_finished = transfer.poll(&mut batch);
        if is_finished {
            session_info::end(&mut batch);
        }
        out.write_all(&batch).map_err(failed)?;
        batch.clear();
        if is_finished {
            let stats = transfer.into_stats().0;
            return Ok(ProviderStats {
                id: provider.id,
                name: provider.name.clone(),
                pid: provider.pid,
                ..stats
            });
        }
    }
}
