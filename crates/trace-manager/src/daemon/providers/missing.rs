//! Programs of which something is missing, in the archive and the manifest of their session; and notes of
//! those that gave up before they were known.
//= docs/protocol.md#programs-of-which-something-is-missing

use super::Providers;
use crate::core::{ClientId, Event, Uid};
use crate::daemon::io::Io;
use crate::daemon::log::log;
use std::path::Path;
use trace_archive::gave_up;
use trace_archive::manifest::Entry;
use trace_archive::missing::Missing;
use trace_format::units::ProviderId;
use trace_protocol::controller::ProviderDisposition;
use zx_sim::RuntimeDir;

/// Programs that an archive names, each with its reason; further ones are only counted.
const MOST: usize = 1000;

/// The programs of a session.
#[derive(Debug, Default)]
pub(super) struct MissingPrograms {
    all: Vec<Missing>,
    /// How many of them are in the archive.
    written: usize,
    /// The last one that is only counted, and how many are.
    further: Option<(Missing, u64)>,
}

impl MissingPrograms {
    /// Adds one; false if it is only counted.
    fn add(&mut self, missing: Missing) -> bool {
        if self.all.len() < MOST {
            self.all.push(missing);
            return true;
        }
        let count = self.further.take().map_or(1, |(_, count)| count + 1);
        self.further = Some((missing, count));
        false
    }

    /// All of them, the further ones as one.
    fn iter(&self) -> impl Iterator<Item = Missing> {
        let further = self.further.as_ref().map(|(last, count)| Missing {
            name: format!("{count} further programs"),
            disposition: ProviderDisposition::SummedUp.into(),
            problem: String::new(),
            ..last.clone()
        });
        self.all.iter().cloned().chain(further)
    }
}

impl Providers {
    /// Of a manager that programs find in this directory.
    pub fn found_in(self, runtime: &Path) -> Self {
        Self { runtime: runtime.to_owned(), ..self }
    }

    /// Makes directories of sessions elsewhere from now on.
    pub fn move_to(&mut self, buffers: RuntimeDir) {
        self.buffers = buffers;
    }

    /// A number that no provider has had.
    pub(super) fn new_id(&mut self) -> ProviderId {
        let id = ProviderId(self.next_id);
        self.next_id += 1;
        id
    }

    /// The provider has sent what it may not; its buffer stays until the core drops it.
    pub(super) fn break_off(&mut self, id: ProviderId, problem: &str, io: &mut Io) {
        log(&format!("program {} broke the protocol: {problem}", id.0));
        io.events.push_back(Event::BrokeProtocol { provider: id, problem: problem.to_owned() });
        self.close(id, io);
    }

    /// Something of a program is missing in a session.
    pub fn report_missing(&mut self, client: ClientId, missing: Missing) {
        let Some(session) = self.sessions.get_mut(&client) else {
            return;
        };
        if session.missing.add(missing.clone()) {
            match session.directory(&self.buffers) {
                Ok(directory) => directory.note(&Entry::Missing(missing)),
                Err(error) => log(&format!("\"{}\" could not be recovered: {error}", missing.name)),
            }
        }
    }

    /// Queues the programs that the archive does not have yet. Nothing may come between the records of a
    /// provider's part. True if there are any: their position is to be [noted](Providers::note_missing).
    pub fn write_missing(&mut self, client: ClientId, is_end: bool, out: &mut Vec<u8>) -> bool {
        let Some(session) = self.sessions.get_mut(&client) else {
            return false;
        };
        let missing = &mut session.missing;
        let written = std::mem::replace(&mut missing.written, missing.all.len());
        let new = missing.iter().take(if is_end { usize::MAX } else { missing.all.len() }).skip(written);
        let before = out.len();
        new.for_each(|missing| missing.write(session.has_metadata, out));
        out.len() > before
    }

    /// The archive has all of them when it has this many bytes.
    pub fn note_missing(&mut self, client: ClientId, end: u64) {
        if let Some(session) = self.sessions.get_mut(&client)
            && let Some(directory) = &mut session.directory
        {
            directory.note(&Entry::MissingWritten { programs: session.missing.written, end });
        }
    }

    /// Queues all of them, for a snapshot.
    pub fn copy_missing(&self, session: ClientId, out: &mut Vec<u8>) {
        if let Some(session) = self.sessions.get(&session) {
            session.missing.iter().for_each(|missing| missing.write(session.has_metadata, out));
        }
    }

    /// Takes up the notes of programs that gave up while a session was running.
    pub fn take_notes(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        let Some(since) = self.sessions.values().map(|session| session.began).min() else {
            return events;
        };
        for note in gave_up::notes(&self.runtime, since) {
            let began = self.sessions.iter().filter(|(_, session)| session.began <= note.at);
            let sessions: Vec<ClientId> = began.map(|(client, _)| *client).collect();
            // It is another recording's, for `trace recover`.
            if sessions.is_empty() || note.delete().is_err() {
                continue;
            }
            let provider = self.new_id();
            let (name, pid, uid) = (note.name, note.pid, Uid(note.uid));
            events.push(Event::ProviderGaveUp { provider, name, pid, uid, sessions });
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace_format::loss::LossCode;

    #[test]
    fn so_many_programs_are_named_and_more_are_counted() {
        let mut missing = MissingPrograms::default();
        let of = |id: u32| Missing {
            id,
            name: format!("app {id}"),
            pid: 7,
            reason: Some(LossCode::NOT_RECORDED.0),
            at: 5,
            disposition: "refused".to_owned(),
            problem: "it is too old".to_owned(),
        };
        (1..=MOST as u32 + 3).for_each(|id| assert_eq!(missing.add(of(id)), id <= MOST as u32));
        let all: Vec<Missing> = missing.iter().collect();
        assert_eq!((all.len(), all[MOST - 1].name.as_str()), (MOST + 1, "app 1000"));
        let further = &all[MOST];
        assert_eq!(
            (further.id, further.name.as_str(), further.problem.as_str()),
            (1003, "3 further programs", "")
        );
    }
}
