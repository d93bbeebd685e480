//! What is recorded.

use tracing_core::{LevelFilter, Metadata};

/// Which spans and events are recorded, and how. By default those of level `DEBUG` and above.
#[derive(Clone, Debug)]
pub struct Options {
    level: LevelFilter,
    /// Prefixes of targets, the longest first.
    targets: Vec<(String, LevelFilter)>,
    pub(crate) has_lifetimes: bool,
    pub(crate) has_logs: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { level: LevelFilter::DEBUG, targets: Vec::new(), has_lifetimes: false, has_logs: false }
    }
}

impl Options {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records this level and those above it, unless a target has another.
    #[must_use]
    pub fn level(mut self, level: LevelFilter) -> Self {
        self.level = level;
        self
    }

    /// Records this level and those above it of a target, and of those below it: `hyper` also means
    /// `hyper::client`.
    #[must_use]
    pub fn target(mut self, target: impl Into<String>, level: LevelFilter) -> Self {
        self.targets.push((target.into(), level));
        self.targets.sort_by_key(|(target, _)| core::cmp::Reverse(target.len()));
        self
    }

    /// Records each span as an asynchronous operation, from its creation until its last handle is dropped,
    /// and the times in which it is entered as its polls. By default, only spans that are entered more than
    /// once are operations, from their first entry on.
    #[must_use]
    pub const fn lifetimes(mut self) -> Self {
        self.has_lifetimes = true;
        self
    }

    /// Records events as messages, as `log-fxt` does, instead of instants: level, target, message and the
    /// fields as `key=value`, such as `INFO net: connected port=80`. If an event has no message, its `name:`
    /// is used instead, if it has one.
    ///
    /// Message and fields are cut to 4096 bytes each. Fields `counter.NAME` are still recorded as samples,
    /// and are not part of the message.
    #[must_use]
    pub const fn events_as_logs(mut self) -> Self {
        self.has_logs = true;
        self
    }

    /// For a layer without a filter of its own, which checks in each hook whether a recording runs. It costs
    /// less than [`Options::layer`] wherever another layer enables the same callsites, and in recordings. But
    /// it keeps all callsites enabled while nothing is recorded, which costs what the registry costs, even if
    /// no other layer of the registry enables them.
    #[cfg(feature = "layer")]
    #[must_use]
    pub const fn always(self) -> Always {
        Always(self)
    }

    /// Whether a callsite is recorded at all.
    pub(crate) fn wants(&self, metadata: &Metadata<'_>) -> bool {
        let is_below = |prefix: &str| {
            let rest = metadata.target().strip_prefix(prefix);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        };
        let of_target = self.targets.iter().find(|(target, _)| is_below(target));
        *metadata.level() <= of_target.map_or(self.level, |(_, level)| *level)
    }

    /// The most verbose level of any target.
    pub(crate) fn max_level(&self) -> LevelFilter {
        self.targets.iter().map(|(_, level)| *level).fold(self.level, LevelFilter::max)
    }
}

/// [`Options`] of a layer without a filter of its own: see [`Options::always`].
#[cfg(feature = "layer")]
#[derive(Clone, Debug)]
pub struct Always(pub(crate) Options);
