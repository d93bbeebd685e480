//! What the providers' side knows of each session: its directory, what its configuration wants of programs,
//! and what has become of those that have ended.

use super::alerts::UnrecordedAlerts;
use super::missing::MissingPrograms;
use super::snapshots::Kept;
use super::{Providers, Tracee};
use crate::core::{ClientId, Uid, Unmade};
use crate::daemon::ends::Ends;
use crate::daemon::session_dir::{Beginning, SessionDir};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use trace_archive::manifest::{Entry, OutputFile, SessionInfo};
use trace_archive::program_info;
use trace_format::buffer::BufferMode;
use trace_format::units::ProviderId;
use trace_protocol::controller::{StopResult, TraceConfig};
use zx_sim::RuntimeDir;

/// One session.
pub(super) struct Session {
    /// Made at the beginning, or when a buffer needs it.
    pub directory: Option<SessionDir>,
    /// Contents of the manifest at its beginning, until the directory exists.
    beginning: Option<Beginning>,
    /// No provider takes part in it any more; its archive may not be complete yet.
    is_over: bool,
    /// The archive describes the recorded programs.
    pub has_metadata: bool,
    /// Whether events have the processor time of their thread.
    pub thread_time: bool,
    /// Whether programs write marks of their events for the kernel.
    pub mirror_markers: bool,
    /// Whether programs record only texts that their call sites mark as literals.
    pub privacy: bool,
    /// Buffers of programs that have ended while the session runs.
    pub kept: Kept,
    /// Alerts raised by programs of earlier releases.
    pub alerts: UnrecordedAlerts,
    /// How its programs have ended.
    pub ends: Ends,
    /// Programs of which something is missing.
    pub missing: MissingPrograms,
    /// When it began.
    pub began: SystemTime,
}

impl Session {
    /// The directory, which is made if there is none.
    pub fn directory(&mut self, buffers: &RuntimeDir) -> Result<&mut SessionDir, Unmade> {
        // It may have been deleted with all others of its user: further programs get one again.
        match self.directory.take().filter(SessionDir::is_there) {
            Some(directory) => Ok(self.directory.insert(directory)),
            None => {
                // What is missing now, a descriptor or room, may be there for the next program.
                let beginning = self.beginning.as_ref().ok_or(Unmade::NoSession)?;
                Ok(self.directory.insert(SessionDir::create(buffers, beginning)?))
            }
        }
    }
}

impl Providers {
    /// A session of a user's begins, whose archive begins with `head`. Its process has this number and start
    /// time, if it has one.
    pub fn begin_session(
        &mut self,
        client: ClientId,
        config: &TraceConfig,
        uid: Uid,
        recorder: Option<(u64, u64)>,
        head: Vec<u8>,
    ) {
        let mode = BufferMode::from(config.buffering_mode);
        let wall_clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let wall_clock_ns = u64::try_from(wall_clock).unwrap_or(u64::MAX);
        let rate = self.clock.ticks_per_second;
        // Root may record for another user, who has the file then.
        let is_root = uid == Uid::ROOT;
        let whose = config.user.filter(|_| is_root).unwrap_or(uid.0);
        let command_line = if config.privacy { Vec::new() } else { config.command_line.clone() };
        let mut info = SessionInfo::new(mode, rate, wall_clock_ns, command_line).of_user(whose);
        info.runtime =
            Some(self.runtime.display().to_string()).filter(|_| self.runtime != self.buffers.path());
        info.programs.clone_from(&config.programs);
        info.recorder = recorder;
        let output = config.file.clone().filter(|_| config.confirms).map(|file| OutputFile {
            path: file.path,
            device: file.device,
            inode: file.inode,
            uid: file.owner.filter(|_| is_root).unwrap_or(uid.0),
        });
        let mut session = Session {
            directory: None,
            beginning: Some(Beginning { info, output, head }),
            is_over: false,
            has_metadata: config.metadata && !config.privacy,
            thread_time: config.thread_time,
            mirror_markers: config.mirror_markers,
            privacy: config.privacy,
            kept: Kept::up_to(config.keep_ended_bytes),
            alerts: UnrecordedAlerts::default(),
            ends: Ends::default(),
            missing: MissingPrograms::default(),
            began: SystemTime::now(),
        };
        // Where that is not possible now, it may be when a buffer is made.
        let _ = session.directory(&self.buffers);
        self.sessions.insert(client, session);
    }

    /// The session in which a provider takes part.
    pub fn session_of(&self, id: ProviderId) -> Option<ClientId> {
        let tracee = self.providers.get(&id).and_then(|provider| provider.tracee.as_ref());
        let unready = || self.unready.iter().find(|unready| unready.id == id).map(|unready| unready.session);
        tracee.map(|Tracee { session, .. }| *session).or_else(unready)
    }

    /// The same.
    pub(super) fn session_with(&mut self, id: ProviderId) -> Option<&mut Session> {
        let session = self.session_of(id)?;
        self.sessions.get_mut(&session)
    }

    /// Adds a line about a provider to its session's manifest.
    pub(super) fn note(&mut self, id: ProviderId, entry: &Entry) {
        if let Some(directory) = self.session_with(id).and_then(|session| session.directory.as_mut()) {
            directory.note(entry);
        }
    }

    /// Queues how programs ended that have left the session before it ends.
    //= docs/protocol.md#provider-descriptions
    pub fn write_ends(&mut self, client: ClientId, out: &mut Vec<u8>) {
        if let Some(session) = self.sessions.get_mut(&client).filter(|session| session.has_metadata) {
            program_info::ended(&session.ends.of_programs(Instant::now()), out);
        }
    }

    /// How the programs of a session have ended.
    pub fn ends(&mut self, client: ClientId) -> Option<&mut Ends> {
        self.sessions.get_mut(&client).map(|session| &mut session.ends)
    }

    /// An answer to a Stop, with its client, when it is known how all its programs have ended.
    pub fn complete_stop(&mut self, now: Instant) -> Option<(ClientId, StopResult)> {
        self.sessions.values_mut().find_map(|session| session.ends.look(now))
    }

    /// The session ends: no more snapshots of it are taken.
    pub fn end_snapshots(&mut self, client: ClientId) {
        if let Some(session) = self.sessions.get_mut(&client) {
            session.kept.end();
        }
    }

    /// No provider takes part in the session any more. Data that is in no archive stays.
    pub fn end_session(&mut self, client: ClientId) {
        if let Some(session) = self.sessions.get_mut(&client) {
            session.kept.end();
            session.beginning = None;
            session.is_over = true;
        }
    }

    /// Nothing more is written into the archive of a session.
    pub fn end_archive(&mut self, client: ClientId, is_written: bool) {
        if self.sessions.get(&client).is_some_and(|session| session.is_over)
            && let Some(directory) = self.sessions.remove(&client).and_then(|session| session.directory)
        {
            directory.end(is_written);
        }
    }
}
