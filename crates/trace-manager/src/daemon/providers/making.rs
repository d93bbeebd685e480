//! Making a provider's buffer, a part at a time: the kernel clears every page of it, and other peers have to
//! be served meanwhile.

use super::{Providers, Tracee};
use crate::core::{ClientId, Event, Unmade};
use crate::daemon::Key;
use crate::daemon::io::Io;
use crate::daemon::wire::send;
use std::path::Path;
use std::sync::Arc;
use trace_archive::manifest::{BufferInfo, Entry};
use trace_archive::transfer::Progress;
use trace_format::buffer::{BUFFER_VERSION, Layout};
use trace_format::units::ProviderId;
use trace_protocol::fifo::{FIFO_DEPTH, PACKET_BYTES};
use trace_protocol::provider::{ProviderConfig, ProviderRequest};
use trace_protocol::{BufferDisposition, BufferingMode, Message, Txid};
use zx_sim::ticks;
use zx_sim::{Backing, Fifo, Handle, PidNamespace, Signals, Vmo, available_in};

/// How much of a buffer is backed before everything else is checked.
const BACKING_STEP_BYTES: u64 = 8 << 20;

/// A provider's buffer while it is being made, and what is sent to the provider when it exists.
pub(super) struct Unready {
    pub id: ProviderId,
    pub session: ClientId,
    backing: Backing,
    info: BufferInfo,
    mode: BufferingMode,
    categories: Vec<String>,
    /// Start and what comes after it, in order.
    pub next: Vec<Next>,
}

/// The messages that follow Initialize.
pub(super) enum Next {
    Start(BufferDisposition, Vec<String>),
    Send(ProviderRequest<Handle>),
}

impl Unready {
    fn size(&self) -> u64 {
        self.backing.size()
    }

    fn missing_bytes(&self) -> u64 {
        self.backing.missing_bytes()
    }
}

impl Providers {
    /// Begins to make a provider's buffer in a session.
    pub fn initialize(
        &mut self,
        client: ClientId,
        id: ProviderId,
        size: u64,
        mode: BufferingMode,
        categories: Vec<String>,
    ) -> Result<(), Unmade> {
        let session = self.sessions.get_mut(&client).ok_or(Unmade::NoSession)?;
        if session.privacy && self.providers.get(&id).is_some_and(|provider| !provider.redacts) {
            return Err(Unmade::RecordsAllTexts);
        }
        let directory = session.directory(&self.buffers)?.path().to_owned();
        let provider = self.providers.get_mut(&id).ok_or(Unmade::Gone)?;
        // It may record by itself again between two recordings.
        provider.has_handed_over = false;
        let info = provider.buffer_info(id, size, session.has_metadata);
        let file = info.file_name();
        let (is_sparse, scope_bytes) = (provider.backs_buffer, provider.scope_bytes());
        let bytes = size + scope_bytes;
        let promised = self.promised(&directory, bytes)?;
        let backing = if is_sparse {
            let layout = Layout::new(size, mode.into())?;
            Backing::begin_sparse(&directory, &file, bytes, &layout.first_parts(), promised)
        } else {
            Backing::begin_beside(&directory, &file, bytes, promised)
        };
        let (session, next) = (client, Vec::new());
        let unready = Unready { id, session, backing: backing?, info, mode, categories, next };
        self.unready.push_back(unready);
        Ok(())
    }

    /// Bytes of the directory's file system that are still free and will be needed by buffers of the
    /// sessions. 0 where so much is free that there is room for another buffer, which is added, anyway.
    //= docs/buffer.md#memory
    pub(super) fn promised(&mut self, directory: &Path, size: u64) -> zx_sim::Result<u64> {
        let available = available_in(directory)?;
        self.most_bytes = self.most_bytes.saturating_add(size);
        if available >= self.most_bytes {
            return Ok(0);
        }
        let tracees = || self.providers.values().filter_map(|provider| provider.tracee.as_ref());
        let sizes = tracees().map(|tracee| tracee.size).chain(self.unready.iter().map(Unready::size));
        // Without those that are gone.
        self.most_bytes = sizes.fold(size, u64::saturating_add);
        if available >= self.most_bytes {
            return Ok(0);
        }
        let made = tracees().map(Tracee::missing_bytes);
        Ok(made.chain(self.unready.iter().map(Unready::missing_bytes)).fold(0, u64::saturating_add))
    }

