//! The provider where nothing is recorded: with the feature `off`, and on other systems than Linux. It starts
//! no thread, opens nothing and registers nowhere.

use std::io;
use trace_engine::BufferMode;

/// Markers in the form of Android's, which do nothing here.
pub mod atrace {
    /// The tags of markers, as in Android. Each is a category, such as `atrace:view`; `atrace` is all.
    pub mod tag {
        pub use crate::marker_tags::*;
    }

    /// No: there is nothing to write to.
    #[must_use]
    pub fn is_enabled() -> bool {
        false
    }

    /// No.
    #[must_use]
    pub fn is_tag_enabled(_tags: u64) -> bool {
        false
    }

    /// None.
    #[must_use]
    pub fn enabled_tags(_tags: u64) -> u64 {
        0
    }

    /// Does nothing.
    pub fn begin(_tag: u64, _name: &str) {}

    /// Does nothing.
    pub fn end(_tag: u64) {}

    /// Does nothing.
    pub fn begin_async(_tag: u64, _name: &str, _cookie: i32) {}

    /// Does nothing.
    pub fn end_async(_tag: u64, _name: &str, _cookie: i32) {}

    /// Does nothing.
    pub fn counter(_tag: u64, _name: &str, _value: i64) {}

    /// Does nothing.
    pub fn instant_of(_tag: u64, _name: &str) {}

    /// A section that is not recorded.
    pub fn section_of(_tag: u64, _name: &str) -> Section {
        Section(())
    }

    /// Does nothing.
    pub fn begin_section(_name: &str) {}

    /// Does nothing.
    pub fn end_section() {}

    /// Does nothing.
    pub fn begin_async_section(_name: &str, _cookie: i32) {}

    /// Does nothing.
    pub fn end_async_section(_name: &str, _cookie: i32) {}

    /// Does nothing.
    pub fn set_counter(_name: &str, _value: i64) {}

    /// Does nothing.
    pub fn instant(_name: &str) {}

    /// A section that is not recorded.
    #[derive(Debug)]
    #[must_use = "the section ends when it is dropped"]
    pub struct Section(());

    impl Drop for Section {
        fn drop(&mut self) {}
    }

    /// A section that is not recorded.
    pub fn section(_name: &str) -> Section {
        Section(())
    }
}

/// Recording from a program's first line on, which there is none of here.
pub mod startup {
    pub use crate::startup_options::Options;
    use std::io;
    pub use trace_engine::BufferMode;

    /// Records nothing.
    ///
    /// # Errors
    /// None.
    pub fn begin(_options: &Options) -> io::Result<()> {
        Ok(())
    }

    /// Records nothing.
    ///
    /// # Errors
    /// None.
    pub fn begin_by_arguments() -> io::Result<bool> {
        Ok(false)
    }

    /// Records nothing.
    pub fn begin_by_environment() -> bool {
        false
    }

    /// Writes nothing.
    pub fn save() {}

    /// None: the flag has no meaning here.
    #[must_use]
    pub fn categories_of(_argument: &str) -> Option<&str> {
        None
    }
}

/// Recordings inside one process, which there are none of here.
#[cfg(feature = "local")]
pub mod local {
    use super::startup::Options;
    use std::io;
    use std::path::Path;
    use std::time::Duration;

    /// What was recorded.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct Summary {
        /// Events in the archive.
        pub events: u64,
        /// Events that are missing.
        pub dropped: Option<u64>,
    }

    fn none() -> io::Error {
        io::Error::new(io::ErrorKind::Unsupported, "nothing is recorded on this platform, or with `off`")
    }

    /// Records nothing.
    ///
    /// # Errors
    /// Always.
    pub fn start(_options: &Options) -> io::Result<()> {
        Err(none())
    }

    /// No.
    #[must_use]
    pub fn is_recording() -> bool {
        false
    }

    /// None.
    ///
    /// # Errors
    /// Always.
    pub fn so_far() -> io::Result<Summary> {
        Err(none())
    }

    /// Nothing is going on.
    pub fn stop() -> bool {
        false
    }

    /// Delivers nothing.
    ///
    /// # Errors
    /// Always.
    pub fn flush(_deliver: impl FnMut(&[u8], bool)) -> io::Result<Summary> {
        Err(none())
    }

    /// Writes nothing.
    ///
    /// # Errors
    /// Always.
    pub fn flush_to_file(_path: &Path) -> io::Result<Summary> {
        Err(none())
    }

    /// Writes nothing.
    ///
    /// # Errors
    /// Always.
    pub fn snapshot_to_file(_path: &Path, _last: Option<Duration>) -> io::Result<Summary> {
        Err(none())
    }

    /// Does nothing.
    pub fn prepare_snapshot(_path: &Path, _last: Option<Duration>) {}

    /// Does nothing.
    pub fn request_snapshot() {}

    /// Nothing was requested.
    pub fn wait_for_snapshot(_timeout: Duration) -> bool {
        false
    }
}

