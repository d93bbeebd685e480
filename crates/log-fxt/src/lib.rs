//! Records the messages of the [`log`](https://docs.rs/log) crate: with the same provider, and in the same
//! traces, as the macros of `trace-provider`.
//!
//! One line in `main` makes the provider and the logger:
//!
//! ```no_run
//! let _provider = log_fxt::init("my-app");
//! log::warn!(target: "net", "retrying in {} s", 5);
//! ```
//!
//! A process has one logger. To keep another one, such as one that prints, pass it to [`Logger::beside`].
//!
//! A message becomes a log record of its thread, `WARN net: retrying in 5 s`. Its target is its category:
//! `trace record --categories net` records the messages of this target. With the feature `kv`, key-value
//! pairs are appended to the message: `log::info!(port = 80; "connected")` becomes
//! `INFO net: connected port=80`.
//!
//! # Cost
//!
//! While nothing is recorded, messages cost as much as without this logger: `log`'s maximum level is that of
//! the program's own logger, and is raised when a recording begins. The program should not call
//! `log::set_max_level`, because the next recording overrides it. A message of up to 1024 bytes is recorded
//! without a lock or an allocation.
//!
//! # Limits
//!
//! Messages of the first few thousand targets have their own category; those of others have the category
//! `log`.
#![forbid(unsafe_code)]

use log::{LevelFilter, Log, Metadata, Record, SetLoggerError};
use std::fmt;
use std::sync::OnceLock;
use trace_engine::engine::{self, Observer, State};
use trace_engine::{Site, write_formatted_log, write_literal_log};
use trace_provider::TraceProvider;

/// The category of messages whose targets have none of their own.
const OTHERS: &str = "log";

/// The maximum levels without and with a recording.
static LEVELS: OnceLock<[LevelFilter; 2]> = OnceLock::new();

/// Makes the logger of the process, and a provider of this name: see [`TraceProvider::new`]. Keep what it
/// returns until the end of `main`.
///
/// # Panics
/// If the process has a logger already.
#[must_use = "the provider is unregistered when this is dropped"]
pub fn init(name: &str) -> TraceProvider {
    Logger::new().install().expect("the process has no other logger");
    TraceProvider::new(name)
}

/// Records messages, by default those of level `Debug` and above.
pub struct Logger {
    level: LevelFilter,
    beside: Option<(Box<dyn Log>, LevelFilter)>,
}

impl Default for Logger {
    fn default() -> Self {
        Self { level: LevelFilter::Debug, beside: None }
    }
}

impl fmt::Debug for Logger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let beside = self.beside.as_ref().map(|(_, level)| level);
        f.debug_struct("Logger").field("level", &self.level).field("beside", &beside).finish()
    }
}

impl Logger {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records this level and those above it.
    #[must_use]
    pub fn level(mut self, level: LevelFilter) -> Self {
        self.level = level;
        self
    }

    /// Passes messages of this level and those above it to another logger, too, whether a recording runs or
    /// not. As without this logger, its `enabled` is called by `log::log_enabled!`, but not for each message:
    /// its `log` decides.
    #[must_use]
    pub fn beside(mut self, logger: Box<dyn Log>, level: LevelFilter) -> Self {
        self.beside = Some((logger, level));
        self
    }

    /// Makes it the logger of the process.
    ///
    /// # Errors
    /// The process has a logger already, which stays.
    pub fn install(self) -> Result<(), SetLoggerError> {
        let own = self.beside.as_ref().map_or(LevelFilter::Off, |(_, level)| *level);
        let levels = [own, own.max(self.level)];
        log::set_boxed_logger(Box::new(self))?;
        // The first logger of the process sets them, and there is no second one.
        let _ = LEVELS.set(levels);
        engine::observe(Observer { on_change, ..Observer::NONE });
        loop {
            let state = engine::state();
            let is_running = matches!(state, State::Started | State::Stopping);
            log::set_max_level(levels[usize::from(is_running)]);
            // A recording that begins or ends at this moment may have set it before.
            if engine::state() == state {
                break;
            }
        }
        Ok(())
    }

    fn records(&self, metadata: &Metadata<'_>) -> Option<&'static Site> {
        if metadata.level() > self.level {
            return None;
        }
        let target = metadata.target();
        let site = Site::of_texts(target, target, &[]).or_else(|| Site::of_others(OTHERS, OTHERS, &[]))?;
        site.is_on().then_some(site)
    }

    /// The other logger, if the message has its level.
    fn other(&self, metadata: &Metadata<'_>) -> Option<&dyn Log> {
        let (logger, level) = self.beside.as_ref()?;
        (metadata.level() <= *level).then_some(&**logger)
    }
}

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.records(metadata).is_some()
            || self.other(metadata).is_some_and(|logger| logger.enabled(metadata))
    }

    fn log(&self, record: &Record<'_>) {
        let metadata = record.metadata();
        if let Some(site) = self.records(metadata) {
            let (level, target, message) = (metadata.level(), metadata.target(), record.args());
            #[cfg(feature = "kv")]
            let pairs = Pairs(record.key_values());
            #[cfg(not(feature = "kv"))]
            let pairs = "";
            // A text without values is a constant of the program, as is the target that the macros give it.
            let is_constant = message.as_str().is_some() && is_target_constant(record) && !has_pairs(record);
            match is_constant {
                true => write_literal_log(site, &format!("{level} {target}: {message}")),
                false => write_formatted_log(site, format_args!("{level} {target}: {message}{pairs}")),
            }
        }
        if let Some(logger) = self.other(metadata) {
            logger.log(record);
        }
    }

    fn flush(&self) {
        if let Some((logger, _)) = &self.beside {
            logger.flush();
        }
    }
}

/// Whether the target is the one that the macros of `log` give a message.
fn is_target_constant(record: &Record<'_>) -> bool {
    record.module_path_static() == Some(record.target())
}

#[cfg(feature = "kv")]
fn has_pairs(record: &Record<'_>) -> bool {
    record.key_values().count() > 0
}

#[cfg(not(feature = "kv"))]
fn has_pairs(_record: &Record<'_>) -> bool {
    false
}

/// The pairs of a message, each behind a space.
#[cfg(feature = "kv")]
struct Pairs<'a>(&'a dyn log::kv::Source);

#[cfg(feature = "kv")]
impl fmt::Display for Pairs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use log::kv::{Error, Key, Value, VisitSource};

        struct Visitor<'a, 'b>(&'a mut fmt::Formatter<'b>);

        impl<'kvs> VisitSource<'kvs> for Visitor<'_, '_> {
            fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), Error> {
                Ok(write!(self.0, " {key}={value}")?)
            }
        }

        self.0.visit(&mut Visitor(f)).map_err(|_| fmt::Error)
    }
}

/// On the provider's thread, before the manager learns of it.
fn on_change(state: State) {
    let Some([without, with]) = LEVELS.get() else { return };
    match state {
        State::Started => log::set_max_level(*with),
        State::Stopped => log::set_max_level(*without),
        _ => {}
    }
}
