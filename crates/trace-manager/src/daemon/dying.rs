//! Processes whose death the core waits for: they closed a FIFO or channel while they recorded, and until
//! they are dead a thread of theirs may still write.
//= docs/protocol.md#a-provider-that-dies

use super::Key;
use super::io::Io;
use crate::core::Event;
use std::collections::BTreeMap;
use std::rc::Rc;
use trace_format::units::ProviderId;
use zx_sim::{ProcessFd, Signals};

/// The processes of providers that may be dying.
#[derive(Default)]
pub(super) struct DyingProviders(BTreeMap<ProviderId, Rc<ProcessFd>>);

impl DyingProviders {
    /// Reports the death of a provider's process, at once if it is dead. If it cannot be watched, the core's
    /// timeout for it expires.
    pub fn watch(&mut self, id: ProviderId, process: &Rc<ProcessFd>, io: &mut Io) {
        if process.is_dead() {
            io.events.push_back(Event::ProcessDied { provider: id });
        } else if io.waits.add(&**process, Key::Process(id).encode(), Signals::READABLE).is_ok() {
            self.0.insert(id, process.clone());
        }
    }

    /// The descriptor of a watched process is readable.
    pub fn handle_readable(&mut self, id: ProviderId, io: &mut Io) {
        if self.0.get(&id).is_some_and(|process| process.is_dead()) {
            self.forget(id, io);
            io.events.push_back(Event::ProcessDied { provider: id });
        }
    }

    /// Stops watching a process.
    pub fn forget(&mut self, id: ProviderId, io: &Io) {
        if let Some(process) = self.0.remove(&id) {
            let _ = io.waits.remove(&*process);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    const ID: ProviderId = ProviderId(7);

    fn died(io: &mut Io) -> usize {
        let is_it = |event: Event| matches!(event, Event::ProcessDied { provider: ID });
        io.events.drain(..).map(is_it).filter(|is_it| *is_it).count()
    }

    //= docs/protocol.md#a-provider-that-dies
    #[test]
    fn a_death_is_reported_once_and_not_when_it_is_forgotten() {
        let mut io = Io::new().unwrap();
        let mut dying = DyingProviders::default();
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let process = Rc::new(ProcessFd::open(child.id()).unwrap());
        let wait = |io: &Io| {
            let mut ready = Vec::new();
            io.waits.wait(&mut ready, Some(Instant::now() + Duration::from_millis(1))).unwrap();
            ready.iter().map(|event| Key::decode(event.key)).collect::<Vec<_>>()
        };
        dying.watch(ID, &process, &mut io);
        assert_eq!((wait(&io), died(&mut io)), (vec![], 0), "it lives");
        dying.handle_readable(ID, &mut io);
        assert_eq!(died(&mut io), 0, "it lives");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(wait(&io), [Key::Process(ID)]);
        dying.handle_readable(ID, &mut io);
        dying.handle_readable(ID, &mut io);
        assert_eq!((wait(&io), died(&mut io)), (vec![], 1));
        dying.watch(ID, &process, &mut io);
        assert_eq!(died(&mut io), 1, "it is dead already");

        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let process = Rc::new(ProcessFd::open(child.id()).unwrap());
        dying.watch(ID, &process, &mut io);
        dying.forget(ID, &io);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((wait(&io), died(&mut io)), (vec![], 0));
    }
}
