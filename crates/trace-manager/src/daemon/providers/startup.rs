//! What programs have recorded before the recording, into buffers of their own: each becomes a provider that
//! has nothing but that buffer, in the session's directory.

use super::{Provider, Providers, Tracee};
use crate::core::{Event, Uid, Unmade};
use crate::daemon::io::Io;
use crate::daemon::log::log;
use std::collections::VecDeque;
use std::sync::Arc;
use trace_archive::manifest::{BufferInfo, Entry};
use trace_archive::open_scopes::{OpenScopes, SharedScopes};
use trace_archive::recovery;
use trace_archive::transfer::{Progress, VmoSource};
use trace_format::buffer::{BufferMode, Layout};
use trace_format::scopes::SCOPES_BYTES;
use trace_format::units::ProviderId;
use trace_protocol::BufferingMode;
use zx_sim::{Copying, Handle, Vmo, ticks};

/// The largest buffer that is taken over: it may have to be copied.
//= docs/protocol.md#what-was-recorded-before
const MAX_BYTES: u64 = 64 << 20;
const MEBIBYTE: u64 = 1 << 20;
/// How much of what a user's programs hand over is copied in all sessions at a time: of what has memory, and
/// cannot be linked.
//= docs/protocol.md#what-was-recorded-before
const MAX_COPIED_BYTES: u64 = 2 * MAX_BYTES;
/// How much of a buffer is copied before everything else is checked.
const COPYING_STEP_BYTES: u64 = 2 << 20;

/// A buffer that is being copied into a session's directory.
pub(super) struct Adopting {
    pub from: ProviderId,
    uid: Uid,
    info: BufferInfo,
    mode: BufferingMode,
    theirs: Vmo,
    /// Bytes that have memory.
    copied: u64,
    copying: Copying,
}

impl Providers {
    /// Takes over the buffer that a provider has recorded into so far. If that is not possible, it stays
    /// where it is, for `trace recover`.
    //= docs/protocol.md#what-was-recorded-before
    pub(super) fn take_over(&mut self, from: ProviderId, buffer: Handle, mode: BufferingMode, io: &mut Io) {
        let Some(provider) = self.providers.get_mut(&from) else {
            return;
        };
        let client = provider.tracee.as_ref().map(|tracee| tracee.session);
        let session = client.and_then(|client| self.sessions.get(&client));
        // A program that was held up may answer to a recording that is over.
        if session.is_none_or(|session| session.privacy) {
            log(&format!("program {}: no recording takes over what it recorded before", from.0));
            return;
        }
        if mode == BufferingMode::Streaming || std::mem::replace(&mut provider.has_handed_over, true) {
            return self.break_off(from, "it hands a buffer over", io);
        }
        match self.adopt(from, buffer, mode) {
            Ok(None) => {}
            Ok(Some(provider)) => io.events.push_back(Event::HandedOver { provider, from }),
            Err(reason) => not_taken(from, &reason),
        }
    }

    /// Moves the buffer into the session's directory, and makes a provider that has it; none if it has to be
    /// copied first.
    fn adopt(
        &mut self,
        from: ProviderId,
        buffer: Handle,
        mode: BufferingMode,
    ) -> Result<Option<ProviderId>, Unmade> {
        let client = self.session_of(from).ok_or(Unmade::NoSession)?;
        let session = self.sessions.get_mut(&client).ok_or(Unmade::NoSession)?;
        let has_metadata = session.has_metadata;
        let directory = session.directory(&self.buffers)?.path().to_owned();
        let source = self.providers.get(&from).ok_or(Unmade::Gone)?;
        let uid = source.uid;
        let theirs = Vmo::from_handle_beside(buffer, uid.0, &directory)?;
        let (bytes, origin) = (theirs.size()?, theirs.identity()?);
        // Sizes are whole mebibytes.
        let has_scopes = source.has_scopes && bytes % MEBIBYTE == SCOPES_BYTES;
        let size = if has_scopes { bytes - SCOPES_BYTES } else { bytes };
        if size > MAX_BYTES {
            return Err(Unmade::TooLarge { found: size, limit: MAX_BYTES });
        }
        let id = ProviderId(self.next_id);
        self.next_id += 1;
        let info = BufferInfo {
            origin: Some(origin),
            mode: Some(BufferMode::from(mode) as u8),
            ..source.buffer_info(id, size, has_metadata)
        };
        let name = info.file_name();
        if let Ok(own) = theirs.link_in(&directory, &name) {
            self.most_bytes = self.most_bytes.saturating_add(bytes);
            return self.adopted(from, info, mode, &theirs, own, 0).map(Some);
        }
        let copied = theirs.backed_bytes()?.min(bytes);
        let found = self.copied_of(uid).saturating_add(copied);
        if found > MAX_COPIED_BYTES {
            return Err(Unmade::TooMuchOfUser { found, limit: MAX_COPIED_BYTES });
        }
        let promised = self.promised(&directory, bytes)?;
        let copying = Copying::begin(theirs.duplicate()?, &directory, &name, bytes, promised)?;
        self.adopting.push_back(Adopting { from, uid, info, mode, theirs, copied, copying });
        Ok(None)
    }

