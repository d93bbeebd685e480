//! Why a provider has no buffer in a session.

use std::sync::Arc;
use trace_format::buffer::BadBufferSize;

/// Why a provider's buffer or FIFO could not be made, or what it has recorded before is not taken over.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Unmade {
    /// The session has ended meanwhile.
    #[error("there is no session")]
    NoSession,
    /// The provider has ended meanwhile.
    #[error("it is gone")]
    Gone,
    /// It would record what the session must not have.
    #[error("it was built with an earlier release, which records all texts")]
    RecordsAllTexts,
    /// What it has recorded before is too much to be taken over.
    #[error("it has {found} bytes, expected {limit} at most")]
    TooLarge {
        /// The size of its buffer.
        found: u64,
        /// The largest size.
        limit: u64,
    },
    /// To copy it would take more memory than the manager uses for one user's programs.
    #[error("the buffers of this user that are copied would have {found} bytes, expected {limit} at most")]
    TooMuchOfUser {
        /// How much it would be.
        found: u64,
        /// The limit.
        limit: u64,
    },
    /// No buffer has the size that was asked for.
    #[error(transparent)]
    Size(#[from] BadBufferSize),
    /// The operating system has refused.
    #[error(transparent)]
    System(Arc<zx_sim::Error>),
}

impl From<zx_sim::Error> for Unmade {
    fn from(error: zx_sim::Error) -> Self {
        Self::System(Arc::new(error))
    }
}

impl Unmade {
    /// The file system with the buffers is full.
    #[must_use]
    pub fn is_out_of_space(&self) -> bool {
        matches!(self, Self::System(error) if matches!(**error, zx_sim::Error::NoSpace { .. }))
    }
}
