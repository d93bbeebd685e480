//! Zircon's objects on Linux: VMOs, channels, FIFOs, sockets, waiting on them, process handles and ticks.
//!
//! All objects are descriptors, never block, and report [`Error::ShouldWait`] and [`Error::PeerClosed`] the
//! way Zircon does. A [`WaitSet`] waits for any number of them.
//!
//! | module | object | on Linux |
//! |---|---|---|
//! | [`vmo`] | memory that processes share | a fully backed file on tmpfs, or a sealed memfd |
//! | [`channel`] | messages with handles | a `SOCK_SEQPACKET` Unix socket and `SCM_RIGHTS` |
//! | [`fifo`] | small elements of one size | a `SOCK_SEQPACKET` pair with a counted capacity |
//! | [`socket`] | a byte stream | a `SOCK_STREAM` pair |
//! | [`wait`] | signals with a deadline | `epoll` |
//! | [`debuglog`] | lines for people | standard error, which is never waited for |
//! | [`wake`] | waking a thread that has descriptors of its own | a `SOCK_STREAM` pair |
//! | [`guest`] | what a library keeps apart from its program | tables, identities, masks |
//! | [`process`] | koids, names, death | pid, tid, `pidfd` |
//! | [`pid_namespace`] | koids in another namespace | `nsfs` |
//! | [`environment`] | what the program's caller says | variables, but none in a set-uid program |
//! | [`liveness`] | whether a process lives that uses a file | locks of open file descriptions |
//! | [`runtime_dir`] | where sockets and VMOs live | a directory of mode 0700 |
//! | [`ticks`] | one clock for all processes | the invariant TSC, or `CLOCK_MONOTONIC` |
#![deny(unsafe_code)]

mod activation;
mod ahead;
pub mod channel;
pub mod debuglog;
pub mod environment;
mod error;
pub mod fifo;
pub mod guest;
pub mod handle;
pub mod liveness;
mod memory_room;
pub mod pid_namespace;
pub mod process;
pub mod runtime_dir;
#[cfg(test)]
#[path = "../tests/conformance/skip.rs"]
mod skip;
pub mod socket;
mod sys;
pub mod ticks;
mod unread;
pub mod vmo;
pub mod wait;
pub mod wake;

pub use ahead::Ahead;
pub use channel::{Channel, Listener, Message, Peer};
pub use error::{Error, Result, Unsafe};
pub use fifo::Fifo;
pub use guest::{Guarded, Identity};
pub use handle::{Handle, distrust_peers};
pub use liveness::Mark;
pub use memory_room::memory_room;
pub use pid_namespace::{PidNamespace, ThreadNumbers};
pub use process::{ProcessFd, process_koid, process_name, thread_koid, thread_name};
pub use runtime_dir::{Lock, RuntimeDir};
pub use socket::Socket;
pub use sys::map_over;
pub use unread::unread;
pub use vmo::{Backing, Copying, Mapping, Vmo, available_in, file_size_limit};
pub use wait::{Event, Signals, WaitSet, Waker, wait_one};
pub use wake::{WakeReceiver, WakeSender, wake_pair};