    /// Bytes of a user's buffers that were copied for sessions, or are being.
    fn copied_of(&self, uid: Uid) -> u64 {
        let tracees = self.providers.values().filter(|provider| provider.uid == uid);
        let copied = tracees.filter_map(|provider| Some(provider.tracee.as_ref()?.copied));
        let adopting = self.adopting.iter().filter(|adopting| adopting.uid == uid);
        copied.chain(adopting.map(|adopting| adopting.copied)).fold(0, u64::saturating_add)
    }

    /// Whether what a provider has handed over is being copied. What it has sent since, its end included, is
    /// read after that.
    pub fn is_adopting(&self, from: ProviderId) -> bool {
        self.adopting.iter().any(|adopting| adopting.from == from)
    }

    /// Copies a part of the buffer whose turn it is. True if there is more to be done at once.
    pub fn copy_buffers(&mut self, io: &mut Io) -> bool {
        let Some(mut adopting) = self.adopting.pop_front() else {
            return false;
        };
        let Adopting { from, copied, .. } = adopting;
        let copy = match adopting.copying.step(COPYING_STEP_BYTES) {
            Ok(None) => {
                // They take turns.
                self.adopting.push_back(adopting);
                return true;
            }
            Ok(Some(copy)) => Ok(copy),
            Err(error) => Err(error.into()),
        };
        let Adopting { info, mode, theirs, .. } = adopting;
        let adopted = copy.and_then(|copy| self.adopted(from, info, mode, &theirs, copy, copied));
        theirs.give_up();
        match adopted {
            Ok(provider) => io.events.push_back(Event::HandedOver { provider, from }),
            Err(reason) => not_taken(from, &reason),
        }
        !self.adopting.is_empty()
    }

    /// Makes a provider of a buffer that is in the session's directory now.
    fn adopted(
        &mut self,
        from: ProviderId,
        info: BufferInfo,
        mode: BufferingMode,
        theirs: &Vmo,
        own: Vmo,
        copied: u64,
    ) -> Result<ProviderId, Unmade> {
        let client = self.session_of(from).ok_or(Unmade::NoSession)?;
        let session = self.sessions.get_mut(&client).ok_or(Unmade::NoSession)?;
        let session = session.directory(&self.buffers)?;
        let source = self.providers.get(&from).ok_or(Unmade::Gone)?;
        let (id, size, origin) = (ProviderId(info.id), info.bytes, info.origin);
        let vmo = Arc::new(own.into_read_only());
        // From here on it is part of this session, wherever else it still is.
        session.note(&Entry::Provider(info));
        session.note(&Entry::Started { provider: id.0, retains: false });
        let deleted = theirs
            .find_path()
            .map_err(std::io::Error::other)
            .and_then(|path| origin.map_or(Ok(()), |origin| recovery::delete_startup_buffer(&path, origin)));
        if let Err(error) = deleted {
            log(&format!("program {}: its own buffer cannot be deleted: {error}", from.0));
        }
        let mut progress = Progress::of(vmo.clone());
        let layout = Layout::new(size, mode.into())?;
        let open = SharedScopes::new(OpenScopes::read(&VmoSource::from(vmo.clone()), &layout));
        progress.share(open.clone());
        let tracee = Tracee {
            session: client,
            progress: Some(progress),
            vmo,
            size,
            mode,
            fifo: None,
            has_started: true,
            made: 0,
            ended: Some(ticks::now()),
            has_stopped: false,
            is_terminated: true,
            is_left: true,
            copied,
        };
        let provider = Provider {
            name: source.name.clone(),
            pid: source.pid,
            uid: source.uid,
            channel: None,
            process: source.process.clone(),
            tracee: Some(tracee),
            unanswered: VecDeque::new(),
            dumps_memory: false,
            answers_dumps: false,
            parent: source.parent,
            command_line: source.command_line.clone(),
            registered: source.registered,
            records_alerts: source.records_alerts,
            backs_buffer: source.backs_buffer,
            has_scopes: source.has_scopes,
            redacts: source.redacts,
            has_handed_over: true,
            is_elsewhere: source.is_elsewhere,
        };
        self.providers.insert(id, provider);
        // Those that end in the other buffer have their records there.
        let other = self.providers.get_mut(&from).and_then(|provider| provider.tracee.as_mut());
        if let Some(progress) = other.and_then(|other| other.progress.as_mut()) {
            progress.share(open);
        }
        Ok(id)
    }
}

