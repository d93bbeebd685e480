//! One session: from InitializeTracing until the last provider has given its buffer back.

mod alerts;
mod closing;
mod packets;
mod queries;
mod transfers;

use super::observers::Observers;
use super::scope::Scope;
use super::stats::Stats;
use super::tracee::{Data, Stream, Timer, Tracee, TraceeState};
use super::{Action, ClientId, Now, Part, Provider, Uid};
use alerts::Alerts;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use trace_format::loss::LossCode;
use trace_format::units::ProviderId;
use trace_protocol::controller::{
    Lost, ProviderDisposition, ProviderStats, SessionState, StartError, StartOptions, StopError, StopOptions,
    StopResult, TraceConfig, Untraced,
};
use trace_protocol::limits::MAX_CATEGORIES;
use trace_protocol::{BufferDisposition, BufferingMode};
use transfers::HandedOver;

/// How long providers may take to give their buffers back.
const TERMINATE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a Start or Stop may take before the client gets the names of the providers it waits for.
const NOTICE_AFTER: Duration = Duration::from_secs(1);
/// How many providers are named then.
const MAX_WAITED_FOR: usize = 10;
/// The problem of a provider whose application did not wait until it was registered.
pub(super) const JOINED_LATE: &str = "it could not join in time: what it did before is not recorded";
/// The problem of the kernel's provider, if that has ended before the recording.
pub(super) const KERNEL_GOES_ON: &str = "the kernel is not recorded from then on";
const MEGABYTE: u64 = 1 << 20;

pub(super) type Actions = VecDeque<Action>;

/// A running session.
#[derive(Debug)]
pub(super) struct Session {
    client: ClientId,
    pid: u32,
    scope: Scope,
    config: TraceConfig,
    pub(super) observers: Observers,
    state: SessionState,
    tracees: BTreeMap<ProviderId, Tracee>,
    /// Of the last Start, for providers that join its run.
    additional_categories: Vec<String>,
    /// The tags of markers that its lists select.
    marker_tags: u64,
    /// The options of the last Stop.
    write_results: bool,
    is_aborted: bool,
    timer: Option<Timer>,
    /// When the client gets the names of the providers it waits for.
    notice: Option<Now>,
    is_start_pending: bool,
    is_stop_pending: bool,
    /// Parts that wait for the archive, in the order in which they came.
    transfers: VecDeque<(ProviderId, Part)>,
    transferring: Option<(ProviderId, Part)>,
    /// Parts that were read and are not written yet, in that order.
    handed_over: VecDeque<HandedOver>,
    stats: Stats,
    alerts: Alerts,
}

impl Session {
    /// A session that a user asks for, in a manager of `owner`'s.
    pub fn new(client: ClientId, pid: u32, uid: Uid, owner: Uid, config: TraceConfig) -> Self {
        Self {
            client,
            pid,
            scope: Scope::new(uid, owner, &config),
            config,
            observers: Observers::default(),
            state: SessionState::Ready,
            tracees: BTreeMap::new(),
            additional_categories: Vec::new(),
            marker_tags: 0,
            write_results: true,
            is_aborted: false,
            timer: None,
            notice: None,
            is_start_pending: false,
            is_stop_pending: false,
            transfers: VecDeque::new(),
            transferring: None,
            handed_over: VecDeque::new(),
            stats: Stats::default(),
            alerts: Alerts::default(),
        }
    }

    /// The user and process of the session, for people.
    pub fn owner(&self) -> String {
        match self.config.command_line.join(" ") {
            line if line.is_empty() => format!("pid {}", self.pid),
            line => format!("\"{line}\" (pid {})", self.pid),
        }
    }

    /// Who asked for it, and for which programs.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The process that asked for it.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether a provider that registers takes part in it.
    pub fn takes(&self, provider: &Provider) -> bool {
        self.scope.has(provider.uid, &provider.name)
    }

    /// Whether a provider takes part in it.
    pub fn has(&self, provider: ProviderId) -> bool {
        self.tracees.contains_key(&provider)
    }

    /// Whether a program of this name, or with this process id, takes part in it or was asked for.
    pub fn has_program(&self, program: &str) -> bool {
        let is_it = |tracee: &Tracee| tracee.name == program || tracee.pid.to_string() == program;
        self.scope.names(program) || self.tracees.values().any(is_it)
    }