/// What an event takes of its thread's time, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventCosts {
    /// An instant without arguments.
    pub instant_picoseconds: u64,
    /// A complete duration without arguments, with both readings of the clock.
    pub duration_picoseconds: u64,
    /// A counter of one value.
    pub counter_picoseconds: u64,
}

/// None: nothing is recorded here.
#[must_use]
pub fn event_costs() -> Option<EventCosts> {
    None
}

/// Does nothing.
pub fn serve_caller_of_sudo() {}

/// Name and description of a category.
pub type Category = (String, String);

/// The configuration of a recording, which does not exist here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// What happens when the buffer is full.
    pub mode: BufferMode,
    /// The categories, as the client wrote them; none means all.
    pub categories: Vec<String>,
}

/// None: there is no recording.
#[must_use]
pub fn config() -> Option<Config> {
    None
}

/// Ticks of [`now`](crate::now) in a second, on systems whose clock counts nanoseconds.
#[must_use]
pub fn ticks_per_second() -> u64 {
    1_000_000_000
}

/// A report of what a program uses memory for, which is never requested here.
#[derive(Debug)]
pub struct MemoryDump(());

impl MemoryDump {
    /// The number of the dump.
    #[must_use]
    pub fn id(&self) -> u64 {
        0
    }

    /// More than sums is wanted.
    #[must_use]
    pub fn is_detailed(&self) -> bool {
        false
    }

    /// Does nothing.
    pub fn add(&mut self, _name: &str, _bytes: u64) {}
}

/// Drops the function, which would never be called.
pub fn on_memory_dump(_dump: impl Fn(&mut MemoryDump) + Send + Sync + 'static) {}

/// The result of a synchronous registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Registration {
    /// No manager runs; here there is none.
    NoManager,
    /// A manager knows the provider.
    Registered {
        /// A trace is running: events will be recorded in a moment.
        already_started: bool,
    },
    /// The manager does not serve this provider, which runs on untraced.
    Refused {
        /// Why, in a sentence.
        reason: String,
    },
}

/// A provider that does nothing.
#[derive(Debug)]
pub struct TraceProvider(());

impl TraceProvider {
    /// Registers nowhere.
    #[must_use = "the provider is unregistered when this is dropped"]
    pub fn new(_name: &str) -> Self {
        Self(())
    }

    /// Registers nowhere: there is no manager.
    #[must_use = "the provider is unregistered when this is dropped"]
    pub fn new_synchronously(_name: &str) -> (Self, Registration) {
        (Self(()), Registration::NoManager)
    }

    /// Drops the function, which would never be called.
    pub fn describe_categories(&self, _describe: impl Fn() -> Vec<Category> + Send + Sync + 'static) {}

    /// Drops the function, which would never be called.
    #[cfg(feature = "dumps")]
    pub fn on_memory_dump(&self, dump: impl Fn(&mut MemoryDump) + Send + Sync + 'static) {
        on_memory_dump(dump);
    }

    /// None: there is no recording.
    #[must_use]
    pub fn config(&self) -> Option<Config> {
        None
    }

    /// Does nothing.
    pub fn flush(&self) {}
}

/// So that a program may drop it at a place of its choice, without a remark of the compiler.
impl Drop for TraceProvider {
    fn drop(&mut self) {}
}

/// A provider in a loop of the application's, which has nothing to do.
#[derive(Debug)]
pub struct PolledProvider {
    /// Never readable.
    #[cfg(unix)]
    descriptor: std::os::unix::net::UnixStream,
    #[cfg(unix)]
    _other_end: std::os::unix::net::UnixStream,
}

impl PolledProvider {
    /// Registers nowhere.
    ///
    /// # Errors
    /// The process has no descriptors left.
    pub fn new(_name: &str) -> io::Result<Self> {
        #[cfg(unix)]
        {
            let (descriptor, _other_end) = std::os::unix::net::UnixStream::pair()?;
            Ok(Self { descriptor, _other_end })
        }
        #[cfg(not(unix))]
        Ok(Self {})
    }

    /// Does nothing.
    pub fn dispatch(&mut self) {}

    /// Does nothing.
    pub fn flush(&self) {}

    /// Drops the function, which would never be called.
    pub fn describe_categories(&self, _describe: impl Fn() -> Vec<Category> + Send + Sync + 'static) {}

    /// Drops the function, which would never be called.
    #[cfg(feature = "dumps")]
    pub fn on_memory_dump(&self, dump: impl Fn(&mut MemoryDump) + Send + Sync + 'static) {
        on_memory_dump(dump);
    }
}

#[cfg(unix)]
impl std::os::fd::AsFd for PolledProvider {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[cfg(unix)]
impl std::os::fd::AsRawFd for PolledProvider {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.descriptor.as_raw_fd()
    }
}

impl Drop for PolledProvider {
    fn drop(&mut self) {}
}