fn not_taken(from: ProviderId, reason: &Unmade) {
    log(&format!("program {}: what it recorded before is not taken over: {reason}", from.0));
}

#[cfg(test)]
mod tests {
    use super::super::Buffer;
    use super::super::tests::provider;
    use super::*;
    use crate::core::ClientId;
    use crate::own_process::is_own_process;
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    use std::path::{Path, PathBuf};
    use trace_archive::manifest::Manifest;
    use trace_protocol::controller::TraceConfig;
    use trace_protocol::provider::ProviderResponse;
    use trace_protocol::{KnownCategories, Message, Txid};
    use zx_sim::ticks::Clock;
    use zx_sim::{Channel, RuntimeDir};

    const APP: ProviderId = ProviderId(1);
    const CLIENT: ClientId = ClientId(1);

    /// A provider of this user's that takes part in a session.
    struct Scene {
        directory: tempfile::TempDir,
        providers: Providers,
        io: Io,
        theirs: Channel,
    }

    impl Scene {
        fn new() -> Self {
            Self::of(&TraceConfig::default())
        }

        fn of(config: &TraceConfig) -> Self {
            let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
            let runtime = RuntimeDir::open_or_create(&directory.path().join("run")).unwrap();
            let mut providers = Providers::new(runtime, Clock::measure());
            let uid = Uid(rustix::process::geteuid().as_raw());
            providers.begin_session(CLIENT, config, uid, None, Vec::new());
            let (ours, theirs) = Channel::pair().unwrap();
            let app = Provider { channel: Some(ours), uid, ..provider() };
            providers.providers.insert(APP, app);
            providers.next_id = 2;
            let mut io = Io::new().unwrap();
            providers.initialize(CLIENT, APP, 4096, BufferingMode::Oneshot, Vec::new()).unwrap();
            while providers.make_buffers(&mut io) {}
            Self { directory, providers, io, theirs }
        }

        /// A buffer of a program's own.
        fn buffer(&self, directory: &str, size: u64) -> (PathBuf, Vmo) {
            let place = self.directory.path().join("run").join(directory);
            std::fs::create_dir_all(&place).unwrap();
            let vmo = Vmo::create_in(&place, "provider-1", size).unwrap();
            vmo.write_at(0, b"recorded").unwrap();
            (place.join("provider-1"), vmo)
        }

        fn take_over(&mut self, vmo: Vmo, mode: BufferingMode) -> Option<ProviderId> {
            self.providers.take_over(APP, vmo.into_handle(), mode, &mut self.io);
            self.io.events.drain(..).find_map(|event| match event {
                Event::HandedOver { provider, from: APP } => Some(provider),
                _ => None,
            })
        }

        /// Copies all that is to be copied.
        fn copied(&mut self) -> Vec<ProviderId> {
            while self.providers.copy_buffers(&mut self.io) {}
            let provider = |event| match event {
                Event::HandedOver { provider, .. } => Some(provider),
                _ => None,
            };
            self.io.events.drain(..).filter_map(provider).collect()
        }

        fn session(&self) -> &Path {
            self.providers.sessions[&CLIENT].directory.as_ref().unwrap().path()
        }

        fn is_connected(&self) -> bool {
            self.providers.providers[&APP].channel.is_some()
        }
    }