    /// It records, or is about to.
    pub fn is_running(&self) -> bool {
        matches!(self.state, SessionState::Starting | SessionState::Started)
    }

    pub fn client(&self) -> ClientId {
        self.client
    }

    pub fn state(&self) -> SessionState {
        self.state
    }

    pub fn buffering_mode(&self) -> BufferingMode {
        self.config.buffering_mode
    }

    pub fn next_deadline(&self) -> Option<Now> {
        let dying = self.tracees.values().filter_map(|tracee| match tracee.state {
            TraceeState::Dying { until } => Some(until),
            _ => None,
        });
        dying.chain(self.timer.map(Timer::deadline)).chain(self.notice).min()
    }

    fn enter(&mut self, state: SessionState, actions: &mut Actions) {
        self.state = state;
        actions.push_back(Action::StateChanged(self.client, state));
    }

    /// The archive comes before everything else.
    pub fn begin(&self, actions: &mut Actions) {
        let (client, pid, config, uid) = (self.client, self.pid, self.config.clone(), self.scope.uid());
        actions.push_back(Action::BeginArchive { client, pid, config, uid });
    }

    /// All providers known so far are initialized.
    pub fn finish_initialize(&mut self, actions: &mut Actions) {
        self.enter(SessionState::Initialized, actions);
    }

    /// A provider joins, perhaps while the trace runs.
    //= docs/protocol.md#a-provider-that-registers-during-a-session
    pub fn handle_new_provider(&mut self, id: ProviderId, provider: &Provider, actions: &mut Actions) {
        if self.state == SessionState::Terminating {
            return;
        }
        let spec = self.config.provider_specs.iter().find(|spec| spec.name == provider.name);
        let size = spec.and_then(|spec| spec.buffer_size_megabytes_hint);
        let size = size.unwrap_or(self.config.buffer_size_megabytes_hint).max(1);
        let mut categories = self.config.categories.clone();
        for category in spec.iter().flat_map(|spec| &spec.categories) {
            if !categories.contains(category) {
                categories.push(category.clone());
            }
        }
        if categories.len() > MAX_CATEGORIES {
            let text = format!("program {} \"{}\": {} categories, ", id.0, provider.name, categories.len());
            actions.push_back(Action::Log(text + "those beyond the limit are ignored"));
            categories.truncate(MAX_CATEGORIES);
        }
        let is_late = provider.is_late || self.stats.has_untraced(provider.pid);
        let joins_late = is_late && self.is_running();
        actions.push_back(Action::InitializeTracee {
            client: self.client,
            provider: id,
            buffer_bytes: u64::from(size) * MEGABYTE,
            mode: self.config.buffering_mode,
            categories,
        });
        if self.config.wants_known_categories {
            actions.push_back(Action::AskCategories(id));
        }
        let state = match self.state {
            SessionState::Stopping | SessionState::Stopped => TraceeState::Stopped,
            _ => TraceeState::Initialized,
        };
        let mut tracee = Tracee::new(id, &provider.name, provider.pid, state);
        if self.is_running() {
            if joins_late {
                tracee.join_late(self.client, actions);
            }
            start_tracee(&mut tracee, BufferDisposition::ClearEntire, &self.additional_categories, actions);
        }
        self.tracees.insert(id, tracee);
    }

    /// A provider has handed over what it had recorded before: a provider that has ended, whose data is all
    /// there is.
    //= docs/protocol.md#what-was-recorded-before
    pub fn handle_handed_over(&mut self, id: ProviderId, from: ProviderId, actions: &mut Actions) {
        let Some(source) = self.tracees.get(&from) else {
            actions.push_back(Action::LeaveBuffer(id));
            return;
        };
        let mut tracee = Tracee::new(id, &source.name, source.pid, TraceeState::Gone);
        tracee.data = Data::InBuffer;
        tracee.has_started = true;
        tracee.disposition = ProviderDisposition::HandedOver;
        self.tracees.insert(id, tracee);
        self.queue(id);
    }

