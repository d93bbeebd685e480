//! Providers whose descriptors were closed, without a word before: a process that dies closes them first, and
//! is dead a moment later. Until that is known, or takes too long, nobody reads what they have left as if it
//! could not change any more.
//= docs/protocol.md#a-provider-that-dies

use super::Key;
use crate::core::Event;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::{Duration, Instant};
use trace_format::units::ProviderId;
use zx_sim::{ProcessFd, Signals, WaitSet};

/// How long a process may take to be dead after its descriptors were closed. On a busy machine it has to wait
/// for its turn.
const DYING_WAIT: Duration = Duration::from_secs(1);

/// What was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The FIFO alone: it has left the session.
    Session,
    /// The channel.
    Registration,
}

impl End {
    /// What the core hears of it.
    pub fn event(self, provider: ProviderId, is_dead: bool) -> Event {
        match self {
            Self::Session => Event::FifoClosed { provider, is_dead },
            Self::Registration => Event::ProviderClosed { provider, is_dead },
        }
    }
}

struct Left {
    end: End,
    process: Rc<ProcessFd>,
    until: Instant,
}

/// Who may be dying.
#[derive(Default)]
pub struct Leaving(BTreeMap<ProviderId, Left>);

impl Leaving {
    /// Tells the core what was closed: now, or when it is known whether the process dies.
    pub fn add(
        &mut self,
        id: ProviderId,
        end: End,
        process: Option<Rc<ProcessFd>>,
        waits: &WaitSet,
        events: &mut VecDeque<Event>,
    ) {
        if let Some(left) = self.0.get_mut(&id) {
            if end == End::Registration {
                left.end = end;
            }
            return;
        }
        let key = Key::Process(id).encode();
        match process {
            Some(process) if process.is_dead() => events.push_back(end.event(id, true)),
            Some(process) if waits.add(&*process, key, Signals::READABLE).is_ok() => {
                self.0.insert(id, Left { end, process, until: Instant::now() + DYING_WAIT });
            }
            _ => events.push_back(end.event(id, false)),
        }
    }

    /// The session that a provider was leaving is over for it; that it is gone altogether is still told.
    pub fn forget_session(&mut self, id: ProviderId, waits: &WaitSet) {
        if self.0.get(&id).is_some_and(|left| left.end == End::Session)
            && let Some(left) = self.0.remove(&id)
        {
            let _ = waits.remove(&*left.process);
        }
    }

    /// The process is dead, or its time is up.
    pub fn settle(&mut self, id: ProviderId, waits: &WaitSet, events: &mut VecDeque<Event>) {
        if let Some(left) = self.0.remove(&id) {
            let _ = waits.remove(&*left.process);
            events.push_back(left.end.event(id, left.process.is_dead()));
        }
    }

    /// Settles those whose time is up.
    pub fn expire(&mut self, now: Instant, waits: &WaitSet, events: &mut VecDeque<Event>) {
        let expired = |(id, left): (&ProviderId, &Left)| (left.until <= now).then_some(*id);
        let expired: Vec<_> = self.0.iter().filter_map(expired).collect();
        expired.into_iter().for_each(|id| self.settle(id, waits, events));
    }

    /// When [`Leaving::expire`] is due.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.0.values().map(|left| left.until).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    const ID: ProviderId = ProviderId(7);

    fn child() -> (Child, Rc<ProcessFd>) {
        let child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let process = Rc::new(ProcessFd::open(child.id()).unwrap());
        (child, process)
    }

    /// What the core heard: what was closed, and whether the process is dead.
    fn heard(events: &mut VecDeque<Event>) -> Vec<(End, bool)> {
        let told = |event| match event {
            Event::FifoClosed { provider: ID, is_dead } => (End::Session, is_dead),
            Event::ProviderClosed { provider: ID, is_dead } => (End::Registration, is_dead),
            _ => panic!("an event of another kind"),
        };
        events.drain(..).map(told).collect()
    }

    //= docs/protocol.md#a-provider-that-dies
    #[test]
    fn who_dies_late_is_dead_and_who_lives_on_has_left() {
        let (waits, mut leaving, mut events) = (WaitSet::new().unwrap(), Leaving::default(), VecDeque::new());
        let (mut child, process) = child();
        leaving.add(ID, End::Session, Some(process.clone()), &waits, &mut events);
        leaving.add(ID, End::Registration, Some(process.clone()), &waits, &mut events);
        assert_eq!(heard(&mut events), [], "it is not known yet");
        child.kill().unwrap();
        let mut ready = Vec::new();
        waits.wait(&mut ready, Some(Instant::now() + Duration::from_secs(60))).unwrap();
        assert_eq!(ready.iter().map(|event| Key::decode(event.key)).collect::<Vec<_>>(), [Key::Process(ID)]);
        leaving.settle(ID, &waits, &mut events);
        assert_eq!(heard(&mut events), [(End::Registration, true)]);
        assert_eq!(leaving.next_deadline(), None);
        // Of one that is dead already nobody waits for more.
        leaving.add(ID, End::Session, Some(process), &waits, &mut events);
        leaving.add(ID, End::Session, None, &waits, &mut events);
        assert_eq!(heard(&mut events), [(End::Session, true), (End::Session, false)]);
        child.wait().unwrap();
    }

    //= docs/protocol.md#a-provider-that-dies
    #[test]
    fn nobody_is_waited_for_for_ever() {
        let (waits, mut leaving, mut events) = (WaitSet::new().unwrap(), Leaving::default(), VecDeque::new());
        let (mut child, process) = child();
        leaving.add(ID, End::Session, Some(process.clone()), &waits, &mut events);
        let due = leaving.next_deadline().unwrap();
        leaving.expire(due - Duration::from_millis(1), &waits, &mut events);
        assert_eq!(heard(&mut events), []);
        leaving.expire(due, &waits, &mut events);
        assert_eq!(heard(&mut events), [(End::Session, false)]);
        // One that the session is over for is not told of, unless it is gone altogether.
        for (end, expected) in [(End::Session, &[][..]), (End::Registration, &[(End::Registration, false)])] {
            leaving.add(ID, end, Some(process.clone()), &waits, &mut events);
            leaving.forget_session(ID, &waits);
            leaving.expire(Instant::now() + 2 * DYING_WAIT, &waits, &mut events);
            assert_eq!(heard(&mut events), expected);
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