    //= docs/protocol.md#what-was-recorded-before
    #[test]
    fn it_is_moved_into_the_session() {
        let mut scene = Scene::new();
        let (path, vmo) = scene.buffer("session-app", 4096);
        let origin = vmo.identity().unwrap();
        let id = scene.take_over(vmo, BufferingMode::Circular).unwrap();
        assert!(!path.exists());
        assert_eq!(std::fs::read(scene.session().join("provider-2")).unwrap()[..8], *b"recorded");
        let manifest = Manifest::read(scene.session()).unwrap();
        let noted = &manifest.buffers[&id.0];
        assert!(noted.is_started && !noted.is_archived);
        assert_eq!((noted.provider.origin, noted.provider.bytes), (Some(origin), 4096));
        assert_eq!(noted.provider.name, "app");
        // A second one is a violation.
        let (path, vmo) = scene.buffer("session-other", 4096);
        assert_eq!(scene.take_over(vmo, BufferingMode::Circular), None);
        assert!(path.exists() && !scene.is_connected());
    }

    /// A program may record by itself again between two recordings.
    //= docs/protocol.md#what-was-recorded-before
    #[test]
    fn each_recording_takes_one_over() {
        let mut scene = Scene::new();
        let (_, first) = scene.buffer("session-first", 4096);
        assert_eq!(scene.take_over(first, BufferingMode::Oneshot), Some(ProviderId(2)));
        let next = ClientId(2);
        let uid = Uid(rustix::process::geteuid().as_raw());
        scene.providers.begin_session(next, &TraceConfig::default(), uid, None, Vec::new());
        scene.providers.initialize(next, APP, 4096, BufferingMode::Oneshot, Vec::new()).unwrap();
        while scene.providers.make_buffers(&mut scene.io) {}
        let (_, second) = scene.buffer("session-second", 4096);
        assert_eq!(scene.take_over(second, BufferingMode::Oneshot), Some(ProviderId(3)));
        assert!(scene.is_connected());
    }