    pub fn handle_start(&mut self, now: Now, options: StartOptions, actions: &mut Actions) {
        let error = match self.state {
            SessionState::Initialized | SessionState::Stopped => None,
            SessionState::Ready => Some(StartError::NotInitialized),
            SessionState::Starting | SessionState::Started => Some(StartError::AlreadyStarted),
            SessionState::Stopping => Some(StartError::Stopping),
            SessionState::Terminating => Some(StartError::Terminating),
        };
        if let Some(error) = error {
            actions.push_back(Action::ReplyStart(self.client, Err(error)));
            return;
        }
        self.stats.begin_run();
        for tracee in self.tracees.values_mut() {
            if tracee.can_start() {
                // A fresh buffer has no data of an earlier run, and data that was written must not come
                // again.
                let disposition = match tracee.data {
                    Data::InBuffer => options.buffer_disposition,
                    Data::None | Data::Queued | Data::HandedOver | Data::Archived | Data::Left => {
                        BufferDisposition::ClearEntire
                    }
                };
                start_tracee(tracee, disposition, &options.additional_categories, actions);
            } else if tracee.state.is_connected() {
                let text = format!("{}: not started, it is still {:?}", tracee.label(), tracee.state);
                actions.push_back(Action::Log(text));
            }
        }
        self.additional_categories = options.additional_categories;
        self.marker_tags = self.selected_markers();
        self.is_start_pending = true;
        self.notice = Some(now + NOTICE_AFTER);
        self.timer = Some(Timer::Start(now + Duration::from_millis(self.config.start_timeout_milliseconds)));
        self.enter(SessionState::Starting, actions);
    }

    pub fn handle_stop(&mut self, now: Now, options: StopOptions, actions: &mut Actions) {
        if !matches!(self.state, SessionState::Initialized | SessionState::Starting | SessionState::Started) {
            actions.push_back(Action::ReplyStop(self.client, Err(StopError::NotStarted)));
            return;
        }
        self.answer_start(actions);
        self.write_results = options.write_results;
        for tracee in self.tracees.values_mut() {
            match tracee.state {
                TraceeState::Initialized => tracee.state = TraceeState::Stopped,
                TraceeState::Starting | TraceeState::Started => {
                    tracee.state = TraceeState::Stopping;
                    actions.push_back(Action::StopTracee(tracee.id));
                }
                _ => {}
            }
        }
        if options.write_results {
            // An earlier Stop left this data where it is, and no further packet comes from these providers.
            let left = self.tracees.values().filter(|tracee| tracee.is_past_stop());
            let left: Vec<_> = left.map(|tracee| tracee.id).collect();
            left.into_iter().for_each(|id| self.queue(id));
        }
        self.is_stop_pending = true;
        self.notice = Some(now + NOTICE_AFTER);
        self.timer = Some(Timer::Stop(now + Duration::from_millis(self.config.stop_timeout_milliseconds)));
        self.enter(SessionState::Stopping, actions);
    }

    /// Ends the session; what providers have recorded is still written.
    pub fn terminate(&mut self, now: Now, actions: &mut Actions) {
        if self.state == SessionState::Terminating {
            return;
        }
        self.is_start_pending = false;
        self.is_stop_pending = false;
        for tracee in self.tracees.values_mut().filter(|tracee| tracee.state.is_connected()) {
            tracee.terminate(actions);
        }
        self.notice = None;
        self.timer = Some(Timer::Terminate(now + TERMINATE_TIMEOUT));
        self.enter(SessionState::Terminating, actions);
    }

    /// Ends the session because its output takes no more.
    pub fn abort(&mut self, now: Now, reason: String, actions: &mut Actions) {
        if self.is_aborted {
            return;
        }
        actions.push_back(Action::Log(format!("session aborted: {reason}")));
        self.is_aborted = true;
        self.transfers.clear();
        self.transferring = None;
        self.handed_over.clear();
        for tracee in self.tracees.values_mut() {
            if matches!(tracee.data, Data::InBuffer | Data::Queued | Data::HandedOver) {
                tracee.data = Data::Left;
            }
        }
        if std::mem::take(&mut self.is_start_pending) {
            actions.push_back(Action::ReplyStart(self.client, Err(StartError::Terminating)));
        }
        if std::mem::take(&mut self.is_stop_pending) {
            actions.push_back(Action::ReplyStop(self.client, Err(StopError::Aborted)));
        }
        self.terminate(now, actions);
    }

    /// The dispositions of providers that no longer take part.
    pub fn ended(&self) -> Vec<ProviderStats> {
        self.stats.result(std::iter::empty()).provider_stats
    }

    pub fn wants_known_categories(&self) -> bool {
        self.config.wants_known_categories
    }

