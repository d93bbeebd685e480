//! The keys of the daemon's wait set: what each event is about.

use trace_format::units::ProviderId;

/// The meaning of a key of the wait set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Registry,
    Provisioner,
    Signal,
    /// A connection on the registry socket.
    Registration(u32),
    /// A provider's channel.
    Provider(ProviderId),
    /// A provider's FIFO.
    Fifo(ProviderId),
    /// A connection on the provisioner socket.
    Client(u32),
    /// The session channel.
    Session(u32),
    /// The output socket of a session.
    Output,
    /// The socket that a snapshot goes into.
    Snapshot,
    /// The file of the task with this number is complete.
    Spool(u32),
    /// The process of a provider that has left.
    Process(ProviderId),
    /// The socket of an observer.
    Observer(u32),
}

impl Key {
    pub fn encode(self) -> u64 {
        let (tag, number) = match self {
            Self::Registry => (0, 0),
            Self::Provisioner => (1, 0),
            Self::Signal => (2, 0),
            Self::Registration(number) => (3, number),
            Self::Provider(id) => (4, id.0),
            Self::Fifo(id) => (5, id.0),
            Self::Client(number) => (6, number),
            Self::Session(number) => (7, number),
            Self::Output => (8, 0),
            Self::Snapshot => (9, 0),
            Self::Spool(number) => (10, number),
            Self::Process(id) => (11, id.0),
            Self::Observer(number) => (12, number),
        };
        tag << 32 | u64::from(number)
    }

    pub fn decode(key: u64) -> Self {
        let number = key as u32;
        match key >> 32 {
            0 => Self::Registry,
            1 => Self::Provisioner,
            2 => Self::Signal,
            3 => Self::Registration(number),
            4 => Self::Provider(ProviderId(number)),
            5 => Self::Fifo(ProviderId(number)),
            6 => Self::Client(number),
            7 => Self::Session(number),
            8 => Self::Output,
            9 => Self::Snapshot,
            10 => Self::Spool(number),
            11 => Self::Process(ProviderId(number)),
            _ => Self::Observer(number),
        }
    }
}
