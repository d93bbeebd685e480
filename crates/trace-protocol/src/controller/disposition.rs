//! The disposition of a provider in a recording.

/// What became of a provider, as in [`ProviderStats::disposition`].
///
/// On the wire it is text, since the manager replaces "ended" and "left" by how the process ended if the
/// system reports it ("exit status 1", "killed by SIGKILL").
///
/// [`ProviderStats::disposition`]: super::ProviderStats::disposition
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderDisposition {
    /// It has its buffer and was not started.
    NotStarted,
    /// It records.
    Recording,
    /// It stopped when it was asked to.
    Stopped,
    /// It has nothing but what a program had recorded before the recording, and handed over.
    HandedOver,
    /// Its process has ended.
    Ended,
    /// It closed its connection, and its process continues.
    Left,
    /// It ended or left before it had started.
    EndedBeforeStart,
    /// It had not started when the recording was stopped.
    DidNotStart,
    /// It did not answer a Stop in time.
    DidNotStop,
    /// It did not answer a Terminate in time.
    DidNotTerminate,
    /// It sent a packet that is not allowed.
    BrokeProtocol,
    /// Its buffer could not be made.
    NotTraced,
    /// It was not registered.
    Refused,
    /// It stopped waiting before the manager knew of it.
    GaveUp,
    /// Further providers, of which only sums are reported.
    SummedUp,
    /// Recovery: all of its data was in the archive already.
    Archived,
    /// Recovery: its buffer is not there.
    Missing,
    /// Recovery: its process still has its buffer.
    StillRunning,
}

impl ProviderDisposition {
    /// The text on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotStarted => "not started",
            Self::Recording => "recording",
            Self::Stopped => "stopped",
            Self::HandedOver => "handed over",
            Self::Ended => "ended",
            Self::Left => "left",
            Self::EndedBeforeStart => "ended before its start",
            Self::DidNotStart => "did not start",
            Self::DidNotStop => "did not stop",
            Self::DidNotTerminate => "did not terminate",
            Self::BrokeProtocol => "broke the protocol",
            Self::NotTraced => "not traced",
            Self::Refused => "refused",
            Self::GaveUp => "gave up",
            Self::SummedUp => "summed up",
            Self::Archived => "archived",
            Self::Missing => "missing",
            Self::StillRunning => "still running",
        }
    }
}

impl From<ProviderDisposition> for String {
    fn from(disposition: ProviderDisposition) -> Self {
        disposition.as_str().to_owned()
    }
}

impl PartialEq<ProviderDisposition> for String {
    fn eq(&self, other: &ProviderDisposition) -> bool {
        self == other.as_str()
    }
}