    pub fn handle_time(&mut self, now: Now, actions: &mut Actions) {
        self.settle_dying(now, actions);
        let is_timer_due = self.timer.is_some_and(|timer| timer.deadline() <= now);
        if self.notice.take_if(|notice| *notice <= now).is_some() && !is_timer_due {
            self.report_waiting(actions);
        }
        let Some(timer) = self.timer.filter(|timer| timer.deadline() <= now) else {
            return;
        };
        self.timer = None;
        match timer {
            Timer::Start(_) => {
                let wait = self.config.start_timeout_milliseconds;
                for tracee in self.tracees.values_mut().filter(|tracee| !tracee.is_past_start()) {
                    tracee.is_slow = true;
                    let text = format!("{}: has not started in time", tracee.label());
                    actions.push_back(Action::Log(text));
                    if self.config.wants_untraced {
                        let reason = format!("it has not started within {wait} ms, and joins when it does");
                        let (name, pid) = (tracee.name.clone(), tracee.pid);
                        actions.push_back(Action::Untraced(self.client, Untraced { name, pid, reason }));
                    }
                }
                self.answer_start(actions);
                self.enter(SessionState::Started, actions);
            }
            Timer::Stop(_) => {
                self.settle_dying(Now::MAX, actions);
                let disposition = ProviderDisposition::DidNotStop;
                let late = self.give_up(|tracee| !tracee.is_past_stop(), disposition, actions);
                if self.write_results {
                    late.into_iter().for_each(|id| self.queue(id));
                }
            }
            Timer::Terminate(_) => {
                self.settle_dying(Now::MAX, actions);
                let disposition = ProviderDisposition::DidNotTerminate;
                let late = self.give_up(|tracee| tracee.state != TraceeState::Gone, disposition, actions);
                late.into_iter().for_each(|id| self.queue(id));
            }
        }
    }

    /// Names the providers that the session waits for.
    fn report_waiting(&self, actions: &mut Actions) {
        let is_past = match self.state {
            SessionState::Starting => Tracee::is_past_start,
            SessionState::Stopping => Tracee::is_past_stop,
            _ => return,
        };
        let waited_for = self.tracees.values().filter(|tracee| !is_past(tracee));
        let mut names: Vec<String> =
            waited_for.map(|tracee| format!("{} (pid {})", tracee.name, tracee.pid)).collect();
        if names.len() > MAX_WAITED_FOR {
            let more = names.len() - MAX_WAITED_FOR;
            names.truncate(MAX_WAITED_FOR);
            names.push(format!("{more} more"));
        }
        if !names.is_empty() {
            actions.push_back(Action::Waiting(self.client, names));
        }
    }

    /// Stops waiting for some providers; returns them.
    fn give_up(
        &mut self,
        is_waited_for: fn(&Tracee) -> bool,
        disposition: ProviderDisposition,
        actions: &mut Actions,
    ) -> Vec<ProviderId> {
        let mut late = Vec::new();
        let client = self.client;
        for tracee in self.tracees.values_mut().filter(|tracee| is_waited_for(tracee)) {
            actions.push_back(Action::Log(format!("{}: {} in time", tracee.label(), disposition.as_str())));
            tracee.is_overdue = true;
            if tracee.data == Data::InBuffer {
                if tracee.state.may_write() && tracee.disposition != ProviderDisposition::BrokeProtocol {
                    tracee.disposition = match tracee.has_started {
                        true => disposition,
                        false => ProviderDisposition::DidNotStart,
                    };
                    if !tracee.has_started {
                        let (reason, end) = (Some(LossCode::NOT_RECORDED), Some(tracee.disposition));
                        actions.push_back(tracee.report_missing(client, reason, end, String::new()));
                    }
                }
                late.push(tracee.id);
            }
        }
        late
    }

    fn answer_start(&mut self, actions: &mut Actions) {
        if std::mem::take(&mut self.is_start_pending) {
            actions.push_back(Action::ReplyStart(self.client, Ok(())));
        }
    }