    /// Backs a part of the buffer whose turn it is, and sends Initialize when it is complete. True if there
    /// is more to be done at once.
    pub fn make_buffers(&mut self, io: &mut Io) -> bool {
        // Sessions take turns: one that needs many large buffers holds no other one up.
        let sessions = || self.unready.iter().map(|unready| unready.session);
        let next = sessions().filter(|session| Some(*session) > self.last_made).min();
        let next = next.or_else(|| sessions().min());
        let place = self.unready.iter().position(|unready| Some(unready.session) == next);
        let Some((place, unready)) = place.and_then(|place| Some((place, self.unready.get_mut(place)?)))
        else {
            return false;
        };
        self.last_made = next;
        let made = match unready.backing.step(BACKING_STEP_BYTES) {
            Ok(None) => return true,
            Ok(Some(vmo)) => Ok(vmo),
            Err(error) => Err(error.into()),
        };
        if let Some(unready) = self.unready.remove(place) {
            let provider = unready.id;
            if let Err(reason) = made.and_then(|vmo| self.hand_over(unready, vmo, io)) {
                io.events.push_back(Event::TraceeFailed { provider, reason });
            }
        }
        !self.unready.is_empty()
    }

    /// Makes the FIFO and sends Initialize, and the messages that follow it.
    fn hand_over(&mut self, unready: Unready, vmo: Vmo, io: &Io) -> Result<(), Unmade> {
        let Unready { id, session: client, info, mode, categories, next, .. } = unready;
        let size = info.bytes;
        let session = self.sessions.get_mut(&client).ok_or(Unmade::NoSession)?;
        session.directory(&self.buffers)?.note(&Entry::Provider(info));
        let provider = self.providers.get_mut(&id).ok_or(Unmade::Gone)?;
        let (ours, theirs) = Fifo::create(PACKET_BYTES, FIFO_DEPTH)?;
        let own = Arc::new(vmo.duplicate()?.into_read_only());
        let request = ProviderRequest::Initialize {
            config: ProviderConfig {
                buffering_mode: mode,
                // The buffer is written only through the provider's handle.
                buffer: vmo.into_handle(),
                fifo: theirs.into_handle(),
                categories,
                buffer_header_version: BUFFER_VERSION,
                tick_source: self.clock.source.name().to_owned(),
                ticks_per_second: self.clock.ticks_per_second,
                process_koid: Some(provider.pid),
                thread_time: session.thread_time,
                // What programs have recorded by themselves has all texts.
                takes_startup: !session.privacy,
                takes_scopes: true,
                scope_bytes: provider.scope_bytes(),
                mirror_markers: session.mirror_markers,
                privacy: session.privacy,
            },
        };
        let key = Key::Fifo(id).encode();
        io.waits.add(&ours, key, Signals::READABLE | Signals::PEER_CLOSED)?;
        if let Some(channel) = &provider.channel {
            if provider.is_elsewhere
                && let Some(namespace) = PidNamespace::of_this_process()
            {
                send(channel, ProviderRequest::UsePidNamespace { namespace }.encode(Txid::ONE_WAY));
            }
            send(channel, request.encode(Txid::ONE_WAY));
        }
        provider.tracee = Some(Tracee {
            session: client,
            progress: Some(Progress::of(own.clone())),
            vmo: own,
            size,
            mode,
            fifo: Some(ours),
            has_started: false,
            made: ticks::now(),
            ended: None,
            has_stopped: false,
            is_terminated: false,
            is_left: false,
            copied: 0,
        });
        for next in next {
            match next {
                Next::Start(disposition, categories) => self.start(id, disposition, categories),
                Next::Send(request) => self.send_request(id, request),
            }
        }
        Ok(())
    }
}