    /// The limit holds for the whole process.
    //= docs/protocol.md#what-was-recorded-before
    #[test]
    fn a_message_whose_buffer_finds_no_descriptor_costs_no_connection() {
        let test = "a_message_whose_buffer_finds_no_descriptor_costs_no_connection";
        if !is_own_process(&format!("daemon::providers::startup::tests::{test}")) {
            return;
        }
        let mut scene = Scene::new();
        let (path, vmo) = scene.buffer("session-app", 4096);
        let buffering_mode = BufferingMode::Oneshot;
        let messages = [vmo.duplicate().unwrap(), vmo].map(|vmo| {
            ProviderResponse::HandOver { buffer: vmo.into_handle(), buffering_mode }
                .encode(Txid::ONE_WAY)
                .unwrap()
        });
        for message in messages {
            scene.theirs.write(&message.bytes, message.handles).unwrap();
        }
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(0), ..limit }).unwrap();
        assert!(scene.providers.read_channel(APP, &mut scene.io).is_none());
        setrlimit(Resource::Nofile, limit).unwrap();
        assert!(scene.is_connected() && path.exists() && scene.io.events.is_empty());
        // The next one finds it.
        assert!(scene.providers.read_channel(APP, &mut scene.io).is_none());
        assert!(!path.exists());
        let taken = scene.io.events.pop_front();
        assert!(matches!(taken, Some(Event::HandedOver { provider: ProviderId(2), from: APP })), "{taken:?}");
    }

    #[test]
    fn a_file_elsewhere_is_used_and_not_deleted() {
        let mut scene = Scene::new();
        let (path, vmo) = scene.buffer("mine", 4096);
        assert_eq!(scene.take_over(vmo, BufferingMode::Oneshot), Some(ProviderId(2)));
        assert!(path.exists(), "it is in no session's directory");
    }

    /// One that has no name any more, or is on another file system.
    #[test]
    fn a_buffer_that_cannot_be_linked_is_copied() {
        let mut scene = Scene::new();
        let memory = Vmo::of_bytes("mine", &[7; 8192]).unwrap();
        assert_eq!(scene.take_over(memory, BufferingMode::Oneshot), None);
        // What it has sent since is read after that.
        let answer = ProviderResponse::KnownCategories(KnownCategories::default());
        let answer = Message::<Handle>::encode(answer, Txid(1)).unwrap();
        scene.theirs.write(&answer.bytes, answer.handles).unwrap();
        assert!(scene.providers.read_channel(APP, &mut scene.io).is_none());
        assert_eq!(scene.copied(), [ProviderId(2)]);
        assert_eq!(std::fs::read(scene.session().join("provider-2")).unwrap(), [7; 8192]);
        assert!(scene.providers.read_channel(APP, &mut scene.io).is_some());
    }

    /// All programs of a user share the limit. Holes in their buffers do not count.
    //= docs/protocol.md#what-was-recorded-before
    #[test]
    fn what_is_copied_for_a_user_is_bounded() {
        let mut scene = Scene::new();
        let others = [ProviderId(8), ProviderId(9), ProviderId(10)];
        for id in others {
            let app = Provider { uid: scene.providers.providers[&APP].uid, ..provider() };
            scene.providers.providers.insert(id, app);
            let mode = BufferingMode::Oneshot;
            scene.providers.initialize(CLIENT, id, 4096, mode, Vec::new()).unwrap();
            while scene.providers.make_buffers(&mut scene.io) {}
        }
        let hand_over = |scene: &mut Scene, id, bytes: &[u8]| {
            let memory = rustix::fs::memfd_create("mine", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
            rustix::fs::ftruncate(&memory, MAX_BYTES).unwrap();
            rustix::io::pwrite(&memory, bytes, 0).unwrap();
            let mode = BufferingMode::Oneshot;
            scene.providers.take_over(id, Handle::new(memory), mode, &mut scene.io);
            scene.providers.is_adopting(id)
        };
        let most = vec![7; usize::try_from(MAX_BYTES).unwrap()];
        assert!(hand_over(&mut scene, others[0], &most) && hand_over(&mut scene, others[1], &most));
        assert!(!hand_over(&mut scene, others[2], b"little"));
        // One whose provider leaves leaves nothing.
        scene.providers.drop_tracee(others[0], Buffer::Deleted, &scene.io);
        assert!(!scene.session().join("provider-2").exists());
        // Holes take nothing.
        assert!(hand_over(&mut scene, APP, b"little"));
        assert_eq!(scene.copied().len(), 2);
        assert_eq!(scene.providers.copied_of(scene.providers.providers[&APP].uid), MAX_BYTES + 4096);
    }

    #[test]
    fn what_may_not_be_taken_over_stays() {
        let mut scene = Scene::new();
        let (path, vmo) = scene.buffer("session-large", 4096);
        std::fs::File::options().write(true).open(&path).unwrap().set_len(MAX_BYTES + 1).unwrap();
        assert_eq!(scene.take_over(vmo, BufferingMode::Oneshot), None);
        assert!(path.exists() && scene.is_connected());

        let mut scene = Scene::new();
        let (path, vmo) = scene.buffer("session-foreign", 4096);
        scene.providers.providers.get_mut(&APP).unwrap().uid = Uid(12_345);
        assert_eq!(scene.take_over(vmo, BufferingMode::Oneshot), None);
        assert!(path.exists() && scene.is_connected());

        let mut scene = Scene::new();
        let (path, vmo) = scene.buffer("session-stream", 4096);
        assert_eq!(scene.take_over(vmo, BufferingMode::Streaming), None);
        assert!(path.exists() && !scene.is_connected());
        // Nor into a private recording, for which no program is asked to.
        let mut scene = Scene::of(&TraceConfig { privacy: true, ..TraceConfig::default() });
        let (path, vmo) = scene.buffer("session-private", 4096);
        assert_eq!(scene.take_over(vmo, BufferingMode::Oneshot), None);
        assert!(path.exists() && scene.is_connected());
        // Nor where the recording is over.
        let mut scene = Scene::new();
        let (path, vmo) = scene.buffer("session-late", 4096);
        scene.providers.providers.get_mut(&APP).unwrap().tracee = None;
        assert_eq!(scene.take_over(vmo, BufferingMode::Oneshot), None);
        assert!(path.exists() && scene.is_connected());
        // Files that are none of this user's memory.
        let mut scene = Scene::new();
        let (reader, _writer) = std::io::pipe().unwrap();
        scene.providers.take_over(APP, Handle::new(reader.into()), BufferingMode::Oneshot, &mut scene.io);
        assert!(scene.io.events.is_empty());
    }
}