    /// Moves on as far as possible; true when the session is over.
    pub fn settle(&mut self, actions: &mut Actions) -> bool {
        if self.transferring.is_none()
            && let Some((id, part)) = self.transfers.pop_front()
        {
            self.transferring = Some((id, part));
            actions.push_back(Action::Transfer { client: self.client, provider: id, part });
        }
        self.drop_finished(actions);
        match self.state {
            SessionState::Starting if self.tracees.values().all(Tracee::is_past_start) => {
                self.timer = None;
                self.notice = None;
                self.answer_start(actions);
                self.enter(SessionState::Started, actions);
            }
            SessionState::Stopping if self.is_stopped() => {
                self.timer = None;
                self.notice = None;
                self.enter(SessionState::Stopped, actions);
                if std::mem::take(&mut self.is_stop_pending) {
                    let result = self.stop_result();
                    actions.push_back(Action::ReplyStop(self.client, Ok(result)));
                }
            }
            SessionState::Terminating if self.tracees.is_empty() && !self.is_writing() => {
                actions.push_back(Action::EndSession { client: self.client, is_aborted: self.is_aborted });
                return true;
            }
            _ => {}
        }
        false
    }

    /// The session waits for no provider, and no data is on its way to the archive.
    fn is_stopped(&self) -> bool {
        !self.is_writing() && self.tracees.values().all(Tracee::is_past_stop)
    }

    /// Something is on its way to the archive: while any is in line, one is under way.
    fn is_writing(&self) -> bool {
        self.transferring.is_some() || !self.handed_over.is_empty()
    }

    /// The answer to a Stop: an entry for each provider that took part, without metrics where its data stays
    /// in the buffer.
    fn stop_result(&self) -> StopResult {
        let kept = self.tracees.values().filter(|tracee| tracee.data == Data::InBuffer);
        self.stats.result(kept.map(|tracee| stats_of(tracee, ProviderStats::default())))
    }

    /// Forgets providers whose part in the session is over.
    fn drop_finished(&mut self, actions: &mut Actions) {
        let is_terminating = self.state == SessionState::Terminating;
        self.tracees.retain(|id, tracee| {
            let is_over = tracee.state == TraceeState::Gone || (is_terminating && tracee.is_overdue);
            let is_finished = is_over && tracee.is_settled();
            if is_finished {
                actions.push_back(match tracee.data {
                    Data::Left => Action::LeaveBuffer(*id),
                    _ => Action::DropTracee(*id),
                });
            }
            !is_finished
        });
    }
}

fn start_tracee(
    tracee: &mut Tracee,
    disposition: BufferDisposition,
    additional_categories: &[String],
    actions: &mut Actions,
) {
    tracee.state = TraceeState::Starting;
    tracee.data = Data::InBuffer;
    tracee.disposition = ProviderDisposition::Recording;
    tracee.has_started = false;
    tracee.is_slow = false;
    if disposition != BufferDisposition::Retain {
        tracee.stream = Stream::default();
    }
    actions.push_back(Action::StartTracee {
        provider: tracee.id,
        disposition,
        additional_categories: additional_categories.to_vec(),
    });
}

/// The findings in a provider's buffer, with its name and disposition.
fn stats_of(tracee: &Tracee, stats: ProviderStats) -> ProviderStats {
    let has_ended = matches!(tracee.disposition, ProviderDisposition::Ended | ProviderDisposition::Left);
    let is_empty = stats.events_archived == Some(0) && stats.records_dropped == Some(0);
    let disposition = match has_ended && is_empty && !tracee.has_started {
        true => ProviderDisposition::EndedBeforeStart,
        false => tracee.disposition,
    };
    let late = if tracee.joins_late { JOINED_LATE } else { "" };
    let missing = if tracee.lacks_rest { KERNEL_GOES_ON } else { late };
    let problem = if stats.problem.is_empty() { missing.to_owned() } else { stats.problem };
    let mut losses = stats.losses;
    let unknown = match disposition {
        ProviderDisposition::BrokeProtocol => Some(LossCode::REST_MISSING),
        ProviderDisposition::DidNotStart => Some(LossCode::NOT_RECORDED),
        ProviderDisposition::EndedBeforeStart if tracee.is_slow => Some(LossCode::NOT_RECORDED),
        _ => None,
    };
    let unknown = unknown.into_iter().chain(tracee.lacks_rest.then_some(LossCode::REST_MISSING));
    let unknown = unknown.chain(tracee.joins_late.then_some(LossCode::JOINED_LATE));
    losses.extend(unknown.map(|reason| Lost { reason: reason.0, records: 1 }));
    ProviderStats {
        losses,
        problem,
        id: tracee.id.0,
        name: tracee.name.clone(),
        pid: tracee.pid,
        disposition: disposition.into(),
        ..stats
    }
}