/// Whether a process has other numbers for itself and its threads than the manager.
//= docs/protocol.md#pid-namespaces
pub(super) fn is_elsewhere(pid: u32, own_number: u64) -> bool {
    let namespace = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/pid")).ok();
    // Without a number here it has none to translate to.
    pid != 0
        && (own_number != u64::from(pid)
            // Both may have the same number for it by chance.
            || namespace(&pid.to_string()).is_some_and(|theirs| namespace("self") != Some(theirs)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::provider;
    use super::*;
    use crate::core::{ProcessState, Uid};
    use crate::daemon::providers::Provider;
    use std::rc::Rc;
    use trace_protocol::controller::TraceConfig;
    use zx_sim::ticks::Clock;
    use zx_sim::{Channel, ProcessFd, RuntimeDir};

    /// Providers of a session, and their ends of the channels.
    fn providers(count: u32) -> (tempfile::TempDir, Providers, Vec<Channel>) {
        // In memory, where there is such a directory.
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let runtime = RuntimeDir::open_or_create(&directory.path().join("run")).unwrap();
        let mut providers = Providers::new(runtime, Clock::measure());
        providers.begin_session(CLIENT, &TraceConfig::default(), Uid(0), None, Vec::new());
        let channels = (1..=count).map(|id| {
            let (ours, theirs) = Channel::pair().unwrap();
            let provider = Provider { channel: Some(ours), ..provider() };
            providers.providers.insert(ProviderId(id), provider);
            theirs
        });
        let channels = channels.collect();
        (directory, providers, channels)
    }

    fn request(channel: &Channel) -> Option<ProviderRequest<Handle>> {
        let message = channel.read().ok()?;
        Some(ProviderRequest::decode(&message.bytes, message.handles).unwrap().1)
    }

    const CLIENT: ClientId = ClientId(9);
    const ONE: ProviderId = ProviderId(1);
    const TWO: ProviderId = ProviderId(2);

    #[test]
    fn a_large_buffer_is_made_in_steps_and_what_follows_waits_for_it() {
        let (_directory, mut providers, channels) = providers(2);
        let mut io = Io::new().unwrap();
        for id in [ONE, TWO] {
            let size = 2 * BACKING_STEP_BYTES + 4096;
            providers.initialize(CLIENT, id, size, BufferingMode::Oneshot, Vec::new()).unwrap();
            providers.start(id, BufferDisposition::ClearEntire, vec!["more".to_owned()]);
            providers.stop(id);
        }
        for step in 0..3 {
            assert!(request(&channels[0]).is_none(), "step {step}");
            assert!(providers.make_buffers(&mut io));
        }
        let Some(ProviderRequest::Initialize { config }) = request(&channels[0]) else {
            panic!("Initialize")
        };
        assert_eq!(Vmo::from_handle(config.buffer).unwrap().size().unwrap(), 2 * BACKING_STEP_BYTES + 4096);
        let Some(ProviderRequest::Start { additional_categories, .. }) = request(&channels[0]) else {
            panic!("Start")
        };
        assert_eq!(additional_categories, ["more"]);
        assert!(matches!(request(&channels[0]), Some(ProviderRequest::Stop)));
        // The second is still to be made, and is not when its provider is forgotten.
        providers.drop_tracee(TWO, super::super::Buffer::Deleted, &io);
        assert!(!providers.make_buffers(&mut io));
        // Its application waits for the start.
        assert!(matches!(request(&channels[1]), Some(ProviderRequest::Terminate)));
        assert!(request(&channels[1]).is_none() && io.events.is_empty());
        let session = providers.sessions[&CLIENT].directory.as_ref().unwrap().path();
        let is_buffer = |name: &String| name.starts_with("provider-");
        let names = std::fs::read_dir(session).unwrap().map(|entry| entry.unwrap().file_name());
        let names: Vec<String> = names.map(|name| name.into_string().unwrap()).filter(is_buffer).collect();
        assert_eq!(names, ["provider-1"]);
    }

    /// The buffers of one session do not hold those of another up.
    //= docs/protocol.md#several-sessions
    #[test]
    fn sessions_take_turns() {
        const THREE: ProviderId = ProviderId(3);
        let (_directory, mut providers, channels) = providers(3);
        let mut io = Io::new().unwrap();
        let sessions = [8, 9, 10].map(ClientId);
        let large = 3 * BACKING_STEP_BYTES;
        for (session, id, size) in
            [(sessions[0], ONE, large), (sessions[1], TWO, large), (sessions[2], THREE, 4096)]
        {
            providers.begin_session(session, &TraceConfig::default(), Uid(0), None, Vec::new());
            providers.initialize(session, id, size, BufferingMode::Oneshot, Vec::new()).unwrap();
        }
        for _ in 0..3 {
            assert!(providers.make_buffers(&mut io));
        }
        let made = || channels.iter().map(|channel| request(channel).is_some()).collect::<Vec<_>>();
        assert_eq!(made(), [false, false, true]);
        assert_eq!([ONE, TWO, THREE].map(|id| providers.session_of(id)), sessions.map(Some));
        while providers.make_buffers(&mut io) {}
        assert_eq!(made(), [true, true, false]);
    }

    /// Programs of earlier releases write wherever they want, and find memory there.
    //= docs/buffer.md#memory
    #[test]
    fn only_a_provider_that_backs_its_buffer_gets_a_sparse_one() {
        const SIZE: u64 = 4 << 20;
        // All in front of the rolling regions, and the beginning of each.
        const FIRST: u64 = (384 << 10) + (128 << 10);
        let (directory, mut providers, channels) = providers(2);
        let mut io = Io::new().unwrap();
        providers.providers.get_mut(&TWO).unwrap().backs_buffer = true;
        for id in [ONE, TWO] {
            providers.initialize(CLIENT, id, SIZE, BufferingMode::Circular, Vec::new()).unwrap();
        }
        let promised =
            |providers: &mut Providers| providers.promised(directory.path(), u64::MAX / 2).unwrap();
        assert_eq!(promised(&mut providers), 2 * SIZE);
        while providers.make_buffers(&mut io) {}
        let buffers = channels.iter().map(|channel| match request(channel) {
            Some(ProviderRequest::Initialize { config }) => Vmo::from_handle(config.buffer).unwrap(),
            other => panic!("{other:?}"),
        });
        let buffers: Vec<Vmo> = buffers.collect();
        assert!(buffers.iter().all(|buffer| buffer.size().unwrap() == SIZE));
        assert!(buffers[0].backed_bytes().unwrap() >= SIZE);
        if directory.path().starts_with("/dev/shm") {
            assert_eq!(buffers[1].backed_bytes().unwrap(), FIRST);
            assert_eq!(promised(&mut providers), SIZE - FIRST);
            buffers[1].write_at(SIZE - 4096, &[1]).unwrap();
            assert_eq!(promised(&mut providers), SIZE - FIRST - 4096, "what is there is not promised");
            assert_eq!(providers.promised(directory.path(), SIZE).unwrap(), 0, "there is room enough");
        }
    }

    /// Programs of earlier releases record all texts.
    //= docs/recording.md#private-recordings
    #[test]
    fn only_a_provider_that_leaves_texts_out_is_recorded_privately() {
        let (_directory, mut providers, channels) = providers(2);
        let mut io = Io::new().unwrap();
        let config = TraceConfig { privacy: true, ..TraceConfig::default() };
        providers.begin_session(CLIENT, &config, Uid(0), None, Vec::new());
        providers.providers.get_mut(&ONE).unwrap().redacts = false;
        let mut initialize =
            |id| providers.initialize(CLIENT, id, 4 << 20, BufferingMode::Oneshot, Vec::new());
        let made = [ONE, TWO].map(&mut initialize);
        assert!(matches!(made, [Err(Unmade::RecordsAllTexts), Ok(())]), "{made:?}");
        while providers.make_buffers(&mut io) {}
        assert!(request(&channels[0]).is_none());
        match request(&channels[1]) {
            Some(ProviderRequest::Initialize { config }) => assert!(config.privacy && !config.takes_startup),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_buffer_that_cannot_be_made_is_reported() {
        let (_directory, mut providers, _channels) = providers(1);
        let mut io = Io::new().unwrap();
        let reason =
            providers.initialize(CLIENT, ONE, u64::MAX / 4, BufferingMode::Oneshot, Vec::new()).unwrap_err();
        assert!(reason.is_out_of_space(), "{reason}");
        // A directory that is full before all of it is backed: its file is not left.
        providers.initialize(CLIENT, ONE, 4096, BufferingMode::Oneshot, Vec::new()).unwrap();
        providers.providers.clear();
        assert!(!providers.make_buffers(&mut io));
        let Some(Event::TraceeFailed { provider: ONE, reason }) = io.events.pop_front() else {
            panic!("a buffer that is not made")
        };
        assert!(matches!(reason, Unmade::Gone), "{reason}");
    }

    //= docs/protocol.md#a-provider-that-dies
    #[test]
    fn a_process_is_not_waited_for_without_a_buffer() {
        let (_directory, mut providers, _channels) = providers(2);
        let mut io = Io::new().unwrap();
        let mut closed = |id, providers: &mut Providers| {
            let process = ProcessFd::open(std::process::id()).unwrap();
            providers.providers.get_mut(&id).unwrap().process = Some(Rc::new(process));
            providers.close(id, &mut io);
            io.events
                .drain(..)
                .map(|event| match event {
                    Event::ProviderClosed { provider, process } => (provider, process),
                    event => panic!("{event:?}"),
                })
                .collect::<Vec<_>>()
        };
        for id in [ONE, TWO] {
            providers.initialize(CLIENT, id, 4096, BufferingMode::Oneshot, Vec::new()).unwrap();
        }
        assert_eq!(closed(ONE, &mut providers), [(ONE, ProcessState::Unknown)]);
        assert!(!providers.make_buffers(&mut Io::new().unwrap()));
        assert_eq!(closed(TWO, &mut providers), [(TWO, ProcessState::Alive)]);
    }
}
