//! `trace recover --list`: what there is, for people and for programs.

use super::{age, is_bare, is_json, looked, report_unreadable, sessions};
use crate::args::Recover;
use crate::shell::exit::Failure;
use crate::shell::json::Answer;
use crate::shell::stdio::{self, print_folded, say};
use crate::shell::table;
use indicatif::HumanBytes;
use trace_archive::recovery::{Now, Piece, Session};
use trace_format::shown::Shown;

pub(super) fn list(options: &Recover) -> Result<(), Failure> {
    let found = sessions(options);
    report_unreadable(options, &found);
    if is_json(options) {
        let list: Vec<_> = found.iter().map(machine).collect();
        Answer::of(list.into()).bare_if(is_bare(options)).give();
        return Ok(());
    }
    if found.is_empty() {
        say!("trace: there is nothing to recover (looked in {})", looked(options));
        return Ok(());
    }
    found.iter().filter(|session| session.is_waiting()).for_each(Session::announce);
    print_folded(&format!("{}{}", table(&found, stdio::stdout_width()), pieces(&found)))
}

fn machine(session: &Session) -> serde_json::Value {
    let programs: Vec<_> = session
        .manifest
        .buffers
        .values()
        .map(|buffer| {
            let provider = &buffer.provider;
            serde_json::json!({
                "id": provider.id, "name": provider.name, "pid": provider.pid, "buffer_bytes": provider.bytes,
                "is_archived": buffer.is_archived,
            })
        })
        .collect();
    let pieces: Vec<_> = session
        .pieces()
        .iter()
        .map(|piece| {
            let path = piece.path.display().to_string();
            serde_json::json!({ "path": path, "bytes": piece.bytes, "program_id": piece.provider })
        })
        .collect();
    serde_json::json!({
        "pieces": pieces,
        "directory": session.directory.display().to_string(),
        "began_ns": session.manifest.session.wall_clock_ns,
        "state": state(session),
        "command_line": session.manifest.session.command_line,
        "recovered": session.manifest.recovered,
        "programs": programs,
    })
}

fn state(session: &Session) -> &'static str {
    if session.has_manager() {
        "running"
    } else if !session.is_recoverable() {
        "nothing to recover"
    } else if session.manifest.recovered.is_empty() {
        "to be recovered"
    } else {
        "recovered"
    }
}

/// A line for each file that holds a part of a recording.
fn pieces(sessions: &[Session]) -> String {
    let line = |session: &Session, piece: &Piece| {
        let whose = match piece.provider.and_then(|id| session.manifest.buffers.get(&id)) {
            Some(buffer) => format!("buffer of {} (pid {})", buffer.provider.name, buffer.provider.pid),
            None => "the recording's own file".to_owned(),
        };
        let path = piece.path.display().to_string();
        format!("{:>10}  {}  {}\n", HumanBytes(piece.bytes).to_string(), Shown(&path), Shown(&whose))
    };
    let lines = sessions
        .iter()
        .flat_map(|session| session.pieces().into_iter().map(move |piece| line(session, &piece)));
    let lines: String = lines.collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

pub(super) fn table(sessions: &[Session], width: Option<usize>) -> String {
    let header = ["age", "state", "size", "programs", "directory"].map(str::to_owned);
    let now = Now::read();
    let rows = sessions.iter().map(|session| {
        let buffers = session.manifest.buffers.values();
        let names: Vec<_> = buffers.map(|buffer| buffer.provider.name.clone()).collect();
        let bytes = session.pieces().iter().map(|piece| piece.bytes).fold(0, u64::saturating_add);
        [
            age(session, &now),
            state(session).to_owned(),
            HumanBytes(bytes).to_string(),
            Shown(&names.join(",")).to_string(),
            Shown(&session.directory.display().to_string()).to_string(),
        ]
    });
    let rows: Vec<_> =
        std::iter::once(header).chain(rows).map(|row| table::cells(row, &[0, 1, 2, 3, 4])).collect();
    table::within(&rows, 0, width)
}
